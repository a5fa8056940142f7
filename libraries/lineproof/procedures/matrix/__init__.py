"""Matrix: NDR and PDR of all frames with all flows in all directions, what somebody does first with a new router."""

from __future__ import annotations

from itertools import product

from ..procedure import Procedure, ProcedureRun
from ..scaling import Scaling, ScalingResult, scale


class Matrix(Scaling):
    """A search of each traffic, as one table."""

    keyword, name, tags = "Measure Matrix", "matrix", Procedure.tags

    def measure(  # type: ignore[override]  # each procedure has arguments of its own
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


MATRIX = Matrix()
