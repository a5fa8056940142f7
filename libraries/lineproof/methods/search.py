"""Search: how much the router carries, by MLRsearch (RFC 9971; FD.io CSIT's library chooses the loads).

Several loss ratios are searched together: without loss (NDR) and with at most half a per cent (PDR). The result of
each is a *lower bound*, a load that was carried within the goal, and an *upper bound*, one that was not, at most the
relative width apart. A deadline or a spoilt testbed ends the search early, with the bounds found until then.

As of a verdict, the trials are read twice: a lower bound is one with each loss at its worse end, an upper bound is one
with each loss at its better end. Where queues leave open what was lost, they are further apart.

Scaling: a search for each of several values, as the number of flows, the frame size, or the traffic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from ..core.goal import Goal
from ..core.phrases import percent
from ..core.trial import Load, Measure, Trial
from ..errors import BREAKDOWN_ERRORS, in_words
from ..units import si
from .deviations import LOSS_OF_OFFERED_FRAMES, DeviatingResult
from .trials import CharacterisationTerms, TrialSeries, is_decided, loss_bounds

LOSS_RATIOS: Mapping[str, float] = MappingProxyType({"NDR": 0.0, "PDR": 0.005})
"""Names and loss ratios as FD.io CSIT uses them: non drop rate, partial drop rate."""

RELATIVE_WIDTH = 0.005

SENDABLE = 0.9
"""The share of what an overloaded generator sent that is asked of it next."""

LOWEST_LOAD_RATIO = 0.001
"""The lowest load that a search asks for, as a ratio of the highest."""


@dataclass(frozen=True, slots=True)
class CapacityBounds:
    """The bounds for one loss ratio. Loads are of each sending port.

    ``throughput``: conditional throughput of RFC 9971 at the lower bound, frames/s of each port. ``finished``: the
    bounds are as close as asked, or the router carries the highest load, or not even the lowest.
    """

    name: str
    loss_ratio: float
    lower: Load | None
    upper: Load | None
    throughput: float | None
    finished: bool

    @property
    def width(self) -> float | None:
        """The distance of the bounds, as a ratio of the upper one; None if one of them is not known."""
        if self.lower is None or self.upper is None:
            return None
        return 1 - self.lower.pps / self.upper.pps

    def __str__(self) -> str:
        allowed = f"loss up to {percent(self.loss_ratio)}" if self.loss_ratio else "without loss"
        lower, upper = ("" if load is None else si(load.pps, "pps", 5) for load in (self.lower, self.upper))
        if lower and upper:
            between = f"{lower} to {upper} ({percent(self.width or 0.0)} apart)"
        elif lower:
            between = f"at least {lower}" + " (the highest load asked for is carried)" * self.finished
        else:
            between = f"less than {upper}" if upper else "no bound found"
        return f"{self.name} ({allowed}): {between}" + " – unfinished" * (not self.finished)


@dataclass(frozen=True, slots=True)
class SearchResult(DeviatingResult):
    """The bounds of every loss ratio. ``traffic``: seconds of it."""

    bounds: tuple[CapacityBounds, ...]
    goal: Goal
    lowest: Load
    highest: Load
    relative_width: float
    traffic: float

    def __getitem__(self, name: str) -> CapacityBounds:
        """The bounds of ``NDR`` or ``PDR``."""
        return next(bounds for bounds in self.bounds if bounds.name == name)

    @property
    def _found(self) -> str:
        scope = [f"loads are{self.scope}"] if self.scope else []
        length = f"{len(self.trials)} trials, {self.traffic:g} s of traffic"
        return "; ".join([*map(str, self.bounds), *scope, length])


def search(
    measure: Measure,
    goal: Goal,
    lowest: Load,
    highest: Load,
    terms: CharacterisationTerms,
    loss_ratios: Mapping[str, float] = LOSS_RATIOS,
    relative_width: float = RELATIVE_WIDTH,
) -> SearchResult:
    """Find the highest loads between *lowest* and *highest* that the router carries, one for each of *loss_ratios*.

    Where the generator does not send *highest*, they end at what it sends. *goal* gives trial duration, duration sum
    and exceed ratio; its own loss ratio is not used. *relative_width* (0..1): the distance of the bounds. Raises
    ValueError for the same ratio twice.
    """
    if len(set(loss_ratios.values())) != len(loss_ratios) or not loss_ratios:
        raise ValueError(f"a search needs one or more loss ratios, each once, not {dict(loss_ratios)}")
    # imported here because it takes half a second, which a suite without a search does not need
    from MLRsearch import Config, GoalResult, MultipleLossRatioSearch

    wanted = {name: _search_goal(goal, ratio, relative_width) for name, ratio in loss_ratios.items()}
    trials = TrialSeries(measure, terms)
    while True:
        controller = MultipleLossRatioSearch(
            config=Config(
                goals=list(wanted.values()),
                min_load=lowest.pps,
                max_load=highest.pps,
                # the deadline is checked before each trial instead, so that the bounds found until then stay
                search_duration_max=1e9,
                warmup_duration=None,
            )
        )
        measurer = _Measurer(trials, tuple(loss_ratios.values()))
        with trials:
            controller.search(measurer=measurer, debug=lambda text: None)
        is_first = trials.ended and all(trial.outcome.load == highest for trial in trials.done[-1:])
        sent = sendable(trials.done[-1]) if is_first and trials.done else highest
        if sent.pps >= highest.pps or sent.pps <= lowest.pps:
            break
        highest = sent
    databases = controller.database, measurer.at_better_ends(controller.database, controller.scaling.targets)
    bounds = []
    for name, goal_of_ratio in wanted.items():
        target = controller.scaling.goal_to_final_target[goal_of_ratio]
        worse, better = (GoalResult.from_bounds(each.get_relevant_bounds(target=target)) for each in databases)
        lower, upper = _load(worse.relevant_lower_bound), _load(better.relevant_upper_bound)
        # the library ended with the bounds at the worse ends
        done = not trials.ended and upper == _load(worse.relevant_upper_bound)
        finished = done or _is_found(lower, upper, lowest, highest, relative_width)
        throughput = None if lower is None else float(worse.conditional_throughput)
        bounds.append(CapacityBounds(name, loss_ratios[name], lower, upper, throughput, finished))
    if not trials.ended and not all(item.finished for item in bounds):
        trials.ended = "queues grew while frames were sent, and leave open what is lost between the bounds"
    noted = trials.as_fields((LOSS_OF_OFFERED_FRAMES,))
    return SearchResult(tuple(bounds), goal, lowest, highest, relative_width, trials.traffic, **noted)


def sendable(trial: Trial) -> Load:
    """Return the load to ask for where the generator fell behind in *trial*: its own, where it did not."""
    asked, behind = trial.outcome.load, (problem.fault.generator_too_slow for problem in trial.problems)
    sent = min((row.offered / trial.seconds.high for row in trial.outcome.directions), default=0.0)
    # a generator that is asked for less than it can has time to send it
    return Load(SENDABLE * min(sent, asked.pps)) if sent and any(behind) else asked


def _search_goal(goal: Goal, loss_ratio: float, relative_width: float) -> Any:
    from MLRsearch import SearchGoal

    return SearchGoal(
        loss_ratio=loss_ratio,
        exceed_ratio=goal.exceed_ratio,
        relative_width=relative_width,
        # the first trials narrow the search, the final ones decide
        initial_trial_duration=min(1.0, goal.final_trial_duration),
        final_trial_duration=goal.final_trial_duration,
        duration_sum=goal.duration_sum,
        # a router that does not carry even the lowest load is a result, not an error
        fail_fast=False,
    )


def _is_found(lower: Load | None, upper: Load | None, lowest: Load, highest: Load, width: float) -> bool:
    """Return whether the bounds are *width* apart, or the highest load is carried, or not even the lowest."""
    if lower is not None and upper is not None:
        return 1 - lower.pps / upper.pps <= width * (1 + 1e-6)
    carries_all = lower is not None and lower.pps >= highest.pps * (1 - 1e-9)
    return carries_all or (upper is not None and upper.pps <= lowest.pps * (1 + 1e-9))


def _load(bound: Any) -> Load | None:
    """Return the library's *bound* as a load."""
    return None if bound is None else Load(float(bound))


