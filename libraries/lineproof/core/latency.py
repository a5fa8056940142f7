"""Latency of one trial as a generator counts it: a histogram of probe frames, and the bounds that it proves.

Terms: RFC 1242 3.8 (latency), RFC 2544 26.2, RFC 5481 4.2 (packet delay variation). A percentile is known only to lie
within a bucket of the histogram: bounds are kept, and a verdict uses the bound that is worse for it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Self

from ..errors import SentenceError
from ..units import range_text
from .bounds import UNKNOWN, Bounds, ranks
from .json_types import Count, NamedEnum
from .units import Unit, Value

_PERCENTILE = re.compile(r"p([0-9]{1,2}(?:\.[0-9]{1,3})?)$")

NAMED_STATISTICS = ("min", "mean", "max")

FRAMES_BEYOND_PERCENTILE = 10
"""Probe frames above a percentile that a trial has room for, if the load allows: then its bounds are close."""

LOST = math.inf
"""A lost frame is later than any limit."""

PERFECT = -1.0
"""In place of a bucket: a frame that came back at once."""

Errors = tuple[float, float]
"""How often the lower, and the upper bound of a percentile may be wrong, 0 to 1: it is that of a sample."""


class Resolution(NamedEnum):
    """How wide the buckets of a histogram are."""

    ONE_DIGIT = "one digit"
    """From 0, 10, 20 … 90, 100, 200 … 900 000 µs on, as far as the next one; from 1 s on without an end."""
    THREE_DIGITS = "three digits"
    """An HDR histogram's of whole µs: 2048 of 1 µs, then 1024 of 2 µs, 1024 of 4 µs …"""

    def end(self, low: float) -> float:
        """Return the end in µs of the bucket that begins at *low* µs; one digit: 0 → 10, 90 → 100, 100 → 200."""
        if self is Resolution.THREE_DIGITS:
            return low + (1 << max(0, int(low).bit_length() - 11))
        return math.inf if low >= 1_000_000 else low + 10.0 ** max(1, len(str(int(low))) - 1)


@dataclass(frozen=True, slots=True)
class Statistic:
    """``p50``, ``p99.9``, ``min``, ``mean`` or ``max`` of the latencies of one direction.

    ``variation``: of the packet delay variation, a frame's latency less that of the fastest frame (RFC 5481 4.2).
    """

    name: str
    variation: bool = False

    @classmethod
    def read(cls, word: str, named: Sequence[str] = NAMED_STATISTICS, variation: bool = False) -> Self:
        """Return the statistic that *word* names: a percentile, or one of *named*. Raises SentenceError."""
        if word in named or (_PERCENTILE.match(word) and float(word[1:]) > 0):
            return cls(word, variation)
        others = ", ".join(named[:-1])
        raise SentenceError(
            f"'{word}' is no statistic here; expected p50, p99, p99.9 (any up to p99.999), {others} or {named[-1]}"
        )

    @property
    def share(self) -> float | None:
        """The share of frames below a percentile, 0..1; None for other statistics."""
        percentile = _PERCENTILE.match(self.name)
        return float(percentile[1]) / 100 if percentile else None

    @property
    def frames_wanted(self) -> int:
        """The probe frames of a trial, if the load allows so many."""
        share = self.share
        return 100 if share is None else max(100, math.ceil(FRAMES_BEYOND_PERCENTILE / (1 - share) - 1e-6))

    def frames_needed(self, error: float) -> int:
        """Return the probe frames without which a percentile has no upper bound that is so seldom wrong."""
        return 1 if self.share is None else max(1, math.ceil(math.log(error) / math.log(self.share) - 1e-9))

    def __str__(self) -> str:
        return f"packet delay variation {self.name}" if self.variation else self.name


def time_words(bounds: Bounds, text: Callable[[float], str] = "{:.4g}".format) -> str:
    """Return bounds of a time in µs in words, each end as *text* writes it; infinite: later than any limit."""
    if math.isinf(bounds.low):
        return "beyond any limit, because of lost frames"
    low = Value(float(text(bounds.low)), Unit.MICROSECONDS)
    if math.isinf(bounds.high):
        return f"at least {low}, with no upper bound"
    high = Value(float(text(bounds.high)), Unit.MICROSECONDS)
    return str(high) if bounds.high - bounds.low <= 1e-6 * max(1.0, bounds.high) else range_text(str(low), str(high))


