"""The load that a generator can carry by itself, as measured."""

from __future__ import annotations

from dataclasses import dataclass

from .trial import Trial


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Measured rates in frames/s of each sending port.

    ``line``: line rate. ``offered``: the highest intended load that was sent in full. ``lossless``: the highest rate
    sent without loss, whatever was intended. ``received``: the rate received while ``line`` was intended.
    """

    line: float
    offered: float
    lossless: float
    received: float
    trials: tuple[Trial, ...]


@dataclass(frozen=True, slots=True)
class OwnLatency:
    """Latency of probe frames without a router, in µs, of the worse direction: the generator's own share.

    ``minimum`` None: not reported. The 99th percentile lies within ``p99_low`` … ``p99_high``, a bucket of the
    generator's histogram.
    """

    pps: float
    frames: int
    mean: float
    p99_low: float
    p99_high: float
    minimum: float | None = None
