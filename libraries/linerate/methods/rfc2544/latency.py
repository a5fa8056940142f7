"""RFC 2544 26.2 latency: at the throughput of each frame size, 20 streams of 120 s, and the mean of what they gave."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from ...counts.trial import Load
from ..deviations import Deviation, declared
from ..trials import BREAKDOWNS, Deadline, broke_down
from . import fewer, shorter

REPEATS = 20
STREAM = 120.0
"""Seconds of one stream."""

MANY_FRAMES = Deviation(
    "RFC 2544 26.2",
    "the latency of one frame, tagged after 60 s of the stream",
    "the mean over the latency frames of the whole stream, as the generator counts them",
)

MeasureLatency = Callable[[Load, float], Sequence[float]]
"""``measure_latency(load, duration in s)``: mean latency in µs of each direction; NaN where no frame told it."""


@dataclass(frozen=True, slots=True)
class WayLatency:
    """Latency of one direction in µs, over the repetitions: the mean is the reported figure."""

    mean: float
    least: float
    most: float
    deviation: float
    """Standard deviation of the repetitions, µs; NaN where there is one alone."""
    repeats: int
    direction: str = ""
    """``0 → 1``: sending port, receiving port; "" where they are not known."""


@dataclass(frozen=True, slots=True)
class LatencyResult:
    """Latency of one frame size at ``load`` (its throughput, into each port), per direction."""

    size: int
    load: Load
    directions: tuple[WayLatency, ...]
    samples: tuple[tuple[float, ...], ...]
    """Every repetition's means in µs, one for each direction."""
    duration: float
    ended: str
    deviations: tuple[Deviation, ...]

    def __str__(self) -> str:
        return declared(self.found, self.deviations)

    @property
    def found(self) -> str:
        """What was found, in words, without the deviations."""
        told = (
            ", ".join(
                f"{direction.mean:.4g} µs ({direction.least:.4g} to {direction.most:.4g})"
                for direction in self.directions
            )
            or "not measured"
        )
        words = [
            f"{self.size} bytes: latency {told}",
            f"{len(self.samples)} streams of {self.duration:g} s",
            self.ended,
        ]
        return "; ".join(word for word in words if word)


def latency(
    measure_latency: MeasureLatency,
    size: int,
    load: Load,
    repeats: int = REPEATS,
    duration: float = STREAM,
    invalid: int = 3,
    deadline: Deadline | None = None,
) -> LatencyResult:
    """Measure *repeats* streams of *duration* s at *load*, the throughput found for frames of *size* bytes (with FCS).

    A stream whose latency could not be told is repeated, at most *invalid* times in a row.
    """
    if repeats < 1 or not duration > 0:
        raise ValueError(f"latency needs streams of some length, not {repeats} of {duration:g} s")
    limit = deadline or Deadline()
    samples: list[tuple[float, ...]] = []
    ended, spoilt, sent, began = "", 0, 0.0, limit.now()
    while len(samples) < repeats and not ended:
        if limit.traffic is not None and sent + duration > limit.traffic:
            ended = f"deadline: {sent:g} of {limit.traffic:g} s of traffic were sent"
            break
        if limit.wall is not None and limit.now() - began > limit.wall:
            ended = f"deadline: {limit.wall:g} s have passed"
            break
        try:
            told = tuple(measure_latency(load, duration))
        except BREAKDOWNS as error:
            ended = broke_down(error)
            break
        sent += duration
        if told and all(math.isfinite(value) and value >= 0 for value in told):
            samples.append(told)
            spoilt = 0
            continue
        spoilt += 1
        if spoilt > invalid:
            ended = f"inconclusive: {spoilt} streams in a row told no latency"
    deviations = (
        MANY_FRAMES,
        *shorter(duration, "RFC 2544 26.2", STREAM),
        *fewer(len(samples), REPEATS, "RFC 2544 26.2"),
    )
    directions = tuple(_direction(values) for values in zip(*samples, strict=True))
    return LatencyResult(size, load, directions, tuple(samples), duration, ended, deviations)


def _direction(values: tuple[float, ...]) -> WayLatency:
    spread = stdev(values) if len(values) > 1 else math.nan
    return WayLatency(fmean(values), min(values), max(values), spread, len(values))
