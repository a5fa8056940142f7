"""Scaling: a search for each of several values, as the number of flows, the frame size, or the traffic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ...core.bounds import Bounds
from ...errors import BREAKDOWN_ERRORS, ConfigError, in_words
from ...evidence.chart import SIGNS, Chart, scaled, valued
from ...evidence.document import Column, Note, Table
from ..procedure import NONE, Cells, Procedure, ProcedureRun
from ..rfc2544 import FRAME_SIZES
from ..search import BOUNDS, LOSS_RATIOS, SEARCH_COLUMN, SearchResult, bounds_cells, search
from ..trials import ProcedureResult

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


@dataclass(frozen=True, slots=True)
class ScalingResult(ProcedureResult):
    """``axis`` names what was varied, for example ``flows``; ``points`` are in the order of the values."""

    axis: str
    points: tuple[ScalingPoint, ...]

    @property
    def endings(self) -> tuple[str, ...]:
        """Return why each search ended early, or was not made."""
        return tuple(point.reason if point.result is None else point.result.endings[0] for point in self.points)


def scale(
    run: ProcedureRun,
    axis: str,
    values: Sequence[V],
    words: Callable[[V], str],
    relative_width: float,
    set_up: Callable[[V], object] = lambda value: None,
) -> ScalingResult:
    """Search at each of *values*: ``set_up(value)`` changes the router, ``words(value)`` are the traffic.

    They share the run's deadline alike; what one leaves of its share, those after it have. A value that cannot be set
    up has no result.
    """
    if not values or len(set(values)) != len(values):
        raise ConfigError(f"expected one value or more, each once, not {list(values)}")
    for value in values:
        run.traffic(words(value))  # before any frame is sent
    run.searches, whole, points = len(values), run.deadline, list[ScalingPoint]()
    for at, value in enumerate(values):
        run.deadline = run.sent + (whole - run.sent) / (len(values) - at)
        try:
            set_up(value)
            points.append(ScalingPoint(value, search(run, words(value), LOSS_RATIOS, relative_width)))
        except BREAKDOWN_ERRORS as error:
            points.append(ScalingPoint(value, None, f"inconclusive: it could not be set up: {in_words(error)}"))
    run.deadline = whole
    return ScalingResult(axis, tuple(points))


class Scaling(Procedure):
    """Throughput against flows, frame sizes, or what a keyword of the suite sets."""

    keyword, name, tags = "Scale Over", "scaling", ("characterise", "scaling")

    def measure(
        self,
        run: ProcedureRun,
        axis: str,
        traffic: str,
        *values: int,
        set_up: str = "",
        relative_width: float = 0.005,
    ) -> ScalingResult:
        """A search for each of *values* of *axis*: ``flows``, ``frame sizes`` (bytes with FCS), or what *set_up* sets.

        *set_up*: a keyword that is called with the value. *traffic* names all else. *relative_width*: how close the
        bounds of each come (0..1). *deadline*: time of traffic of all together. Examples:
        | Scale Over    flows    64b unidirectional    1    8    64
        | Scale Over    frame sizes    unidirectional    64    512    1518
        | Scale Over    receive queues    64b unidirectional    1    2    3    set_up=Set Receive Queues
        """
        kinds: dict[str, tuple[str, Sequence[int], Callable[[int], str]]] = {
            "flows": ("flows", FLOW_COUNTS, lambda number: f"{traffic} {flow_words(number)}"),
            "frame sizes": ("frame size [bytes with FCS]", FRAME_SIZES, lambda size: f"{size}b {traffic}"),
        }
        if axis not in kinds and not set_up:
            raise ConfigError(f"nothing sets '{axis}'; expected {' or '.join(kinds)}, or a keyword as 'set_up'")
        name, usual, words = kinds[axis] if not set_up else (axis, (), lambda value: traffic)
        run.name, run.words = f"scaling over {axis}", traffic
        call = (lambda value: run.call(set_up, value)) if set_up else lambda value: None
        return scale(run, name, values or tuple(usual), words, relative_width, call)

    def parts(self, run: ProcedureRun, result: ScalingResult) -> Sequence[Note | Table]:
        """Return the bounds at every value."""
        points: list[Cells] = []
        for point in result.points:
            value = {Column(result.axis): f"{point.value:,}"}
            if point.result is None:
                points.append({**value, **dict.fromkeys(BOUNDS, NONE), SEARCH_COLUMN: point.reason})
                continue
            for bounds in point.result.bounds:
                ended = "done" if bounds.finished else f"unfinished; {point.result.ended}"
                points.append({**value, **bounds_cells(bounds), SEARCH_COLUMN: ended})
        return [Table.of(points)]

    def picture(self, run: ProcedureRun, result: ScalingResult) -> str:
        """Return lower bounds over the varied value, with a line up to the upper bounds."""
        lines: dict[str, list[tuple[float, float, float]]] = {}
        values = [float(point.value) for point in result.points]
        for value, point in zip(values, result.points, strict=True):
            for one in point.result.bounds if point.result else ():
                if one.lower:
                    high = max(one.lower.pps, (one.upper or one.lower).pps)
                    lines.setdefault(one.name, []).append((value, one.lower.pps, high))
        most = [high for own in lines.values() for *_, high in own]
        across = valued(result.axis, values, max(values, default=0) > 20 * max(min(values, default=0), 1))
        up = scaled("load carried by each port", "pps", 1.1 * max(most, default=1.0))
        plot = Chart(run.title, across, up, run.session.simulated)
        for sign, (name, own) in zip(SIGNS, lines.items(), strict=False):
            plot.curve([(value, low) for value, low, _ in own], name, sign)
            for value, low, high in own:
                plot.range(value, Bounds(low, high), sign, middle=low)
        return plot.svg()


SCALING = Scaling()


def flow_words(number: int) -> str:
    """Return *number* of flows as a word of traffic."""
    return "1-flow" if number == 1 else f"{number}-flows"
