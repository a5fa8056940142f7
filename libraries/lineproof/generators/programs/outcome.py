"""What programs report of their sending, and the counts of their interfaces, as the outcome of a trial."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from ...core.trial import DirectionCount, Fault, Load, Outcome, Problem
from ..base import Direction

Counts = Mapping[int, Mapping[str, int]]
"""By port, its counters."""


@dataclass(frozen=True, slots=True)
class Span:
    """When frames were sent: the earliest and the latest moment for the ``first``, and for the ``last``.

    Unix time in s, by the clock of the host.
    """

    first: tuple[float, float]
    last: tuple[float, float]

    @property
    def least(self) -> float:
        """The least seconds from the first to the last."""
        return max(0.0, self.last[0] - self.first[1])

    @property
    def most(self) -> float:
        """The most seconds from the first to the last."""
        return self.last[1] - self.first[0]

    def lasting(self, seconds: float) -> Span:
        """Return the span of frames that took at least *seconds*, among others that were sent in this one, too."""
        begins, ended = self.first[0], max(self.last[1], self.first[0] + seconds)
        return Span((begins, ended - seconds), (begins + seconds, ended))

    def here(self, ahead: tuple[float, float]) -> Span:
        """By the clock of this machine, which the host's is *ahead* of by so many seconds, at least and at most."""
        least, most = ahead
        return Span((self.first[0] - most, self.first[1] - least), (self.last[0] - most, self.last[1] - least))


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
    controlling = dict[Direction, int]()

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
        surplus = counted - report.frames
        if not 0 <= surplus <= report.others:
            words = f"port {direction.tx_port} sent {counted} frames by its counters, {report.frames} by its program"
            problems.append(Problem(Fault.MISCOUNTED, words, directions=ports))
        if failed := difference(direction.tx_port, "oerrors", ports):
            words = f"port {direction.tx_port} failed to send {failed} frames"
            problems.append(Problem(Fault.UNSENT, words, failed, ports))
        missed = difference(direction.rx_port, "ierrors", ports)
        # frames that control the program are sent and received beside those of the trial: their loss counts, too
        others = controlling[direction] = min(max(0, surplus), report.others)
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
    counters = {
        "before": _evidence(before, {}),
        "ended": _evidence(ended, controlling),
        "after": _evidence(after, controlling),
    }
    return Outcome(load, duration, elapsed, 0.0, tuple(rows), tuple(problems), readings, counters=counters)
