"""Latency at 0, 10, 50 and 90 % of the router's own throughput, as FD.io CSIT prints it.

Probe frames are sent alone (0 %), then as a part of the load, at shares of the PDR that a search of the same run found:
one trial of each load. A figure has two ends, as histogram and number of the probe frames leave it open.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from ...core.bounds import UNKNOWN, Bounds
from ...core.latency import Statistic
from ...core.phrases import between
from ...core.trial import Load, Trial
from ...core.verdict import Deviation
from ...errors import SentenceError
from ...evidence.chart import SIGNS, Chart, columns, linear
from ...evidence.document import Column, Note, Table
from ...generators.base import Method, Probe
from ...session.traffic import PROBE_PPS
from ..procedure import EACH, Procedure, ProcedureRun, figure
from ..search import SEARCH, SearchResult
from ..trials import ProcedureResult

SHARES = 0.0, 0.1, 0.5, 0.9
"""CSIT's loads (none, low, middle, high) as ratios of the PDR."""

STATISTICS = tuple(map(Statistic, ("min", "p50", "p90", "p99", "p99.9", "max")))

FEWER_PROBES = Deviation(
    "FD.io CSIT (packet latency)",
    "9000 probe frames/s in each direction, beside the load",
    f"{PROBE_PPS:g} frames/s or a tenth of the load, as a part of it",
)


@dataclass(frozen=True, slots=True)
class LatencyPoint:
    """The latency of one direction at a load, which is this ``share`` of the throughput.

    ``figures``: each of STATISTICS in µs; ``lost``: how many of the probe frames ``sent`` did not come.
    """

    share: float
    load: Load
    direction: str
    figures: tuple[Bounds, ...]
    sent: int
    lost: int


@dataclass(frozen=True, slots=True)
class LatencyAtLoads(ProcedureResult):
    """The points by load and direction. The loads are shares of ``throughput`` (of each port), which is ``ratio``."""

    ratio: str
    throughput: Load
    points: tuple[LatencyPoint, ...]


class LatencyUnderLoad(Procedure):
    """Probe frames alone, and among loads that the router is known to carry."""

    keyword, name, needs = "Latency Under Load Of", "latency under load", Method.LATENCY

    def measure(
        self,
        run: ProcedureRun,
        traffic: str,
        found: SearchResult,
        ratio: Literal["PDR", "NDR"] = "PDR",
        duration: timedelta = timedelta(seconds=10),
    ) -> LatencyAtLoads:
        """Latency of probe frames alone, and at 10, 50 and 90 % of what `Search Throughput Of` found for *traffic*.

        *ratio*: ``PDR``, as FD.io CSIT does, or ``NDR``. *duration* of each trial: less than 10 s are less than the
        10 000 probe frames that make p99.9 close. Example:
        | ${found} =    Search Throughput Of    64b 1-flow unidirectional
        | Latency Under Load Of    64b 1-flow unidirectional    ${found}
        """
        known = run.traffic_of(found, SearchResult, SEARCH.keyword, traffic)
        throughput = found[ratio].lower
        if throughput is None:
            raise SentenceError(f"latency is measured at shares of a {ratio}, and none was found: {found[ratio]}")
        points: list[LatencyPoint] = []
        with run.series(known) as trials:
            for share in SHARES:
                probes = min(PROBE_PPS, 0.1 * throughput.pps * (share or 1))
                # TRex takes no load of nothing beside them
                load = Load(share * throughput.pps or probes + 1)
                run.put(known, warm_up=False, probe=Probe(probes))
                trial = trials.run(
                    load, duration.total_seconds(), lambda trial: _is_timed(trial) and trials.shows_loss(trial)
                )
                points += _points(share, trial)
        return LatencyAtLoads(ratio, throughput, tuple(points), **trials.as_fields([FEWER_PROBES]))

    def parts(self, run: ProcedureRun, result: LatencyAtLoads) -> Sequence[Note | Table]:
        """Return a row for each load and direction."""
        rows = [
            {
                Column("load", f"% of {result.ratio}"): f"{100 * point.share:g}",
                Column("load", EACH): figure(point.load),
                Column("direction", left=True): point.direction,
                **{
                    Column(statistic.name, "µs"): between(bounds, _time)
                    for statistic, bounds in zip(STATISTICS, point.figures, strict=True)
                },
                Column("probes"): f"{point.sent:,}",
                Column("lost"): f"{point.lost:,}",
            }
            for point in result.points
        ]
        how = (
            f"{result.ratio} of this run: {figure(result.throughput)} frames/s into each port; 0 %: probe frames"
            " alone, with one other a second. A lost probe frame is later than any other. Times are with what the"
            " generator itself takes."
        )
        doubts = dict.fromkeys(str(problem) for trial in result.trials for problem in trial.problems)
        return [*map(Note, filter(None, [result.ended])), Table.of(rows), Note(how), *map(Note, doubts)]

    def picture(self, run: ProcedureRun, result: LatencyAtLoads) -> str:
        """Return for each load and direction a range from the least to p99.9, marked at the median."""
        shares = list(dict.fromkeys(point.share for point in result.points))
        ways = list(dict.fromkeys(point.direction for point in result.points))
        ends = [figure.high for point in result.points for figure in point.figures[:-1] if math.isfinite(figure.high)]
        across = columns(f"load [% of {result.ratio}]", [f"{100 * share:g}" for share in shares])
        plot = Chart(run.title, across, linear("latency [µs]", 1.1 * max(ends, default=1.0)), run.session.simulated)
        for point in result.points:
            number, (least, median, *_, late, _) = ways.index(point.direction), point.figures
            place = plot.beside(shares.index(point.share), number, len(ways))
            name = f"{point.direction}: min to p99.9, median"
            plot.range(place, Bounds(least.low, late.high), SIGNS[number % len(SIGNS)], name, median.high)
        return plot.svg()


LATENCY_UNDER_LOAD = LatencyUnderLoad()


def _is_timed(trial: Trial) -> bool:
    """Return whether *trial* shows the latency of each direction."""
    known = [count.unplaced >= 0 for count in trial.outcome.latency if count.received >= 100]
    return sum(known) == len(trial.outcome.directions)


def _time(microseconds: float) -> str:
    return "lost" if math.isinf(microseconds) else f"{microseconds:,.6g}"


def _points(share: float, trial: Trial) -> Iterator[LatencyPoint]:
    """Yield the points of the directions of *trial*."""
    for count in trial.outcome.latency:
        spread = count.spread()
        figures = tuple(spread.bounds(statistic) if spread else UNKNOWN for statistic in STATISTICS)
        direction = f"{count.tx_port} → {count.rx_port}"
        yield LatencyPoint(share, trial.outcome.load, direction, figures, count.sent, count.lost)
