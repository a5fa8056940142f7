"""Search: how much the router carries, by MLRsearch (RFC 9971; FD.io CSIT's library chooses the loads).

Several loss ratios are searched together: without loss (NDR) and with at most half a per cent (PDR). The result of
each is a *lower bound*, a load that was carried within the goal, and an *upper bound*, one that was not, at most the
relative width apart. A deadline or a spoilt testbed ends the search early, with the bounds found until then.

As of a verdict, the trials are read twice: a lower bound is one with each loss at its worse end, an upper bound is one
with each loss at its better end. Where queues leave open what was lost, they are further apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ...core.bounds import Bounds
from ...core.goal import Goal
from ...core.phrases import percent
from ...core.trial import Load, Trial
from ...core.verdict import LOSS_OF_OFFERED_FRAMES
from ...evidence.chart import SIGNS, Chart, scaled, valued
from ...evidence.document import Column, Note, Table
from ...units import l1_bits, range_text, si
from ..procedure import EACH, NONE, Procedure, ProcedureRun, figure, sendable
from ..trials import ProcedureResult, TrialSeries, is_decided, loss_bounds

LOSS_RATIOS: Mapping[str, float] = MappingProxyType({"NDR": 0.0, "PDR": 0.005})
"""Names and loss ratios as FD.io CSIT uses them: non drop rate, partial drop rate."""

RELATIVE_WIDTH = 0.005

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
        lower, upper = ("" if load is None else si(load.pps, "pps", 5) for load in (self.lower, self.upper))
        if lower and upper:
            known = range_text(lower, upper)
        else:
            known = f"≥ {lower}" if lower else f"< {upper}" if upper else "–"
        return known + " …" * (not self.finished)


@dataclass(frozen=True, slots=True)
class SearchResult(ProcedureResult):
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

    def __str__(self) -> str:
        return "; ".join(filter(None, [*(f"{each.name}{self.scope} {each}" for each in self.bounds), self.ended]))


def search(
    run: ProcedureRun,
    words: str,
    loss_ratios: Mapping[str, float] = LOSS_RATIOS,
    relative_width: float = RELATIVE_WIDTH,
) -> SearchResult:
    """Find the highest loads of the traffic *words* that the router carries, one for each of *loss_ratios*.

    Where the generator does not send the testbed's maximum, they end at what it sends. The run's goal gives trial
    duration, duration sum and exceed ratio; its own loss ratio is not used. *relative_width* (0..1): the distance of
    the bounds.
    """
    # imported here because it takes half a second, which a suite without a search does not need
    from MLRsearch import Config, GoalResult, MultipleLossRatioSearch, SearchGoal

    traffic, goal = run.traffic(words), run.session.plan.goal
    lowest = Load(run.session.plan.maximum_load(traffic).pps * LOWEST_LOAD_RATIO)
    highest = run.put(traffic, as_sent=True)
    wanted = {
        name: SearchGoal(
            loss_ratio=ratio,
            exceed_ratio=goal.exceed_ratio,
            relative_width=relative_width,
            # the first trials narrow the search, the final ones decide
            initial_trial_duration=min(1.0, goal.final_trial_duration),
            final_trial_duration=goal.final_trial_duration,
            duration_sum=goal.duration_sum,
            # a router that does not carry even the lowest load is a result, not an error
            fail_fast=False,
        )
        for name, ratio in loss_ratios.items()
    }
    trials = run.series(traffic)
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
        # without the third count, whose name differs between releases (forwarding_count, forwarded_count)
        worse, better = (
            MeasurementResult(
                trial.outcome.duration, intended_load, offered_count=offered, loss_count=min(offered, count)
            )
            for count in ends
        )
        self._better.append(better)
        return worse

    def at_better_ends(self, database: Any, targets: Any) -> Any:
        """Return the library's *database* of the same trials, with each loss at its better end."""
        from MLRsearch.discrete_result import DiscreteResult
        from MLRsearch.measurement_database import MeasurementDatabase

        relevant, loads = MeasurementDatabase(targets), {float(load): load for load in database.load_to_stats}
        for result in self._better:
            load = loads[result.intended_load]
            relevant.add(DiscreteResult.with_load(result=result, load=load))
        return relevant

    def _decides(self, trial: Trial) -> bool:
        loss = loss_bounds(trial)
        return all(is_decided(loss, ratio) for ratio in self._loss_ratios)


