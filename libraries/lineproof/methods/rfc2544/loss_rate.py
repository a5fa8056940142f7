"""RFC 2544 26.3 frame loss rate: the ratio of frames lost, from line rate down to two trials without loss."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.phrases import percent as in_percent
from ...core.trial import Load, Measure, Trial
from ..deviations import TRIALS_OF_SECTION_23, DeviatingResult, Deviation
from ..trials import CharacterisationEnded, CharacterisationTerms, TrialSeries, per_direction, shows_loss
from . import TRIAL_SECONDS, deviation_of_short_trials


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
    ended = ""
    try:
        for asked in _loads_in_percent(highest, step):
            load = Load(line_pps * asked / 100)
            # a trial at less than the load asked for gives a point too, at the load offered
            trial = trials.run(load, duration, lambda trial: shows_loss(trial, resolution))
            offered = min(direction.offered for direction in trial.outcome.directions) / trial.seconds.high
            points.append(LossPoint(asked, 100 * offered / line_pps, trial.loss_ratio(terms.in_total), trial))
            if len(points) > 1 and not any(point.loss_ratio for point in points[-2:]):
                break
    except CharacterisationEnded as reason:
        ended = str(reason)
    return LossCurve(size, line_pps, tuple(points), tuple(trials.done), step, duration, ended, deviations)


def _loads_in_percent(highest: float, step: float) -> list[float]:
    found = [highest]
    # 100, 90, 80 …: the steps count from 100, whatever the first load is
    share = 100.0 - step
    while share > 1e-9:
        if share < highest - 1e-9:
            found.append(share)
        share -= step
    return found
