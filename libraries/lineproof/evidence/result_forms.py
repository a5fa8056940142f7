"""Results of searches, ramps, scaling and RFC 2544's tests (the tables of its section 26), as documents.

Rates are of each port unless stated. Each document ends with its declared deviations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..core.traffic.profiles import Profile
from ..core.trial import Load
from ..methods.deviations import deviations_of
from ..methods.ramp import RampResult, RampStep
from ..methods.rfc2544 import (
    BackToBackResult,
    DirectionLatency,
    LatencyResult,
    LossCurve,
    LossPoint,
    RecoveryResult,
    ResetResult,
    ThroughputResult,
)
from ..methods.scaling import ScalingResult
from ..methods.search import CapacityBounds, SearchResult
from ..units import Rate, l1_bits, l2_bits
from .document import Column, Document, Note, Row, Section, Table
from .forms import Columns, table_of
from .rates import percent


def search_document(
    result: SearchResult, traffic: Profile, link_bps: float, title: str, simulated: bool = False
) -> Document:
    """Return the bounds for each loss ratio, in every unit."""

    def lower(bounds: CapacityBounds, figure: Callable[[Rate], float], form: str) -> str:
        if bounds.lower is None:
            return NONE
        return f"{figure(Rate(bounds.lower.pps, traffic.mean_size, link_bps)):{form}}"

    columns: Columns[CapacityBounds] = (
        *_BOUNDS,
        (Column("apart"), lambda bounds: NONE if bounds.width is None else percent(bounds.width)),
        (Column("conditional throughput", _EACH), lambda bounds: _known(bounds.throughput, ",.0f")),
        (Column("lower bound", "% of line"), lambda bounds: lower(bounds, lambda rate: rate.percent, ".2f")),
        (Column("lower bound", "Gbit/s L1"), lambda bounds: lower(bounds, lambda rate: rate.l1_bps / 1e9, ".4f")),
        (Column("search", left=True), lambda bounds: "done" if bounds.finished else "unfinished"),
    )
    how = (
        f"{result.goal}. Bounds to {percent(result.relative_width)}; {len(result.trials)} trials,"
        f" {result.traffic:g} s of traffic; between {result.lowest.pps:,.0f} and {result.highest.pps:,.0f} frames/s."
    )
    findings = [result.ended] if result.ended else []
    return _document(title, findings, table_of(result.bounds, columns), [how, *_declared([result])], simulated)


def ramp_document(result: RampResult, title: str, simulated: bool = False) -> Document:
    """Return a row for each step, below the findings."""
    columns: Columns[RampStep] = (
        (Column("phase", left=True), lambda step: step.phase.value),
        (Column("load", _EACH), lambda step: _pps(step.load)),
        (Column("load", "% of line"), lambda step: f"{100 * step.load.pps / result.plan.line_pps:.2f}"),
        (Column("offered", "frames/s"), lambda step: f"{step.offered_pps:,.0f}"),
        (Column("forwarded", "frames/s"), lambda step: f"{step.forwarded_pps:,.0f}"),
        (Column("lost"), lambda step: percent(step.loss_ratio)),
        (Column("", left=True), lambda step: "behind" if step.behind else ""),
    )
    findings = [*result.findings, *filter(None, [result.ended])]
    return _document(title, findings, table_of(result.steps, columns), _declared([result]), simulated)


def scaling_document(result: ScalingResult, title: str, simulated: bool = False) -> Document:
    """Return the bounds at every value."""
    heads = [Column(result.axis), *(column for column, _ in _BOUNDS), Column("search", left=True)]
    rows = []
    for point in result.points:
        value = f"{point.value:,}"
        if point.result is None:
            rows.append(Row([value, *[NONE] * len(_BOUNDS), point.reason]))
            continue
        for bounds in point.result.bounds:
            ended = "done" if bounds.finished else f"unfinished; {point.result.ended}"
            rows.append(Row([value, *(cell(bounds) for _, cell in _BOUNDS), ended]))
    return _document(title, (), Table(heads, rows), (), simulated)


def throughput_document(results: Sequence[ThroughputResult], title: str, simulated: bool = False) -> Document:
    """Return 26.1's table: one row for each frame size."""

    def gbps(result: ThroughputResult, bits: float) -> str:
        return NONE if result.throughput is None else f"{result.throughput.pps * bits / 1e9:.4f}"

    columns: Columns[ThroughputResult] = (
        (_SIZE, lambda result: str(result.size)),
        (Column("theoretical", _EACH), lambda result: f"{result.line_pps:,.0f}"),
        (Column("throughput", _EACH), lambda result: _pps(result.throughput)),
        (Column("throughput", "% of line"), lambda result: _known(result.percent, ".2f")),
        (Column("throughput", "Gbit/s L1"), lambda result: gbps(result, l1_bits(result.size))),
        (Column("throughput", "Gbit/s L2"), lambda result: gbps(result, l2_bits(result.size))),
        (Column("trials"), lambda result: str(len(result.trials))),
        (Column("each of", "s"), lambda result: f"{result.duration:g}"),
        (Column("search", left=True), lambda result: result.ended or "done"),
    )
    return _document(title, (), table_of(results, columns), _declared(results), simulated)


def loss_document(curves: Sequence[LossCurve], title: str, simulated: bool = False) -> Document:
    """Return 26.3's table: one row for each point."""
    columns: Columns[tuple[float, LossPoint]] = (
        (_SIZE, lambda point: f"{point[0]:g}"),
        (Column("asked", "% of line"), lambda point: f"{point[1].asked:.4g}"),
        (Column("offered", "% of line"), lambda point: f"{point[1].offered:.4g}"),
        (Column("lost", "% of frames offered"), lambda point: f"{100 * point[1].loss_ratio:.5g}"),
    )
    points = [(curve.size, point) for curve in curves for point in curve.points]
    return _document(title, (), table_of(points, columns), _notes(curves), simulated)


