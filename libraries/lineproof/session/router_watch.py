"""Readings of a router's counters: one that failed is tried once more, and a restart of the router is noticed."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from ..core.telemetry import Telemetry
from ..errors import TestbedError
from ..routers.base import Side
from ..routers.described import Router

T = TypeVar("T")

BOOT_TOLERANCE = 5.0
"""Seconds by which a router's computed boot time may move: it may report its uptime in whole seconds, and late."""


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
        """Whose neighbour entries the reading after a sentence has."""

    def configured(self) -> None:
        """The router was configured again: an earlier restart no longer matters."""
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
        now, tolerance = time.monotonic() * self._speed, (BOOT_TOLERANCE + self._step) * self._speed
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
        """:meth:`read_again`, with the neighbour entries of the generator's ports as far as they can be read."""
        found = self.read_again()
        with suppress(TestbedError):
            if self.sides:
                return replace(found, neighbours=self._again(lambda: self.router.neighbours(self.sides)))
        return found
