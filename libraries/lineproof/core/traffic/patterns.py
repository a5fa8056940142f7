"""Bursts and chains of streams as a pattern in time, repeated for as long as a trial lasts.

In a chain each stream starts the stream ``next``, ``isg`` after its own last frame. Times are TRex's
(``trex_stl_stream_node.h``): frames of a burst are 1/rate apart; a burst starts ``ibg`` after the last frame of the one
before. Places are indexes of streams in the file's order.

A load scales all rates and pauses of the pattern, so the order of frames, the lengths of bursts and the ratio of burst
to pause do not change. A pattern that ends is started again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...errors import ConfigError

_EXPECTED = "expected streams that begin together, chains that return to their first stream, or chains that all end"


@dataclass(frozen=True, slots=True)
class StreamTiming:
    """When a stream sends. ``name``: for messages. ``pps``: within a burst, infinite where it does not matter because a
    burst is one frame. ``frames``: per burst, None: endless. ``bursts``: their number, 0: endless. ``gap``, ``delay``:
    TRex's ``ibg`` and ``isg`` in s. ``begins``: by itself. ``next``: the place of the stream that it starts.
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
    def interval(self) -> float:
        """Seconds from the start of a burst to the next start."""
        return 1 / self.pps if self.frames is None else (self.frames - 1) / self.pps + self.gap

    @property
    def seconds(self) -> float:
        """Seconds from first to last frame of a stream that ends."""
        return (self.bursts - 1) * self.interval + ((self.frames or 1) - 1) / self.pps


@dataclass(frozen=True, slots=True)
class Burst:
    """``count`` bursts of ``stream`` (its place), every ``interval`` s from ``begin``: ``frames`` frames at ``pps``."""

    stream: int
    begin: float
    frames: int
    pps: float
    count: int = 1
    interval: float = 0.0

    def frames_before(self, moment: float) -> int:
        """Frames sent before *moment*."""
        past = moment - self.begin
        if past <= 0:
            return 0
        begun = min(self.count, math.ceil(past / self.interval)) if self.interval > 0 else self.count
        last = 1 if self.frames == 1 else math.ceil((past - (begun - 1) * self.interval) * self.pps - 1e-6)
        return (begun - 1) * self.frames + min(self.frames, max(1, last))


PEAK_FRAMES, MAX_PEAK_PERIOD = 32, 100_000
"""Frames over which a peak rate is taken; most frames of a period for which this is done, because it takes time."""


@dataclass(frozen=True, slots=True)
class PatternPart:
    """Frames that one chain sends every ``period`` s, first ``start_delay`` s after the start."""

    bursts: tuple[Burst, ...]
    period: float
    start_delay: float = 0.0

    @property
    def frames(self) -> int:
        """Frames of one period."""
        return sum(item.frames * item.count for item in self.bursts)

    def frames_before(self, moment: float) -> int:
        """Frames sent before *moment*."""
        moment = max(0.0, moment - self.start_delay)
        rounds = math.floor(moment / self.period)
        return rounds * self.frames + sum(item.frames_before(moment - rounds * self.period) for item in self.bursts)

    def peak(self, bits: Sequence[float]) -> float:
        """Highest bit/s, within a burst or over any PEAK_FRAMES frames; infinite where these have no time between them.

        *bits*: of a frame, by the stream's place.
        """
        mean = sum(item.frames * item.count * bits[item.stream] for item in self.bursts) / self.period
        # a single frame has no rate
        found = max([mean, *(item.pps * bits[item.stream] for item in self.bursts if item.frames > 1)])
        if not 1 < self.frames <= MAX_PEAK_PERIOD:
            return found
        times = sorted(
            (item.begin + number * item.interval + (frame / item.pps if frame else 0.0), bits[item.stream])
            for item in self.bursts
            for number in range(item.count)
            for frame in range(item.frames)
        )
        window = min(PEAK_FRAMES, len(times))
        times += [(at + self.period, size) for at, size in times[: window - 1]]
        sent = sum(size for _, size in times[: window - 1])
        for first in range(len(times) - window + 1):
            last = first + window - 1
            seconds = times[last][0] - times[first][0]
            found = max(found, sent / seconds if seconds > 0 else math.inf)
            sent += times[last][1] - times[first][1]
        return found


