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
from ..testbed.lab.settings import PowerCycleSettings
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

    def before(self) -> None:
        """As a sentence begins: revive a router that hangs. Raises TestbedError if it does not come back."""
        self.note = ""
        self._revive_if_hung()

    def after(self, verdict: Verdict) -> bool:
        """After its trials: whether the router hung and was revived, so that the sentence is to be tried again.

        Once for each sentence, and only if the trials proved nothing.
        """
        if verdict.ruling is not Ruling.INCONCLUSIVE or self.note or self.testbed.problems():
            return False
        try:
            return self._revive_if_hung()
        except TestbedError as error:
            self.note = str(error)
            return False

    @property
    def _power(self) -> PowerCycleSettings | None:
        """How the router is switched; None if it is not to be."""
        lab = self.plan.testbed.lab
        usable = self.testbed.lab is not None and self.router.connected and not self.router.is_black_box
        return lab.power if usable and lab is not None else None

    def _revive_if_hung(self) -> bool:
        power, lab = self._power, self.testbed.lab
        if power is None or lab is None:
            return False
        why = self._why_unread()
        if not why:
            return False
        if problems := self.testbed.problems():
            raise TestbedError("; ".join(problems))
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
            raise TestbedError(f"{self.note}, and then: {error}") from error
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
