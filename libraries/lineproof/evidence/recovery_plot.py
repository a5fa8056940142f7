"""How a router comes back after an overload: the frames that it still loses, second by second, in each repetition.

Below the curves is when the last frame was lost, from the earliest to the latest moment that the counts allow: that is
what is judged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..core.quantity import Promise
from ..core.step_down import StepDown
from ..core.trial import Trial
from .demand import Demand
from .drawing import FAINT_COLOUR, TEXT_COLOUR
from .plot_frame import PlotFrame
from .plots import LABEL_SIZE, LEFT, RIGHT, TICK_SIZE, ticks

_ROW, _ROWS = 0.055, 0.3
"""Share of the axes' height for the time of a last lost frame, and for all of them at most."""

_BOUNDS = "last lost frame: earliest to latest"


def draw_recovery(
    frame: PlotFrame,
    demand: Demand,
    promise: Promise,
    trials: Sequence[Trial],
    step_downs: Mapping[int, StepDown],
    aside: int,
) -> None:
    """The curves of the repetitions *trials*; *step_downs*: their counts, by trial. *aside*: how many are not shown.

    A curve is of the direction that lost most later. Frames that were still under way are not lost.
    """
    curves = [_curve(step_downs[trial.number]) for trial in trials]
    limit = demand.number
    last = 1.05 * max([limit, *(curve[-1][0] for curve in curves)]) or 1.0
    most = 1.1 * max(later for curve in curves for _, later in curve) or 1.0
    row = min(_ROW, _ROWS / len(curves))
    floor = row * (len(curves) + 0.5)

    def x(seconds: float) -> float:
        return LEFT + seconds / last * (RIGHT - LEFT)

    def height(later: float) -> float:
        return floor + (1 - floor) * later / most

    unit, words = (1e6, " [million]") if most >= 1e6 else (1e3, " [thousand]") if most >= 1e4 else (1.0, "")
    whole = (value for value, _ in ticks(most / unit) if unit * value == round(unit * value))
    levels = ((height(unit * value), f"{value:g}") for value in whole)
    frame.scale(levels, f"frames lost later{words}", "seconds after the overload")
    for value, text in ticks(last):
        frame.picture.line((x(value), frame.bottom), (x(value), frame.bottom + 4), FAINT_COLOUR)
        frame.picture.text(x(value), frame.bottom + 18, text, TICK_SIZE, TEXT_COLOUR, anchor="middle")
    for series, (trial, curve) in enumerate(zip(trials, curves, strict=True)):
        points = [(x(seconds), frame.y(height(later))) for seconds, later in curve]
        frame.curve(points, series, f"trial {trial.number}")
        ends = promise.quantity.shown(promise, [trial])
        level, high = frame.y(row * (len(curves) - series - 0.25)), ends.high
        start, end = x(ends.low), x(min(high, last))
        frame.span(min(start, end), end, level, series)
        if math.isinf(high):
            frame.picture.text(end + 8, level + 4, "no end", LABEL_SIZE, TEXT_COLOUR)
    if not any(later for curve in curves for _, later in curve):
        frame.note("no frame was seen to be lost later")
    frame.legend[_BOUNDS] = lambda x, y: frame.span(x, x + 24, y - 4.5, 0)
    frame.limit((x(limit), frame.top), (x(limit), frame.bottom), f"{demand.relation} {demand.text()}")
    frame.not_shown(aside, aside + len(trials))


def _curve(found: StepDown) -> list[tuple[float, float]]:
    """Seconds since the change and frames lost later than that, of the direction that lost most."""
    curves = (found.lost_later(direction) for direction in range(len(found.after.offered)))
    return max(curves, key=lambda curve: sum(later for _, later in curve))
