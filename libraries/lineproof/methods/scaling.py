"""Scaling: throughput against the number of flows or of receive queues, or the frame size; one search for each value.

The caller changes traffic or router from value to value, and gives a ``measure`` for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..core.goal import Goal
from ..core.trial import Load, Measure
from ..errors import BREAKDOWN_ERRORS, in_words
from .search import LOWEST_LOAD_RATIO, RELATIVE_WIDTH, SearchResult, search
from .trials import CharacterisationTerms, Deadline

FLOW_COUNTS = (1, 2, 8, 64, 256, 1_000, 10_000)
"""Numbers of flows to try: one queue alone, all queues, and more flows than caches hold."""


@dataclass(frozen=True, slots=True)
class ScalingSetup:
    """A value that is set up: how to measure, and the highest load to ask for (of each sending port)."""

    measure: Measure
    highest: Load


@dataclass(frozen=True, slots=True)
class ScalingPoint:
    """The result at one value. ``result`` None: no search was made; ``reason`` says why."""

    value: int
    result: SearchResult | None
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.value}: {self.result if self.result is not None else self.reason}"


@dataclass(frozen=True, slots=True)
class ScalingResult:
    """``axis`` names what was varied, for example ``flows``; ``points`` are in the order of the values."""

    axis: str
    points: tuple[ScalingPoint, ...]

    @property
    def unfinished(self) -> tuple[int, ...]:
        """Values without a finished search."""
        return tuple(point.value for point in self.points if point.result is None or point.result.unfinished)

    def __str__(self) -> str:
        return "\n".join(f"{self.axis} {point}" for point in self.points)


def scale(
    axis: str,
    values: Sequence[int],
    prepare: Callable[[int], ScalingSetup],
    goal: Goal,
    terms: CharacterisationTerms,
    relative_width: float = RELATIVE_WIDTH,
) -> ScalingResult:
    """Search at each of *values*, between LOWEST_LOAD_RATIO times the highest load and the highest load.

    *prepare* sets traffic and router up for a value; if it fails, the point has no result. The deadline of *terms* is
    for all values together.
    """
    if not values or len(set(values)) != len(values):
        raise ValueError(f"scaling needs one value or more, each once, not {list(values)}")
    points: list[ScalingPoint] = []
    sent, began = 0.0, terms.deadline.now()
    for value in values:
        left = _remaining(terms.deadline, sent, terms.deadline.now() - began)
        if left is None:
            points.append(ScalingPoint(value, None, "deadline: not begun"))
            continue
        try:
            setting = prepare(value)
        except BREAKDOWN_ERRORS as error:
            points.append(ScalingPoint(value, None, f"inconclusive: it could not be set up: {in_words(error)}"))
            continue
        lowest, rest = Load(setting.highest.pps * LOWEST_LOAD_RATIO), replace(terms, deadline=left)
        found = search(setting.measure, goal, lowest, setting.highest, rest, relative_width=relative_width)
        sent += found.traffic
        points.append(ScalingPoint(value, found))
    return ScalingResult(axis, tuple(points))


def _remaining(deadline: Deadline, sent: float, spent: float) -> Deadline | None:
    """The rest of the deadline; None if nothing is left."""
    traffic = None if deadline.traffic is None else deadline.traffic - sent
    wall = None if deadline.wall is None else deadline.wall - spent
    if (traffic is not None and traffic <= 0) or (wall is not None and wall <= 0):
        return None
    return Deadline(traffic, wall, deadline.now)
