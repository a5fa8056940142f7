"""The load that a generator can carry by itself, as measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from ..config import Config
from .bounds import Bounds
from .doubts import OwnPart
from .latency import time_words
from .trial import Tolerance, Trial

Positive = Annotated[float, Field(gt=0)]
Microseconds = Annotated[float, Field(ge=0)]


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


class OwnLatency(Config):
    """Latency of probe frames without a router, of the worse direction: the generator's own share.

    ``minimum_us`` None: not reported. The 99th percentile lies within ``p99_low_us`` … ``p99_high_us``, a bucket of the
    generator's histogram.
    """

    load_pps: Positive
    frames: Annotated[int, Field(ge=1)]
    mean_us: Microseconds
    p99_low_us: Microseconds
    p99_high_us: Microseconds
    minimum_us: Microseconds | None = None

    def __str__(self) -> str:
        least = f"at least {self.minimum_us:.3g} µs, " if self.minimum_us is not None else ""
        return f"{least}{self.mean_us:.3g} µs on average, p99 {time_words(Bounds(self.p99_low_us, self.p99_high_us))}"


def own_ceiling(
    line: float, lossless: float, received: float, words: str, remedy: str, evidence: Mapping[str, object]
) -> OwnPart:
    """Return the part of a generator that carries *lossless* frames/s from each port; line rate limits nothing."""
    if lossless >= line * (1 - Tolerance().under):
        return OwnPart()
    return OwnPart(lossless_pps=lossless, received_pps=received, words=words, remedy=remedy, evidence=evidence)
