"""Latency of one trial as a generator counts it: a histogram of probe frames, and the bounds that it proves.

Terms: RFC 1242 3.8 (latency), RFC 2544 26.2. The histogram has few buckets, so a percentile is known only to lie within
a bucket: bounds are kept, and a verdict uses the bound that is worse for it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..errors import SentenceError

_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,3})?)$")

NAMED_STATISTICS = ("min", "mean", "max")

FRAMES_BEYOND_PERCENTILE = 10
"""Probe frames that must be above a percentile before it is trusted."""


@dataclass(frozen=True, slots=True)
class Statistic:
    """``p50``, ``p99.9``, ``min``, ``mean``, ``max`` or ``jitter`` of the latencies of one direction."""

    name: str

    @classmethod
    def read(cls, word: str) -> Statistic:
        """The statistic that *word* names. Raises SentenceError."""
        if word in NAMED_STATISTICS or (_PERCENTILE.match(word) and float(word[1:]) > 0):
            return cls(word)
        raise SentenceError(
            f"'{word}' is no statistic of latency; expected p50, p99, p99.9 (any percentile), min, mean or max"
        )

    @property
    def share(self) -> float | None:
        """The share of frames below a percentile, 0..1; None for other statistics."""
        found = _PERCENTILE.match(self.name)
        return float(found[1]) / 100 if found else None

    @property
    def frames_needed(self) -> int:
        """Probe frames that must arrive before the statistic is trusted."""
        share = self.share
        return 100 if share is None else max(100, math.ceil(FRAMES_BEYOND_PERCENTILE / (1 - share) - 1e-6))

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class LatencyBounds:
    """A latency that lies within ``low`` … ``high``, in µs."""

    low: float
    high: float

    def __str__(self) -> str:
        if self.high - self.low <= 1e-6 * max(1.0, self.high):
            return f"{self.high:.4g} µs"
        return f"{self.low:.4g} to {self.high:.4g} µs"


@dataclass(frozen=True, slots=True)
class LatencyCount:
    """The probe frames of one direction in one trial. Times in µs.

    ``histogram``: {lower end of a bucket: frames}, in TRex's buckets: one digit and zeros, 0 for less than 10 µs.
    ``minimum`` None: not reported. ``jitter``: the generator's running mean of the difference between the latencies of
    consecutive frames (RFC 3550 6.4.1 in TRex).
    """

    tx_port: int
    rx_port: int
    sent: int
    received: int
    mean: float
    maximum: float
    jitter: float
    minimum: float | None = None
    histogram: Mapping[int, int] = field(default_factory=dict)
    out_of_order: int = 0
    duplicates: int = 0

    @property
    def lost(self) -> int:
        """Probe frames that did not come back."""
        return max(0, self.sent - self.received)

    def bounds(self, statistic: Statistic) -> LatencyBounds | None:
        """Bounds of the statistic. None where no frame was measured, or the generator does not report it.

        Only the histogram holds every frame. TRex smooths its ``mean``, ``minimum`` and ``maximum``, or updates them
        every half second without the first frames: they can only widen the bounds.
        """
        if statistic.name == "jitter":
            return LatencyBounds(self.jitter, self.jitter) if self.received else None
        counted = sum(self.histogram.values())
        if not self.received or not counted:
            return None
        if statistic.name == "mean":
            sums = (math.fsum(end(key) * count for key, count in self.histogram.items()) for end in (float, bucket_end))
            low, high = (total / counted for total in sums)
            return LatencyBounds(low, high)
        if statistic.name == "max":
            return self._bucket_bounds(max(self.histogram))
        if statistic.name == "min":
            return self._bucket_bounds(min(self.histogram))
        rank = max(1, math.ceil((statistic.share or 0.0) * counted - 1e-9))
        below = 0
        for key in sorted(self.histogram):
            below += self.histogram[key]
            if below >= rank:
                return self._bucket_bounds(key)
        return None

    def _bucket_bounds(self, key: int) -> LatencyBounds:
        """The bucket *key*; the last one reaches at least to the reported maximum."""
        last = key == max(self.histogram)
        return LatencyBounds(float(key), max(float(bucket_end(key)), self.maximum if last else 0.0))


def pooled(counts: Sequence[LatencyCount]) -> LatencyCount:
    """The probe frames of one direction in all trials together. *counts* must not be empty."""
    received = sum(count.received for count in counts)

    def mean(of: Callable[[LatencyCount], float]) -> float:
        return math.fsum(of(count) * count.received for count in counts) / max(1, received)

    histogram: Counter[int] = Counter()
    for count in counts:
        histogram.update(count.histogram)
    return replace(
        counts[0],
        sent=sum(count.sent for count in counts),
        received=received,
        mean=mean(lambda count: count.mean),
        maximum=max(count.maximum for count in counts),
        jitter=mean(lambda count: count.jitter),
        minimum=min((count.minimum for count in counts if count.minimum is not None), default=None),
        histogram=dict(histogram),
        out_of_order=sum(count.out_of_order for count in counts),
        duplicates=sum(count.duplicates for count in counts),
    )


def bucket_end(key: int) -> int:
    """End of the bucket of TRex's histogram that begins at *key* µs: 0 → 10, 10 → 20, 90 → 100, 100 → 200."""
    return key + 10 ** (len(str(key)) - 1) if key >= 10 else 10
