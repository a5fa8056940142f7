"""Searches, ramps, scaling and RFC 2544's tests as pictures, tables and data. Rates are of each port unless stated.

Those of RFC 2544 are the graphs and tables that its section 26 asks for; each table ends with its declared deviations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, Protocol

from ..methods.deviations import Deviation
from ..methods.ramp import RampPhase, RampResult, RampStep
from ..methods.rfc2544.back_to_back import BackToBackResult
from ..methods.rfc2544.latency import DirectionLatency, LatencyResult
from ..methods.rfc2544.recovery import RecoveryResult
from ..methods.rfc2544.reset import ResetResult
from ..methods.rfc2544.throughput import LossCurve, LossPoint, ThroughputResult
from ..methods.scaling import ScalingResult
from ..methods.search import CapacityBounds, SearchResult
from ..units import Rate, l1_bits, l2_bits, si
from .drawing import DIRECTION_COLOURS, FAINT_COLOUR, LOST_COLOUR, rate_unit
from .plot_frame import AXES_HEIGHT, PlotFrame, across, series_colour, ticks, value_share
from .rates import TrafficFigures, percent
from .svg import Hatch
from .tables import NONE, Columns, ResultTable, declared, known, pps_text


def search_table(
    result: SearchResult, traffic: TrafficFigures, link_bps: float, title: str, simulated: bool = False
) -> ResultTable:
    """The bounds for each loss ratio, in every unit."""

    def lower(item: CapacityBounds, figure: Callable[[Rate], float], form: str) -> str:
        return NONE if item.lower is None else f"{figure(Rate(item.lower.pps, traffic.mean_size, link_bps)):{form}}"

    columns: Columns[CapacityBounds] = (
        *_BOUNDS_OF_A_RATIO,
        ("apart", "", lambda item: NONE if item.width is None else percent(item.width)),
        ("conditional throughput", "frames/s each port", lambda item: known(item.throughput, ",.0f")),
        ("lower bound", "% of line", lambda item: lower(item, lambda rate: rate.percent, ".2f")),
        ("lower bound", "Gbit/s L1", lambda item: lower(item, lambda rate: rate.l1_bps / 1e9, ".4f")),
        ("search", "", lambda item: "done" if item.finished else "unfinished"),
    )
    notes = (
        f"{result.goal}. Bounds to {percent(result.relative_width)}; {len(result.trials)} trials,"
        f" {result.traffic:g} s of traffic; between {result.lowest.pps:,.0f} and {result.highest.pps:,.0f} frames/s.",
        *declared([result]),
    )
    return ResultTable.of(result.bounds, columns, title, notes, list(filter(None, (result.ended,))), simulated)


_BOUNDS_OF_A_RATIO: Columns[CapacityBounds] = (
    ("", "", lambda item: item.name),
    ("loss allowed", "", lambda item: percent(item.loss_ratio)),
    ("lower bound", "frames/s each port", lambda item: pps_text(item.lower)),
    ("upper bound", "frames/s each port", lambda item: pps_text(item.upper)),
)


_LINEAR, _MOST_LOSS = 0.01, 130.0
"""Per cent of frames lost up to which the axis is linear, and where it ends; between them it is logarithmic."""

_LOSSES = (0, 0.01, 0.1, 1, 10, 100)

_BOUNDS = (("", Hatch.FORWARD), ("9 4", Hatch.BACK), ("2 3", Hatch.LEVEL), ("9 3 2 3", Hatch.CROSSED))
"""Dashes of the line at a lower bound, and hatch of the area up to the upper one: no reader needs the colours."""


def search_plot(result: SearchResult, title: str, simulated: bool = False) -> str:
    """Loss over load as SVG: one point for each trial, and the bounds found."""
    named, factor = rate_unit(result.highest.pps)
    end = 1.03 * result.highest.pps
    frame = PlotFrame(title, simulated)
    marks = ((_loss_share(loss), f"{loss:g}") for loss in _LOSSES)
    frame.scale(marks, "frames lost [%]", f"load of each port [{named}]")
    frame.mark_across(end / factor)
    for series, item in enumerate(result.bounds, 2):
        _draw_bound(frame, item, end, series)
    for trial in result.trials:
        place = across(trial.outcome.load.pps / end), frame.y(_loss_share(100 * trial.loss_ratio(in_total=False)))
        if trial.is_clean:
            frame.mark(place, 0, DIRECTION_COLOURS[0], "trial")
        else:
            frame.mark(place, 1, FAINT_COLOUR, "trial with a doubt")
    return frame.finished()


def _loss_share(percent: float) -> float:
    """Where a loss is at the upright axis, as a share of its height."""
    steps = 1 + math.log10(percent / _LINEAR) if percent > _LINEAR else max(0.0, percent) / _LINEAR
    return steps / (1 + math.log10(_MOST_LOSS / _LINEAR))


def _draw_bound(frame: PlotFrame, item: CapacityBounds, end: float, series: int) -> None:
    """A line at the lower bound, and an area up to the upper one, on an axis from 0 to *end* frames/s."""
    if item.lower is None:
        return
    x, colour, (dashes, hatch) = across(item.lower.pps / end), series_colour(series), _BOUNDS[series % len(_BOUNDS)]
    if item.upper is not None:
        frame.picture.hatched(x, frame.top, across(item.upper.pps / end) - x, AXES_HEIGHT, colour, hatch)
    name = f"{item.name}{'' if item.finished else ' (unfinished)'}"
    frame.line((x, frame.top), (x, frame.bottom), colour, 1.5, dashes, name)


_SHADE = "#eef2f5"
"""The time before and after the rise of a ramp."""


def ramp_plot(result: RampResult, title: str, simulated: bool = False) -> str:
    """Offered and forwarded rate over the seconds of the ramp as SVG, with the saturation point."""
    highest = max((step.offered_pps for step in result.steps), default=1.0)
    named, factor = rate_unit(highest)
    edges = [0.0, *accumulate(step.trial.outcome.duration for step in result.steps)]
    end = max(edges[-1], 1e-9)
    frame = PlotFrame(title, simulated)
    for phase in (RampPhase.WARM_UP, RampPhase.HOLD):
        if inside := [index for index, step in enumerate(result.steps) if step.phase is phase]:
            left, right = across(edges[inside[0]] / end), across(edges[inside[-1] + 1] / end)
            frame.picture.rectangle(left, frame.top, right - left, AXES_HEIGHT, _SHADE)
    scope = "both ports together" if result.in_total else "each port"
    names = "seconds of traffic (it pauses between the steps)", f"rate, {scope} [{named}]"
    place = frame.axes(end, 1.08 * max(highest, 1e-9) / factor, *names)
    for label, rates, colour, dashes in (
        ("offered", [step.offered_pps for step in result.steps], FAINT_COLOUR, "2 3"),
        ("forwarded", [step.forwarded_pps for step in result.steps], DIRECTION_COLOURS[0], ""),
    ):
        stairs = [place(edge, rate / factor) for at, rate in enumerate(rates) for edge in edges[at : at + 2]]
        frame.picture.path(stairs, colour, 1.8, dashes)
        frame.line_sign(label, colour, 1.8, dashes)
    if result.saturation is not None:
        x = across(edges[result.steps.index(result.saturation)] / end)
        frame.line((x, frame.top), (x, frame.bottom), LOST_COLOUR, 1.4, "9 4", "saturation")
    return frame.finished()


def ramp_table(result: RampResult, title: str, simulated: bool = False) -> ResultTable:
    """One row for each step, below the findings."""
    columns: Columns[RampStep] = (
        ("phase", "", lambda step: step.phase.value),
        ("load", "frames/s each port", lambda step: pps_text(step.load)),
        ("load", "% of line", lambda step: f"{100 * step.load.pps / result.plan.line_pps:.2f}"),
        ("offered", "frames/s", lambda step: f"{step.offered_pps:,.0f}"),
        ("forwarded", "frames/s", lambda step: f"{step.forwarded_pps:,.0f}"),
        ("lost", "", lambda step: percent(step.loss_ratio)),
        ("", "", lambda step: "behind" if step.behind else ""),
    )
    return ResultTable.of(result.steps, columns, title, declared([result]), result.findings, simulated)


def scaling_plot(result: ScalingResult, title: str, simulated: bool = False) -> str:
    """Lower bounds over the varied value as SVG, with a line up to the upper bounds."""
    found = [(point.value, item) for point in result.points if point.result for item in point.result.bounds]
    ends = [load.pps for _, item in found for load in (item.lower, item.upper) if load]
    named, factor = rate_unit(max(ends, default=1.0))
    end = 1.1 * max(ends, default=1.0)
    values = [point.value for point in result.points]
    share = value_share(values, max(values, default=0) > 20 * max(min(values, default=0), 1))
    frame = PlotFrame(title, simulated)
    marks = ((value * factor / end, words) for value, words in ticks(end / factor))
    frame.scale(marks, f"load carried by each port [{named}]", result.axis)
    for value in values:
        frame.mark_below(share(value), f"{value:,}")
    for series, name in enumerate(dict.fromkeys(item.name for _, item in found)):
        mine = [(across(share(value)), item) for value, item in found if item.name == name]
        frame.curve([(x, frame.y(item.lower.pps / end)) for x, item in mine if item.lower], series, name)
        for x, item in mine:
            if item.lower and item.upper:
                frame.upright(x, frame.y(item.lower.pps / end), frame.y(item.upper.pps / end), series_colour(series))
    return frame.finished()


def scaling_table(result: ScalingResult, title: str, simulated: bool = False) -> ResultTable:
    """The bounds at every value."""
    heads = [(result.axis, ""), *((name, unit) for name, unit, _ in _BOUNDS_OF_A_RATIO), ("search", "")]
    rows: list[tuple[str, ...]] = []
    for point in result.points:
        if point.result is None:
            rows.append((f"{point.value:,}", *[NONE] * len(_BOUNDS_OF_A_RATIO), point.reason))
            continue
        for item in point.result.bounds:
            ended = "done" if item.finished else f"unfinished; {point.result.ended}"
            rows.append((f"{point.value:,}", *(cell(item) for _, _, cell in _BOUNDS_OF_A_RATIO), ended))
    return ResultTable(title, tuple(heads), tuple(rows), simulated=simulated)


_ROUNDING = 1e-6
"""Seconds by which rounding may change a sum."""


def loadtest_data(
    result: RampResult, traffic: TrafficFigures, bidirectional: bool, simulated: bool = False
) -> dict[str, Any]:
    """The ramp as JSON data. Ports are numbered from 0, in the order in which the testbed uses them.

    ``profile_file`` is the traffic in words: results with the same words come into the same graph. An entry is one
    second, however long a step is: its rates are the means of the steps in it, weighted by time.
    """
    plan = result.plan
    ports = _ports(result.steps)
    seconds = {str(number): _entry(parts, ports, plan.line_pps) for number, parts in enumerate(_seconds(result.steps))}
    return {
        "vars": {
            "profile_file": traffic.name,
            "unidirectional": not bidirectional,
            "warmup_mult": si(plan.warm_up_pps, "pps").replace(" ", ""),
            "warmup_duration": plan.warm_up,
            "rampup_target": plan.target,
            "rampup_duration": plan.steps * plan.step,
            "hold_duration": plan.hold,
            "simulated": simulated,
            "deviations": [str(item) for item in result.deviations],
        },
        "stats": seconds,
    }


def _ports(steps: Sequence[RampStep]) -> dict[int, int]:
    """The testbed's port numbers -> 0, 1, and so on."""
    directions = next((step.trial.outcome.directions for step in steps if step.trial.outcome.directions), ())
    found: dict[int, int] = {}
    for port in (port for direction in directions for port in (direction.tx_port, direction.rx_port)):
        found.setdefault(port, len(found))
    return found


