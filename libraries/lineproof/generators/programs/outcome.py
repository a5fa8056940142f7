"""What programs report of their sending, and the counts of their interfaces, as the outcome of a trial."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from ...core.trial import DirectionCount, Fault, Load, Outcome, Problem
from ..base import Direction
from .counters import Span


@dataclass(frozen=True, slots=True)
class Sent:
    """What a program reports of its sending: ``frames``, and the ``least`` and ``most`` seconds that it took.

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


def _together(sent: Collection[Sent]) -> tuple[float, float]:
    """Return the least and the most seconds from the first frame of any direction to the last of any.

    A router has less to do while one of them does not send.
    """
    least, most = max(row.least for row in sent), max(row.most for row in sent)
    spans = [row.span for row in sent if row.span is not None]
    if len(spans) < 2:
        return least, most
    least = max(least, max(span.last[0] for span in spans) - min(span.first[1] for span in spans))
    most = max(most, max(span.last[1] for span in spans) - min(span.first[0] for span in spans))
    return least, most


def flat(counts: Mapping[int, Mapping[str, int]]) -> dict[str, int]:
    """As keys like ``0.opackets``."""
    return {f"{port}.{name}": count for port, row in counts.items() for name, count in row.items()}


def others_of(
    direction: Direction,
    report: Sent,
    before: Mapping[int, Mapping[str, int]],
    after: Mapping[int, Mapping[str, int]],
) -> int:
    """Frames that the sending port counted beside those of the program, as far as it may send such."""
    counted = after[direction.tx_port]["opackets"] - before[direction.tx_port]["opackets"]
    return min(max(0, counted - report.frames), report.others)


def without(
    counts: Mapping[int, Mapping[str, int]], others: Mapping[Direction, int]
) -> Mapping[int, Mapping[str, int]]:
    """*counts* without the frames *others* of each direction, which are the counter ``others`` of its sending port."""
    found = {port: dict(row) for port, row in counts.items()}
    for direction, frames in others.items():
        if frames:
            found[direction.tx_port]["opackets"] -= frames
            found[direction.rx_port]["ipackets"] -= frames
            found[direction.tx_port]["others"] = frames
    return found


def outcome_of(
    load: Load,
    duration: float,
    frames: Mapping[Direction, int],
    sent: Mapping[Direction, Sent],
    before: Mapping[int, Mapping[str, int]],
    after: Mapping[int, Mapping[str, int]],
) -> Outcome:
    """Of the counters *before* and *after* a trial that asked for so many *frames*, and what was *sent*."""
    problems: list[Problem] = []

    def difference(port: int, name: str, ports: tuple[tuple[int, int], ...]) -> int:
        found = after[port][name] - before[port][name]
        if found < 0:
            words = f"{name} of generator port {port} fell by {-found}"
            problems.append(Problem(Fault.COUNTERS, words, directions=ports))
        return max(0, found)

    rows = []
    for direction, report in sent.items():
        ports = ((direction.tx_port, direction.rx_port),)
        counted = difference(direction.tx_port, "opackets", ports)
        received = difference(direction.rx_port, "ipackets", ports)
        others = counted - report.frames
        if not 0 <= others <= report.others:
            words = f"port {direction.tx_port} sent {counted} frames by its counters, {report.frames} by its program"
            problems.append(Problem(Fault.MISCOUNTED, words, directions=ports))
        if failed := difference(direction.tx_port, "oerrors", ports):
            words = f"port {direction.tx_port} failed to send {failed} frames"
            problems.append(Problem(Fault.UNSENT, words, failed, ports))
        missed = difference(direction.rx_port, "ierrors", ports)
        # frames that control the program are sent and received beside those of the trial: their loss counts, too
        others = others_of(direction, report, before, after)
        offered, forwarded = counted - others, max(0, received - others)
        if missed and forwarded < offered:
            words = f"port {direction.rx_port} received {missed} frames with errors, or missed them"
            problems.append(Problem(Fault.GENERATOR, words, missed, ports))
        mean = report.size or difference(direction.tx_port, "obytes", ports) / max(1, counted)
        mean_back = report.size or difference(direction.rx_port, "ibytes", ports) / max(1, received)
        row = DirectionCount(direction.tx_port, direction.rx_port, frames[direction], offered, forwarded)
        rows.append(replace(row, offered_bytes=round(mean * offered), forwarded_bytes=round(mean_back * forwarded)))
    sending = {direction.tx_port for direction in sent}
    for port in after.keys() - sending:
        spare = max((report.others for report in sent.values()), default=0)
        if (stray := difference(port, "opackets", ())) > spare:
            words = f"port {port} sent {stray} frames that nobody asked it for; does another program use it?"
            # they may be lost in the place of others, and come back in the place of others
            problems += [Problem(fault, words, stray) for fault in (Fault.OVER_OFFERED, Fault.FOREIGN)]
    least, most = _together(sent.values())
    elapsed = (least + most) / 2
    readings = {"elapsed_uncertainty": (most - least) / 2}
    return Outcome(load, duration, elapsed, 0.0, tuple(rows), tuple(problems), readings)
