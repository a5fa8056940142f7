"""What a generator was found to carry by itself."""

from __future__ import annotations

from dataclasses import dataclass

from .trial import Trial


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What was found, in frames/s of each sending port: never more than was shown.

    ``offered``: the highest load that was sent as asked for; ``lossless``: the highest that was sent, whatever was
    asked for, and came back whole; ``received``: what came back while all that fits on the link, ``line``, was asked
    for.
    """

    line: float
    offered: float
    lossless: float
    received: float
    trials: tuple[Trial, ...]


@dataclass(frozen=True, slots=True)
class OwnLatency:
    """What the generator tells of probe frames that meet no router, in µs, of the worse direction.

    ``minimum`` None: it does not tell one. The 99th percentile lies within ``p99_low`` … ``p99_high``, the bucket of
    its histogram: that is its resolution.
    """

    pps: float
    frames: int
    mean: float
    p99_low: float
    p99_high: float
    minimum: float | None = None
