"""Reads the router under load, and joins a verdict to the rules of :mod:`lineproof.routers.why`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from ..core.explanation import Why
from ..core.frame_sizes import frame_sizes
from ..core.quantity import Requirement
from ..core.router_facts import RouterFacts
from ..core.rule import Ruling
from ..core.trial import DURING_READING, Load, Outcome, Trial
from ..core.under_load import RouterLoad, SampledStacks, UnderLoad
from ..core.verdict import Verdict
from ..errors import TestbedError
from ..generators.streams import sizes_sent
from ..routers.why import GENERATOR, explanations
from ..routers.why_evidence import TriedLoad
from .session import Session

GROWN = 3.5
"""Bytes from which on frames came back longer: a tag or a label has 4, and less may come of a few frames of others."""


def explained(verdict: Verdict, facts: RouterFacts | None, load: UnderLoad | None) -> Verdict:
    """*verdict* with the explanations of its loss; it stays what it is otherwise.

    A FAIL that no loss made has none. An INCONCLUSIVE one proves nothing about the router: only the generator is named.
    *facts*, *load*: None where they were not read.
    """
    trial = _worst_trial(verdict)
    if trial is None or verdict.ruling is Ruling.PASS or trial.seconds.high <= 0:
        return verdict
    found = explanations(_tried(verdict, trial), verdict.worst_ledger, facts, load)
    if verdict.ruling is Ruling.INCONCLUSIVE:
        found = tuple(item for item in found if item.rule == GENERATOR)
    elif not _fails_by_loss(verdict, trial):
        found = ()
    return replace(verdict, why=Why(found, load))


def _fails_by_loss(verdict: Verdict, trial: Trial) -> bool:
    """Return whether *verdict* may be a FAIL because the router certainly lost frames in *trial*."""
    lost = any(trial.lost_frames(row).low > 0 for row in trial.outcome.directions)
    return lost and verdict.requirement.quantity.loss_explains


def _worst_trial(verdict: Verdict) -> Trial | None:
    """The trial that the worst ledger ends with; the last one where there is no ledger."""
    last = verdict.worst_ledger.last_trial if verdict.worst_ledger else None
    found = [trial for trial in verdict.trials if last in (None, trial.number)]
    return found[-1] if found else None


def _tried(verdict: Verdict, trial: Trial) -> TriedLoad:
    profile, seconds = verdict.requirement.profile, trial.seconds.high
    return TriedLoad(
        profile.mean_size,
        profile.flows.count or None,
        verdict.link_bps,
        trial.intended / seconds,
        trial.offered / seconds,
        trial.forwarded / seconds,
        _grown(verdict, trial),
    )


def _grown(verdict: Verdict, trial: Trial) -> dict[int, float]:
    """By receiving port the mean size of frames that came back longer, by the generator's counts of bytes.

    A card that counts no FCS of what it receives hides a tag.
    """
    profile = verdict.requirement.profile
    found = frame_sizes(trial.outcome.directions, *sizes_sent(profile, bool(trial.outcome.latency)))
    grown = {row.rx_port: row.received_bytes - row.sent_bytes for row in found if not row.explained}
    return {port: profile.mean_size + more for port, more in grown.items() if more > GROWN}


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
    began = time.monotonic()
    router.under_load(lambda: None)
    sent = _seconds(session, began, SECONDS)

    def read(wait: Callable[[float], None]) -> RouterLoad:
        return router.under_load(lambda: wait(SECONDS))

    found, outcome, took = _meanwhile(session, load, sent, read)
    if found and took >= sent:  # the router answered late: once more, and long enough for that
        sent = math.ceil(10 * SPARE_FACTOR * took) / 10
        found, outcome, took = _meanwhile(session, load, sent, read)
    reading = found[0] if found else RouterLoad(unread={"all": "a port of the generator sent no frame"})
    if found and took >= outcome.duration:
        reading = reading.spoilt(f"the router was read until {took:.1f} s, and traffic ended after {sent:g} s")
    seconds = max(outcome.duration, outcome.elapsed)
    offered, forwarded = (
        sum(getattr(direction, name) for direction in outcome.directions) / seconds for name in ("offered", "forwarded")
    )
    under_load = reading.at(load.pps * len(outcome.directions), offered, forwarded)
    if "all" in reading.unread:
        return under_load
    sampled = _stacks_under_load(session, load)
    unread = {**under_load.unread, FLAME_GRAPH: sampled.why} if sampled.why else under_load.unread
    return replace(under_load, sampled=sampled, unread=unread)


def _stacks_under_load(session: Session, load: Load) -> SampledStacks:
    """Sample the router's stacks while *load* is sent once more: the other readings are not disturbed."""
    router, began = session.router.driver, time.monotonic()
    tried = router.sample_stacks(TRIED_SECONDS)
    if tried.why:
        return tried
    sent = _seconds(session, began, STACKS_SECONDS * session.testbed.facts.clock_speed)
    try:
        found, outcome, took = _meanwhile(session, load, sent, lambda wait: router.sample_stacks(STACKS_SECONDS))
    except TestbedError as error:  # the readings stay
        return SampledStacks(STACKS_SECONDS, why=str(error))
    if not found:
        return SampledStacks(STACKS_SECONDS, why="a port of the generator sent no frame")
    if not found[0].why and took >= outcome.duration:
        return SampledStacks(STACKS_SECONDS, why=f"it took until {took:.1f} s, and traffic ended after {sent:g} s")
    return found[0]


def _seconds(session: Session, began: float, seconds: float) -> float:
    """Return how long to send for a reading of so many *seconds*, of which a rehearsal *began* then and has ended."""
    spare = SPARE_LEAST + SPARE_FACTOR * (time.monotonic() - began) * session.testbed.facts.clock_speed
    return math.ceil(10 * (RAMP + seconds + spare)) / 10


T = TypeVar("T")


def _meanwhile(
    session: Session, load: Load, sent: float, read: Callable[[Callable[[float], None]], T]
) -> tuple[list[T], Outcome, float]:
    """Return what was *read* while *load* was *sent* for so many s, the counts, and when it had been read."""
    found: list[T] = []

    def during(wait: Callable[[float], None]) -> None:
        wait(RAMP)
        found.append(read(wait))

    outcome = session.traffic.measure(load, sent, during)
    return found, outcome, outcome.readings.get(DURING_READING, 0.0)
