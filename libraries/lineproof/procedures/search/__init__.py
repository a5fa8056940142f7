"""Search: how much the router carries, by MLRsearch (RFC 9971; FD.io CSIT's library chooses the loads).

Several loss ratios are searched together: without loss (NDR) and with at most half a per cent (PDR). The result of
each is a *lower bound*, a load that was carried within the goal, and an *upper bound*, one that was not, at most the
relative width apart. A deadline or a spoilt testbed ends the search early, with the bounds so far.

As of a verdict, a lower bound is one with each loss at its worse end, an upper bound is one with each loss at its
better end. Where queues leave open what was lost, they are further apart.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from types import MappingProxyType
from typing import Any

from ...core.bounds import Bounds
from ...core.goal import Goal
from ...core.phrases import percent
from ...core.quantity import TrafficWords
from ...core.trial import Load, Trial
from ...core.verdict import LOSS_OF_OFFERED_FRAMES
from ...documents.chart import AREAS, SIGNS, Chart, Part, columns, linear, scaled, valued
from ...documents.document import Cell, Column, Mark, Note, Table
from ...errors import BREAKDOWN_ERRORS, ConfigError, SentenceError, in_words
from ...units import counted, l1_bits, l2_bits, range_text, si
from ...visible import shortened
from ..procedure import EACH, Procedure, ProcedureRun, endings, figure
from ..trials import ProcedureResult, TrialSeries, is_decided, loss_bounds

LOSS_RATIOS: Mapping[str, float] = MappingProxyType({"NDR": 0.0, "PDR": 0.005})
"""Names and loss ratios as FD.io CSIT uses them: non drop rate, partial drop rate."""

RELATIVE_WIDTH = 0.005


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

    def __str__(self) -> str:
        lower, upper = ("" if load is None else si(load.pps, "pps", 5) for load in (self.lower, self.upper))
        if lower and upper:
            known = range_text(lower, upper)
        else:
            known = f"≥ {lower}" if lower else f"< {upper}" if upper else "–"
        return known + " …" * (not self.finished)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult(ProcedureResult):
    """The bounds of every loss ratio, to ``relative_width``; none: no search could begin. ``goal`` in words.

    ``axis`` names what differs between several, for example ``flows``.
    """

    bounds: tuple[CapacityBounds, ...] = ()
    goal: str = ""
    relative_width: float
    axis: str = ""

    def __getitem__(self, name: str) -> CapacityBounds:
        """Return the bounds of ``NDR`` or ``PDR``."""
        return next(bounds for bounds in self.bounds if bounds.name == name)

    def __str__(self) -> str:
        return "; ".join(filter(None, [*(f"{each.name}{self.scope} {each}" for each in self.bounds), self.ended]))


def search(
    run: ProcedureRun,
    traffic_words: str,
    loss_ratios: Mapping[str, float] = LOSS_RATIOS,
    relative_width: float = RELATIVE_WIDTH,
    goal: Goal | None = None,
) -> SearchResult:
    """Find the highest loads of the traffic *traffic_words* that the router carries, one for each of *loss_ratios*.

    Where the generator does not send the testbed's maximum, they end at what it sends. The *goal* (None: the run's)
    gives trial duration, duration sum and exceed ratio; its own loss ratio is not used. *relative_width* (0..1): the
    distance of the bounds.
    """
    # imported here because it takes half a second, which a suite without a search does not need
    from MLRsearch import Config, GoalResult, MultipleLossRatioSearch, SearchGoal

    traffic, goal = run.traffic(traffic_words), goal or run.session.plan.goal
    lowest = Load(run.session.plan.maximum_load(traffic).pps / 1000)
    highest = run.put(traffic, as_sent=True)
    goals = [
        SearchGoal(
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
        for ratio in loss_ratios.values()
    ]
    controller = MultipleLossRatioSearch(
        config=Config(
            goals=goals,
            min_load=lowest.pps,
            max_load=highest.pps,
            # the deadline is checked before each trial instead, so that the bounds found until then stay
            search_duration_max=1e9,
            warmup_duration=None,
        )
    )
    with run.series(traffic) as trials:
        controller.search(measurer=_Measurer(trials, tuple(loss_ratios.values())), debug=lambda text: None)
    bounds = []
    for (name, ratio), goal_of_ratio in zip(loss_ratios.items(), goals, strict=True):
        target = controller.scaling.goal_to_final_target[goal_of_ratio]
        known = GoalResult.from_bounds(controller.database.get_relevant_bounds(target=target))
        lower, upper = _load(known.relevant_lower_bound), _load(known.relevant_upper_bound)
        certain = _certain_upper(trials.done, upper, ratio, goal)
        finished = (not trials.ended and upper == certain) or _is_found(lower, certain, lowest, highest, relative_width)
        throughput = None if lower is None else float(known.conditional_throughput)
        bounds.append(CapacityBounds(name, ratio, lower, certain, throughput, finished))
    if not trials.ended and not all(bound.finished for bound in bounds):
        trials.ended = "queues grew while frames were sent, and leave open what is lost between the bounds"
    elif trials.ended.startswith("deadline: ") and not any(bound.lower or bound.upper for bound in bounds):
        trials.ended = f"inconclusive: no bound was found; {trials.ended}"
    return SearchResult(
        bounds=tuple(bounds),
        goal=goal.of_searches,
        relative_width=relative_width,
        **trials.as_fields([LOSS_OF_OFFERED_FRAMES]),
    )


def search_each(
    run: ProcedureRun,
    axis: str,
    values: Sequence[str],
    traffic_of: Callable[[str], str],
    relative_width: float,
    set_up: Callable[[str], object] = lambda value: None,
    loss_ratios: Mapping[str, float] = LOSS_RATIOS,
    goal: Goal | None = None,
) -> tuple[SearchResult, ...]:
    """Search at each of *values* of *axis*: ``set_up(value)`` changes the router, ``traffic_of(value)`` is the traffic.

    They share the run's deadline alike; what one leaves of its share, those after it have. A value that cannot be set
    up has no bounds. Raises ConfigError, SentenceError before any frame is sent.
    """
    if not values or len(set(values)) != len(values):
        raise ConfigError(f"expected one value or more, each once, not {list(values)}")
    for value in values:
        run.traffic(traffic_of(value))
    run.searches, whole, results = len(values), run.deadline, list[SearchResult]()
    for at, value in enumerate(values):
        run.deadline = run.sent + (whole - run.sent) / (len(values) - at)
        try:
            set_up(value)
            result = search(run, traffic_of(value), loss_ratios, relative_width, goal)
        except BREAKDOWN_ERRORS as error:
            ended = f"inconclusive: it could not be set up: {in_words(error)}"
            result = SearchResult(sentence=traffic_of(value), relative_width=relative_width, ended=ended)
        results.append(replace(result, axis=axis, value=value))
    run.deadline = whole
    return tuple(results)


def carried(
    run: ProcedureRun, result: object, keyword: str, traffic_words: str, ratio: str
) -> tuple[TrafficWords, CapacityBounds]:
    """Return the traffic, and the bounds that *keyword* found for its *ratio*. Raises SentenceError if not."""
    known = {bounds.name: bounds for bounds in result.bounds} if isinstance(result, SearchResult) else {}
    if not isinstance(result, SearchResult) or ratio not in known:
        raise SentenceError(f"'{shortened(result)}': expected what '{keyword}' returned")
    traffic = run.traffic(traffic_words)
    if run.traffic(result.sentence).alone != traffic.alone:
        raise SentenceError(f"'{keyword}' was asked for '{result.sentence}'; expected '{traffic_words}', as here")
    return traffic, known[ratio]


def _certain_upper(trials: Sequence[Trial], upper: Load | None, ratio: float, goal: Goal) -> Load | None:
    """Return the load *upper*, or where its loss is open the next that certainly lost more than *ratio* too often."""
    if upper is None or all(is_decided(loss_bounds(trial), ratio) for trial in trials if trial.outcome.load == upper):
        return upper
    lost = defaultdict[float, float](float)
    for trial in trials:
        lost[trial.outcome.load.pps] += trial.outcome.duration if loss_bounds(trial).low > ratio else 0.0
    most = goal.exceed_ratio * goal.duration_sum
    return next((Load(pps) for pps in sorted(lost) if pps >= upper.pps and lost[pps] > most), None)


def _is_found(lower: Load | None, upper: Load | None, lowest: Load, highest: Load, width: float) -> bool:
    """Return whether the bounds are *width* apart, or the highest load is carried, or not even the lowest."""
    if lower is not None and upper is not None:
        return 1 - lower.pps / upper.pps <= width * (1 + 1e-6)
    carries_all = lower is not None and lower.pps >= highest.pps * (1 - 1e-9)
    return carries_all or (upper is not None and upper.pps <= lowest.pps * (1 + 1e-9))


def _load(bound: Any) -> Load | None:
    """Return the library's *bound* as a load."""
    return None if bound is None else Load(float(bound))


