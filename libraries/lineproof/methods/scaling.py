"""Scaling: throughput against the number of flows or of receive queues, the frame size, or the traffic.

There is one search for each value; the caller changes traffic or router from value to value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..errors import BREAKDOWN_ERRORS, in_words
from .deviations import DeviatingResult
from .search import SearchResult

V = TypeVar("V", int, str)
"""The type of the values: numbers, or words of traffic."""

FLOW_COUNTS = (1, 2, 8, 64, 256, 1_000, 10_000)
"""Numbers of flows to try: one queue alone, all queues, and more flows than caches hold."""


@dataclass(frozen=True, slots=True)
class ScalingPoint:
    """The result at one value. ``result`` None: no search was made; ``reason`` says why."""

    value: int | str
    result: SearchResult | None
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.value}: {self.result if self.result is not None else self.reason}"


@dataclass(frozen=True, slots=True)
class ScalingResult(DeviatingResult):
    """``axis`` names what was varied, for example ``flows``; ``points`` are in the order of the values."""

    axis: str
    points: tuple[ScalingPoint, ...]

    @property
    def endings(self) -> tuple[str, ...]:
        """Return why each search ended early, or was not made."""
        return tuple(point.reason if point.result is None else point.result.endings[0] for point in self.points)

    @property
    def _found(self) -> str:
        return "\n".join(f"{self.axis} {point}" for point in self.points)


def scale(
    axis: str, values: Sequence[V], search_at: Callable[[V, float], SearchResult], deadline: float = math.inf
) -> ScalingResult:
    """Search at each of *values*, in at most *deadline* s of traffic for all together, which they share alike.

    ``search_at(value, seconds)`` sets traffic and router up and searches; if it fails, the point has no result. What
    one leaves of its share, those after it have.
    """
    if not values or len(set(values)) != len(values):
        raise ValueError(f"scaling needs one value or more, each once, not {list(values)}")
    points: list[ScalingPoint] = []
    left = deadline
    for at, value in enumerate(values):
        try:
            result = search_at(value, left / (len(values) - at))
        except BREAKDOWN_ERRORS as error:
            points.append(ScalingPoint(value, None, f"inconclusive: it could not be set up: {in_words(error)}"))
            continue
        left -= result.traffic
        points.append(ScalingPoint(value, result))
    return ScalingResult(axis, tuple(points))
