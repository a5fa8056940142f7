"""A trial by the counters of a generator's ports: its rows, and what else these counters show, for any generator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from ..core.counter_names import PORT_TOTALS
from ..core.trial import DirectionCount, Fault, Problem

Totals = Mapping[int, Mapping[str, int]]
"""By port, its counters, or some of them."""

Way = tuple[int, int]
"""The sending and the receiving port of a direction."""


def grown(before: Totals, after: Totals, port: int, name: str) -> int:
    """Return by how much a counter of *port* grew; 0 where it fell."""
    return max(0, after[port][name] - before[port][name])


def counted(before: Totals, after: Totals, way: Way, intended: int) -> DirectionCount:
    """Return the counts of a direction, of which so many frames were *intended*."""
    (tx, rx), frames = way, ("packets", "bytes")
    sizes = [grown(before, after, *of) for name in frames for of in ((tx, f"o{name}"), (rx, f"i{name}"))]
    return DirectionCount(tx, rx, intended, *sizes)


def by_moment(**moments: Totals) -> dict[str, dict[str, int]]:
    """Return the counters of each moment as an outcome has them: ``0.opackets``."""
    return {
        moment: {f"{port}.{name}": count for port, counts in totals.items() for name, count in counts.items()}
        for moment, totals in moments.items()
    }


def counter_problems(
    readings: Sequence[Totals],
    ways: Sequence[Way],
    links: Mapping[int, bool],
    errors: Callable[[int], str] = lambda port: "",
    spare: int = 0,
) -> Iterator[Problem]:
    """Yield links that were down, counters that fell, and frames that were not sent or that nobody asked for.

    *readings*: in their order, the first and the last one complete. *links*: by port, whether it was up all the time.
    *errors*: what the card at a port says of them, in words. *spare*: frames that a port may send by itself.
    """

    def concerned(port: int) -> tuple[Way, ...]:
        # a port that counts anew may end above where it began, and show it by the counters of the other direction
        return tuple(way for way in ways if port in way)

    for port, up in links.items():
        if not up:
            yield Problem(Fault.LINK_DOWN, f"generator port {port}", directions=concerned(port))
    before, after = readings[0], readings[-1]
    for port in sorted({port for way in ways for port in way}):
        for name in PORT_TOTALS:
            values = [reading[port][name] for reading in readings if name in reading.get(port, ())]
            if (fall := max(earlier - later for earlier, later in pairwise(values))) > 0:
                detail = f"{name} of generator port {port} fell by {fall}"
                yield Problem(Fault.COUNTERS, detail, directions=concerned(port))
    for way in ways:
        if failed := grown(before, after, way[0], "oerrors"):
            detail = f"port {way[0]} failed to send {failed} frames{errors(way[0])}"
            yield Problem(Fault.UNSENT, detail, failed, (way,))
    # of a port that was told to send nothing: what the router returns to it would hide as many lost frames
    for port in sorted(after.keys() - {tx_port for tx_port, _ in ways}):
        if (stray := grown(before, after, port, "opackets")) > spare:
            detail = f"port {port} sent {stray} frames that nobody asked it for; does somebody else use the generator?"
            # they may be lost in the place of others, and come back in the place of others
            yield from (Problem(fault, detail, stray) for fault in (Fault.OVER_OFFERED, Fault.FOREIGN))


def missed_problem(before: Totals, after: Totals, row: DirectionCount, more: str = "") -> Iterator[Problem]:
    """Yield that the generator itself may have missed some of the lost frames; any loss beyond is the router's.

    *more*: what is known besides, in words.
    """
    if row.lost and (missed := grown(before, after, row.rx_port, "ierrors")):
        detail = f"port {row.rx_port} received {missed} frames with errors, or missed them{more}"
        yield Problem(Fault.GENERATOR, detail, missed, ((row.tx_port, row.rx_port),))
