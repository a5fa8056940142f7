"""Results of searches, ramps, scaling and RFC 2544's tests (the tables of its section 26): table and picture of each.

Rates are of each port unless stated.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from ..core.bounds import Bounds
from ..core.phrases import percent
from ..core.trial import Load
from ..evidence import chart
from ..evidence.chart import SIGNS, Chart, linear, scaled, valued
from ..evidence.document import Cell, Column, Note, Table
from ..generators.base import Method
from ..methods import rfc2544
from ..methods.ramp import RampResult, loadtest_data
from ..methods.search import LOSS_RATIOS, CapacityBounds, ScalingResult, SearchResult
from ..methods.trials import SendingResult
from ..session.characterising import Characteriser
from ..units import l1_bits, l2_bits, line_rate_pps

Cells = Mapping[Column, str]
"""The cells of a row by their columns."""

NONE = "–"
"""The cell of what was not measured."""

_EACH = "frames/s each port"
_SIZE = Column("frame size", "bytes with FCS")
_SEARCH = Column("search", left=True)
_BOUNDS = Column("", left=True), Column("loss allowed"), Column("lower bound", _EACH), Column("upper bound", _EACH)


class Procedure(NamedTuple):
    """The name of a procedure, and what makes the parts of a result's document, and its picture (SVG).

    ``loadtest``: what makes the data for trex-loadtest-viz. A procedure with a ``keyword`` is that method of the
    characteriser (``measure``); ``needs``: what it asks of a generator beside its traffic. ``searches``: how many it
    makes, with at most ``deadline`` s of traffic together.
    """

    name: str
    parts: Callable[..., Sequence[Note | Table]]
    picture: Callable[[Any, str, bool], str] | None = None
    loadtest: Callable[..., Mapping[str, object]] | None = None
    keyword: str = ""
    measure: Callable[..., Any] = Characteriser.search
    needs: Method | None = None
    searches: int = 1
    deadline: float = math.inf


# -- search ------------------------------------------------------------------------------------------------------------


def search_parts(result: SearchResult, size: float, link_bps: float) -> Sequence[Note | Table]:
    """Return the bounds for each loss ratio, in every unit; *size*: the mean of the frames, in bytes with FCS."""
    bounds_of_ratios = [
        {
            **_bounds(bounds),
            Column("apart"): NONE if bounds.width is None else percent(bounds.width),
            Column("conditional throughput", _EACH): _figure(bounds.throughput),
            Column("lower bound", "% of line"): _pps(bounds.lower, ".2f", 100 / line_rate_pps(link_bps, size)),
            Column("lower bound", "Gbit/s L1"): _pps(bounds.lower, ".4f", l1_bits(size) / 1e9),
            _SEARCH: "done" if bounds.finished else "unfinished",
        }
        for bounds in result.bounds
    ]
    how = (
        f"{result.goal}. Bounds to {percent(result.relative_width)}; {len(result.trials)} trials,"
        f" {result.traffic:g} s of traffic; between {_pps(result.lowest)} and {_pps(result.highest)} frames/s."
    )
    return [*map(Note, filter(None, [result.ended])), Table.of(bounds_of_ratios), Note(how)]


def search_plot(result: SearchResult, title: str, simulated: bool = False) -> str:
    """Return loss over load: a mark for each trial, and the bounds that were found."""
    across = scaled("load of each port", "pps", 1.03 * result.highest.pps)
    plot = Chart(title, across, valued("frames lost [%]", (0, 0.01, 0.1, 1, 10, 100), True), simulated)
    for sign, dashes, bounds in zip(SIGNS[2:], ("", "9 4", "2 3", "9 3 2 3"), result.bounds, strict=False):
        if bounds.lower is not None:
            low, high = bounds.lower.pps, (bounds.upper or bounds.lower).pps
            edges = [(low, -math.inf), (low, math.inf), (high, math.inf), (high, -math.inf)]
            plot.curve(edges, f"{bounds.name}{'' if bounds.finished else ' (unfinished)'}", None, sign.colour, dashes)
    for trial in result.trials:
        sign, name = (SIGNS[0], "trial") if trial.is_clean else (SIGNS[1], "trial with a doubt")
        loss = 100 * trial.loss_ratio(in_total=False)
        plot.range(trial.outcome.load.pps, Bounds(loss, loss), sign, name)
    return plot.svg()


# -- what somebody does first with a new router ------------------------------------------------------------------------


def matrix_parts(result: ScalingResult, lines: Mapping[str, tuple[float, float]]) -> Sequence[Note | Table]:
    """Return a row for each traffic with the lower bounds of all loss ratios, and why others are not there.

    *lines*: line rate of each port, in frames/s and in bit/s.
    """
    rows, reasons = [], defaultdict[str, list[str]](list)
    for point, ending in zip(result.points, result.endings, strict=True):
        traffic, why = f"{point.value}", ending.removeprefix("inconclusive: ")
        otherwise = "unfinished" if why == ending else "INCONCLUSIVE"
        row: dict[Column, Cell | str] = {Column("traffic", left=True): traffic}
        for name in LOSS_RATIOS:
            bounds = point.result[name] if point.result else None
            row |= _matrix_cells(name, bounds, otherwise, *lines[traffic])
        rows.append(row)
        reasons[f"{otherwise}: {why}"] += [traffic] if why else []
    ratios = ", ".join(f"{name}: {percent(ratio)} lost at most" for name, ratio in LOSS_RATIOS.items())
    how = f"Lower bounds of each port, Gbit/s on layer 1; {ratios}; ≥: no more was offered; …: unfinished."
    notes = [Note(f"{', '.join(traffic)}: {why}") for why, traffic in reasons.items() if traffic]
    return [Table.of(rows), Note(how), *notes]


def _matrix_cells(
    name: str, bounds: CapacityBounds | None, otherwise: str, line_pps: float, link_bps: float
) -> Mapping[Column, Cell]:
    """Return the lower one of *bounds* in each unit; *otherwise*: the word for one that was not found."""
    finished, figures = bounds is not None and bounds.finished, (otherwise, "", "")
    if bounds and (lower := bounds.lower):
        share = lower.pps / line_pps
        mark = "" if finished and bounds.upper else "≥ "
        figures = (
            f"{mark}{_pps(lower, '.4g', 1e-6)}{'' if finished else ' …'}",
            f"{share * link_bps / 1e9:.4g}",
            f"{100 * share:.3g}",
        )
    elif bounds and finished:
        figures = f"< {_pps(bounds.upper, '.4g', 1e-6)}", "", ""
    columns = (Column(f"{name} {unit}") for unit in ("Mpps", "Gbit/s", "% line"))
    return {column: Cell(figure, "" if finished else "unsure") for column, figure in zip(columns, figures, strict=True)}


def matrix_plot(result: ScalingResult, title: str, simulated: bool, lines: Mapping[str, tuple[float, float]]) -> str:
    """Return for each traffic a bar up to its NDR, and a range up to its PDR, in per cent of line rate."""
    names = [f"{point.value}" for point in result.points]
    plot = Chart(title, chart.columns("", names), linear("% of line rate, each port", 105), simulated, is_level=True)
    for place, point in enumerate(result.points):
        loads = [bounds.lower.pps if bounds.lower else 0.0 for bounds in point.result.bounds] if point.result else []
        shares = [100 * pps / lines[names[place]][0] for pps in loads]
        if shares:
            plot.bar(place, [chart.Part(shares[0], "NDR: no frame lost", chart.AREAS[0])])
            plot.range(place, Bounds(*shares), SIGNS[1], "PDR: half a per cent lost at most", shares[-1])
        plot.label(place, max(shares, default=0.0), f"{shares[0]:.3g} %" if shares else "no result")
    return plot.svg()


def sending_parts(result: SendingResult) -> Sequence[Note | Table]:
    """Return the counts of each direction."""
    rows = [
        {
            Column("direction", left=True): f"{row.tx_port} → {row.rx_port}",
            Column("intended", "frames"): f"{row.intended:,}",
            Column("offered", "frames"): f"{row.offered:,}",
            Column("forwarded", "frames"): f"{row.forwarded:,}",
            Column("lost", "frames"): f"{row.lost:,}",
        }
        for row in result.directions
    ]
    return [Table.of(rows), *map(Note, result.problems)]


# -- ramp --------------------------------------------------------------------------------------------------------------


def ramp_parts(result: RampResult) -> Sequence[Note | Table]:
    """Return a row for each step, below the findings."""
    steps = [
        {
            Column("phase", left=True): step.phase.value,
            Column("load", _EACH): _pps(step.load),
            Column("load", "% of line"): _pps(step.load, ".2f", 100 / result.plan.line_pps),
            Column("offered", "frames/s"): _figure(step.offered_pps),
            Column("forwarded", "frames/s"): _figure(step.forwarded_pps),
            Column("lost"): percent(step.loss_ratio),
            Column("", left=True): "behind" if step.behind else "",
        }
        for step in result.steps
    ]
    return [*map(Note, filter(None, [*result.findings, result.ended])), Table.of(steps)]


def ramp_plot(result: RampResult, title: str, simulated: bool = False) -> str:
    """Return offered and forwarded rate over the seconds of the ramp, with the saturation point."""
    steps = result.steps
    edges = [0.0, *accumulate(step.trial.outcome.duration for step in steps)]
    across = linear("seconds of traffic (it pauses between the steps)", max(edges[-1], 1e-9))
    up = scaled("rate, each port", "pps", 1.08 * max([step.offered_pps for step in steps], default=1.0) or 1.0)
    plot = Chart(title, across, up, simulated)
    ends = [(edge, step) for both, step in zip(pairwise(edges), steps, strict=True) for edge in both]
    plot.curve([(edge, step.offered_pps) for edge, step in ends], "offered", dashes="2 3")
    plot.curve([(edge, step.forwarded_pps) for edge, step in ends], "forwarded", colour=SIGNS[0].colour)
    for edge, before, after in zip(edges[1:], steps, steps[1:], strict=False):
        if before.phase is not after.phase:
            plot.curve([(edge, -math.inf), (edge, math.inf)], "", dashes="1 4")
            plot.words((edge, math.inf), f"{after.phase.value} begins")
    if result.saturation is not None:
        edge = edges[steps.index(result.saturation)]
        plot.curve([(edge, -math.inf), (edge, math.inf)], "saturation", None, chart.LOST_COLOUR, "9 4")
    return plot.svg()


# -- scaling -----------------------------------------------------------------------------------------------------------


def scaling_parts(result: ScalingResult) -> Sequence[Note | Table]:
    """Return the bounds at every value."""
    points: list[Cells] = []
    for point in result.points:
        value = {Column(result.axis): f"{point.value:,}"}
        if point.result is None:
            points.append({**value, **dict.fromkeys(_BOUNDS, NONE), _SEARCH: point.reason})
            continue
        for bounds in point.result.bounds:
            ended = "done" if bounds.finished else f"unfinished; {point.result.ended}"
            points.append({**value, **_bounds(bounds), _SEARCH: ended})
    return [Table.of(points)]


def scaling_plot(result: ScalingResult, title: str, simulated: bool = False) -> str:
    """Return lower bounds over the varied value, with a line up to the upper bounds."""
    lines: dict[str, list[tuple[float, float, float]]] = {}
    values = [float(point.value) for point in result.points]
    for value, point in zip(values, result.points, strict=True):
        for one in point.result.bounds if point.result else ():
            if one.lower:
                high = max(one.lower.pps, (one.upper or one.lower).pps)
                lines.setdefault(one.name, []).append((value, one.lower.pps, high))
    most = [high for own in lines.values() for *_, high in own]
    across = valued(result.axis, values, max(values, default=0) > 20 * max(min(values, default=0), 1))
    up = scaled("load carried by each port", "pps", 1.1 * max(most, default=1.0))
    plot = Chart(title, across, up, simulated)
    for sign, (name, own) in zip(SIGNS, lines.items(), strict=False):
        plot.curve([(value, low) for value, low, _ in own], name, sign)
        for value, low, high in own:
            plot.range(value, Bounds(low, high), sign, middle=low)
    return plot.svg()


# -- RFC 2544: the rows of one frame size ------------------------------------------------------------------------------


def throughput_rows(result: rfc2544.ThroughputResult) -> Iterator[Cells]:
    """Yield the row of 26.1."""
    yield {
        _SIZE: str(result.size),
        Column("theoretical", _EACH): _figure(result.line_pps),
        Column("throughput", _EACH): _pps(result.throughput),
        Column("throughput", "% of line"): _figure(result.percent, ".2f"),
        Column("throughput", "Gbit/s L1"): _pps(result.throughput, ".4f", l1_bits(result.size) / 1e9),
        Column("throughput", "Gbit/s L2"): _pps(result.throughput, ".4f", l2_bits(result.size) / 1e9),
        Column("trials"): str(len(result.trials)),
        Column("each of", "s"): f"{result.duration:g}",
        _SEARCH: "unfinished" if result.ended else "done",
    }


def throughput_plot(results: Sequence[rfc2544.ThroughputResult], title: str, simulated: bool = False) -> str:
    """Return 26.1 as a graph: frame rate over frame size, with the theoretical rate of the medium."""
    sizes = [result.size for result in results] or [64]
    up = scaled("rate into each port", "pps", 1.05 * max((result.line_pps for result in results), default=1.0))
    plot = Chart(title, linear("frame size [bytes with FCS]", 1.05 * max(sizes)), up, simulated)
    for result in results[:1]:
        link = result.line_pps * l1_bits(result.size)
        places = [min(sizes) + (max(sizes) - min(sizes)) * (index / 200) ** 2 for index in range(201)]
        plot.curve([(size, link / l1_bits(size)) for size in places], "theoretical maximum", dashes="9 4")
    if carried := [(float(result.size), result.throughput.pps) for result in results if result.throughput]:
        plot.curve(carried, "throughput, no frame lost", SIGNS[0])
    return plot.svg()


def latency_rows(result: rfc2544.LatencyResult) -> Iterator[Cells]:
    """Yield what 26.2 asks for: size, rate, medium, latency; for each direction."""
    for one in result.directions:
        yield {
            _SIZE: str(result.size),
            Column("rate", _EACH): _pps(result.load),
            Column("medium", left=True): NONE,
            Column("direction", left=True): one.direction,
            Column("latency", "µs, mean"): f"{one.mean:.2f}",
            Column("least", "µs"): f"{one.least:.2f}",
            Column("most", "µs"): f"{one.most:.2f}",
            Column("std. deviation", "µs"): f"{one.deviation:.2f}" if one.repeats > 1 else NONE,
            Column("streams"): str(one.repeats),
        }


def loss_rows(curve: rfc2544.LossCurve) -> Iterator[Cells]:
    """Yield the points of 26.3."""
    for point in curve.points:
        yield {
            _SIZE: f"{curve.size:g}",
            Column("asked", "% of line"): f"{point.asked:.4g}",
            Column("offered", "% of line"): f"{point.offered:.4g}",
            Column("lost", "% of frames offered"): f"{100 * point.loss_ratio:.5g}",
        }


def loss_plot(result: rfc2544.LossCurve, title: str, simulated: bool = False) -> str:
    """Return 26.3 as a graph: per cent lost over per cent of the medium's rate, both from 0 to 100."""
    across = linear("offered rate [% of the medium's frame rate at this size]", 100)
    plot = Chart(title, across, linear("frames lost [%]", 100), simulated)
    points = [(point.offered, 100 * point.loss_ratio) for point in result.points]
    plot.curve(points, f"{result.size:g} bytes", SIGNS[0])
    return plot.svg()


