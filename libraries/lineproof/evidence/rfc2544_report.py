"""Results of RFC 2544's tests as the graphs and tables that its section 26 asks for. Pure functions.

Every table ends with the declared deviations of its results.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from ..methods.deviations import DeviatingResult, deviations_of
from ..methods.rfc2544.back_to_back import BackToBackResult
from ..methods.rfc2544.latency import LatencyResult
from ..methods.rfc2544.recovery import RecoveryResult
from ..methods.rfc2544.reset import ResetResult
from ..methods.rfc2544.throughput import LossCurve, ThroughputResult
from ..units import l1_bits, l2_bits
from .drawing import FAINT_COLOUR, rate_unit
from .plot_frame import PlotFrame
from .tables import ResultTable

_NONE = "–"


def throughput_table(results: Sequence[ThroughputResult], title: str, simulated: bool = False) -> ResultTable:
    """26.1 as a table: one row for each frame size."""
    rows = []
    for item in results:
        found = item.throughput
        rows.append(
            (
                str(item.size),
                f"{item.line_pps:,.0f}",
                _NONE if found is None else f"{found.pps:,.0f}",
                _NONE if item.percent is None else f"{item.percent:.2f}",
                _NONE if found is None else f"{found.pps * l1_bits(item.size) / 1e9:.4f}",
                _NONE if found is None else f"{found.pps * l2_bits(item.size) / 1e9:.4f}",
                str(len(item.trials)),
                f"{item.duration:g}",
                item.ended or "done",
            )
        )
    columns = (
        ("frame size", "bytes with FCS"),
        ("theoretical", "frames/s each port"),
        ("throughput", "frames/s each port"),
        ("throughput", "% of line"),
        ("throughput", "Gbit/s L1"),
        ("throughput", "Gbit/s L2"),
        ("trials", ""),
        ("each of", "s"),
        ("search", ""),
    )
    return ResultTable(title, columns, tuple(rows), _declared(results), simulated=simulated)


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
    rows = [
        (f"{curve.size:g}", f"{point.asked:.4g}", f"{point.offered:.4g}", f"{100 * point.loss_ratio:.5g}")
        for curve in curves
        for point in curve.points
    ]
    columns = (
        ("frame size", "bytes with FCS"),
        ("asked", "% of line"),
        ("offered", "% of line"),
        ("lost", "% of frames offered"),
    )
    return ResultTable(title, columns, tuple(rows), (*_ended_early(curves), *_declared(curves)), simulated=simulated)


def latency_table(results: Sequence[LatencyResult], title: str, simulated: bool = False) -> ResultTable:
    """26.2 as a table: size, rate, medium, latency; one row for each size and direction."""
    rows = []
    for item in results:
        for number, direction in enumerate(item.directions):
            rows.append(
                (
                    str(item.size),
                    f"{item.load.pps:,.0f}",
                    _NONE,
                    direction.direction or (("there", "back")[number] if number < 2 else str(number)),
                    f"{direction.mean:.2f}",
                    f"{direction.least:.2f}",
                    f"{direction.most:.2f}",
                    f"{direction.deviation:.2f}" if direction.repeats > 1 else _NONE,
                    str(direction.repeats),
                )
            )
    columns = (
        ("frame size", "bytes with FCS"),
        ("rate", "frames/s each port"),
        ("medium", ""),
        ("direction", ""),
        ("latency", "µs, mean"),
        ("least", "µs"),
        ("most", "µs"),
        ("std. deviation", "µs"),
        ("streams", ""),
    )
    return ResultTable(title, columns, tuple(rows), (*_ended_early(results), *_declared(results)), simulated=simulated)


def back_to_back_table(results: Sequence[BackToBackResult], title: str, simulated: bool = False) -> ResultTable:
    """26.4 and RFC 9004 as a table: one row for each frame size."""
    rows = []
    for item in results:
        limited = not item.unlimited and item.bursts
        rows.append(
            (
                str(item.size),
                _NONE if item.mean is None else f"{'≥ ' if item.unlimited else ''}{item.mean:,.1f}",
                f"{min(item.bursts):,}" if limited else _NONE,
                f"{max(item.bursts):,}" if limited else _NONE,
                _NONE if item.spread is None else f"{item.spread:.1f}",
                str(len(item.bursts)),
                _milliseconds(item.implied_buffer_time),
                _milliseconds(item.corrected_buffer_time),
            )
        )
    columns = (
        ("frame size", "bytes with FCS"),
        ("back-to-back", "frames, mean"),
        ("least", "frames"),
        ("most", "frames"),
        ("std. deviation", "frames"),
        ("repetitions", ""),
        ("implied buffer time", "ms"),
        ("corrected buffer time", "ms"),
    )
    return ResultTable(title, columns, tuple(rows), (*_ended_early(results), *_declared(results)), simulated=simulated)


def recovery_table(results: Sequence[RecoveryResult], title: str, simulated: bool = False) -> ResultTable:
    """26.5 as a table: one row for each frame size."""
    rows = [
        (
            str(item.size),
            f"{item.overload.pps:,.0f}",
            f"{item.reduced.pps:,.0f}",
            _NONE if item.mean is None else str(item.mean),
            ", ".join(map(str, item.times)) or _NONE,
            f"{item.after:g}",
        )
        for item in results
    ]
    columns = (
        ("frame size", "bytes with FCS"),
        ("overload", "frames/s each port"),
        ("reduced to", "frames/s each port"),
        ("recovery time", "mean"),
        ("each", "known to lie within"),
        ("looked at", "s"),
    )
    return ResultTable(title, columns, tuple(rows), (*_ended_early(results), *_declared(results)), simulated=simulated)


def reset_table(results: Sequence[ResetResult], title: str, simulated: bool = False) -> ResultTable:
    """26.6, which asks for a statement for each kind of reset, as a table: one row for each."""
    rows = [
        (
            item.kind,
            str(item.size),
            f"{item.load.pps:,.0f}",
            _NONE if item.by_loss is None else f"{item.by_loss:.4g}",
            _NONE if item.by_time is None else f"{item.by_time:.3g}",
            f"{item.lost:,}",
        )
        for item in results
    ]
    columns = (
        ("reset", ""),
        ("frame size", "bytes with FCS"),
        ("load", "frames/s each port"),
        ("reset time by loss", "s"),
        ("by time", "s"),
        ("frames lost", ""),
    )
    return ResultTable(title, columns, tuple(rows), (*_ended_early(results), *_declared(results)), simulated=simulated)


def _milliseconds(seconds: float | None) -> str:
    return _NONE if seconds is None else f"{1e3 * seconds:.4g}"


def _declared(results: Sequence[DeviatingResult]) -> tuple[str, ...]:
    """Each deviation once, as a note."""
    return tuple(f"Deviation: {item}." for item in deviations_of(results))


class _WithEnding(Protocol):
    @property
    def size(self) -> float: ...
    @property
    def ended(self) -> str: ...


def _ended_early(results: Iterable[_WithEnding]) -> tuple[str, ...]:
    return tuple(f"{item.size:g} bytes: {item.ended}." for item in results if item.ended)