Part = tuple[RampStep, float]
"""A step, and its seconds within one second."""


def _seconds(steps: Sequence[RampStep]) -> list[list[Part]]:
    """The parts of each second of the ramp; the last second may be shorter."""
    found: list[list[Part]] = []
    now = 0.0
    for step in steps:
        ends = now + step.trial.outcome.duration
        while ends - now > _ROUNDING:
            at = int(now + _ROUNDING)
            until = min(ends, at + 1.0)
            while len(found) <= at:
                found.append([])
            found[at].append((step, until - now))
            now = until
        now = ends
    return found


def _entry(parts: Sequence[Part], ports: dict[int, int], line_pps: float) -> dict[str, Any]:
    sent, received = [0.0] * len(ports), [0.0] * len(ports)
    whole = math.fsum(lasting for _, lasting in parts)
    for step, lasting in parts:
        for direction in step.trial.outcome.directions:
            weight = lasting / whole / step.trial.seconds.high
            sent[ports[direction.tx_port]] += direction.offered * weight
            received[ports[direction.rx_port]] += direction.forwarded * weight
    longest, _ = max(parts, key=lambda part: part[1])
    found: dict[str, Any] = {
        str(port): {
            "tx_pps": sent[port],
            "rx_pps": received[port],
            "tx_util": 100 * sent[port] / line_pps,
            "rx_util": 100 * received[port] / line_pps,
        }
        for port in ports.values()
    }
    found["phase"] = longest.phase.value if longest.phase is not RampPhase.RISE else "rampup"
    return found


