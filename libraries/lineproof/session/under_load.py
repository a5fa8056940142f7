"""A trial of its own, after the verdict: what the router reports of its workers and queues while traffic flows.

No verdict rests on it, and no trial that counts is disturbed by it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

from ..core.quantity import Requirement
from ..core.trial import DURING_READING, Load
from ..core.under_load import RouterLoad, SampledStacks, UnderLoad
from ..errors import TestbedError
from .session import Session

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
    traffic, router, speed = session.traffic, session.router.driver, session.testbed.facts.clock_speed
    traffic.put_for(requirement)
    began = time.monotonic()
    router.under_load(lambda: None)
    spare = SPARE_LEAST + SPARE_FACTOR * (time.monotonic() - began) * speed
    found: list[RouterLoad] = []

    def during(wait: Callable[[float], None]) -> None:
        wait(RAMP)
        found.append(router.under_load(lambda: wait(SECONDS)))

    sent = math.ceil(10 * (RAMP + SECONDS + spare)) / 10
    outcome = traffic.measure(load, sent, during)
    took = outcome.readings.get(DURING_READING, 0.0)
    if found and took >= sent:  # the router answered late: once more, and long enough for that
        found.clear()
        sent = math.ceil(10 * SPARE_FACTOR * took) / 10
        outcome = traffic.measure(load, sent, during)
        took = outcome.readings.get(DURING_READING, 0.0)
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
    router, speed = session.router.driver, session.testbed.facts.clock_speed
    began = time.monotonic()
    tried = router.sample_stacks(TRIED_SECONDS)
    if tried.why:
        return tried
    spare = SPARE_LEAST + SPARE_FACTOR * (time.monotonic() - began) * speed
    found: list[SampledStacks] = []

    def during(wait: Callable[[float], None]) -> None:
        wait(RAMP)
        found.append(router.sample_stacks(STACKS_SECONDS))

    sent = math.ceil(10 * (RAMP + STACKS_SECONDS * speed + spare)) / 10
    try:
        outcome = session.traffic.measure(load, sent, during)
    except TestbedError as error:  # the readings stay
        return SampledStacks(STACKS_SECONDS, why=str(error))
    if not found:
        return SampledStacks(STACKS_SECONDS, why="a port of the generator sent no frame")
    took = outcome.readings.get(DURING_READING, 0.0)
    if not found[0].why and took >= outcome.duration:
        return SampledStacks(STACKS_SECONDS, why=f"it took until {took:.1f} s, and traffic ended after {sent:g} s")
    return found[0]
