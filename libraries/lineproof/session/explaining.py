"""Reads the router under load, and joins a verdict to the rules of :mod:`lineproof.routers.why`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from ..core.explanation import Why
from ..core.quantity import Requirement
from ..core.router_facts import RouterFacts
from ..core.rule import Ruling
from ..core.trial import DURING_READING, Load, Outcome, Trial
from ..core.under_load import SampledStacks, UnderLoad
from ..core.verdict import Verdict
from ..errors import TestbedError
from ..routers.why import GENERATOR, TriedLoad, explanation
from .session import Session

T = TypeVar("T")


def explained(verdict: Verdict, facts: RouterFacts | None, load: UnderLoad | None) -> Verdict:
    """*verdict* with the explanation of its loss; it stays what it is otherwise.

    A FAIL that no loss made has none. An INCONCLUSIVE one proves nothing about the router: only the generator is named.
    *facts*, *load*: None where they were not read.
    """
    last = verdict.worst_ledger.last_trial if verdict.worst_ledger else None
    trials = [trial for trial in verdict.trials if last in (None, trial.number)]
    if not trials or verdict.ruling is Ruling.PASS or trials[-1].seconds.high <= 0:
        return verdict
    trial, profile = trials[-1], verdict.requirement.profile
    pps = (frames / trial.seconds.high for frames in (trial.intended, trial.offered, trial.forwarded))
    tried = TriedLoad(profile.mean_size, profile.flows.count or None, verdict.link_bps, *pps)
    found = explanation(tried, verdict.worst_ledger, facts, load)
    if verdict.ruling is Ruling.INCONCLUSIVE:
        fits = found is not None and found.rule == GENERATOR
    else:
        fits = _fails_by_loss(verdict, trial)
    return replace(verdict, why=Why(found if fits else None, load))


def _fails_by_loss(verdict: Verdict, trial: Trial) -> bool:
    """Return whether *verdict* may be a FAIL because the router certainly lost frames in *trial*."""
    lost = any(trial.lost_frames(row).low > 0 for row in trial.outcome.directions)
    return lost and verdict.requirement.quantity.loss_explains


SECONDS = 1.0
"""Seconds of the testbed's clock between the two readings of the router."""

RAMP = 0.2
"""Seconds of traffic before the first reading."""

SPARE_LEAST, SPARE_FACTOR = 0.5, 2.0
"""Seconds more that are sent at least, and times as long as the readings took without traffic."""

FLAME_GRAPH = "flame graph"
STACKS_SECONDS, TRIED_SECONDS = 2.0, 0.5
"""Real seconds that stacks are sampled, and without traffic before, which shows whether that works and takes how long.
"""


def read_under_load(session: Session, requirement: Requirement, load: Load) -> UnderLoad:
    """Send *load* into each port of the sentence for some seconds, and read the router meanwhile.

    Raises TestbedError if there is no traffic; what the router does not answer is in ``unread``.
    """
    router = session.router.driver
    session.traffic.put_for(requirement)
    _, spare = _timed(session, lambda: router.under_load(lambda: None))

    def read(wait: Callable[[float], None]) -> UnderLoad:
        return router.under_load(lambda: wait(SECONDS))

    found, outcome, problem = _read_meanwhile(session, load, SECONDS + spare, read)
    if found and problem:  # the router answered late: once more, and long enough for that
        took = outcome.readings.get(DURING_READING, 0.0)
        found, outcome, problem = _read_meanwhile(session, load, SPARE_FACTOR * took, read)
    seconds = max(outcome.duration, outcome.elapsed)
    offered, forwarded = (
        sum(getattr(direction, name) for direction in outcome.directions) / seconds for name in ("offered", "forwarded")
    )
    traffic = UnderLoad(load.pps * len(outcome.directions), offered, forwarded)
    if found is None or problem:
        # without figures, because they are not of traffic alone
        found = found or traffic
        return replace(traffic, raw=found.raw, unread={**found.unread, "all": problem})
    found = replace(found, load_pps=traffic.load_pps, offered_pps=offered, forwarded_pps=forwarded)
    sampled = _stacks_under_load(session, load)
    unread = {**found.unread, FLAME_GRAPH: sampled.why} if sampled.why else found.unread
    return replace(found, sampled=sampled, unread=unread)


def _timed(session: Session, read: Callable[[], T]) -> tuple[T, float]:
    """Return what *read* gives without traffic, and the seconds of the testbed's clock to allow for it with traffic."""
    began = time.monotonic()
    found = read()
    took = (time.monotonic() - began) * session.testbed.facts.clock_speed
    return found, SPARE_LEAST + SPARE_FACTOR * took


def _read_meanwhile(
    session: Session, load: Load, seconds: float, read: Callable[[Callable[[float], None]], T]
) -> tuple[T | None, Outcome, str]:
    """Send *load* for RAMP and *seconds*, and *read* after RAMP; returns also why that is not of traffic alone."""
    found: list[T] = []

    def during(wait: Callable[[float], None]) -> None:
        wait(RAMP)
        found.append(read(wait))

    sent = math.ceil(10 * (RAMP + seconds)) / 10
    outcome = session.traffic.measure(load, sent, during)
    took = outcome.readings.get(DURING_READING, 0.0)
    if not found:
        return None, outcome, "a port of the generator sent no frame"
    late = f"the router was read until {took:.1f} s, and traffic ended after {sent:g} s"
    return found[0], outcome, late if took >= outcome.duration else ""


def _stacks_under_load(session: Session, load: Load) -> SampledStacks:
    """Sample the router's stacks while *load* is sent once more: the other readings are not disturbed."""
    router, speed = session.router.driver, session.testbed.facts.clock_speed
    tried, spare = _timed(session, lambda: router.sample_stacks(TRIED_SECONDS))
    if tried.why:
        return tried
    try:
        found, _, problem = _read_meanwhile(
            session, load, STACKS_SECONDS * speed + spare, lambda wait: router.sample_stacks(STACKS_SECONDS)
        )
    except TestbedError as error:  # the readings stay
        return SampledStacks(STACKS_SECONDS, why=str(error))
    if found is None or (problem and not found.why):
        return SampledStacks(STACKS_SECONDS, why=problem)
    return found