@dataclass(frozen=True, slots=True)
class Pattern:
    """``parts`` are sent at the same time. ``delays`` (s) and ``after`` (place of the next stream) configure each
    stream, by its place. ``ends``: it would end by itself, and is started again.
    """

    parts: tuple[PatternPart, ...]
    delays: tuple[float, ...]
    after: tuple[int | None, ...]
    ends: bool

    @property
    def pps(self) -> float:
        """Mean frames/s, at the rates of the file."""
        return sum(part.frames / part.period for part in self.parts)

    def rate(self, stream: int) -> float:
        """Mean frames/s of the stream at a place."""
        return sum(
            item.frames * item.count / part.period
            for part in self.parts
            for item in part.bursts
            if item.stream == stream
        )

    def frames(self, pps: float, seconds: float) -> int:
        """Frames sent in the first *seconds* at a mean of *pps* frames/s."""
        return sum(part.frames_before(seconds * pps / self.pps) for part in self.parts)

    def peak_to_mean(self, bits: Sequence[float]) -> float:
        """Peak rate (:meth:`PatternPart.peak`) by mean rate. *bits*: of a frame, by the stream's place."""
        mean = sum(self.rate(place) * size for place, size in enumerate(bits))
        return sum(part.peak(bits) for part in self.parts) / mean

    @property
    def period_frames(self) -> int:
        """Frames of all parts in the longest period, rounded up."""
        return math.ceil(self.pps * max(part.period for part in self.parts))


def make_pattern(streams: Sequence[StreamTiming], path: Path) -> Pattern:
    """The pattern of *streams*, from the file *path*. Raises ConfigError for streams that do not repeat."""
    started: dict[int, str] = {}
    for stream in streams:
        if stream.next is None or stream.endless:
            continue
        if stream.next in started:
            raise ConfigError(f"{stream.name} and {started[stream.next]} both start the same stream; {_EXPECTED}", path)
        started[stream.next] = stream.name
    chains = [_chain(place, streams, path) for place, stream in enumerate(streams) if stream.begins]
    reached = {place for chain, _ in chains for place in chain}
    for place, stream in enumerate(streams):
        if place not in reached:
            raise ConfigError(f"{stream.name} is never started, by itself or by another; {_EXPECTED}", path)
    ending = [chain for chain, repeats in chains if not repeats]
    if ending and len(ending) < len(chains):
        raise ConfigError(
            f"{streams[ending[0][0]].name} starts a chain that ends, and other streams go on; {_EXPECTED}", path
        )
    delays, after = [item.delay for item in streams], [None if item.endless else item.next for item in streams]
    if not ending:
        parts = tuple(_chain_part(chain, streams, path) for chain, _ in chains)
        return Pattern(parts, tuple(delays), tuple(after), False)
    # chains that end start again together, one frame time after the last has ended
    period = max(_chain_seconds(chain, streams) + _gap_after(chain, streams) for chain in ending)
    for chain in ending:
        delays[chain[0]] += period - _chain_seconds(chain, streams)
        after[chain[-1]] = chain[0]
    repeated = [replace(item, delay=delay) for item, delay in zip(streams, delays, strict=True)]
    return Pattern(tuple(_chain_part(chain, repeated, path) for chain in ending), tuple(delays), tuple(after), True)


def _chain(root: int, streams: Sequence[StreamTiming], path: Path) -> tuple[list[int], bool]:
    """The places of the chain that starts at *root*, and whether it goes on without end."""
    chain, place = [root], root
    while True:
        stream = streams[place]
        if stream.endless:
            if len(chain) > 1:
                raise ConfigError(f"{stream.name} is started by another and does not end; {_EXPECTED}", path)
            return chain, True
        if stream.next is None:
            return chain, False
        if stream.next in chain:
            if stream.next != root:
                raise ConfigError(
                    f"{stream.name} returns to {streams[stream.next].name}, which is not the first of its chain;"
                    f" {_EXPECTED}",
                    path,
                )
            return chain, True
        if streams[stream.next].begins:
            raise ConfigError(f"{streams[stream.next].name} starts by itself and after another; {_EXPECTED}", path)
        place = stream.next
        chain.append(place)


def _chain_seconds(chain: Sequence[int], streams: Sequence[StreamTiming]) -> float:
    """Seconds from the start of *chain* to its last frame."""
    return sum(streams[place].delay + streams[place].seconds for place in chain)


def _gap_after(chain: Sequence[int], streams: Sequence[StreamTiming]) -> float:
    """Seconds from the last frame of *chain* to a next one: by its last stream's rate, else by its mean rate."""
    if math.isfinite(last := streams[chain[-1]].pps):
        return 1 / last
    gaps = sum((streams[place].frames or 1) * streams[place].bursts for place in chain) - 1
    return _chain_seconds(chain, streams) / gaps if gaps and _chain_seconds(chain, streams) else 1.0


def _chain_part(chain: Sequence[int], streams: Sequence[StreamTiming], path: Path) -> PatternPart:
    first = streams[chain[0]]
    if first.endless:
        found = PatternPart((Burst(chain[0], 0.0, first.frames or 1, first.pps),), first.interval, first.delay)
    else:
        bursts, now = [], 0.0
        for place in chain:
            stream = streams[place]
            begin = now + stream.delay
            bursts.append(Burst(place, begin, stream.frames or 1, stream.pps, stream.bursts, stream.interval))
            now = begin + stream.seconds
        found = PatternPart(tuple(bursts), now)
    if found.period <= 0:
        raise ConfigError(f"{first.name} starts itself again without any time between; {_EXPECTED}", path)
    return found
