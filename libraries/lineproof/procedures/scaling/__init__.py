"""Scaling: a search for each of several values, as the number of flows, the frame size, or the traffic."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ...core.bounds import Bounds
from ...core.phrases import percent
from ...errors import BREAKDOWN_ERRORS, ConfigError, in_words
from ...evidence.chart import AREAS, SIGNS, Chart, Part, columns, linear
from ...evidence.document import Cell, Column, Note, Table
from ..procedure import Procedure, ProcedureRun, figure
from ..rfc2544 import FRAME_SIZES
from ..search import LOSS_RATIOS, CapacityBounds, SearchResult, search
from ..trials import ProcedureResult

V = TypeVar("V", int, str)
"""The type of the values: numbers, or words of traffic."""

FLOW_COUNTS = (1, 2, 8, 64, 256, 1_000, 10_000)
"""Numbers of flows to try: one queue alone, all queues, and more flows than caches hold."""


@dataclass(frozen=True, slots=True)
class ScalingPoint:
    """The result at one value, of ``traffic`` in words; ``result`` None: no search was made; ``reason`` says why."""

    value: int | str
    traffic: str
    result: SearchResult | None
    reason: str = ""

    @property
    def name(self) -> str:
        """Return the value as a text."""
        return self.value if isinstance(self.value, str) else f"{self.value:,}"


@dataclass(frozen=True, slots=True)
class ScalingResult(ProcedureResult):
    """``axis`` names what was varied, for example ``flows``; ``points`` are in the order of the values.

    ``relative_width`` (0..1): how far the bounds of each may be apart.
    """

    axis: str
    relative_width: float
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
            result = search(run, words(value), LOSS_RATIOS, relative_width)
            points.append(ScalingPoint(value, words(value), result))
        except BREAKDOWN_ERRORS as error:
            reason = f"inconclusive: it could not be set up: {in_words(error)}"
            points.append(ScalingPoint(value, words(value), None, reason))
    run.deadline = whole
    return ScalingResult(axis, relative_width, tuple(points))


class Scaling(Procedure):
    """Throughput against flows, frame sizes, or what a keyword of the suite sets."""

    keyword, name = "Scale Over", "scaling"
    tags = *Procedure.tags, "scaling"

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
        call = run.call(set_up) if set_up else lambda value: None
        return scale(run, name, values or tuple(usual), words, relative_width, call)

    def parts(self, run: ProcedureRun, result: ScalingResult) -> Sequence[Note | Table]:
        """Return a row for each value with the bounds of all loss ratios, and why others are not there."""
        rows, reasons = [], defaultdict[str, list[str]](list)
        for point, ending in zip(result.points, result.endings, strict=True):
            traffic, why = run.traffic(point.traffic), ending.removeprefix("inconclusive: ")
            otherwise = "unfinished" if why == ending else "INCONCLUSIVE"
            row: dict[Column, Cell | str] = {Column(result.axis, left=True): point.name}
            for name in LOSS_RATIOS:
                bounds = point.result[name] if point.result else None
                row |= _cells(name, bounds, otherwise, run.line(traffic), run.link_bps(traffic))
            rows.append(row)
            reasons[f"{otherwise}: {why}"] += [point.name] if why else []
        ratios = ", ".join(f"{name}: {percent(ratio)} lost at most" for name, ratio in LOSS_RATIOS.items())
        how = (
            f"{run.session.plan.goal.of_searches}. Bounds to {percent(result.relative_width)}, of each port; Gbit/s on"
            f" layer 1 and % of line are the lower ones; {ratios}; ≥: no more was offered; …: unfinished."
        )
        notes = [Note(f"{', '.join(names)}: {why}") for why, names in reasons.items() if names]
        return [Table.of(rows), Note(how), *notes]

    def picture(self, run: ProcedureRun, result: ScalingResult) -> str:
        """Return for each value a bar up to its NDR, and a range up to its PDR, in per cent of line rate."""
        across = columns(result.axis, [point.name for point in result.points])
        plot = Chart(run.title, across, linear("% of line rate, each port", 105), run.session.simulated, is_level=True)
        for place, point in enumerate(result.points):
            bounds_of_ratios, line = point.result.bounds if point.result else (), run.line(run.traffic(point.traffic))
            shares = [100 * bounds.lower.pps / line if bounds.lower else 0.0 for bounds in bounds_of_ratios]
            if shares:
                plot.bar(place, [Part(shares[0], "NDR: no frame lost", AREAS[0])])
                plot.range(place, Bounds(*shares), SIGNS[1], "PDR: half a per cent lost at most", shares[-1])
            plot.label(place, max(shares, default=0.0), f"{shares[0]:.3g} %" if shares else "no result")
        return plot.svg()


SCALING = Scaling()


def flow_words(number: int) -> str:
    """Return *number* of flows as a word of traffic."""
    return "1-flow" if number == 1 else f"{number}-flows"


def _cells(
    name: str, bounds: CapacityBounds | None, otherwise: str, line_pps: float, link_bps: float
) -> Mapping[Column, Cell]:
    """Return *bounds*, and the lower one in each unit; *otherwise*: the word for what was not found."""
    is_found = bounds is not None and (bounds.lower or bounds.upper)
    share = bounds.lower.pps / line_pps if bounds and bounds.lower else None
    figures = str(bounds) if is_found else otherwise, figure(share, ".4g", link_bps / 1e9), figure(share, ".3g", 100)
    cells = (Cell(words, "" if bounds and bounds.finished else "unsure") for words in figures)
    return dict(zip((Column(f"{name}{unit}") for unit in ("", " Gbit/s", " % line")), cells, strict=True))