def throughput_table(results: Sequence[ThroughputResult], title: str, simulated: bool = False) -> ResultTable:
    """26.1 as a table: one row for each frame size."""

    def gbps(item: ThroughputResult, bits: float) -> str:
        return NONE if item.throughput is None else f"{item.throughput.pps * bits / 1e9:.4f}"

    columns: Columns[ThroughputResult] = (
        ("frame size", "bytes with FCS", lambda item: str(item.size)),
        ("theoretical", "frames/s each port", lambda item: f"{item.line_pps:,.0f}"),
        ("throughput", "frames/s each port", lambda item: pps_text(item.throughput)),
        ("throughput", "% of line", lambda item: known(item.percent, ".2f")),
        ("throughput", "Gbit/s L1", lambda item: gbps(item, l1_bits(item.size))),
        ("throughput", "Gbit/s L2", lambda item: gbps(item, l2_bits(item.size))),
        ("trials", "", lambda item: str(len(item.trials))),
        ("each of", "s", lambda item: f"{item.duration:g}"),
        ("search", "", lambda item: item.ended or "done"),
    )
    return ResultTable.of(results, columns, title, declared(results), simulated=simulated)


def throughput_plot(results: Sequence[ThroughputResult], title: str, simulated: bool = False) -> str:
    """26.1 as a graph (SVG): frame rate over frame size, with the theoretical rate of the medium."""
    highest = max((item.line_pps for item in results), default=1.0)
    named, factor = rate_unit(highest)
    sizes = [item.size for item in results] or [64]
    frame = PlotFrame(title, simulated)
    names = "frame size [bytes with FCS]", f"rate into each port [{named}]"
    place = frame.axes(1.05 * max(sizes), 1.05 * highest / factor, *names)
    for item in results[:1]:
        link = item.line_pps * l1_bits(item.size)
        curve = [min(sizes) + (max(sizes) - min(sizes)) * (index / 200) ** 2 for index in range(201)]
        frame.picture.path([place(size, link / l1_bits(size) / factor) for size in curve], FAINT_COLOUR, 1.4, "9 4")
        frame.line_sign("theoretical maximum", FAINT_COLOUR, 1.4, "9 4")
    if carried := [place(item.size, item.throughput.pps / factor) for item in results if item.throughput]:
        frame.curve(carried, 0, "throughput, no frame lost")
    return frame.finished()


