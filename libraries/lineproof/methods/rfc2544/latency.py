"""RFC 2544 26.2 latency: at the throughput of each frame size, the mean of 20 streams of 120 s."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from ...core.trial import Load
from ...errors import BREAKDOWN_ERRORS
from ..deviations import TRIALS_OF_SECTION_23, DeviatingResult, Deviation
from ..trials import Deadline, breakdown_text
from . import deviation_of_few_repetitions, deviation_of_short_trials

STREAMS = 20
STREAM_SECONDS = 120.0
"""Seconds of one stream."""

RUNNING_MEAN = Deviation(
    "RFC 2544 26.2",
    "the latency of one frame, tagged after 60 s of the stream",
    "the generator's running mean of the latency frames at the end of the stream (TRex: each half second weighs as much"
    " as all before it)",
)

MeasureLatency = Callable[[Load, float], Sequence[float]]
"""``measure_latency(load, duration in s)``: mean latency in µs of each direction; NaN if it is not known."""


@dataclass(frozen=True, slots=True)
class DirectionLatency:
    """Latency of one direction in µs over the repetitions; ``mean`` is the reported figure."""

    mean: float
    least: float
    most: float
    deviation: float
    """Standard deviation of the repetitions in µs; NaN for one repetition."""
    repeats: int
    direction: str = ""
    """``0 → 1``: sending port, receiving port; "" if they are not known."""

    def __str__(self) -> str:
        return f"{self.mean:.4g} µs ({self.least:.4g} to {self.most:.4g})"


@dataclass(frozen=True, slots=True)
class LatencyResult(DeviatingResult):
    """Latency of one frame size at ``load`` (its throughput, into each port), per direction."""

    size: int
    load: Load
    directions: tuple[DirectionLatency, ...]
    samples: tuple[tuple[float, ...], ...]
    """The means of every repetition in µs, one for each direction."""
    duration: float
    ended: str
    deviations: tuple[Deviation, ...]

    @property
    def found(self) -> str:
        """Return what was found, in words, without the deviations."""
        figures = ", ".join(map(str, self.directions)) or "not measured"
        streams = f"{len(self.samples)} streams of {self.duration:g} s"
        return "; ".join(filter(None, (f"{self.size} bytes: latency {figures}", streams, self.ended)))


def latency(
    measure_latency: MeasureLatency,
    size: int,
    load: Load,
    repeats: int = STREAMS,
    duration: float = STREAM_SECONDS,
    invalid: int = 3,
    deadline: Deadline | None = None,
) -> LatencyResult:
    """Measure *repeats* streams of *duration* s at *load*, the throughput found for frames of *size* bytes (with FCS).

    A stream without a latency is repeated, at most *invalid* times in a row.
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
            sample = tuple(measure_latency(load, duration))
        except BREAKDOWN_ERRORS as error:
            ended = breakdown_text(error)
            break
        sent += duration
        if sample and all(math.isfinite(value) and value >= 0 for value in sample):
            samples.append(sample)
            spoilt = 0
            continue
        spoilt += 1
        if spoilt > invalid:
            ended = f"inconclusive: {spoilt} streams in a row had no latency"
    deviations = (
        RUNNING_MEAN,
        *TRIALS_OF_SECTION_23,
        *deviation_of_short_trials(duration, "RFC 2544 26.2", STREAM_SECONDS),
        *deviation_of_few_repetitions(len(samples), STREAMS, "RFC 2544 26.2"),
    )
    directions = tuple(_direction_latency(values) for values in zip(*samples, strict=True))
    return LatencyResult(size, load, directions, tuple(samples), duration, ended, deviations)


def _direction_latency(values: tuple[float, ...]) -> DirectionLatency:
    spread = stdev(values) if len(values) > 1 else math.nan
    return DirectionLatency(fmean(values), min(values), max(values), spread, len(values))
