"""Results of RFC 2544's tests as the graphs and tables that its section 26 asks for. Pure functions.

Every table ends with the declared deviations of its results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ..methods.deviations import Deviation
from ..methods.rfc2544.back_to_back import BackToBackResult
from ..methods.rfc2544.latency import DirectionLatency, LatencyResult
from ..methods.rfc2544.recovery import RecoveryResult
from ..methods.rfc2544.reset import ResetResult
from ..methods.rfc2544.throughput import LossCurve, LossPoint, ThroughputResult
from ..units import l1_bits, l2_bits
from .drawing import FAINT_COLOUR, rate_unit
from .plot_frame import PlotFrame
from .tables import NONE, Columns, ResultTable, declared, known, pps_text


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
