"""Searches, ramps and scaling as pictures and tables. Pure functions; rates are of each port unless said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..methods.ramp import RampPhase, RampResult
from ..methods.scaling import ScalingResult
from ..methods.search import CapacityBounds, SearchResult
from ..units import Rate
from .canvas import DEMAND, FAINT, LOST, WAYS, canvas, unit
from .grid import Grid
from .rates import TrafficFigures, percent

_NOT = "–"


def search_table(
    result: SearchResult, traffic: TrafficFigures, link_bps: float, title: str, simulated: bool = False
) -> Grid:
    """The bounds of each loss ratio, in every unit."""
    rows = []
    for item in result.bounds:
        lower = None if item.lower is None else Rate(item.lower.pps, traffic.mean_size, link_bps)
        rows.append(
            (
                item.name,
                percent(item.loss_ratio),
                _NOT if lower is None else f"{lower.pps:,.0f}",
                _NOT if item.upper is None else f"{item.upper.pps:,.0f}",
                _NOT if item.width is None else percent(item.width),
                _NOT if item.throughput is None else f"{item.throughput:,.0f}",
                _NOT if lower is None else f"{lower.percent:.2f}",
                _NOT if lower is None else f"{lower.l1_bps / 1e9:.4f}",
                "done" if item.finished else "unfinished",
            )
        )
    columns = (
        ("", ""),
        ("loss allowed", ""),
        ("lower bound", "frames/s each port"),
        ("upper bound", "frames/s each port"),
        ("apart", ""),
        ("conditional throughput", "frames/s each port"),
        ("lower bound", "% of line"),
        ("lower bound", "Gbit/s L1"),
        ("search", ""),
    )
    notes: tuple[str, ...] = (
        f"{result.goal}. Bounds to {percent(result.relative_width)}; {len(result.trials)} trials,"
        f" {result.traffic:g} s of traffic; between {result.lowest.pps:,.0f} and {result.highest.pps:,.0f} frames/s.",
    )
    least = min((item.lower.pps for item in result.bounds if item.lower is not None), default=None)
    unseen = "" if least is None else result.goal.unseen(least)
    if unseen:
        notes += (f"{unseen[0].upper()}{unseen[1:]}.",)
    return Grid(title, columns, tuple(rows), notes, tuple(filter(None, (result.ended,))), simulated)


def search_plot(result: SearchResult, title: str, simulated: bool = False, in_total: bool = False) -> str:
    """Loss over load, one point for each trial, with the bounds that were found. SVG."""
    named, factor = unit(result.highest.pps)
    with canvas(title, simulated) as made:
        drawn: dict[str, Any] = {}
        for valid, color, label in ((True, WAYS[0], "trial"), (False, FAINT, "trial, not valid")):
            shown = [trial for trial in result.trials if trial.valid is valid]
            if shown:
                drawn[label] = made.axes.scatter(
                    [trial.outcome.load.pps / factor for trial in shown],
                    [100 * trial.loss_ratio(in_total) for trial in shown],
                    s=[14 + 10 * min(trial.outcome.duration, 6) for trial in shown],
                    color=color,
                    alpha=0.6,
                    linewidths=0,
                    zorder=3,
                )
        for item, color in zip(result.bounds, (DEMAND, WAYS[2], WAYS[3], LOST), strict=False):
            drawn |= _bound_lines(made.axes, item, factor, color)
        made.plain(f"load of each port [{named}]", "frames lost [%]")
        made.axes.set_yscale("symlog", linthresh=0.01)
        made.axes.set_ylim(-0.003, 130)
        made.axes.set_xlim(0, result.highest.pps / factor * 1.03)
        made.legend(drawn)
    return made.svg


def _bound_lines(axes: Any, item: CapacityBounds, factor: float, color: str) -> dict[str, Any]:
    if item.lower is None:
        return {}
    line = axes.axvline(item.lower.pps / factor, color=color, linewidth=1.5, zorder=2)
    if item.upper is not None:
        axes.axvspan(item.lower.pps / factor, item.upper.pps / factor, color=color, alpha=0.25, linewidth=0, zorder=1)
    return {f"{item.name}{'' if item.finished else ' (unfinished)'}": line}


def ramp_plot(result: RampResult, title: str, simulated: bool = False) -> str:
    """Offered and forwarded rate over the seconds of the ramp, with the saturation point. SVG."""
    highest = max((step.offered_pps for step in result.steps), default=1.0)
    named, factor = unit(highest)
    with canvas(title, simulated) as made:
        seconds, at = [], 0.0
        for step in result.steps:
            seconds.append(at)
            at += step.trial.outcome.duration
        edges = [*seconds, at]
        drawn: dict[str, Any] = {}
        for label, rates, color in (
            ("offered", [step.offered_pps / factor for step in result.steps], FAINT),
            ("forwarded", [step.forwarded_pps / factor for step in result.steps], WAYS[0]),
        ):
            drawn[label] = made.axes.stairs(rates, edges, color=color, linewidth=1.8, zorder=3, baseline=None)
        found = result.saturation
        if found is not None:
            index = result.steps.index(found)
            drawn["saturation"] = made.axes.axvline(edges[index], color=LOST, linestyle="--", linewidth=1.3, zorder=4)
        for phase in (RampPhase.WARM_UP, RampPhase.HOLD):
            inside = [index for index, step in enumerate(result.steps) if step.phase is phase]
            if inside:
                made.axes.axvspan(edges[inside[0]], edges[inside[-1] + 1], color="#eef2f5", zorder=0, linewidth=0)
        scope = "both ports together" if result.in_total else "each port"
        made.plain("seconds of traffic (it pauses between the steps)", f"rate, {scope} [{named}]")
        made.axes.set_xlim(0, max(at, 1e-9))
        made.axes.set_ylim(0, highest / factor * 1.08)
        made.legend(drawn)
    return made.svg


def ramp_table(result: RampResult, title: str, simulated: bool = False) -> Grid:
    """Every step in figures, under what was found."""
    rows = tuple(
        (
            step.phase.value,
            f"{step.load.pps:,.0f}",
            f"{100 * step.load.pps / result.plan.line_pps:.2f}",
            f"{step.offered_pps:,.0f}",
            f"{step.forwarded_pps:,.0f}",
            percent(step.loss_ratio),
            "behind" if step.behind else "",
        )
        for step in result.steps
    )
    columns = (
        ("phase", ""),
        ("load", "frames/s each port"),
        ("load", "% of line"),
        ("offered", "frames/s"),
        ("forwarded", "frames/s"),
        ("lost", ""),
        ("", ""),
    )
    notes = tuple(f"Deviation: {item}." for item in result.deviations)
    return Grid(title, columns, rows, notes, result.findings, simulated)


def scaling_plot(result: ScalingResult, title: str, simulated: bool = False) -> str:
    """Lower bounds over the value that was varied, reaching up to the upper ones. SVG."""
    told = [(point.value, item) for point in result.points if point.result for item in point.result.bounds]
    highest = max((item.lower.pps for _, item in told if item.lower), default=1.0)
    named, factor = unit(highest)
    names = list(dict.fromkeys(item.name for _, item in told))
    with canvas(title, simulated) as made:
        drawn: dict[str, Any] = {}
        for name, color, mark in zip(names, (WAYS[0], WAYS[2], DEMAND, LOST), "osD^", strict=False):
            mine = [(value, item) for value, item in told if item.name == name and item.lower is not None]
            if mine:
                drawn[name] = _series(made.axes, mine, factor, color, mark)
        made.plain(result.axis, f"load carried by each port [{named}]")
        values = [point.value for point in result.points]
        if values and max(values) > 20 * max(min(values), 1):
            made.axes.set_xscale("log")
        made.axes.set_xticks(values, [f"{value:,}" for value in values])
        made.axes.minorticks_off()
        made.axes.set_ylim(0, highest / factor * 1.1)
        made.legend(drawn)
    return made.svg


def _series(axes: Any, points: Sequence[tuple[int, CapacityBounds]], factor: float, color: str, mark: str) -> Any:
    lower = [item.lower.pps / factor for _, item in points if item.lower is not None]
    above = [(item.upper.pps if item.upper else 0.0) / factor for _, item in points]
    return axes.errorbar(
        [value for value, _ in points],
        lower,
        yerr=[[0.0] * len(lower), [max(0.0, top - low) for top, low in zip(above, lower, strict=True)]],
        color=color,
        marker=mark,
        markersize=5,
        capsize=3,
        linewidth=1.6,
        zorder=3,
    )


def scaling_table(result: ScalingResult, title: str, simulated: bool = False) -> Grid:
    """The bounds at every value."""
    rows: list[tuple[str, ...]] = []
    for point in result.points:
        if point.result is None:
            rows.append((f"{point.value:,}", _NOT, _NOT, _NOT, _NOT, point.reason))
            continue
        for item in point.result.bounds:
            rows.append(
                (
                    f"{point.value:,}",
                    item.name,
                    percent(item.loss_ratio),
                    _NOT if item.lower is None else f"{item.lower.pps:,.0f}",
                    _NOT if item.upper is None else f"{item.upper.pps:,.0f}",
                    "done" if item.finished else f"unfinished; {point.result.ended}",
                )
            )
    columns = (
        (result.axis, ""),
        ("", ""),
        ("loss allowed", ""),
        ("lower bound", "frames/s each port"),
        ("upper bound", "frames/s each port"),
        ("search", ""),
    )
    return Grid(title, columns, tuple(rows), simulated=simulated)
