"""Exact counts of one stream: whole frames, each with exactly one fate, none lost to rounding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from lineproof.units import FCS

from ..backend import StreamTraffic
from .flows import period_of
from .forwarding import Fate, StreamPart

_TINY = 1e-9
"""Frames: a sum of shares that is short of a whole frame by less is whole."""


class StreamCounts(NamedTuple):
    """Frames of a stream. ``exits``: (port, frames) that left the router at once; together they are ``offered``.

    ``held``: frames that had to wait in a ring; their fate is counted later.
    """

    offered: int = 0
    missed: int = 0
    held: int = 0
    no_route: int = 0
    tx_dropped: int = 0
    exits: tuple[tuple[int, int], ...] = ()


class Splitter:
    """Splits frames by shares, each of what the shares before it left; fractions of a frame are carried on."""

    def __init__(self, carries: Sequence[float] = (0.0, 0.0, 0.0, 0.0)) -> None:
        self.carries = tuple(carries)

    def split(self, frames: int, shares: Sequence[float]) -> tuple[list[int], tuple[float, ...]]:
        """The *frames* of each share, the rest last; and the fractions carried on."""
        found, carries, left = [], [], frames
        for share, carry in zip(shares, self.carries, strict=True):
            exact = carry + share * left
            taken = min(left, math.floor(exact + _TINY))
            found.append(taken)
            carries.append(min(max(exact - taken, 0.0), 1 - _TINY))
            left -= taken
        return [*found, left], tuple(carries)


class Sending:
    """A stream being sent by *port* since *begin*, for *duration* s (inf: until stopped), s of the bench's clock.

    ``asked`` and ``pps``: the intended and the real rate, frames/s. ``unsent``: intended frames that were not sent.
    """

    def __init__(
        self, port: int, traffic: StreamTraffic, parts: tuple[StreamPart, ...], begin: float, duration: float
    ) -> None:
        self.port, self.traffic, self.parts = port, traffic, parts
        self.size, self.period = len(traffic.frame) + FCS, period_of(traffic)
        self.made: dict[Any, Sequence[bytes]] = {}
        """The frames as they left, if they come again after *period*."""
        self.asked = self.pps = 0.0
        self.counts = StreamCounts()
        self.unsent = 0
        # at the origin of the present rate: when it was, what was counted, how long it may last
        self._origin, self._at_origin, self._unsent_at_origin, self._lasts = begin, 0, 0, duration
        self._segment = StreamCounts()
        self._fate = Fate(0.0, 0.0, 0.0, {})
        self._splitter = Splitter()

    def rate(self, now: float, asked: float, pps: float) -> None:
        """Send *pps* of the *asked* frames/s from *now* on (up to which frames are counted)."""
        if (asked, pps) != (self.asked, self.pps):
            self.hold(now)
            self.asked, self.pps = asked, pps

    def hold(self, now: float) -> None:
        """End the present rate at *now* and keep the rest of the duration."""
        self._lasts -= min(self._lasts, max(0.0, now - self._origin)) if self._lasts < math.inf else 0.0
        self.resume(now)

    def resume(self, now: float) -> None:
        """Continue at *now* with the rest of the duration."""
        self._origin, self._at_origin, self._unsent_at_origin = now, self.counts.offered, self.unsent

    @property
    def over(self) -> float:
        """When the last frame is sent: the end of the duration, or of the count if that comes first."""
        end = self._origin + self._lasts
        if self.traffic.count is None:
            return end
        left = self.traffic.count - self._at_origin
        if self.pps <= 0:
            return end if left > 0 else self._origin
        return min(end, self._origin + left / self.pps)

    def fate(self, fate: Fate) -> None:
        """The fate of frames from now on (frames are counted up to now)."""
        _, carries = self._split()
        self._splitter = Splitter(carries)
        self._segment, self._fate = self.counts, fate

    def advance(self, now: float) -> StreamCounts:
        """Count up to *now*, at most to the end; returns the new counts."""
        # at the end the duration itself counts, not a difference of two readings of a clock
        elapsed = self._lasts if now >= self._origin + self._lasts else max(0.0, now - self._origin)
        offered = self._at_origin + max(0, round(self.pps * elapsed + self.traffic.phase))
        unsent = self._unsent_at_origin + round(self.asked * elapsed) - round(self.pps * elapsed)
        if self.traffic.count is not None and offered >= self.traffic.count - (now >= self.over):
            offered = self.traffic.count
        before = self.counts
        if offered > before.offered:
            self.counts = before._replace(offered=offered)
            (missed, held, no_route, tx_dropped, rest), _ = self._split()
            start = self._segment
            self.counts = StreamCounts(
                offered,
                start.missed + missed,
                start.held + held,
                start.no_route + no_route,
                start.tx_dropped + tx_dropped,
                self._exits(start, rest),
            )
        self.unsent = max(self.unsent, unsent)
        return difference(self.counts, before)

    def _split(self) -> tuple[list[int], tuple[float, ...]]:
        frames = self.counts.offered - self._segment.offered
        fate = self._fate
        return self._splitter.split(frames, (fate.missed, fate.held, fate.no_route, fate.tx_dropped))

    def _exits(self, start: StreamCounts, rest: int) -> tuple[tuple[int, int], ...]:
        found, left, total = dict(start.exits), rest, self._fate.forwarded
        directions = list(self._fate.exits.items())
        for number, (direction, share) in enumerate(directions):
            taken = left if number == len(directions) - 1 else min(left, math.floor(rest * share / total + _TINY))
            found[direction] = found.get(direction, 0) + taken
            left -= taken
        return tuple(sorted(found.items()))


def difference(new: StreamCounts, old: StreamCounts) -> StreamCounts:
    """*new* less *old*."""
    before = dict(old.exits)
    return StreamCounts(
        new.offered - old.offered,
        new.missed - old.missed,
        new.held - old.held,
        new.no_route - old.no_route,
        new.tx_dropped - old.tx_dropped,
        tuple((direction, frames - before.get(direction, 0)) for direction, frames in new.exits),
    )
