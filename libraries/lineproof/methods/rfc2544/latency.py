"""RFC 2544 26.2 latency: at the throughput of each frame size, the mean of 20 streams of 120 s."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean, stdev

from ...core.latency import LatencyCount
from ...core.trial import Load, Measure, Trial
from ..deviations import TRIALS_OF_SECTION_23, DeviatingResult, Deviation
from ..trials import CharacterisationTerms, TrialSeries, shows_loss
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

MIN_PROBE_FRAMES = 100
"""The fewest probe frames that give a latency."""


@dataclass(frozen=True, slots=True)
class DirectionLatency:
    """Latency of one direction in µs over the repetitions; ``mean`` is the reported figure."""

    mean: float
    least: float
    most: float
    deviation: float
    """Standard deviation of the repetitions in µs; NaN for one repetition."""
    repeats: int
    direction: str
    """``0 → 1``: sending port, receiving port."""

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
    measure: Measure,
    size: int,
    load: Load,
    terms: CharacterisationTerms,
    repeats: int = STREAMS,
    duration: float = STREAM_SECONDS,
) -> LatencyResult:
    """Measure *repeats* streams of *duration* s at *load*, the throughput found for frames of *size* bytes (with FCS).

    A stream without a latency is repeated a few times.
    """
    if repeats < 1 or not duration > 0:
        raise ValueError(f"latency needs streams of some length, not {repeats} of {duration:g} s")
    trials, streams = TrialSeries(measure, terms), list[Trial]()

    def has_latency(trial: Trial) -> bool:
        counts = trial.outcome.latency
        known = len(counts) == len(trial.outcome.directions) and all(map(_is_known, counts))
        return known and shows_loss(trial, terms.conditions.resolution)

    with trials:
        while len(streams) < repeats:
            streams.append(trials.run_measured(lambda: measure(load, duration), duration, has_latency))
    deviations = (
        RUNNING_MEAN,
        *TRIALS_OF_SECTION_23,
        *deviation_of_short_trials(duration, "RFC 2544 26.2", STREAM_SECONDS),
        *deviation_of_few_repetitions(len(streams), STREAMS, "RFC 2544 26.2"),
    )
    samples = tuple(tuple(count.mean for count in trial.outcome.latency) for trial in streams)
    used = streams[0].outcome.directions if streams else ()
    directions = tuple(
        _direction_latency(f"{row.tx_port} → {row.rx_port}", values)
        for row, values in zip(used, zip(*samples, strict=True), strict=True)
    )
    return LatencyResult(size, load, directions, samples, duration, trials.ended, deviations)


def _is_known(count: LatencyCount) -> bool:
    return count.received >= MIN_PROBE_FRAMES and math.isfinite(count.mean) and count.mean >= 0


def _direction_latency(direction: str, values: tuple[float, ...]) -> DirectionLatency:
    spread = stdev(values) if len(values) > 1 else math.nan
    return DirectionLatency(fmean(values), min(values), max(values), spread, len(values), direction)