def latency_document(results: Sequence[LatencyResult], title: str, simulated: bool = False) -> Document:
    """Return 26.2's table: size, rate, medium, latency; one row for each size and direction."""

    def way(number: int, direction: DirectionLatency) -> str:
        return direction.direction or (("there", "back")[number] if number < 2 else str(number))

    columns: Columns[tuple[LatencyResult, int, DirectionLatency]] = (
        (_SIZE, lambda row: str(row[0].size)),
        (Column("rate", _EACH), lambda row: _pps(row[0].load)),
        (Column("medium", left=True), lambda row: NONE),
        (Column("direction", left=True), lambda row: way(*row[1:])),
        (Column("latency", "µs, mean"), lambda row: f"{row[2].mean:.2f}"),
        (Column("least", "µs"), lambda row: f"{row[2].least:.2f}"),
        (Column("most", "µs"), lambda row: f"{row[2].most:.2f}"),
        (Column("std. deviation", "µs"), lambda row: f"{row[2].deviation:.2f}" if row[2].repeats > 1 else NONE),
        (Column("streams"), lambda row: str(row[2].repeats)),
    )
    rows = [(result, number, direction) for result in results for number, direction in enumerate(result.directions)]
    return _document(title, (), table_of(rows, columns), _notes(results), simulated)


def back_to_back_document(results: Sequence[BackToBackResult], title: str, simulated: bool = False) -> Document:
    """Return the table of 26.4 and RFC 9004: one row for each frame size."""

    def burst(result: BackToBackResult, chosen: Callable[[Sequence[int]], int]) -> str:
        return f"{chosen(result.bursts):,}" if result.bursts and not result.unlimited else NONE

    def milliseconds(seconds: float | None) -> str:
        return _known(seconds and 1e3 * seconds, ".4g")

    columns: Columns[BackToBackResult] = (
        (_SIZE, lambda result: str(result.size)),
        (Column("back-to-back", "frames, mean"), lambda result: "≥ " * result.unlimited + _known(result.mean, ",.1f")),
        (Column("least", "frames"), lambda result: burst(result, min)),
        (Column("most", "frames"), lambda result: burst(result, max)),
        (Column("std. deviation", "frames"), lambda result: _known(result.spread, ".1f")),
        (Column("repetitions"), lambda result: str(len(result.bursts))),
        (Column("implied buffer time", "ms"), lambda result: milliseconds(result.implied_buffer_time)),
        (Column("corrected buffer time", "ms"), lambda result: milliseconds(result.corrected_buffer_time)),
    )
    return _document(title, (), table_of(results, columns), _notes(results), simulated)


def recovery_document(results: Sequence[RecoveryResult], title: str, simulated: bool = False) -> Document:
    """Return 26.5's table: one row for each frame size."""
    columns: Columns[RecoveryResult] = (
        (_SIZE, lambda result: str(result.size)),
        (Column("overload", _EACH), lambda result: _pps(result.overload)),
        (Column("reduced to", _EACH), lambda result: _pps(result.reduced)),
        (Column("recovery time", "mean"), lambda result: NONE if result.mean is None else str(result.mean)),
        (Column("each", "known to lie within", True), lambda result: ", ".join(map(str, result.times)) or NONE),
        (Column("looked at", "s"), lambda result: f"{result.after:g}"),
    )
    return _document(title, (), table_of(results, columns), _notes(results), simulated)


def reset_document(results: Sequence[ResetResult], title: str, simulated: bool = False) -> Document:
    """Return what 26.6 asks to be stated: one row for each kind of reset."""
    columns: Columns[ResetResult] = (
        (Column("reset", left=True), lambda result: result.kind),
        (_SIZE, lambda result: str(result.size)),
        (Column("load", _EACH), lambda result: _pps(result.load)),
        (Column("reset time by loss", "s"), lambda result: _known(result.by_loss, ".4g")),
        (Column("by time", "s"), lambda result: _known(result.by_time, ".3g")),
        (Column("frames lost"), lambda result: f"{result.lost:,}"),
    )
    return _document(title, (), table_of(results, columns), _notes(results), simulated)


NONE = "–"
"""The cell of what was not measured."""

_EACH = "frames/s each port"
_SIZE = Column("frame size", "bytes with FCS")


def _known(value: float | None, form: str) -> str:
    return NONE if value is None else f"{value:{form}}"


def _pps(load: Load | None) -> str:
    return NONE if load is None else f"{load.pps:,.0f}"


_BOUNDS: Columns[CapacityBounds] = (
    (Column("", left=True), lambda bounds: bounds.name),
    (Column("loss allowed"), lambda bounds: percent(bounds.loss_ratio)),
    (Column("lower bound", _EACH), lambda bounds: _pps(bounds.lower)),
    (Column("upper bound", _EACH), lambda bounds: _pps(bounds.upper)),
)


def _notes(results: Sequence[Any]) -> list[str]:
    """Return which results ended early, and each deviation once."""
    return [*(f"{item.size:g} bytes: {item.ended}." for item in results if item.ended), *_declared(results)]


def _declared(results: Sequence[Any]) -> list[str]:
    return [f"Deviation: {item}." for item in deviations_of(results)]


def _document(title: str, findings: Iterable[str], table: Table, notes: Iterable[str], simulated: bool) -> Document:
    return Document(title, [Section("", [*map(Note, findings), table, *map(Note, notes)])], simulated)
