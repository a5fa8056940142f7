"""A router whose counters are read again and again: a reading that failed is tried once more, a restart is noticed."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..counts.telemetry import Telemetry
from ..errors import TestbedError
from ..routers.base import Router

BOOT_TOLERANCE = 5.0
"""Seconds by which the computed moment of booting may move: a router tells its uptime in whole seconds, late."""


class RouterRestarted(TestbedError):
    """The router booted anew between two readings."""


class RouterWatch:
    """Readings of *router*. *clock_speed*: seconds of its clock per wall second; *dead*: what of the testbed is."""

    def __init__(self, router: Router, clock_speed: float, dead: Callable[[], tuple[str, ...]]) -> None:
        self._router, self._speed, self._dead = router, clock_speed, dead
        self._booted: float | None = None
        self._restarted: RouterRestarted | None = None

    def configured(self) -> None:
        """The router was told everything anew: an earlier restart no longer matters."""
        self._restarted = None

    @property
    def restarted(self) -> bool:
        """Whether the router has restarted since it was configured."""
        return self._restarted is not None

    def read(self) -> Telemetry:
        """Counters now. Raises RouterRestarted where the moment it booted is not what it was, TestbedError else.

        It is raised ever after, until the router is configured anew: what it had been told may be gone.
        """
        if self._restarted is not None:
            raise self._restarted
        telemetry = self._router.read()
        booted = time.monotonic() * self._speed - telemetry.uptime
        before, self._booted = self._booted, booted
        if before is not None and booted - before > BOOT_TOLERANCE * self._speed:
            self._restarted = RouterRestarted(
                f"the router restarted: it says that it is up for {telemetry.uptime:.0f} s; look at its console and run"
                " again"
            )
            raise self._restarted
        return telemetry

    def read_again(self) -> Telemetry:
        """:meth:`read`, a second time where the first failed: a link that broke may be there again."""
        try:
            return self.read()
        except TestbedError:
            if self._restarted or self._dead():
                raise
        return self.read()
