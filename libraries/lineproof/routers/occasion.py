"""When and by whom a router was changed, and whether it has restarted since."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from ..system.identity import ProcessIdentity, identify, machine_uptime

BOOT_TOLERANCE = 5.0
"""Seconds by which a router's computed boot time may move: it may report its uptime in whole seconds, and late."""

DRIFT = 5e-4
"""Seconds per second by which the clocks of two machines may differ."""


@dataclass(frozen=True, slots=True)
class Occasion:
    """When and by whom a router is changed. ``uptime`` of the router in s, None if it reports none.

    ``host_key``: the fingerprint of its SSH key; ``since``: s since the epoch; ``here``: s since this machine's boot;
    ``boot``: the name that the router's kernel gives to its run, "" if it gives none.
    """

    router: str
    kind: str
    host_key: str
    uptime: float | None
    since: float
    here: float
    holder: ProcessIdentity
    boot: str = ""

    @classmethod
    def now(cls, router: str, kind: str, host_key: str, uptime: float | None, boot: str = "") -> Occasion:
        """This process, now."""
        here = machine_uptime()
        return cls(router, kind, host_key, uptime, time.time(), here, identify(os.getpid()), boot)

    def restarted_since(self, now: Occasion) -> bool | None:
        """Return whether the router has restarted between this occasion and *now*, and with that lost its changes.

        None: it cannot be told. A described router may keep its changes.
        """
        if "generic" in (self.kind, now.kind):
            return False
        if self.boot and now.boot and self.boot != now.boot:
            return True
        if self.uptime is None or now.uptime is None or self.kind != now.kind:
            return False
        if now.uptime + BOOT_TOLERANCE < self.uptime:
            return True
        if self.boot and self.boot == now.boot and self.kind == "linux":
            return False  # VPP may have restarted alone
        same_boot = self.holder.where.split()[:1] == now.holder.where.split()[:1]
        # the clock of this machine may be set; its uptime may not, and is good until it restarts
        elapsed = now.here - self.here if same_boot else now.since - self.since
        lacking = self.uptime + elapsed - now.uptime
        within = BOOT_TOLERANCE + DRIFT * abs(elapsed)
        if not same_boot:
            return False if abs(lacking) <= within else None
        if now.uptime > elapsed + within:
            return False  # it ran before
        return True if lacking > within else None

    def __str__(self) -> str:
        return f"process {self.holder.pid}, since {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(self.since))}"
