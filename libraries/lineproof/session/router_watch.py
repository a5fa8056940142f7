"""Readings of a router's counters: one that failed is tried once more, and a restart of the router is noticed.

The work of its workers in each trial is read between the trials, when no frame is on its way. A command beside the
frames would take time from the processors that forward them, and VPP stops all its workers for a moment to show their
counters: that can lose frames.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from ..core.telemetry import Side, Telemetry
from ..core.trial import During, Load, Outcome
from ..core.under_load import rates
from ..errors import BREAKDOWN_ERRORS, TestbedError, in_words
from ..routers.described import Router
from ..visible import shortened

T = TypeVar("T")

PAUSE = 1.0
"""Seconds of the testbed's clock before a reading that failed is tried once more."""


class RouterRestarted(TestbedError):
    """The router restarted between two readings."""


class RouterWatch:
    """Readings of *router*. *clock_speed*: seconds of its clock per real second; *problems*: of the testbed.

    *step*: s by which the uptime that it shows advances, where that is more than a second.
    """

    def __init__(
        self, router: Router, clock_speed: float, problems: Callable[[], tuple[str, ...]], step: float = 0.0
    ) -> None:
        self.router, self._speed, self._problems, self._step = router, clock_speed, problems, step
        self._booted: float | None = None
        self._read_at = 0.0
        self._restarted: RouterRestarted | None = None
        self.restarts = 0
        """How many restarts were noticed."""
        self.sides: tuple[Side, ...] = ()
        """Whose neighbour entries the reading after a sentence has: those of a router that has shown some."""

    def configured(self) -> None:
        """Note that the router was configured again: an earlier restart no longer matters."""
        self._restarted = None

    @property
    def restarted(self) -> bool:
        """Return whether the router has restarted since it was configured."""
        return self._restarted is not None

    def read(self) -> Telemetry:
        """Counters now. Raises RouterRestarted if its boot time has changed, else TestbedError if it cannot be read.

        RouterRestarted is raised again until the router is configured again: its configuration may be lost.
        """
        if self._restarted is not None:
            raise self._restarted
        telemetry = self.router.read()
        if telemetry.uptime is None:
            return telemetry
        # the uptime may be in whole seconds, and late
        now, tolerance = time.monotonic() * self._speed, (5.0 + self._step) * self._speed
        booted, before, read_at = now - telemetry.uptime, self._booted, self._read_at
        self._booted, self._read_at = booted, now
        # one that says it was up at its last reading already was only given another time
        if before is not None and booted - tolerance > before and booted + tolerance > read_at:
            self.restarts += 1
            self._restarted = RouterRestarted(
                f"the router restarted: it says that it is up for {telemetry.uptime:.0f} s; look at its console and run"
                " again"
            )
            raise self._restarted
        return telemetry

    def read_again(self) -> Telemetry:
        """:meth:`read`, a second time if the first failed. Raises as it does."""
        return self._again(self.read)

    def silence(self) -> str:
        """Return why it cannot be read; "" if it can, or says that it has restarted."""
        try:
            self.read_again()
        except RouterRestarted:
            return ""
        except TestbedError as error:
            return str(error)
        return ""

    def taken_back(self) -> list[str]:
        """:meth:`.Router.taken_back`, a second time if the first failed. Raises TestbedError."""
        return self._again(self.router.taken_back)

    def _again(self, read: Callable[[], T]) -> T:
        """Return what *read* does, at the second try if the first fails: a link may work, who was busy may answer."""
        try:
            return read()
        except TestbedError:
            if self._restarted or self._problems():
                raise
        time.sleep(PAUSE / self._speed)
        return read()

    def read_last(self) -> Telemetry:
        """:meth:`read_again`, with the neighbour entries of the generator's ports, or why they could not be read."""
        reading = self.read_again()
        if not self.sides:
            return reading
        try:
            entries = self._again(lambda: self.router.neighbours(self.sides))
        except TestbedError as error:
            return replace(reading, neighbours_unread=str(error))
        return replace(
            reading, neighbours=entries, neighbours_unread="" if entries else "its answer was not understood"
        )


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
        readings = {name: round(rate, 3) for name, rate in rates(self._before, now, self._seconds).items()}
        self._before, self._seconds, self._next = now, 0.0, time.monotonic() + EVERY
        return replace(outcome, readings={**outcome.readings, **readings})

    def _read(self) -> Mapping[str, float]:
        try:
            return self._work()
        except TestbedError:  # no verdict rests on it
            return {}


_LONGEST = 4000
"""Characters of an error that quotes a router; the commands that undo what is left on it need most."""


class NamedRouter:
    """*router*, whose errors are all TestbedErrors that name *where* it is."""

    def __init__(self, router: Router, where: str) -> None:
        self._router, self._where = router, where

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._router, name)
        if not callable(attribute):
            return attribute

        def call(*arguments: Any) -> Any:
            try:
                return attribute(*arguments)
            except TestbedError as error:
                reason = shortened(str(error), _LONGEST)
                raise TestbedError(reason if self._where in reason else f"router at {self._where}: {reason}") from error
            except BREAKDOWN_ERRORS as error:
                reason = shortened(in_words(error), _LONGEST)
                raise TestbedError(f"router at {self._where}: its answer was not understood: {reason}") from error

        return call
