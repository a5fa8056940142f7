"""Matrix: NDR and PDR of all frames with all flows in all directions, what somebody does first with a new router."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product

from ...core.bounds import Bounds
from ...core.phrases import percent
from ...evidence.chart import AREAS, SIGNS, Chart, Part, columns, linear
from ...evidence.document import Cell, Column, Note, Table
from ..procedure import Procedure, ProcedureRun, figure
from ..scaling import ScalingResult, scale
from ..search import LOSS_RATIOS, CapacityBounds


class Matrix(Procedure):
    """A search of each traffic, as one table."""

    keyword, name, on_console = "Measure Matrix", "matrix", True

    def measure(
        self,
        run: ProcedureRun,
        frames: str = "64b imix 1518b",
        flows: str = "1-flow 10k-flows",
        directions: str = "unidirectional bidirectional",
        more: str = "",
        relative_width: float = 0.02,
    ) -> ScalingResult:
        """Without any threshold: NDR and PDR of all *frames* with all *flows* in all *directions*, as one matrix.

        Each is words of traffic with spaces between them; *more*: words that all have, as ``ipv6``. *relative_width*:
        how close the bounds of each come (0..1). *deadline*: time of traffic, which all searches share alike. Example:
        | Measure Matrix    64b imix    1-flow 1000-flows    unidirectional    deadline=5 min
        """
        lists = frames.split(), flows.split(), directions.split()
        values = [" ".join((size, flow, *more.split(), way)) for size, flow, way in product(*lists)]
        run.words = " ".join(filter(None, (frames, flows, directions, more)))
        return scale(run, "traffic", values, str, relative_width)

    def parts(self, run: ProcedureRun, result: ScalingResult) -> Sequence[Note | Table]:
        """Return a row for each traffic with the lower bounds of all loss ratios, and why others are not there."""
        rows, reasons = [], defaultdict[str, list[str]](list)
        for point, ending in zip(result.points, result.endings, strict=True):
            traffic, why = run.traffic(f"{point.value}"), ending.removeprefix("inconclusive: ")
            otherwise = "unfinished" if why == ending else "INCONCLUSIVE"
            row: dict[Column, Cell | str] = {Column("traffic", left=True): f"{point.value}"}
            for name in LOSS_RATIOS:
                bounds = point.result[name] if point.result else None
                row |= _cells(name, bounds, otherwise, run.line(traffic), run.link_bps(traffic))
            rows.append(row)
            reasons[f"{otherwise}: {why}"] += [f"{point.value}"] if why else []
        ratios = ", ".join(f"{name}: {percent(ratio)} lost at most" for name, ratio in LOSS_RATIOS.items())
        how = f"Lower bounds of each port, Gbit/s on layer 1; {ratios}; ≥: no more was offered; …: unfinished."
        notes = [Note(f"{', '.join(traffic)}: {why}") for why, traffic in reasons.items() if traffic]
        return [Table.of(rows), Note(how), *notes]

    def picture(self, run: ProcedureRun, result: ScalingResult) -> str:
        """Return for each traffic a bar up to its NDR, and a range up to its PDR, in per cent of line rate."""
        names = [f"{point.value}" for point in result.points]
        up = linear("% of line rate, each port", 105)
        plot = Chart(run.title, columns("", names), up, run.session.simulated, is_level=True)
        for place, point in enumerate(result.points):
            bounds_of_ratios = point.result.bounds if point.result else ()
            loads = [bounds.lower.pps if bounds.lower else 0.0 for bounds in bounds_of_ratios]
            shares = [100 * pps / run.line(run.traffic(names[place])) for pps in loads]
            if shares:
                plot.bar(place, [Part(shares[0], "NDR: no frame lost", AREAS[0])])
                plot.range(place, Bounds(*shares), SIGNS[1], "PDR: half a per cent lost at most", shares[-1])
            plot.label(place, max(shares, default=0.0), f"{shares[0]:.3g} %" if shares else "no result")
        return plot.svg()


MATRIX = Matrix()


def _cells(
    name: str, bounds: CapacityBounds | None, otherwise: str, line_pps: float, link_bps: float
) -> Mapping[Column, Cell]:
    """Return the lower one of *bounds* in each unit; *otherwise*: the word for one that was not found."""
    finished, figures = bounds is not None and bounds.finished, (otherwise, "", "")
    if bounds and (lower := bounds.lower):
        share = lower.pps / line_pps
        mark = "" if finished and bounds.upper else "≥ "
        figures = (
            f"{mark}{figure(lower, '.4g', 1e-6)}{'' if finished else ' …'}",
            f"{share * link_bps / 1e9:.4g}",
            f"{100 * share:.3g}",
        )
    elif bounds and finished:
        figures = f"< {figure(bounds.upper, '.4g', 1e-6)}", "", ""
    units = (Column(f"{name} {unit}") for unit in ("Mpps", "Gbit/s", "% line"))
    return {column: Cell(figure, "" if finished else "unsure") for column, figure in zip(units, figures, strict=True)}
