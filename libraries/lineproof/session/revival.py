"""A router that hangs is switched off and on through labgrid, once, before its sentence is tried again.

Only where the testbed's file says so (``lab: {power: …}``), and only a router that cannot be read: one that loses
frames, or restarts, is judged as it is.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from ..core.rule import Ruling
from ..core.verdict import Verdict
from ..errors import TestbedError
from ..testbed.opening import OpenTestbed
from .plan import Plan
from .router import RouterConnection
from .router_watch import RouterRestarted
from .traffic import Traffic

POLL = 1.0
"""Seconds between two tries to read a router that starts."""


@dataclass
class Revival:
    """Revives the *router* of *testbed*. ``note``: what was done for the present sentence, in words; "": nothing."""

    plan: Plan
    testbed: OpenTestbed
    router: RouterConnection
    traffic: Traffic
    note: str = field(default="", init=False)

    def after(self, verdict: Verdict) -> bool:
        """Return whether the router hung and was revived, so that the sentence of *verdict* is to be tried again.

        Only if its trials proved nothing. To be asked once for each sentence.
        """
        self.note = ""
        settings, lab = self.plan.testbed.lab, self.testbed.lab
        power = settings.power if settings is not None else None
        if verdict.ruling is not Ruling.INCONCLUSIVE or power is None or lab is None or self.testbed.problems():
            return False
        if not self.router.connected or self.router.is_black_box or not (why := self._why_unread()):
            return False
        self.note = f"the router did not answer ({why})"
        try:
            self.note += f"; {lab.power_cycle(power)}"
            self._await_router(power.boot)
            self.router.configure(links_moved=True)
            # it was just configured, or is to be set up for good, which the slow traffic shows
            self.router.watch.configured()
            self.traffic.forget()
            self.traffic.check_reachability()
        except TestbedError as error:
            self.note += f", and then: {error}"
            return False
        return True

    def _why_unread(self) -> str:
        """Why the router cannot be read; "" if it can."""
        try:
            self.router.watch.read_again()
        except RouterRestarted:
            return ""
        except TestbedError as error:
            return str(error)
        return ""

    def _await_router(self, limit: float) -> None:
        began = time.monotonic()
        while why := self._why_unread():
            if time.monotonic() > began + limit:
                raise TestbedError(
                    f"it did not answer within {limit:g} s of that: {why}; look at its console, or give 'boot' of"
                    " 'power' more time"
                )
            time.sleep(POLL)
        self.note += f"; it answered again after {time.monotonic() - began:.0f} s"