def loss_plot(curves: Sequence[LossCurve], title: str, simulated: bool = False) -> str:
    """26.3 as a graph (SVG): per cent lost over per cent of the medium's rate, both from 0 to 100."""
    frame = PlotFrame(title, simulated)
    place = frame.axes(100, 100, "offered rate [% of the medium's frame rate at this size]", "frames lost [%]")
    for series, curve in enumerate(curves):
        points = [place(point.offered, 100 * point.loss_ratio) for point in curve.points]
        frame.curve(points, series, f"{curve.size:g} bytes")
    return frame.finished()


def loss_table(curves: Sequence[LossCurve], title: str, simulated: bool = False) -> ResultTable:
    """26.3 as a table: one row for each point."""
    columns: Columns[tuple[float, LossPoint]] = (
        ("frame size", "bytes with FCS", lambda item: f"{item[0]:g}"),
        ("asked", "% of line", lambda item: f"{item[1].asked:.4g}"),
        ("offered", "% of line", lambda item: f"{item[1].offered:.4g}"),
        ("lost", "% of frames offered", lambda item: f"{100 * item[1].loss_ratio:.5g}"),
    )
    points = [(curve.size, point) for curve in curves for point in curve.points]
    return ResultTable.of(points, columns, title, _notes(curves), simulated=simulated)


