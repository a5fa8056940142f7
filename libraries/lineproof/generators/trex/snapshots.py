"""Readings of the counters during sending: how long it took, and by how many frames queues grew in it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WIDEST_SHARE = 0.5
"""Two readings that are at least this share of the frames apart show the rate of the whole trial."""

BACKLOG_READINGS = 2
"""So many of the last readings show what is under way: one alone may be torn between two counters."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Frames sent and received since the trial began, by port, read from ``asked`` to ``answered`` (s, one clock)."""

    asked: float
    answered: float
    offered: Mapping[int, int]
    received: Mapping[int, int]


def snapshots_of(answer: Mapping[str, Any]) -> list[Snapshot]:
    """The readings in the *answer* of the client's process, in order."""
    before = answer["before"]

    def counted(counts: Mapping[str, Sequence[int]], place: int, name: str) -> dict[int, int]:
        return {int(port): int(row[place]) - int(before[port][name]) for port, row in counts.items()}

    return [
        Snapshot(
            asked=float(item["asked"]),
            answered=float(item["answered"]),
            offered=counted(item["ports"], 0, "opackets"),
            received=counted(item["ports"], 1, "ipackets"),
        )
        for item in answer.get("snapshots", ())
    ]


def sending_bounds(snapshots: Sequence[Snapshot], offered: Mapping[int, int]) -> tuple[float, float]:
    """Least and most s in which the frames *offered* by each port were sent at the rate that two readings show.

    Of several ports the slowest counts for the most, the fastest for the least. Without readings: 0 and infinite.
    """
    least, most = math.inf, 0.0
    for port, frames in offered.items():
        shortest, longest = 0.0, math.inf
        for place, first in enumerate(snapshots):
            for last in snapshots[place + 1 :]:
                between = last.offered[port] - first.offered[port]
                if between < WIDEST_SHARE * frames or not between:
                    continue
                longest = min(longest, (last.answered - first.asked) / between * frames)
                if last.offered[port] < frames:
                    shortest = max(shortest, (last.asked - first.answered) / between * frames)
        least, most = min(least, shortest), max(most, longest)
    return (least, most) if offered else (0.0, math.inf)


def queue_growth(
    snapshots: Sequence[Snapshot], offered: Mapping[int, int], tx_port: int, rx_port: int, lost: int
) -> int | None:
    """Return the most frames by which queues from *tx_port* to *rx_port* grew while frames were sent.

    Those under way near the end and not *lost*, less those that were under way soon after the start. The readings while
    every port was sending count; None: there are too few near the end. Without an early one, none were under way.
    """
    during = [item for item in snapshots if all(item.offered[port] < count for port, count in offered.items())]
    half = WIDEST_SHARE * offered[tx_port]
    first = [item for item in during if item.offered[tx_port] < half]
    last = during[-BACKLOG_READINGS:]
    # a reading early in the trial says nothing about its end
    if not last or last[0].offered[tx_port] < half:
        return None
    ending, beginning = (
        min((item.offered[tx_port] - item.received[rx_port] for item in some), default=lost) for some in (last, first)
    )
    # how many were lost before an early reading is not known: perhaps all of them
    return max(0, ending - lost - max(0, beginning - lost))