@dataclass(frozen=True, slots=True)
class LatencySpread:
    """The latencies of all probe frames that were sent, as far as they are known.

    ``best`` and ``worst`` for the router: {lower, upper end of a bucket in µs, or LOST: frames}. The worst end may have
    more frames: lost ones that others hide.
    """

    best: Mapping[float, int]
    worst: Mapping[float, int]

    def bounds(self, statistic: Statistic, errors: Errors = (0.05, 0.05), slowest: float = 0.0) -> Bounds:
        """Return bounds of the statistic in µs; of a percentile by order statistics. Without a frame: open ones.

        *slowest*: of several trials, the most that the fastest frame of one of them took.
        """
        if not sum(self.best.values()):
            return UNKNOWN
        best, worst = self.best, self.worst
        if statistic.variation:
            best, worst = _as_fast_as_any(best), _as_fast_as_any(worst)
        first, _ = ranks(sum(best.values()), statistic.share or 0.0, *errors)
        _, last = ranks(sum(worst.values()), statistic.share or 0.0, *errors)
        low, high = _figure(best, statistic, first), _figure(worst, statistic, last)
        if not statistic.variation:
            return Bounds(low, max(low, high))
        fastest = min(best), min(worst)
        if math.isinf(fastest[0]):
            return UNKNOWN  # no frame came, from which others could vary
        # a lost frame varies beyond any limit
        low = low if math.isinf(low) else max(0.0, low - max(slowest, fastest[1]))
        return Bounds(low, max(low, high - max(0.0, fastest[0])))

    def with_lost(self, most: float, certain: float, hidden: float) -> LatencySpread:
        """Return it with frames more that may be lost: so many at most, and so many certainly.

        *hidden*: so many besides, which make the better end no better.
        """
        more, gone = math.ceil(most - 1e-9), math.floor(certain + 1e-9)
        best = Counter(self.best) + Counter({0: more - gone, LOST: gone})
        return LatencySpread(best, Counter(self.worst) + Counter({LOST: more + math.ceil(hidden - 1e-9)}))

    def with_later_frames(self) -> LatencySpread:
        """Return the spread if frames without a probe are later by an unknown time: only the fastest has two ends."""
        return LatencySpread(self.best, Counter({min(self.worst): 1}) + Counter({LOST: sum(self.worst.values()) - 1}))


def pooled(spreads: Sequence[LatencySpread], perfect: int = 0) -> LatencySpread:
    """Return the probe frames of one direction in all trials together, with so many *perfect* ones more."""
    best: Counter[float] = Counter()
    worst: Counter[float] = Counter()
    for spread in spreads:
        best.update(spread.best)
        worst.update(spread.worst)
    more = math.ceil(perfect * best.total() / len(spreads))
    return LatencySpread(best + Counter({PERFECT: more}), worst + Counter({PERFECT: more}))


