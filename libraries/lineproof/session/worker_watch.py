"""The work of a router's workers in each trial, read between the trials, when no frame is on its way.

A command beside the frames would take time from the processors that forward them, and VPP stops all its workers for a
moment to show their counters: that can lose frames.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from ..core.trial import During, Load, Outcome
from ..core.under_load import rates
from ..errors import TestbedError

EVERY = 1.0
"""Real seconds between two readings: trials of a simulation, whose clock is faster, are not all followed by one."""


class WorkerWatch:
    """Trials of a sentence by *measure*, whose readings have the workers' rates. *work*: ``Router.work``."""

    def __init__(self, work: Callable[[], Mapping[str, float]], measure: Callable[..., Outcome]) -> None:
        self._work, self._measure = work, measure
        self._before: Mapping[str, float] | None = None
        self._seconds, self._next = 0.0, time.monotonic()

    def measure(self, load: Load, duration: float, during: During | None = None) -> Outcome:
        """Measure one trial; its readings have the rates since the last trial that has some, in seconds of traffic.

        A trial with *during* reads the router itself. A router that does not answer is not asked again.
        """
        if during is not None:
            return self._measure(load, duration, during)
        if self._before is None:
            self._before = self._read()
        outcome = self._measure(load, duration)
        self._seconds += max(outcome.duration, outcome.elapsed)
        if not self._before or time.monotonic() < self._next:
            return outcome
        now = self._read()
        found = {name: round(rate, 3) for name, rate in rates(self._before, now, self._seconds).items()}
        self._before, self._seconds, self._next = now, 0.0, time.monotonic() + EVERY
        return replace(outcome, readings={**outcome.readings, **found})

    def _read(self) -> Mapping[str, float]:
        try:
            return self._work()
        except TestbedError:  # no verdict rests on it
            return {}
