"""When the links of a modelled router come up, and when the router notices (:class:`RouterHabits`)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from lineproof.simulation.habits import RouterHabits

from ..state import RouterConfiguration


class LinkHabits:
    """The links of a router with *habits*, which began to look at them at *begin* (s of the testbed's clock)."""

    def __init__(self, habits: RouterHabits, begin: float) -> None:
        self._habits, self._begin = habits, begin
        self._carrier: dict[str, float] = {}
        self._settled = begin

    @property
    def none(self) -> bool:
        """Return whether its links are always there."""
        return self._habits == RouterHabits()

    def configured(self, up: Iterable[str], now: float) -> None:
        """The interfaces *up* are up now, administratively, and no others."""
        if not self.none:
            self._carrier = {name: self._carrier.get(name, now + self._habits.link_delay) for name in up}

    def restored(self, names: Iterable[str], now: float) -> None:
        """The cables at *names* are plugged in again."""
        if not self.none:
            self._carrier |= {name: now for name in names if name in self._carrier}

    def has_carrier(self, name: str, now: float) -> bool:
        """Return whether both ends of the cable at *name* have carrier."""
        return self.none or self._carrier.get(name, math.inf) <= now

    def is_seen(self, name: str, now: float) -> bool:
        """Return whether the router knows that *name* has carrier: it sends nothing there before."""
        return self.none or self._seen_at(self._carrier.get(name, math.inf)) <= now

    def _seen_at(self, carrier: float) -> float:
        every = self._habits.link_poll
        if not every or math.isinf(carrier):
            return carrier
        return self._begin + every * math.ceil((carrier - self._begin) / every)

    @property
    def next_change(self) -> float:
        """When a link comes up next, or is noticed; infinite: not by itself."""
        if not self._carrier:
            return math.inf
        moments = [moment for carrier in self._carrier.values() for moment in (carrier, self._seen_at(carrier))]
        return min((moment for moment in moments if moment > self._settled), default=math.inf)

    def settle(self, moment: float) -> None:
        """Take account of what happened up to *moment*."""
        self._settled = moment

    def forwarding(self, found: RouterConfiguration, down: bool, now: float) -> RouterConfiguration:
        """The configuration *found* as far as frames see it; *down*: a cable is out."""
        if down or not all(self.has_carrier(name, now) for name in found.up):
            return replace(found, up=())
        return replace(found, up=tuple(name for name in found.up if self.is_seen(name, now)))