def latency_table(results: Sequence[LatencyResult], title: str, simulated: bool = False) -> ResultTable:
    """26.2 as a table: size, rate, medium, latency; one row for each size and direction."""

    def way(number: int, direction: DirectionLatency) -> str:
        return direction.direction or (("there", "back")[number] if number < 2 else str(number))

    columns: Columns[tuple[LatencyResult, int, DirectionLatency]] = (
        ("frame size", "bytes with FCS", lambda item: str(item[0].size)),
        ("rate", "frames/s each port", lambda item: pps_text(item[0].load)),
        ("medium", "", lambda item: NONE),
        ("direction", "", lambda item: way(*item[1:])),
        ("latency", "µs, mean", lambda item: f"{item[2].mean:.2f}"),
        ("least", "µs", lambda item: f"{item[2].least:.2f}"),
        ("most", "µs", lambda item: f"{item[2].most:.2f}"),
        ("std. deviation", "µs", lambda item: f"{item[2].deviation:.2f}" if item[2].repeats > 1 else NONE),
        ("streams", "", lambda item: str(item[2].repeats)),
    )
    ways = [(item, number, direction) for item in results for number, direction in enumerate(item.directions)]
    return ResultTable.of(ways, columns, title, _notes(results), simulated=simulated)


def back_to_back_table(results: Sequence[BackToBackResult], title: str, simulated: bool = False) -> ResultTable:
    """26.4 and RFC 9004 as a table: one row for each frame size."""

    def burst(item: BackToBackResult, chosen: Callable[[Sequence[int]], int]) -> str:
        return f"{chosen(item.bursts):,}" if item.bursts and not item.unlimited else NONE

    columns: Columns[BackToBackResult] = (
        ("frame size", "bytes with FCS", lambda item: str(item.size)),
        ("back-to-back", "frames, mean", lambda item: f"{'≥ ' * item.unlimited}{known(item.mean, ',.1f')}"),
        ("least", "frames", lambda item: burst(item, min)),
        ("most", "frames", lambda item: burst(item, max)),
        ("std. deviation", "frames", lambda item: known(item.spread, ".1f")),
        ("repetitions", "", lambda item: str(len(item.bursts))),
        ("implied buffer time", "ms", lambda item: _milliseconds(item.implied_buffer_time)),
        ("corrected buffer time", "ms", lambda item: _milliseconds(item.corrected_buffer_time)),
    )
    return ResultTable.of(results, columns, title, _notes(results), simulated=simulated)


def recovery_table(results: Sequence[RecoveryResult], title: str, simulated: bool = False) -> ResultTable:
    """26.5 as a table: one row for each frame size."""
    columns: Columns[RecoveryResult] = (
        ("frame size", "bytes with FCS", lambda item: str(item.size)),
        ("overload", "frames/s each port", lambda item: pps_text(item.overload)),
        ("reduced to", "frames/s each port", lambda item: pps_text(item.reduced)),
        ("recovery time", "mean", lambda item: NONE if item.mean is None else str(item.mean)),
        ("each", "known to lie within", lambda item: ", ".join(map(str, item.times)) or NONE),
        ("looked at", "s", lambda item: f"{item.after:g}"),
    )
    return ResultTable.of(results, columns, title, _notes(results), simulated=simulated)


def reset_table(results: Sequence[ResetResult], title: str, simulated: bool = False) -> ResultTable:
    """26.6, which asks for a statement for each kind of reset, as a table: one row for each."""
    columns: Columns[ResetResult] = (
        ("reset", "", lambda item: item.kind),
        ("frame size", "bytes with FCS", lambda item: str(item.size)),
        ("load", "frames/s each port", lambda item: pps_text(item.load)),
        ("reset time by loss", "s", lambda item: known(item.by_loss, ".4g")),
        ("by time", "s", lambda item: known(item.by_time, ".3g")),
        ("frames lost", "", lambda item: f"{item.lost:,}"),
    )
    return ResultTable.of(results, columns, title, _notes(results), simulated=simulated)


def _milliseconds(seconds: float | None) -> str:
    return known(None if seconds is None else 1e3 * seconds, ".4g")


class _Ended(Protocol):
    @property
    def size(self) -> float: ...
    @property
    def ended(self) -> str: ...
    @property
    def deviations(self) -> tuple[Deviation, ...]: ...


def _notes(results: Sequence[_Ended]) -> list[str]:
    """Which results ended early, and each deviation once."""
    return [*(f"{item.size:g} bytes: {item.ended}." for item in results if item.ended), *declared(results)]
