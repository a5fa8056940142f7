"""Scaling: a search for each of several values, as the number of flows, the frame size, or the traffic."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from ...core.bounds import Bounds
from ...evidence.chart import AREAS, SIGNS, Chart, Part, columns, linear
from ..procedure import Procedure, ProcedureRun
from ..search import SearchResult, bounds_of, search_each


def scale_over(
    run: ProcedureRun,
    axis: str,
    traffic: str,
    *values: str,
    set_up: str = "",
    relative_width: float = 0.005,
) -> tuple[SearchResult, ...]:
    """Without any threshold: NDR and PDR with each of *values*, words that *traffic* lacks; *axis* names them.

    With ``|`` between words a value is each of them, with all others of its value, as a matrix. *set_up*: a keyword of
    the suite that is called with each value; all have the same *traffic* then. *relative_width*: how close the bounds
    of each come (0..1). *deadline*: time of traffic, which all searches share alike. Examples:
    | Scale Over    flows    64b unidirectional    1-flow    8-flows    64-flows
    | Scale Over    traffic    ${EMPTY}    64b|imix 1-flow|1000-flows unidirectional    deadline=2 min
    | Scale Over    receive queues    64b unidirectional    1    2    3    set_up=Set Receive Queues
    """
    run.name, run.words = f"scaling over {axis}", traffic
    if set_up:
        return search_each(run, axis, values, lambda value: traffic, relative_width, run.call(set_up))
    run.words = traffic or " ".join(values)
    each = [" ".join(words) for value in values for words in product(*(word.split("|") for word in value.split()))]
    return search_each(run, axis, each, lambda value: f"{value} {traffic}".strip(), relative_width)


def _picture(run: ProcedureRun, results: Sequence[SearchResult]) -> str:
    """Return for each value a bar up to its NDR, and a range up to its PDR, in per cent of line rate.

    Values of several words have no room below their bars.
    """
    if any(" " in result.value for result in results):
        return ""
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


SCALING = Procedure("Scale Over", "scaling", scale_over, ("characterise", "scaling"), parts=bounds_of, picture=_picture)
