"""A program's trial as an outcome: its report beside the counters of its ports."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ...core.trial import DirectionCount, Fault, Load, Outcome, Problem
from ..base import Direction
from .port import Span

Counts = Mapping[int, Mapping[str, int]]
"""By port, its counters."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A program's report of its sending: ``frames``, and the ``least`` and ``most`` seconds that it took.

    ``others``: frames that it may have sent besides, as those of a connection that controls it; then ``size`` is the
    bytes with FCS of its own. ``span``: when, by the interface; None: not asked, or nothing was sent. ``cpu``: seconds
    of CPU time that it took on so many ``cores``.
    """

    frames: int
    least: float
    most: float
    others: int = 0
    size: int = 0
    span: Span | None = None
    cpu: float | None = None
    cores: int = 1


def outcome_of(
    load: Load,
    duration: float,
    frames: Mapping[Direction, int],
    sent: Mapping[Direction, Sent],
    before: Counts,
    ended: Counts,
    after: Counts,
) -> Outcome:
    """Return the outcome of a trial that asked for so many *frames*, by what was *sent* and the counters.

    They are those *before* it, when all programs had *ended*, and *after* the last frames had arrived.
    """
    problems: list[Problem] = []
    rows: list[DirectionCount] = []
    controlling: dict[Direction, int] = {}

    def difference(port: int, name: str, ports: tuple[tuple[int, int], ...] = ()) -> int:
        counted = after[port][name] - before[port][name]
        if counted < 0:
            words = f"{name} of generator port {port} fell by {-counted}"
            problems.append(Problem(Fault.COUNTERS, words, directions=ports))
        return max(0, counted)

    for direction, report in sent.items():
        tx, rx = direction.tx_port, direction.rx_port
        ports = ((tx, rx),)
        counted, received = difference(tx, "opackets", ports), difference(rx, "ipackets", ports)
        surplus = counted - report.frames
        if not 0 <= surplus <= report.others:
            words = f"port {tx} sent {counted} frames by its counters, {report.frames} by its program"
            problems.append(Problem(Fault.MISCOUNTED, words, directions=ports))
        if failed := difference(tx, "oerrors", ports):
            problems.append(Problem(Fault.UNSENT, f"port {tx} failed to send {failed} frames", failed, ports))
        # frames that control the program are sent and received beside those of the trial: their loss counts, too
        others = controlling[direction] = min(max(0, surplus), report.others)
        offered, forwarded = counted - others, max(0, received - others)
        if (missed := difference(rx, "ierrors", ports)) and forwarded < offered:
            words = f"port {rx} received {missed} frames with errors, or missed them"
            problems.append(Problem(Fault.GENERATOR, words, missed, ports))
        mean = report.size or difference(tx, "obytes", ports) / max(1, counted)
        mean_back = report.size or difference(rx, "ibytes", ports) / max(1, received)
        sizes = round(mean * offered), round(mean_back * forwarded)
        rows.append(DirectionCount(tx, rx, frames[direction], offered, forwarded, *sizes))
    spare = max((report.others for report in sent.values()), default=0)
    for port in after.keys() - {direction.tx_port for direction in sent}:
        if (stray := difference(port, "opackets")) > spare:
            words = f"port {port} sent {stray} frames that nobody asked it for; does another program use it?"
            # they may be lost in the place of others, and come back in the place of others
            problems += [Problem(fault, words, stray) for fault in (Fault.OVER_OFFERED, Fault.FOREIGN)]
    least, most = _together(sent.values())
    counters = {
        "before": _evidence(before, {}),
        "ended": _evidence(ended, controlling),
        "after": _evidence(after, controlling),
    }
    readings = {"elapsed_uncertainty": (most - least) / 2}
    elapsed = (least + most) / 2
    return Outcome(load, duration, elapsed, 0.0, tuple(rows), tuple(problems), readings, counters=counters)


def _together(sent: Collection[Sent]) -> tuple[float, float]:
    """Return the least and the most seconds from the first frame of any direction to the last of any.

    A router has less to do while one of them does not send.
    """
    least, most = max(row.least for row in sent), max(row.most for row in sent)
    spans = [row.span for row in sent if row.span is not None]
    if len(spans) > 1:
        least = max(least, max(span.ends for span in spans) - min(span.began for span in spans))
        most = max(most, max(span.ended for span in spans) - min(span.begins for span in spans))
    return least, most


def _evidence(counts: Counts, others: Mapping[Direction, int]) -> dict[str, int]:
    """*counts* as keys like ``0.opackets``, without the frames *others*, which stand beside them.

    Evidence is checked against them: what is neither offered nor forwarded is the counter ``others`` of the sender.
    """
    evidence = {f"{port}.{name}": count for port, row in counts.items() for name, count in row.items()}
    for direction, frames in others.items():
        if frames:
            evidence[f"{direction.tx_port}.opackets"] -= frames
            evidence[f"{direction.rx_port}.ipackets"] -= frames
            evidence[f"{direction.tx_port}.others"] = frames
    return evidence
