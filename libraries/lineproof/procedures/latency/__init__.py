"""Latency at 0, 10, 50 and 90 % of the router's own throughput, as FD.io CSIT prints it.

Probe frames are sent alone (0 %), then as a part of the load, at shares of the PDR that a search of the same run found:
one trial of each load. A figure has two ends, as histogram and number of the probe frames leave it open.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, Literal

from ...core.bounds import UNKNOWN, Bounds
from ...core.latency import Statistic
from ...core.phrases import between
from ...core.trial import Load, Trial
from ...core.verdict import Deviation
from ...documents.chart import SIGNS, Chart, columns, linear
from ...documents.document import Column, Note, Table
from ...errors import SentenceError
from ...generators.base import Method, Probe
from ...session.traffic import PROBE_PPS
from ..procedure import EACH, Procedure, ProcedureRun, figure, rows_of
from ..search import SEARCH, SearchResult, carried
from ..trials import ProcedureResult

STATISTICS = "min", "p50", "p90", "p99", "p99.9", "max"


def latency_under_load(
    run: ProcedureRun,
    traffic: str,
    found: SearchResult,
    ratio: Literal["PDR", "NDR"] = "PDR",
    duration: timedelta = timedelta(seconds=10),
) -> ProcedureResult:
    """Latency of probe frames alone, and at 10, 50 and 90 % of what `Search Throughput Of` found for *traffic*.

    *ratio*: ``PDR``, as FD.io CSIT does, or ``NDR``. *duration* of each trial: less than 10 s are less than the
    10 000 probe frames that make p99.9 close. Example:
    | ${throughput} =    Search Throughput Of    64b 1-flow unidirectional
    | Latency Under Load Of    64b 1-flow unidirectional    ${throughput}
    """
    known, bounds = carried(run, found, SEARCH.keyword, traffic, ratio)
    if bounds.lower is None:
        raise SentenceError(f"latency is measured at shares of a {ratio}, and none was found: {bounds}")
    throughput, measured = bounds.lower.pps, list[tuple[float, Trial]]()
    with run.series(known) as trials:
        for share in (0.0, 0.1, 0.5, 0.9):  # CSIT's loads: none, low, middle, high
            probes = min(PROBE_PPS, 0.1 * throughput * (share or 1))
            # TRex takes no load of nothing beside them
            load = Load(share * throughput or probes + 1)
            run.put(known, warm_up=False, probe=Probe(probes))
            trial = trials.run(
                load, duration.total_seconds(), lambda trial: _is_timed(trial) and trials.shows_loss(trial)
            )
            measured.append((share, trial))
    points = [point for share, trial in measured for point in _points(share, trial)]
    rows = [
        {
            Column("load", f"% of {ratio}"): f"{100 * point['share']:g}",
            Column("load", EACH): figure(point["load"]),
            Column("direction", left=True): point["direction"],
            **{Column(name, "µs"): between(point["latency_us"][name], _time) for name in STATISTICS},
            Column("probes"): f"{point['sent']:,}",
            Column("lost"): f"{point['lost']:,}",
        }
        for point in points
    ]
    fewer_probes = Deviation(
        "FD.io CSIT (packet latency)",
        "9000 probe frames/s in each direction, beside the load",
        f"{PROBE_PPS:g} frames/s or a tenth of the load, as a part of it",
    )
    figures = {"ratio": ratio, "throughput": bounds.lower, "points": points}
    return ProcedureResult(figures=figures, rows=rows, **trials.as_fields([fewer_probes]))


def _parts(run: ProcedureRun, results: Sequence[ProcedureResult]) -> Sequence[Note | Table]:
    """Return a row for each load and direction, and what may be wrong with them."""
    (result,) = results
    how = (
        f"{result.figures['ratio']} of this run: {figure(result.figures['throughput'])} frames/s into each port;"
        " 0 %: probe frames alone, with one other a second. A lost probe frame is later than any other. Times are"
        " with what the generator itself takes."
    )
    doubts = dict.fromkeys(str(problem) for trial in result.trials for problem in trial.problems)
    return [*rows_of(run, results), Note(how), *map(Note, doubts)]


def _picture(run: ProcedureRun, results: Sequence[ProcedureResult]) -> str:
    """Return for each load and direction a range from the least to p99.9, marked at the median."""
    figures = results[0].figures
    points = [(point["share"], point["direction"], *point["latency_us"].values()) for point in figures["points"]]
    shares, ways = (list(dict.fromkeys(point[place] for point in points)) for place in (0, 1))
    ends = [bounds.high for point in points for bounds in point[2:-1] if math.isfinite(bounds.high)]
    across = columns(f"load [% of {figures['ratio']}]", [f"{100 * share:g}" for share in shares])
    plot = Chart(run.title, across, linear("latency [µs]", 1.1 * max(ends, default=1.0)), run.session.simulated)
    for share, way, least, median, *_, late, _ in points:
        number = ways.index(way)
        place, sign = plot.beside(shares.index(share), number, len(ways)), SIGNS[number % len(SIGNS)]
        plot.range(place, Bounds(least.low, late.high), sign, f"{way}: min to p99.9, median", median.high)
    return plot.svg()


LATENCY_UNDER_LOAD = Procedure(
    "Latency Under Load Of",
    "latency under load",
    latency_under_load,
    needs=Method.LATENCY,
    parts=_parts,
    picture=_picture,
)


def _is_timed(trial: Trial) -> bool:
    """Return whether *trial* shows the latency of each direction."""
    known = [count.unplaced >= 0 for count in trial.outcome.latency if count.received >= 100]
    return sum(known) == len(trial.outcome.directions)


def _time(microseconds: float) -> str:
    return "lost" if math.isinf(microseconds) else f"{microseconds:,.6g}"


def _points(share: float, trial: Trial) -> Iterator[dict[str, Any]]:
    """Yield the latency of each direction of *trial*, whose load is a *share* of the throughput."""
    for count in trial.outcome.latency:
        spread = count.spread()
        yield {
            "share": share,
            "load": trial.outcome.load,
            "direction": f"{count.tx_port} → {count.rx_port}",
            "latency_us": {name: spread.bounds(Statistic(name)) if spread else UNKNOWN for name in STATISTICS},
            "sent": count.sent,
            "lost": count.lost,
        }