@dataclass
class _Measurer:
    """Gives the library our trials, as its AbstractMeasurer, with each loss at its worse end."""

    trials: TrialSeries
    loss_ratios: tuple[float, ...]

    def measure(self, intended_duration: float, intended_load: float) -> Any:
        """Return one trial of *intended_duration* s or longer at *intended_load* frames/s into each port."""
        from MLRsearch import MeasurementResult

        trial = self.trials.run(Load(intended_load), intended_duration, self._decides)
        worst = max(trial.outcome.directions, key=lambda row: row.loss_ratio)
        # where both ends say the same, the counted loss leads to better guesses
        lost = worst.lost if self._decides(trial) else math.ceil(loss_bounds(trial).high * worst.offered)
        # without the third count, whose name differs between releases (forwarding_count, forwarded_count)
        return MeasurementResult(
            trial.outcome.duration,
            intended_load,
            offered_count=worst.offered,
            loss_count=min(worst.offered, lost),
        )

    def _decides(self, trial: Trial) -> bool:
        loss = loss_bounds(trial)
        return all(is_decided(loss, ratio) for ratio in self.loss_ratios)


# -- the keyword, its document and its chart ---------------------------------------------------------------------------


def search_throughput(
    run: ProcedureRun,
    traffic: str,
    *values: str,
    axis: str = "traffic",
    set_up: str = "",
    relative_width: float = RELATIVE_WIDTH,
) -> SearchResult | tuple[SearchResult, ...]:
    """The highest loads that the router carries without loss (NDR) and with at most half a per cent (PDR).

    By MLRsearch (RFC 9971); at the deadline it ends with the bounds so far. *relative_width*: how close the bounds
    come (0..1). Trials are those of the run's goal.

    *values*: words that *traffic* lacks: a search with each, in one table; *axis* names them. With ``|`` between words
    a value is each of them, with all others of its value, as a matrix. *set_up*: a keyword of the suite that is called
    with each value; all have the same *traffic* then. They share the deadline alike. Examples:
    | ${throughput} =    Search Throughput Of    64b 1-flow unidirectional    deadline=2 min
    | Search Throughput Of    64b unidirectional    1-flow    8-flows    64-flows    axis=flows
    | Search Throughput Of    ${EMPTY}    64b|imix 1-flow|1000-flows unidirectional    deadline=2 min
    | Search Throughput Of    64b unidirectional    1    2    axis=receive queues    set_up=Set Receive Queues
    """
    if not values:
        return search(run, traffic, LOSS_RATIOS, relative_width)
    run.name, run.words = f"search over {axis}", traffic
    if set_up:
        return search_each(run, axis, values, lambda value: traffic, relative_width, run.call(set_up))
    run.words = traffic or " ".join(values)
    choices = [" ".join(choice) for value in values for choice in product(*(word.split("|") for word in value.split()))]
    return search_each(run, axis, choices, lambda value: f"{value} {traffic}".strip(), relative_width)


