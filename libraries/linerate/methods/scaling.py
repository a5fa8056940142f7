"""Scaling: throughput against the number of flows, of receive queues, or the frame size; one search for each.

How traffic or router change from point to point is the caller's: it gives for each value something to measure with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..counts.trial import Load, Measure
from ..sla.goals import Goal
from .search import LOSS_RATIOS, RELATIVE_WIDTH, SearchResult, search
from .trials import BREAKDOWNS, Deadline, Terms

FLOWS = (1, 2, 8, 64, 256, 1_000, 10_000)
"""Numbers of flows worth a look: each queue alone, all of them, and caches that no longer hold every flow."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One point as it is set up: how to measure there, and the highest load to ask for (into each port)."""

    measure: Measure
    highest: Load


@dataclass(frozen=True, slots=True)
class Point:
    """What was found at one value. ``result`` None: the search was not begun; ``reason`` says why."""

    value: int
    result: SearchResult | None
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.value}: {self.result if self.result is not None else self.reason}"


@dataclass(frozen=True, slots=True)
class ScalingResult:
    """``axis`` names what was varied, for example ``flows``; ``points`` are in the order asked for."""

    axis: str
    points: tuple[Point, ...]

    @property
    def unfinished(self) -> tuple[int, ...]:
        """Values whose search did not come to its end."""
        return tuple(point.value for point in self.points if point.result is None or point.result.unfinished)

    def __str__(self) -> str:
        return "\n".join(f"{self.axis} {point}" for point in self.points)


def scale(
    axis: str,
    values: Sequence[int],
    prepare: Callable[[int], Setting],
    goal: Goal,
    terms: Terms,
    loss_ratios: Mapping[str, float] = LOSS_RATIOS,
    relative_width: float = RELATIVE_WIDTH,
    floor: float = 0.001,
) -> ScalingResult:
    """Search at each of *values*, between *floor* times the highest load and it.

    *prepare* sets traffic and router up for a value; a value that it refuses, or at which the testbed breaks down, is a
    point without a result. The deadline of *terms* holds for all points together.
    """
    if not values or len(set(values)) != len(values):
        raise ValueError(f"scaling needs one value or more, each once, not {list(values)}")
    points: list[Point] = []
    sent, began = 0.0, terms.deadline.now()
    for value in values:
        left = _left(terms.deadline, sent, terms.deadline.now() - began)
        if left is None:
            points.append(Point(value, None, "deadline: not begun"))
            continue
        try:
            setting = prepare(value)
        except BREAKDOWNS as error:
            points.append(Point(value, None, f"inconclusive: it could not be set up: {error}"))
            continue
        lowest = Load(setting.highest.pps * floor)
        found = search(
            setting.measure, goal, lowest, setting.highest, replace(terms, deadline=left), loss_ratios, relative_width
        )
        sent += found.traffic
        points.append(Point(value, found))
    return ScalingResult(axis, tuple(points))


def _left(deadline: Deadline, sent: float, spent: float) -> Deadline | None:
    """What is left of the deadline; None where nothing is."""
    traffic = None if deadline.traffic is None else deadline.traffic - sent
    wall = None if deadline.wall is None else deadline.wall - spent
    if (traffic is not None and traffic <= 0) or (wall is not None and wall <= 0):
        return None
    return Deadline(traffic, wall, deadline.now)
