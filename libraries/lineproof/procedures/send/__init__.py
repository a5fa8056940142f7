"""Traffic alone: one trial, whose counts are the result; nothing is judged.

Counts that are not known, because counters began anew or frames came back changed, for example, are no result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from ...core.bounds import Bounds
from ...core.doubts import OF_FRAMES
from ...core.phrases import between
from ...core.registry import quantities
from ...core.sentence import measured
from ...core.trial import DURING_READING, DirectionCount, Fault, Trial
from ...core.units import Unit
from ...documents.document import Column, Note, Table
from ...units import si
from ..procedure import NONE, Procedure, ProcedureRun, rows_of
from ..trials import Cells, ProcedureResult


@dataclass(frozen=True, slots=True, kw_only=True)
class SendingResult(ProcedureResult):
    """The counts of its one trial in frames, those of each of ``directions`` and of all together.

    ``counters``: by how much the generator's own rose, with keys like ``0.opackets``; empty: they were not read.
    ``during``: the keyword that ran meanwhile. ``problems``: what the testbed did wrong, in words, which changes no
    count.
    """

    directions: tuple[DirectionCount, ...]
    offered: int
    forwarded: int
    lost: int
    counters: Mapping[str, int]
    during: str
    problems: tuple[str, ...]


def send_traffic(
    run: ProcedureRun,
    traffic: str,
    load: str,
    duration: timedelta = timedelta(seconds=1),
    during: str = "",
    *arguments: object,
) -> SendingResult:
    """Send *traffic* at *load* into each port for *duration*, and return the generator's counts. Nothing is judged.

    *during*: a keyword that is called with *arguments* while frames flow; where it fails, traffic ends. The result has
    ``offered``, ``forwarded``, ``lost``, ``directions`` (the same of each, with ``tx_port`` and ``rx_port``),
    ``problems``, and ``counters``, by how much the ports' own rose. Examples:
    | ${sent} =    Send Traffic    64b 1-flow unidirectional    1 Mpps    10 s
    | Should Be Equal    ${sent.lost}    ${0}
    | Log    ${sent.counters}[0.opackets] frames left port 0
    | Send Traffic    imix bidirectional    95% line rate each way    5 s    Run On Router    vppctl show runtime
    """
    seconds, session, known = duration.total_seconds(), run.session, run.traffic(traffic)
    asked = measured(known, quantities()["forwards"], Unit.PPS, load)
    session.plan.check_measurable(asked)
    call = run.call(during) if during else None
    run.put(known, warm_up=False)
    measure = partial(session.traffic.measure, during=(lambda wait: call(*arguments)) if call else None)
    with run.series(known) as trials:
        # of few frames those of other origin are a large share, and they are named
        is_counted = partial(trials.shows_loss, but=[Fault.FOREIGN])
        trials.run(session.plan.load_for(asked), seconds, is_counted, measure, OF_FRAMES, repeats=0)
    trial = trials.done[0] if trials.done else None
    directions = trial.outcome.directions if trial else ()
    counters = trial.outcome.counters if trial else {}
    is_called = trial is None or not during or DURING_READING in trial.outcome.readings
    not_called = [] if is_called else [f"'{during}' was not called: no frame was sent that it could see"]
    before, after = (counters.get(moment, {}) for moment in ("before", "after"))
    is_known = trial is not None and not (trials.ended and trial.is_set_aside)
    rows = [_cells(trial, row, is_known) for trial in trials.done for row in trial.outcome.directions]
    return SendingResult(
        directions=directions,
        offered=sum(row.offered for row in directions),
        forwarded=sum(row.forwarded for row in directions),
        lost=sum(row.lost for row in directions),
        counters={name: count - before.get(name, 0) for name, count in after.items()},
        during=" ".join(map(str, filter(None, (during, *arguments)))),
        problems=(*map(str, trial.problems), *not_called) if trial else (),
        rows=rows,
        **trials.as_fields(),
    )


def _cells(trial: Trial, row: DirectionCount, is_known: bool) -> Cells:
    """Return the counts of a direction, each between the ends that the testbed leaves open."""
    ends = Bounds(row.offered, row.offered), trial.forwarded_frames(row), trial.lost_frames(row)
    counts = [between(bounds, "{:,.0f}".format) if is_known else NONE for bounds in ends]
    names = (Column(name, "frames") for name in ("offered", "forwarded", "lost"))
    return {
        Column("direction", left=True): f"{row.tx_port} → {row.rx_port}",
        Column("intended", "frames"): f"{row.intended:,}",
        **dict(zip(names, counts, strict=True)),
    }


def _parts(run: ProcedureRun, results: Sequence[SendingResult]) -> Sequence[Note | Table]:
    """Return what was sent, and the counts of each direction."""
    (result,) = results
    sent = (
        f"{trial.outcome.duration:g} s at {si(trial.outcome.load.pps, 'pps')}{result.scope}" for trial in result.trials
    )
    untold = [problem for problem in result.problems if problem not in result.ended]
    ran = [f"`{result.during}` ran meanwhile"] if result.during else []
    return [*map(Note, [*sent, *ran]), *rows_of(run, results), *map(Note, untold)]


SENDING = Procedure(keyword="Send Traffic", name="traffic", measure=send_traffic, tags=("traffic",), parts=_parts)
