"""RFC 2544 26.1 throughput, by binary search, and 26.3 frame loss rate, from line rate down.

Each load is tried once; loss of one frame in one direction sends the search lower. The search of
:mod:`lineproof.methods.search` needs less traffic and allows for a rare burst of loss; this one follows the RFC.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...core.phrases import percent as in_percent
from ...core.trial import Load, Measure, Trial
from ...units import si
from ..deviations import TRIALS_OF_SECTION_23, DeviatingResult, Deviation
from ..trials import (
    CharacterisationTerms,
    TrialSeries,
    is_decided,
    loss_bounds,
    per_direction,
    shows_loss,
)
from . import TRIAL_SECONDS, deviation_of_short_trials


@dataclass(frozen=True, slots=True)
class ThroughputResult(DeviatingResult):
    """Throughput of one frame size. Loads are of each sending port.

    ``throughput``: the highest load without loss (None: every load lost frames); ``beyond``: the lowest load with loss,
    or during which queues grew (None: there is none). ``line_pps``: line rate in frames/s.
    """

    size: int
    line_pps: float
    throughput: Load | None
    beyond: Load | None
    resolution: float
    duration: float
    trials: tuple[Trial, ...]
    ended: str
    deviations: tuple[Deviation, ...]

    @property
    def percent(self) -> float | None:
        """Throughput in per cent of line rate."""
        return None if self.throughput is None else 100 * self.throughput.pps / self.line_pps

    @property
    def found(self) -> str:
        """Return what was found, in words, without the deviations."""
        scope = per_direction(self.trials)
        if self.throughput is None:
            least = f" down to {si(self.beyond.pps, 'pps')}{scope}" if self.beyond else ""
            found = f"frames were lost at every load{least}" if self.beyond else "not measured"
        else:
            found = f"throughput {si(self.throughput.pps, 'pps', 6)}{scope} ({self.percent:.4g} % line rate)"
        trials = f"{len(self.trials)} trial{'s' * (len(self.trials) != 1)} of {self.duration:g} s"
        return "; ".join(filter(None, (f"{self.size} bytes: {found}", trials, self.ended)))


def throughput(
    measure: Measure,
    size: int,
    line_pps: float,
    terms: CharacterisationTerms,
    highest: Load | None = None,
    duration: float = TRIAL_SECONDS,
    resolution: float = 0.001,
) -> ThroughputResult:
    """Search between 0 and *highest* (None: *line_pps*) until loss and no loss are *resolution* of line rate apart.

    *size* in bytes with FCS; *duration* of each trial in s (below the RFC's 60 s it is a declared deviation).
    """
    if not 0 < resolution < 1 or not duration > 0:
        raise ValueError(f"the resolution is a ratio of line rate, and trials take time: not {resolution}, {duration}")
    load = highest or Load(line_pps)
    deviations = (*TRIALS_OF_SECTION_23, *deviation_of_short_trials(duration))
    if load.pps < line_pps * (1 - 1e-9):
        done = f"at most {100 * load.pps / line_pps:.4g} % of it is asked of the generator"
        deviations += (Deviation("RFC 2544 20", "a generator that sends the maximum rate of the medium", done),)
    trials = TrialSeries(measure, terms)
    good: Load | None = None
    bad: Load | None = None
    with trials:
        while True:
            # a load is good only if it is certain that nothing was lost, also in queues
            if loss_bounds(trials.run(load, duration, lambda trial: is_decided(loss_bounds(trial), 0.0))).high > 0:
                bad = load
            else:
                good = load
            least = good.pps if good else 0.0
            if bad is None or bad.pps - least <= resolution * line_pps * (1 + 1e-9):
                break
            load = Load((bad.pps + least) / 2)
    return ThroughputResult(
        size, line_pps, good, bad, resolution, duration, tuple(trials.done), trials.ended, deviations
    )


@dataclass(frozen=True, slots=True)
class LossPoint:
    """Loss ratio (0..1) of the worse direction at a load; ``asked`` and ``offered`` in per cent of line rate."""

    asked: float
    offered: float
    loss_ratio: float
    trial: Trial


@dataclass(frozen=True, slots=True)
class LossCurve(DeviatingResult):
    """The points of one traffic, from the highest load down. ``size`` is the (mean) frame size in bytes with FCS."""

    size: float
    line_pps: float
    points: tuple[LossPoint, ...]
    trials: tuple[Trial, ...]
    step: float
    duration: float
    ended: str
    deviations: tuple[Deviation, ...]

    @property
    def found(self) -> str:
        """Return what was found, in words, without the deviations."""
        curve = ", ".join(f"{point.asked:.4g} %: {in_percent(point.loss_ratio)}" for point in self.points)
        scope = f"{per_direction(self.trials)}, in the worse direction" if per_direction(self.trials) else ""
        found = f"{self.size:g} bytes: loss at per cent of line rate{scope}: {curve or 'not measured'}"
        return f"{found}; {self.ended}" if self.ended else found


def loss_curve(
    measure: Measure,
    size: float,
    line_pps: float,
    terms: CharacterisationTerms,
    step: float = 10.0,
    duration: float = TRIAL_SECONDS,
    highest: float = 100.0,
) -> LossCurve:
    """Trials of *duration* s at *highest* per cent of *line_pps*, then *step* per cent less each time.

    It ends with two successive trials without loss (RFC 2544 26.3), or when no load is left. The RFC wants steps of at
    most 10 per cent, better finer ones.
    """
    if not 0 < step <= 10 or not 0 < highest <= 100 or not duration > 0:
        raise ValueError(
            f"a loss curve goes down from at most 100 % in steps of at most 10 % (RFC 2544 26.3), not from {highest:g}"
            f" in steps of {step:g}"
        )
    deviations = (*TRIALS_OF_SECTION_23, *deviation_of_short_trials(duration))
    if highest < 100:
        done = f"it is at {highest:g} %, the most that is asked of the generator"
        deviations += (Deviation("RFC 2544 26.3", "a first trial at 100 % of the medium's maximum rate", done),)
    trials, resolution = TrialSeries(measure, terms), terms.conditions.resolution
    points: list[LossPoint] = []
    with trials:
        for asked in _loads_in_percent(highest, step):
            load = Load(line_pps * asked / 100)
            # a trial at less than the load asked for gives a point too, at the load offered
            trial = trials.run(load, duration, lambda trial: shows_loss(trial, resolution))
            offered = min(direction.offered for direction in trial.outcome.directions) / trial.seconds.high
            points.append(LossPoint(asked, 100 * offered / line_pps, trial.loss_ratio(in_total=False), trial))
            if len(points) > 1 and not any(point.loss_ratio for point in points[-2:]):
                break
    return LossCurve(size, line_pps, tuple(points), tuple(trials.done), step, duration, trials.ended, deviations)


def _loads_in_percent(highest: float, step: float) -> list[float]:
    found = [highest]
    # 100, 90, 80 …: the steps count from 100, whatever the first load is
    share = 100.0 - step
    while share > 1e-9:
        if share < highest - 1e-9:
            found.append(share)
        share -= step
    return found