class _Measurer:
    """Gives the library our trials, as its AbstractMeasurer, with each loss at its worse end."""

    def __init__(self, trials: TrialSeries, loss_ratios: tuple[float, ...]) -> None:
        self.trials, self._loss_ratios = trials, loss_ratios
        self._better: list[Any] = []

    def measure(self, intended_duration: float, intended_load: float) -> Any:
        """Return one trial of *intended_duration* s or longer at *intended_load* frames/s into each port."""
        from MLRsearch import MeasurementResult

        trial = self.trials.run(Load(intended_load), intended_duration, self._decides)
        loss, worst = loss_bounds(trial), max(trial.outcome.directions, key=lambda row: row.loss_ratio)
        offered, lost = worst.offered, worst.lost
        # where both ends say the same, the counted loss leads to better guesses
        ends = (lost, lost) if self._decides(trial) else (math.ceil(loss.high * offered), int(loss.low * offered))
        worse, better = (
            MeasurementResult(trial.outcome.duration, intended_load, offered, min(offered, count)) for count in ends
        )
        self._better.append(better)
        return worse

    def at_better_ends(self, database: Any, targets: Any) -> Any:
        """Return the library's *database* of the same trials, with each loss at its better end."""
        from MLRsearch.discrete_result import DiscreteResult
        from MLRsearch.measurement_database import MeasurementDatabase

        found, loads = MeasurementDatabase(targets), {float(load): load for load in database.load_to_stats}
        for result in self._better:
            load = loads[result.intended_load]
            found.add(DiscreteResult.with_load(result=result, load=load))
        return found

    def _decides(self, trial: Trial) -> bool:
        loss = loss_bounds(trial)
        return all(is_decided(loss, ratio) for ratio in self._loss_ratios)


