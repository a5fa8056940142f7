"""Bursts and chains of streams as a pattern in time that goes on as long as a trial: what is sent when.

Chains: a stream begins the one called ``next`` after its last frame, ``isg`` later. Times are TRex's (the node of a
stream in ``trex_stl_stream_node.h``): frames of a burst are 1/rate apart, a burst begins ``ibg`` after the last frame
of the one before, and what follows a stream counts from that stream's last frame.

A load plays the pattern faster or slower: its rates and all of its pauses, so that the order of the frames, the lengths
of the bursts and the ratio of burst to pause stay what they are. A pattern that ends is begun again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import ConfigError

_RIGHT = "expected streams that begin together, chains that return to their first stream, or chains that all end"


@dataclass(frozen=True, slots=True)
class Timed:
    """A stream as far as time is concerned. ``name`` is for messages. ``pps`` within a burst, infinite where a burst is
    one frame, of which it does not matter; ``frames`` of one, None without end; ``bursts``: how many, 0 without end;
    ``gap`` and ``delay`` in s: TRex's ``ibg`` and ``isg``; ``next``: the place of the stream that it begins.
    """

    name: str
    pps: float
    frames: int | None
    bursts: int
    gap: float
    delay: float
    begins: bool
    next: int | None

    @property
    def endless(self) -> bool:
        """It never ends."""
        return self.frames is None or not self.bursts

    @property
    def every(self) -> float:
        """Seconds from the begin of a burst to that of the next one."""
        return 1 / self.pps if self.frames is None else (self.frames - 1) / self.pps + self.gap

    @property
    def lasts(self) -> float:
        """Seconds from the first frame to the last, of a stream that ends."""
        return (self.bursts - 1) * self.every + ((self.frames or 1) - 1) / self.pps


@dataclass(frozen=True, slots=True)
class Burst:
    """``times`` bursts of ``frames`` frames of ``stream`` (its place), at ``pps``, ``every`` s from ``begin`` on."""

    stream: int
    begin: float
    frames: int
    pps: float
    times: int = 1
    every: float = 0.0

    def before(self, moment: float) -> int:
        """Frames sent before *moment*."""
        past = moment - self.begin
        if past <= 0:
            return 0
        begun = min(self.times, math.ceil(past / self.every)) if self.every > 0 else self.times
        last = 1 if self.frames == 1 else math.ceil((past - (begun - 1) * self.every) * self.pps - 1e-6)
        return (begun - 1) * self.frames + min(self.frames, max(1, last))


SPAN, MOST = 32, 100_000
"""Frames over which a peak rate is taken; and how many a period may have for that, lest it take long."""


@dataclass(frozen=True, slots=True)
class PatternPart:
    """What one chain sends, again each ``period`` s, the first time ``late`` s after the start."""

    bursts: tuple[Burst, ...]
    period: float
    late: float = 0.0

    @property
    def frames(self) -> int:
        """Of one period."""
        return sum(item.frames * item.times for item in self.bursts)

    def before(self, moment: float) -> int:
        """Frames sent before *moment*."""
        moment = max(0.0, moment - self.late)
        rounds = math.floor(moment / self.period)
        return rounds * self.frames + sum(item.before(moment - rounds * self.period) for item in self.bursts)

    def peak(self, bits: Sequence[float]) -> float:
        """The most bit/s that it sends: within a burst, and over SPAN frames wherever they are. *bits*: of a frame of
        each stream. Infinite where such frames have no time between them.
        """
        whole = sum(item.frames * item.times * bits[item.stream] for item in self.bursts) / self.period
        # a frame by itself has no rate
        found = max([whole, *(item.pps * bits[item.stream] for item in self.bursts if item.frames > 1)])
        if not 1 < self.frames <= MOST:
            return found
        rows = sorted(
            (item.begin + number * item.every + (frame / item.pps if frame else 0.0), bits[item.stream])
            for item in self.bursts
            for number in range(item.times)
            for frame in range(item.frames)
        )
        span = min(SPAN, len(rows))
        rows += [(at + self.period, size) for at, size in rows[: span - 1]]
        carried = sum(size for _, size in rows[: span - 1])
        for first in range(len(rows) - span + 1):
            last = first + span - 1
            lasts = rows[last][0] - rows[first][0]
            found = max(found, carried / lasts if lasts > 0 else math.inf)
            carried += rows[last][1] - rows[first][1]
        return found


@dataclass(frozen=True, slots=True)
class Pattern:
    """``parts`` are sent side by side. What each stream, by its place, must be told for that: ``delays`` in s, and the
    place of the one that comes ``after`` it. ``ends``: it would end by itself, and is begun again.
    """

    parts: tuple[PatternPart, ...]
    delays: tuple[float, ...]
    after: tuple[int | None, ...]
    ends: bool

    @property
    def pps(self) -> float:
        """Frames/s on the average, at the rates of the file."""
        return sum(part.frames / part.period for part in self.parts)

    def rate(self, stream: int) -> float:
        """Frames/s of one stream on the average, by its place."""
        return sum(
            item.frames * item.times / part.period
            for part in self.parts
            for item in part.bursts
            if item.stream == stream
        )

    def frames(self, pps: float, seconds: float) -> int:
        """Frames that are sent in the first *seconds* at *pps* frames/s on the average."""
        return sum(part.before(seconds * pps / self.pps) for part in self.parts)

    def crest(self, bits: Sequence[float]) -> float:
        """How many times its average rate it sends at most (:meth:`PatternPart.peak`), by *bits* of a frame of each stream."""
        mean = sum(self.rate(place) * size for place, size in enumerate(bits))
        return sum(part.peak(bits) for part in self.parts) / mean

    @property
    def round(self) -> int:
        """Frames of all parts together in the time of the longest period, about."""
        return math.ceil(self.pps * max(part.period for part in self.parts))


def pattern(streams: Sequence[Timed], path: Path) -> Pattern:
    """What *streams*, of the file *path*, send in time. Raises ConfigError for what does not repeat."""
    begun: dict[int, str] = {}
    for stream in streams:
        if stream.next is None or stream.endless:
            continue
        if stream.next in begun:
            raise ConfigError(f"{stream.name} and {begun[stream.next]} both begin the same stream; {_RIGHT}", path)
        begun[stream.next] = stream.name
    chains = [_chain(place, streams, path) for place, stream in enumerate(streams) if stream.begins]
    reached = {place for chain, _ in chains for place in chain}
    for place, stream in enumerate(streams):
        if place not in reached:
            raise ConfigError(f"{stream.name} is never begun, by itself or by another; {_RIGHT}", path)
    ending = [chain for chain, repeats in chains if not repeats]
    if ending and len(ending) < len(chains):
        raise ConfigError(
            f"{streams[ending[0][0]].name} begins what ends, and other streams go on; {_RIGHT}",
            path,
        )
    delays, after = [item.delay for item in streams], [None if item.endless else item.next for item in streams]
    if not ending:
        parts = tuple(_part(chain, streams, path) for chain, _ in chains)
        return Pattern(parts, tuple(delays), tuple(after), False)
    # what ends is begun again when all is over, a frame's time later
    period = max(_end(chain, streams) + _pause(chain, streams) for chain in ending)
    for chain in ending:
        delays[chain[0]] += period - _end(chain, streams)
        after[chain[-1]] = chain[0]
    longer = [replace(item, delay=delay) for item, delay in zip(streams, delays, strict=True)]
    return Pattern(tuple(_part(chain, longer, path) for chain in ending), tuple(delays), tuple(after), True)


def _chain(root: int, streams: Sequence[Timed], path: Path) -> tuple[list[int], bool]:
    """The places of the streams that the one at *root* begins, itself first, and whether they go on without end."""
    chain, place = [root], root
    while True:
        stream = streams[place]
        if stream.endless:
            if len(chain) > 1:
                raise ConfigError(f"{stream.name} is begun by another and does not end; {_RIGHT}", path)
            return chain, True
        if stream.next is None:
            return chain, False
        if stream.next in chain:
            if stream.next != root:
                raise ConfigError(
                    f"{stream.name} returns to {streams[stream.next].name}, which is not the first of its chain;"
                    f" {_RIGHT}",
                    path,
                )
            return chain, True
        if streams[stream.next].begins:
            raise ConfigError(f"{streams[stream.next].name} begins by itself and after another; {_RIGHT}", path)
        place = stream.next
        chain.append(place)


def _end(chain: Sequence[int], streams: Sequence[Timed]) -> float:
    """When the last frame of *chain* is sent, in s since it began."""
    return sum(streams[place].delay + streams[place].lasts for place in chain)


def _pause(chain: Sequence[int], streams: Sequence[Timed]) -> float:
    """Seconds from the last frame of *chain* to the one that could follow it: by its last rate, else on the average."""
    if math.isfinite(last := streams[chain[-1]].pps):
        return 1 / last
    between = sum((streams[place].frames or 1) * streams[place].bursts for place in chain) - 1
    return _end(chain, streams) / between if between and _end(chain, streams) else 1.0


def _part(chain: Sequence[int], streams: Sequence[Timed], path: Path) -> PatternPart:
    first = streams[chain[0]]
    if first.endless:
        found = PatternPart((Burst(chain[0], 0.0, first.frames or 1, first.pps),), first.every, first.delay)
    else:
        bursts, now = [], 0.0
        for place in chain:
            stream = streams[place]
            begin = now + stream.delay
            bursts.append(Burst(place, begin, stream.frames or 1, stream.pps, stream.bursts, stream.every))
            now = begin + stream.lasts
        found = PatternPart(tuple(bursts), now)
    if found.period <= 0:
        raise ConfigError(f"{first.name} begins itself again without any time between, at no rate; {_RIGHT}", path)
    return found
