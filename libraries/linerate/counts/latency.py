"""Latency of one trial as a generator counts it: how many probe frames came how late, and what that proves.

Terms: RFC 1242 3.8 (latency), RFC 2544 26.2. A generator tells a histogram of a few buckets, so a percentile is known
to lie within a bucket, never exactly: bounds are kept, and a verdict needs the bound that is against it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..errors import SentenceError

_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,3})?)$")

NAMED = ("min", "mean", "max")

TELLING = 10
"""Probe frames that must be later than a percentile before it is believed."""


@dataclass(frozen=True, slots=True)
class Statistic:
    """``p50``, ``p99.9``, ``min``, ``mean``, ``max`` or ``jitter`` of the latencies of one direction."""

    name: str

    @classmethod
    def read(cls, word: str) -> Statistic:
        """The statistic that *word* names. Raises SentenceError."""
        if word in NAMED or (_PERCENTILE.match(word) and float(word[1:]) > 0):
            return cls(word)
        raise SentenceError(
            f"'{word}' is no statistic of latency; expected p50, p99, p99.9 (any percentile), min, mean or max"
        )

    @property
    def share(self) -> float | None:
        """The share of the frames that a percentile counts, 0..1; None for the others."""
        found = _PERCENTILE.match(self.name)
        return float(found[1]) / 100 if found else None

    @property
    def frames_needed(self) -> int:
        """Probe frames that must arrive before the statistic is believed."""
        share = self.share
        return 100 if share is None else max(100, math.ceil(TELLING / (1 - share) - 1e-6))

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class LatencyBounds:
    """A figure that is known to lie within ``low`` … ``high``, in µs."""

    low: float
    high: float

    def __str__(self) -> str:
        if self.high - self.low <= 1e-6 * max(1.0, self.high):
            return f"{self.high:.4g} µs"
        return f"{self.low:.4g} to {self.high:.4g} µs"


@dataclass(frozen=True, slots=True)
class LatencyCount:
    """The probe frames of one direction in one trial. Times in µs.

    ``histogram``: {a bucket's least: frames}, in TRex's buckets: one digit and zeros, 0 for less than 10 µs.
    ``minimum`` None: the generator does not tell it. ``jitter``: the generator's running mean of the difference between
    one frame's latency and the next's (RFC 3550 6.4.1 in TRex).
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
        """Within which the statistic lies. None where no frame was measured, or the generator does not tell.

        From the histogram alone, which holds every frame at once. ``mean``, ``minimum`` and ``maximum`` as TRex tells
        them are smoothed, or brought up to date every half second without what came first: they can only widen.
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
            return self._within(max(self.histogram))
        if statistic.name == "min":
            return self._within(min(self.histogram))
        rank = max(1, math.ceil((statistic.share or 0.0) * counted - 1e-9))
        below = 0
        for key in sorted(self.histogram):
            below += self.histogram[key]
            if below >= rank:
                return self._within(key)
        return None

    def _within(self, key: int) -> LatencyBounds:
        """The bucket *key*; the last one reaches at least to the maximum that was told."""
        last = key == max(self.histogram)
        return LatencyBounds(float(key), max(float(bucket_end(key)), self.maximum if last else 0.0))


def bucket_end(key: int) -> int:
    """Where the bucket of TRex's histogram that begins at *key* µs ends: 0 → 10, 10 → 20, 90 → 100, 100 → 200."""
    return key + 10 ** (len(str(key)) - 1) if key >= 10 else 10