def back_to_back_rows(result: rfc2544.BackToBackResult) -> Iterator[Cells]:
    """Yield the row of 26.4 and RFC 9004; of bursts without a limit the mean is a bound."""
    least, most = (None if result.unlimited else end(result.bursts, default=None) for end in (min, max))
    yield {
        _SIZE: str(result.size),
        Column("back-to-back", "frames, mean"): "≥ " * result.unlimited + _figure(result.mean, ",.1f"),
        Column("least", "frames"): _figure(least),
        Column("most", "frames"): _figure(most),
        Column("std. deviation", "frames"): _figure(result.spread, ".1f"),
        Column("repetitions"): str(len(result.bursts)),
        Column("implied buffer time", "ms"): _figure(result.implied_buffer_time, ".4g", 1e3),
        Column("corrected buffer time", "ms"): _figure(result.corrected_buffer_time, ".4g", 1e3),
    }


def recovery_rows(result: rfc2544.RecoveryResult) -> Iterator[Cells]:
    """Yield the row of 26.5."""
    yield {
        _SIZE: str(result.size),
        Column("overload", _EACH): _pps(result.overload),
        Column("reduced to", _EACH): _pps(result.reduced),
        Column("recovery time", "mean"): str(result.mean or NONE),
        Column("each", "known to lie within", True): ", ".join(map(str, result.times)) or NONE,
        Column("looked at", "s"): f"{result.after:g}",
    }