@dataclass(frozen=True, slots=True)
class LatencyCount:
    """The probe frames of one direction in one trial. Times in µs.

    ``histogram``: {lower end of a bucket: frames}, whose upper end ``resolution`` knows; frames that it lacks may have
    any latency, and ``doubt`` says in words why it lacks some, or is coarse. ``mean``, ``maximum`` and ``minimum``
    (None: not reported) are the generator's own readings: TRex smooths the mean over the last second or two, and its
    maximum leaves out the first half second. ``elsewhere``: received at another port than ``rx_port``; the histogram
    has them too. ``duplicates``: as the generator reports them; ``copies`` is the number to judge by.
    """

    tx_port: Count
    rx_port: Count
    sent: Count
    received: Count
    mean: float = 0.0
    maximum: float = 0.0
    minimum: float | None = None
    histogram: Mapping[int, Count] = field(default_factory=dict)
    out_of_order: Count = 0
    duplicates: Count = 0
    elsewhere: Count = 0
    resolution: Resolution = Resolution.ONE_DIGIT
    doubt: str = ""

    @classmethod
    def of_groups(cls, counts: Sequence[Self]) -> Self:
        """Return the probe frames of several groups of one direction together, of one resolution."""
        if len(counts) == 1:
            return counts[0]
        first, came = counts[0], sum(count.received for count in counts)
        return cls(
            first.tx_port,
            first.rx_port,
            sum(count.sent for count in counts),
            came,
            math.fsum(count.mean * count.received for count in counts) / max(1, came),
            max(count.maximum for count in counts),
            min((count.minimum for count in counts if count.minimum is not None), default=None),
            sum((Counter(count.histogram) for count in counts), Counter()),
            sum(count.out_of_order for count in counts),
            # frames that came twice in one group do not replace lost ones of another
            sum(count.copies for count in counts),
            sum(count.elsewhere for count in counts),
            first.resolution,
            next(filter(None, (count.doubt for count in counts)), ""),
        )

    @property
    def lost(self) -> int:
        """Probe frames that did not come back. A frame that came twice does not replace a lost one."""
        return self.sent - (self.received - self.copies)

    @property
    def unplaced(self) -> int:
        """Received frames that are in no bucket. Negative: a reading is wrong."""
        return self.received + self.elsewhere - sum(self.histogram.values())

    def beyond_gap(self, gap: float) -> int:
        """Return the frames of the histogram above the first *gap* of so many µs in which there is none."""
        places = sorted(self.histogram)
        above = (after for before, after in pairwise(places) if after - self.resolution.end(before) > gap)
        first = next(above, math.inf)
        return sum(frames for place, frames in self.histogram.items() if place >= first)

    def spread(self, lost: float = math.inf, excused: float = 0) -> LatencySpread | None:
        """Return what the counts prove. None where nothing was sent, or the counts contradict.

        *lost*: the most probe frames whose loss is the router's; any others are unknown. *excused*: the most frames
        that a problem of the testbed may have made late.
        """
        if self.sent <= 0 or self.unplaced < 0:
            return None
        best, worst = Counter[float]({0.0: self.unplaced}), Counter[float]({LOST: self.unplaced})
        for key, frames in self.histogram.items():
            best[key] += frames
            worst[self.resolution.end(key)] += frames
        # the first copy to arrive decides a frame's delay (RFC 7679 3.5); which one that was is not counted
        strangers = self.elsewhere + self.copies
        _remove(best, strangers, latest=True)
        _remove(worst, strangers, latest=False)
        certain = min(self.lost, math.floor(min(lost, self.lost)))
        best[LOST] += certain
        best[0.0] += self.lost - certain
        worst[LOST] += self.lost
        if excused:
            kept = best.total()
            _remove(best, min(kept, math.ceil(min(excused, kept))), latest=True)
            best[0.0] += kept - best.total()
        return LatencySpread(+best, +worst)

    @property
    def copies(self) -> int:
        """Probe frames that came again."""
        return min(self.received, max(self.duplicates, self.received - self.sent))


def _as_fast_as_any(frames: Mapping[float, int]) -> Mapping[float, int]:
    """Return *frames* whose perfect ones came as fast as the fastest other: against a faster one, all others vary."""
    others = Counter({key: count for key, count in frames.items() if key != PERFECT})
    return others + Counter({min(others): frames.get(PERFECT, 0)}) if others else frames


def _remove(frames: Counter[float], number: int, latest: bool) -> None:
    for key in sorted(frames, reverse=latest):
        taken = min(number, frames[key])
        frames[key] -= taken
        number -= taken


def _figure(frames: Mapping[float, int], statistic: Statistic, rank: int) -> float:
    """Return the statistic of *frames* in µs; a percentile is the latency of the frame with that *rank*, from 1."""
    if statistic.name == "mean":
        return math.fsum(max(0.0, key) * count for key, count in frames.items()) / sum(frames.values())
    if statistic.share is None:
        return max(0.0, (min if statistic.name == "min" else max)(frames))
    if rank < 1:
        return 0.0
    for key in sorted(frames):
        rank -= frames[key]
        if rank <= 0:
            return max(0.0, key)
    return math.inf
