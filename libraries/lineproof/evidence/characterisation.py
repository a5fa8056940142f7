"""Searches, ramps, scaling and RFC 2544's tests as pictures. Rates are of each port unless stated.

Those of RFC 2544 are the graphs that its section 26 asks for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

from ..methods.ramp import RampPhase, RampResult
from ..methods.rfc2544.throughput import LossCurve, ThroughputResult
from ..methods.scaling import ScalingResult
from ..methods.search import CapacityBounds, SearchResult
from ..units import l1_bits
from .drawing import DIRECTION_COLOURS, FAINT_COLOUR, LOST_COLOUR, rate_unit
from .plot_frame import AXES_HEIGHT, PlotFrame, across, series_colour, ticks, value_share
from .svg import Hatch

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
