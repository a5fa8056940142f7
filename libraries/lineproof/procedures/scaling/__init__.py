"""Scaling: a search for each of several values, as the number of flows, the frame size, or the traffic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from ...core.bounds import Bounds
from ...errors import ConfigError
from ...evidence.chart import AREAS, SIGNS, Chart, Part, columns, linear
from ..procedure import Procedure, ProcedureRun
from ..rfc2544 import FRAME_SIZES
from ..search import SearchResult, bounds_of, search_each

FLOW_COUNTS = (1, 2, 8, 64, 256, 1_000, 10_000)
"""Numbers of flows to try: one queue alone, all queues, and more flows than caches hold."""


def scale_over(
    run: ProcedureRun,
    axis: str,
    traffic: str,
    *values: int,
    set_up: str = "",
    relative_width: float = 0.005,
) -> tuple[SearchResult, ...]:
    """A search for each of *values* of *axis*: ``flows``, ``frame sizes`` (bytes with FCS), or what *set_up* sets.

    *set_up*: a keyword that is called with the value. *traffic* names all else. *relative_width*: how close the
    bounds of each come (0..1). *deadline*: time of traffic of all together. Examples:
    | Scale Over    flows    64b unidirectional    1    8    64
    | Scale Over    frame sizes    unidirectional    64    512    1518
    | Scale Over    receive queues    64b unidirectional    1    2    3    set_up=Set Receive Queues
    """
    run.name, run.words = f"scaling over {axis}", traffic
    if set_up:
        return search_each(run, axis, values, lambda value: traffic, relative_width, run.call(set_up))
    kinds: dict[str, tuple[str, Sequence[int], Callable[[int], str]]] = {
        "flows": ("flows", FLOW_COUNTS, lambda number: f"{traffic} {flow_words(number)}"),
        "frame sizes": ("frame size [bytes with FCS]", FRAME_SIZES, lambda size: f"{size}b {traffic}"),
    }
    if axis not in kinds:
        raise ConfigError(f"nothing sets '{axis}'; expected {' or '.join(kinds)}, or a keyword as 'set_up'")
    named, usual, words = kinds[axis]
    return search_each(run, named, values or usual, words, relative_width)


def measure_matrix(
    run: ProcedureRun,
    frames: str = "64b imix 1518b",
    flows: str = "1-flow 10k-flows",
    directions: str = "unidirectional bidirectional",
    more: str = "",
    relative_width: float = 0.02,
) -> tuple[SearchResult, ...]:
    """Without any threshold: NDR and PDR of all *frames* with all *flows* in all *directions*, as one matrix.

    Each is words of traffic with spaces between them; *more*: words that all have, as ``ipv6``. *relative_width*:
    how close the bounds of each come (0..1). *deadline*: time of traffic, which all searches share alike. Example:
    | Measure Matrix    64b imix    1-flow 1000-flows    unidirectional    deadline=5 min
    """
    lists = frames.split(), flows.split(), directions.split()
    values = [" ".join((size, flow, *more.split(), way)) for size, flow, way in product(*lists)]
    run.words = " ".join(filter(None, (frames, flows, directions, more)))
    return search_each(run, "traffic", values, str, relative_width)


def _picture(run: ProcedureRun, results: Sequence[SearchResult]) -> str:
    """Return for each value a bar up to its NDR, and a range up to its PDR, in per cent of line rate."""
    across = columns(results[0].axis, [result.value for result in results])
    plot = Chart(run.title, across, linear("% of line rate, each port", 105), run.session.simulated, is_level=True)
    for place, result in enumerate(results):
        line = run.line(run.traffic(result.sentence))
        shares = [100 * bounds.lower.pps / line if bounds.lower else 0.0 for bounds in result.bounds]
        if shares:
            plot.bar(place, [Part(shares[0], "NDR: no frame lost", AREAS[0])])
            plot.range(place, Bounds(*shares), SIGNS[1], "PDR: half a per cent lost at most", shares[-1])
        plot.label(place, max(shares, default=0.0), f"{shares[0]:.3g} %" if shares else "no result")
    return plot.svg()


def flow_words(number: int) -> str:
    """Return *number* of flows as a word of traffic."""
    return "1-flow" if number == 1 else f"{number}-flows"


SCALING = Procedure("Scale Over", "scaling", scale_over, ("characterise", "scaling"), parts=bounds_of, picture=_picture)

MATRIX = Procedure(keyword="Measure Matrix", name="matrix", measure=measure_matrix, parts=bounds_of, picture=_picture)
