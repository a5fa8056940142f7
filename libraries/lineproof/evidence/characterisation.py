"""Searches, ramps and scaling as pictures, tables and data. Rates are of each port unless stated."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from ..methods.ramp import RampPhase, RampResult, RampStep
from ..methods.scaling import ScalingResult
from ..methods.search import CapacityBounds, SearchResult
from ..units import Rate, si
from .drawing import (
    DIRECTION_COLOURS,
    FAINT_COLOUR,
    HATCHES,
    LINE_STYLES,
    LOST_COLOUR,
    THRESHOLD_COLOUR,
    drawing,
    rate_unit,
)
from .rates import TrafficFigures, percent
from .tables import ResultTable

_NONE = "–"


def search_table(
    result: SearchResult, traffic: TrafficFigures, link_bps: float, title: str, simulated: bool = False
) -> ResultTable:
    """The bounds for each loss ratio, in every unit."""
    rows = []
    for item in result.bounds:
        lower = None if item.lower is None else Rate(item.lower.pps, traffic.mean_size, link_bps)
        rows.append(
            (
                item.name,
                percent(item.loss_ratio),
                _NONE if lower is None else f"{lower.pps:,.0f}",
                _NONE if item.upper is None else f"{item.upper.pps:,.0f}",
                _NONE if item.width is None else percent(item.width),
                _NONE if item.throughput is None else f"{item.throughput:,.0f}",
                _NONE if lower is None else f"{lower.percent:.2f}",
                _NONE if lower is None else f"{lower.l1_bps / 1e9:.4f}",
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
    notes += tuple(f"Deviation: {item}." for item in result.deviations)
    return ResultTable(title, columns, tuple(rows), notes, tuple(filter(None, (result.ended,))), simulated)


def search_plot(result: SearchResult, title: str, simulated: bool = False) -> str:
    """Loss over load as SVG: one point for each trial, and the bounds found."""
    named, factor = rate_unit(result.highest.pps)
    with drawing(title, simulated) as picture:
        drawn: dict[str, Any] = {}
        for clean, color, mark, label in (
            (True, DIRECTION_COLOURS[0], "o", "trial"),
            (False, FAINT_COLOUR, "X", "trial with a doubt"),
        ):
            shown = [trial for trial in result.trials if trial.is_clean is clean]
            if shown:
                drawn[label] = picture.axes.scatter(
                    [trial.outcome.load.pps / factor for trial in shown],
                    [100 * trial.loss_ratio(in_total=False) for trial in shown],
                    s=[14 + 10 * min(trial.outcome.duration, 6) for trial in shown],
                    color=color,
                    marker=mark,
                    alpha=0.6,
                    linewidths=0,
                    zorder=3,
                )
        colours = (THRESHOLD_COLOUR, DIRECTION_COLOURS[2], DIRECTION_COLOURS[3], LOST_COLOUR)
        for place, (item, color) in enumerate(zip(result.bounds, colours, strict=False)):
            drawn |= _bound_lines(picture.axes, item, factor, color, place)
        picture.label_axes(f"load of each port [{named}]", "frames lost [%]")
        picture.axes.set_yscale("symlog", linthresh=0.01)
        picture.axes.set_ylim(-0.003, 130)
        picture.axes.set_xlim(0, result.highest.pps / factor * 1.03)
        picture.legend(drawn)
    return picture.svg


def _bound_lines(axes: Any, item: CapacityBounds, factor: float, color: str, place: int) -> dict[str, Any]:
    if item.lower is None:
        return {}
    lower, dashes = item.lower.pps / factor, LINE_STYLES[place]
    line = axes.axvline(lower, color=color, linestyle=dashes, linewidth=1.5, zorder=2)
    if item.upper is not None:
        style = {"facecolor": "none", "edgecolor": color, "hatch": HATCHES[place], "linewidth": 0, "zorder": 1}
        axes.axvspan(lower, item.upper.pps / factor, **style)
    return {f"{item.name}{'' if item.finished else ' (unfinished)'}": line}


def ramp_plot(result: RampResult, title: str, simulated: bool = False) -> str:
    """Offered and forwarded rate over the seconds of the ramp as SVG, with the saturation point."""
    highest = max((step.offered_pps for step in result.steps), default=1.0)
    named, factor = rate_unit(highest)
    with drawing(title, simulated) as picture:
        seconds, at = [], 0.0
        for step in result.steps:
            seconds.append(at)
            at += step.trial.outcome.duration
        edges = [*seconds, at]
        drawn: dict[str, Any] = {}
        for label, rates, color, dashes in (
            ("offered", [step.offered_pps / factor for step in result.steps], FAINT_COLOUR, ":"),
            ("forwarded", [step.forwarded_pps / factor for step in result.steps], DIRECTION_COLOURS[0], "-"),
        ):
            style = {"color": color, "linestyle": dashes, "linewidth": 1.8, "zorder": 3}
            drawn[label] = picture.axes.stairs(rates, edges, baseline=None, **style)
        found = result.saturation
        if found is not None:
            index = result.steps.index(found)
            drawn["saturation"] = picture.axes.axvline(
                edges[index], color=LOST_COLOUR, linestyle="--", linewidth=1.3, zorder=4
            )
        for phase in (RampPhase.WARM_UP, RampPhase.HOLD):
            inside = [index for index, step in enumerate(result.steps) if step.phase is phase]
            if inside:
                picture.axes.axvspan(edges[inside[0]], edges[inside[-1] + 1], color="#eef2f5", zorder=0, linewidth=0)
        scope = "both ports together" if result.in_total else "each port"
        picture.label_axes("seconds of traffic (it pauses between the steps)", f"rate, {scope} [{named}]")
        picture.axes.set_xlim(0, max(at, 1e-9))
        picture.axes.set_ylim(0, highest / factor * 1.08)
        picture.legend(drawn)
    return picture.svg


def ramp_table(result: RampResult, title: str, simulated: bool = False) -> ResultTable:
    """One row for each step, below the findings."""
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
    return ResultTable(title, columns, rows, notes, result.findings, simulated)


def scaling_plot(result: ScalingResult, title: str, simulated: bool = False) -> str:
    """Lower bounds over the varied value as SVG, with error bars up to the upper bounds."""
    known = [(point.value, item) for point in result.points if point.result for item in point.result.bounds]
    highest = max((item.lower.pps for _, item in known if item.lower), default=1.0)
    named, factor = rate_unit(highest)
    names = list(dict.fromkeys(item.name for _, item in known))
    with drawing(title, simulated) as picture:
        drawn: dict[str, Any] = {}
        for name, color, mark in zip(
            names, (DIRECTION_COLOURS[0], DIRECTION_COLOURS[2], THRESHOLD_COLOUR, LOST_COLOUR), "osD^", strict=False
        ):
            mine = [(value, item) for value, item in known if item.name == name and item.lower is not None]
            if mine:
                drawn[name] = _series(picture.axes, mine, factor, color, mark)
        picture.label_axes(result.axis, f"load carried by each port [{named}]")
        values = [point.value for point in result.points]
        if values and max(values) > 20 * max(min(values), 1):
            picture.axes.set_xscale("log")
        picture.axes.set_xticks(values, [f"{value:,}" for value in values])
        picture.axes.minorticks_off()
        picture.axes.set_ylim(0, highest / factor * 1.1)
        picture.legend(drawn)
    return picture.svg


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


def scaling_table(result: ScalingResult, title: str, simulated: bool = False) -> ResultTable:
    """The bounds at every value."""
    rows: list[tuple[str, ...]] = []
    for point in result.points:
        if point.result is None:
            rows.append((f"{point.value:,}", _NONE, _NONE, _NONE, _NONE, point.reason))
            continue
        for item in point.result.bounds:
            rows.append(
                (
                    f"{point.value:,}",
                    item.name,
                    percent(item.loss_ratio),
                    _NONE if item.lower is None else f"{item.lower.pps:,.0f}",
                    _NONE if item.upper is None else f"{item.upper.pps:,.0f}",
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
    return ResultTable(title, columns, tuple(rows), simulated=simulated)


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


def loadtest_json(result: RampResult, traffic: TrafficFigures, bidirectional: bool, simulated: bool = False) -> str:
    """:func:`loadtest_data` as the text of a file."""
    data = loadtest_data(result, traffic, bidirectional, simulated)
    return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


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