def reset_rows(result: rfc2544.ResetResult) -> Iterator[Cells]:
    """Yield what 26.6 asks to be stated."""
    yield {
        Column("reset", left=True): result.kind,
        _SIZE: str(result.size),
        Column("load", _EACH): _pps(result.load),
        Column("reset time by loss", "s"): _figure(result.by_loss, ".4g"),
        Column("by time", "s"): _figure(result.by_time, ".3g"),
        Column("frames lost"): f"{result.lost:,}",
    }


# -- of all ------------------------------------------------------------------------------------------------------------


def _bounds(bounds: CapacityBounds) -> Cells:
    cells = bounds.name, percent(bounds.loss_ratio), _pps(bounds.lower), _pps(bounds.upper)
    return dict(zip(_BOUNDS, cells, strict=True))


def _figure(value: float | None, form: str = ",.0f", factor: float = 1.0) -> str:
    return NONE if value is None else f"{value * factor:{form}}"


def _pps(load: Load | None, form: str = ",.0f", factor: float = 1.0) -> str:
    return _figure(None if load is None else load.pps, form, factor)


def _by_size(rows_of: Callable[[Any], Iterator[Cells]]) -> Callable[[Any], Sequence[Note | Table]]:
    """Return what makes one table of a result, or of those for several sizes, and says which of them ended early."""

    def parts(found: Any) -> Sequence[Note | Table]:
        results = found if isinstance(found, tuple) else (found,)
        endings = [Note(f"{result.size:g} bytes: {result.ended}.") for result in results if result.ended]
        return [Table.of([row for result in results for row in rows_of(result)]), *endings]

    return parts