def bounds_of(run: ProcedureRun, results: Sequence[SearchResult]) -> Sequence[Note | Table]:
    """Return a row for each result: the bounds of each loss ratio, the lower in each unit; and how they were found."""
    rows: list[dict[Column, Cell | str]] = []
    for result in results:
        traffic = run.traffic(result.sentence)
        size, line = traffic.profile.mean_size, run.line(traffic)
        rows.append({Column(result.axis or "traffic", left=True): result.value or result.sentence})
        rows[-1][Column("theoretical", EACH, on_page=True)] = figure(line)
        for bounds in result.bounds:
            name, lower = bounds.name, bounds.lower
            mark: Mark = "" if bounds.finished else "unsure"
            rows[-1] |= {
                Column(name): Cell(str(bounds), mark),
                Column(f"{name} Gbit/s"): Cell(figure(lower, ".4g", l1_bits(size) / 1e9), mark),
                Column(f"{name} Gbit/s L2", on_page=True): Cell(figure(lower, ".4g", l2_bits(size) / 1e9), mark),
                Column(f"{name} % line"): Cell(figure(lower, ".3g", 100 / line), mark),
                Column(f"{name} conditional", EACH, on_page=True): Cell(figure(bounds.throughput), mark),
            }
    known = {bounds.name: bounds.loss_ratio for result in results for bounds in result.bounds}
    ratios = ", ".join(f"{name}: {percent(ratio)} lost at most" for name, ratio in known.items())
    trials, seconds = sum(len(result.trials) for result in results), sum(result.seconds for result in results)
    how = (
        f"{results[0].goal}; {counted(trials, 'trial')}, {seconds:.4g} s of traffic. Bounds to"
        f" {percent(results[0].relative_width)}, of each port; Gbit/s (of layer 1) and % of line are the lower ones;"
        f" {ratios}; ≥: no more was offered; …: unfinished."
    )
    return [Table.of(rows), Note(how), *endings(results)]


def _picture(run: ProcedureRun, results: Sequence[SearchResult]) -> str:
    """Return loss over load: a mark for each trial, and the bounds that were found; of several values their bounds."""
    result = results[0]
    if result.value:
        return _bars(run, results)
    most = max((trial.outcome.load.pps for trial in result.trials), default=1.0)
    across = scaled("load of each port", "pps", 1.03 * most)
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


def _bars(run: ProcedureRun, results: Sequence[SearchResult]) -> str:
    """Return for each value a bar up to its NDR, and a range up to its PDR, in per cent of line rate.

    Values of several words have no room below their bars.
    """
    if any(" " in result.value for result in results):
        return ""
    across = columns(results[0].axis, [result.value for result in results])
    plot = Chart(run.title, across, linear("% of line rate, each port", 105), run.session.simulated, is_level=True)
    for place, result in enumerate(results):
        line = run.line(run.traffic(result.sentence))
        shares = [100 * bounds.lower.pps / line if bounds.lower else 0.0 for bounds in result.bounds]
        if shares:
            plot.bar(place, [Part(shares[0], "NDR: no frame lost", AREAS[0])])
            plot.range(place, Bounds(*shares), SIGNS[1], "PDR: half a per cent lost at most", shares[-1])
        plot.label(place, max(shares, default=0.0), f"{shares[0]:.3g} %" if shares else "no result")
    return plot.svg()


SEARCH = Procedure("Search Throughput Of", "search", search_throughput, parts=bounds_of, picture=_picture)
