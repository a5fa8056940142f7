"""When the links of a modelled router come up, and when the router notices (:class:`RouterHabits`)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from lineproof.simulation.habits import RouterHabits

from ..state import RouterConfiguration


class RouterLinks:
    """The links of a router with *habits*, which began to look at them at *begin* (s of the testbed's clock)."""

    def __init__(self, habits: RouterHabits, begin: float) -> None:
        self._habits, self._begin, self._settled = habits, begin, begin
        self._always = habits == RouterHabits()
        """True: links are there at once, also of interfaces that are not up."""
        self._carrier: dict[str, float] = {}
        self.next_change = math.inf
        """When a link comes up next, or is noticed; infinite: not by itself."""

    def configured(self, up: Iterable[str], now: float) -> None:
        """The interfaces *up* are up now, administratively, and no others."""
        if not self._always:
            self._carrier = {name: self._carrier.get(name, now + self._habits.link_delay) for name in up}
            self.settle(self._settled)

    def restored(self, name: str, now: float) -> None:
        """The cable at *name* is plugged in again."""
        if name in self._carrier:
            self._carrier[name] = now
            self.settle(self._settled)

    def has_carrier(self, name: str, now: float) -> bool:
        """Return whether both ends of the cable at *name* have carrier."""
        return self._always or self._carrier.get(name, math.inf) <= now

    def is_seen(self, name: str, now: float) -> bool:
        """Return whether the router knows that *name* has carrier: it sends nothing there before."""
        return self._always or self._seen_at(self._carrier.get(name, math.inf)) <= now

    def _seen_at(self, carrier: float) -> float:
        every = self._habits.link_poll
        if not every or math.isinf(carrier):
            return carrier
        return self._begin + every * math.ceil((carrier - self._begin) / every)

    def settle(self, moment: float) -> None:
        """Take account of what happened up to *moment*."""
        moments = [moment for carrier in self._carrier.values() for moment in (carrier, self._seen_at(carrier))]
        self._settled, self.next_change = moment, min((row for row in moments if row > moment), default=math.inf)

    def in_force(self, found: RouterConfiguration, down: bool, now: float) -> RouterConfiguration:
        """The configuration *found* as far as frames see it; *down*: a cable is out."""
        if self._always and not down:
            return found
        if down or not all(self.has_carrier(name, now) for name in found.up):
            return replace(found, up=())
        return replace(found, up=tuple(name for name in found.up if self.is_seen(name, now)))