def _rfc2544(
    test: str,
    keyword: str,
    needs: Method,
    measure: Callable[..., Any],
    rows_of: Callable[[Any], Iterator[Cells]],
    picture: Callable[[Any, str, bool], str] | None = None,
) -> Procedure:
    return Procedure(f"RFC 2544 {test}", _by_size(rows_of), picture, None, keyword, measure, needs)


PROCEDURES = (
    Procedure("ramp", ramp_parts, ramp_plot, loadtest_data, "Ramp", Characteriser.ramp),
    _rfc2544(
        "throughput",
        "RFC 2544 Throughput Of",
        Method.THROUGHPUT,
        Characteriser.throughput,
        throughput_rows,
        throughput_plot,
    ),
    _rfc2544("latency", "RFC 2544 Latency Of", Method.LATENCY, Characteriser.latency, latency_rows),
    _rfc2544(
        "frame loss rate", "Frame Loss Rate Of", Method.FRAME_LOSS, Characteriser.loss_curve, loss_rows, loss_plot
    ),
    _rfc2544("back-to-back", "Back To Back Of", Method.BACK_TO_BACK, Characteriser.back_to_back, back_to_back_rows),
    _rfc2544("system recovery", "System Recovery Of", Method.RECOVERY, Characteriser.recovery, recovery_rows),
    _rfc2544("reset", "Reset Time Of", Method.RESET, Characteriser.reset, reset_rows),
)
"""Procedures whose keywords are methods of the characteriser."""
