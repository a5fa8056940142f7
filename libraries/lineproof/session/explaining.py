"""Reads the router under load, and joins a verdict to the rules of :mod:`lineproof.routers.why`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeVar

from ..core.quantity import Requirement
from ..core.registry import SAMPLERS, extensions
from ..core.router_facts import RouterFacts
from ..core.rule import Ruling
from ..core.trial import DURING_READING, Load, Outcome
from ..core.under_load import TriedLoad, UnderLoad, Why
from ..core.verdict import Verdict
from ..routers.why import GENERATOR, LATE, explanation
from .session import Session

T = TypeVar("T")


def explained(verdict: Verdict, facts: RouterFacts | None, load: UnderLoad | None) -> Verdict:
    """Return *verdict* with the explanation of its loss, or of late frames; else as it is.

    Another FAIL that no loss made has none. An INCONCLUSIVE one proves nothing about the router: only the generator is
    named. *facts*, *load*: None where they were not read.
    """
    last = verdict.worst_ledger.last_trial if verdict.worst_ledger else None
    trials = [trial for trial in verdict.weighing if last in (None, trial.number)]
    if not trials or verdict.ruling is Ruling.PASS or trials[-1].seconds.high <= 0:
        return verdict
    trial, profile = trials[-1], verdict.requirement.profile
    pps = (frames / trial.seconds.high for frames in (trial.intended, trial.offered, trial.forwarded))
    tried = TriedLoad(profile.mean_size, profile.flows.count or None, verdict.promise.link_bps, *pps)
    why = explanation(tried, verdict.worst_ledger, facts, load)
    if verdict.ruling is Ruling.INCONCLUSIVE:
        fits = why is not None and why.rule == GENERATOR
    else:
        # the router certainly lost frames, and a FAIL may come of it
        lost = any(trial.lost_frames(row).low > 0 for row in trial.outcome.directions)
        quantity = verdict.requirement.quantity
        fits = quantity.loss_explains and (
            lost or ("probes" in quantity.needs and why is not None and why.rule == LATE)
        )
    return replace(verdict, why=Why(why if fits else None, load))


SECONDS = 1.0
"""Seconds of the testbed's clock between the two readings of the router."""

ALL = "all"
"""Key of ``unread`` of a reading that was not of traffic alone."""

RAMP = 0.2
"""Seconds of traffic before the first reading."""

SPARE_LEAST, SPARE_FACTOR = 0.5, 2.0
"""Seconds more that are sent at least, and times as long as the readings took without traffic."""


def read_under_load(session: Session, requirement: Requirement, load: Load) -> UnderLoad:
    """Send *load* into each port of the sentence for some seconds, and read the router meanwhile.

    Raises TestbedError if there is no traffic; what the router does not answer is in ``unread``.
    """
    router = session.router.driver
    session.traffic.put_for(requirement)
    _, spare = timed(session, lambda: router.under_load(lambda: None))

    def read(wait: Callable[[float], None]) -> UnderLoad:
        return router.under_load(lambda: wait(SECONDS))

    reading, outcome, problem = read_meanwhile(session, load, SECONDS + spare, read)
    if reading and problem:  # the router answered late: once more, and long enough for that
        took = outcome.readings.get(DURING_READING, 0.0)
        reading, outcome, problem = read_meanwhile(session, load, SPARE_FACTOR * took, read)
    seconds = max(outcome.duration, outcome.elapsed)
    offered, forwarded = (
        sum(getattr(direction, name) for direction in outcome.directions) / seconds for name in ("offered", "forwarded")
    )
    traffic = UnderLoad(load.pps * len(outcome.directions), offered, forwarded)
    if reading is None or problem:
        # without figures, because they are not of traffic alone
        reading = reading or traffic
        return replace(traffic, raw=reading.raw, unread={**reading.unread, ALL: problem})
    return replace(reading, load_pps=traffic.load_pps, offered_pps=offered, forwarded_pps=forwarded)


def timed(session: Session, read: Callable[[], T]) -> tuple[T, float]:
    """Return what *read* gives without traffic, and the seconds of the testbed's clock to allow for it with traffic."""
    began = time.monotonic()
    reading = read()
    took = (time.monotonic() - began) * session.testbed.facts.clock_speed
    return reading, SPARE_LEAST + SPARE_FACTOR * took


def read_meanwhile(
    session: Session, load: Load, seconds: float, read: Callable[[Callable[[float], None]], T]
) -> tuple[T | None, Outcome, str]:
    """Send *load* for RAMP and *seconds*, and *read* after RAMP; returns also why that is not of traffic alone."""
    readings: list[T] = []

    def during(wait: Callable[[float], None]) -> None:
        wait(RAMP)
        readings.append(read(wait))

    sent = math.ceil(10 * (RAMP + seconds)) / 10
    outcome = session.traffic.measure(load, sent, during)
    took = outcome.readings.get(DURING_READING, 0.0)
    if not readings:
        return None, outcome, "a port of the generator sent no frame"
    late = f"the router was read until {took:.1f} s, and traffic ended after {sent:g} s"
    return readings[0], outcome, late if took >= outcome.duration else ""


@dataclass(frozen=True, slots=True)
class SampledLoad:
    """More of a router under load: ``texts`` for its telemetry, a ``picture`` (SVG), or ``why`` there is none."""

    texts: Mapping[str, str] = field(default_factory=dict)
    picture: str = ""
    why: str = ""


class Sampler:
    """Reads more of a router, while a load is sent once more. Extensions, by entry point, have each its ``name``."""

    name: ClassVar[str]

    def sample(self, session: Session, load: Load, reading: UnderLoad, title: str) -> SampledLoad:
        """Return a sample at *load*, whose other readings were *reading*. Never raises TestbedError."""
        raise NotImplementedError


def samples(session: Session, load: Load, reading: UnderLoad, title: str) -> dict[str, SampledLoad]:
    """Return a sample of each sampler by name; none if *reading* is not of traffic alone. *title*: of pictures."""
    samplers = [] if ALL in reading.unread else extensions(SAMPLERS, Sampler)
    return {sampler.name: sampler.sample(session, load, reading, title) for sampler in samplers}