# -- the keyword, its document and its chart ---------------------------------------------------------------------------


class Search(Procedure):
    """NDR and PDR of one traffic."""

    keyword, name = "Search Throughput Of", "search"

    def measure(self, run: ProcedureRun, traffic: str, relative_width: float = RELATIVE_WIDTH) -> SearchResult:
        """The highest loads that the router carries without loss (NDR) and with at most half a per cent (PDR).

        By MLRsearch (RFC 9971); at the deadline it ends with the bounds so far. *relative_width*: how close the bounds
        come (0..1). Trials are those of the run's goal. Example:
        | ${found} =    Search Throughput Of    64b 1-flow unidirectional    deadline=2 min
        """
        return search(run, traffic, LOSS_RATIOS, relative_width)

    def parts(self, run: ProcedureRun, result: SearchResult) -> Sequence[Note | Table]:
        """Return the bounds for each loss ratio, in every unit."""
        known = run.traffic(run.words)
        size, line = known.profile.mean_size, run.line(known)
        bounds_of_ratios = [
            {
                Column("", left=True): bounds.name,
                Column("loss allowed"): percent(bounds.loss_ratio),
                Column("lower bound", EACH): figure(bounds.lower),
                Column("upper bound", EACH): figure(bounds.upper),
                Column("apart"): NONE if bounds.width is None else percent(bounds.width),
                Column("conditional throughput", EACH): figure(bounds.throughput),
                Column("lower bound", "% of line"): figure(bounds.lower, ".2f", 100 / line),
                Column("lower bound", "Gbit/s L1"): figure(bounds.lower, ".4f", l1_bits(size) / 1e9),
                Column("search", left=True): "done" if bounds.finished else "unfinished",
            }
            for bounds in result.bounds
        ]
        how = (
            f"{result.goal.of_searches}. Bounds to {percent(result.relative_width)}; {len(result.trials)} trials,"
            f" {result.traffic:g} s of traffic; between {figure(result.lowest)} and"
            f" {figure(result.highest)} frames/s."
        )
        return [*map(Note, filter(None, [result.ended])), Table.of(bounds_of_ratios), Note(how)]

    def picture(self, run: ProcedureRun, result: SearchResult) -> str:
        """Return loss over load: a mark for each trial, and the bounds that were found."""
        across = scaled("load of each port", "pps", 1.03 * result.highest.pps)
        up = valued("frames lost [%]", (0, 0.01, 0.1, 1, 10, 100), True)
        plot = Chart(run.title, across, up, run.session.simulated)
        for sign, dashes, bounds in zip(SIGNS[2:], ("", "9 4", "2 3", "9 3 2 3"), result.bounds, strict=False):
            if bounds.lower is not None:
                low, high = bounds.lower.pps, (bounds.upper or bounds.lower).pps
                edges = [(low, -math.inf), (low, math.inf), (high, math.inf), (high, -math.inf)]
                named = f"{bounds.name}{'' if bounds.finished else ' (unfinished)'}"
                plot.curve(edges, named, None, sign.colour, dashes)
        for trial in result.trials:
            sign, name = (SIGNS[0], "trial") if trial.is_clean else (SIGNS[1], "trial with a doubt")
            loss = 100 * trial.loss_ratio(in_total=False)
            plot.range(trial.outcome.load.pps, Bounds(loss, loss), sign, name)
        return plot.svg()


SEARCH = Search()