# -- scaling -----------------------------------------------------------------------------------------------------------


V = TypeVar("V", int, str)
"""The type of the values: numbers, or words of traffic."""

FLOW_COUNTS = (1, 2, 8, 64, 256, 1_000, 10_000)
"""Numbers of flows to try: one queue alone, all queues, and more flows than caches hold."""


@dataclass(frozen=True, slots=True)
class ScalingPoint:
    """The result at one value. ``result`` None: no search was made; ``reason`` says why."""

    value: int | str
    result: SearchResult | None
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.value}: {self.result if self.result is not None else self.reason}"


@dataclass(frozen=True, slots=True)
class ScalingResult(DeviatingResult):
    """``axis`` names what was varied, for example ``flows``; ``points`` are in the order of the values."""

    axis: str
    points: tuple[ScalingPoint, ...]

    @property
    def endings(self) -> tuple[str, ...]:
        """Return why each search ended early, or was not made."""
        return tuple(point.reason if point.result is None else point.result.endings[0] for point in self.points)

    @property
    def _found(self) -> str:
        return "\n".join(f"{self.axis} {point}" for point in self.points)


def scale(
    axis: str, values: Sequence[V], search_at: Callable[[V, float], SearchResult], deadline: float = math.inf
) -> ScalingResult:
    """Search at each of *values*, in at most *deadline* s of traffic for all together, which they share alike.

    ``search_at(value, seconds)`` sets traffic and router up and searches; if it fails, the point has no result. What
    one leaves of its share, those after it have.
    """
    if not values or len(set(values)) != len(values):
        raise ValueError(f"scaling needs one value or more, each once, not {list(values)}")
    points: list[ScalingPoint] = []
    left = deadline
    for at, value in enumerate(values):
        try:
            result = search_at(value, left / (len(values) - at))
        except BREAKDOWN_ERRORS as error:
            points.append(ScalingPoint(value, None, f"inconclusive: it could not be set up: {in_words(error)}"))
            continue
        left -= result.traffic
        points.append(ScalingPoint(value, result))
    return ScalingResult(axis, tuple(points))
