"""Bytes compared with frames: were the frames that came back those that were sent?

A generator counts every frame that a port receives. If the bytes that are missing cannot be those of the frames that
are missing, other frames were counted too, or the router changed the size of its frames (a tag, a label), or a card
counts the FCS in one direction only. The counts do not show which: it is named. What none of these explains is frames
that came back shorter, which are none that was sent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ..units import FCS
from .trial import DirectionCount

SHORTEST = 64
"""Bytes with FCS of the shortest frame of Ethernet (IEEE 802.3 4.2.3.3)."""


@dataclass(frozen=True, slots=True)
class FrameSizes:
    """Mean bytes with FCS of one direction's frames. ``explained``: lost frames can account for the difference."""

    tx_port: int
    rx_port: int
    sent_bytes: float
    received_bytes: float
    explained: bool

    def __str__(self) -> str:
        words = (
            f"port {self.tx_port} to {self.rx_port}: {self.received_bytes:.8g} bytes per frame received,"
            f" {self.sent_bytes:.8g} sent, "
        )
        if abs(self.sent_bytes - self.received_bytes - FCS) < 1e-6:
            return words + (
                f"{FCS} fewer: the generator's card counts no FCS of what it receives (net_ixgbe does not), or the"
                " router takes off a tag"
            )
        return words + (
            "which lost frames do not explain: other frames were counted too, or the router changes their size"
        )


def frame_sizes(directions: Iterable[DirectionCount], smallest: int, largest: int) -> tuple[FrameSizes, ...]:
    """The mean sizes of each direction whose bytes were counted; frames of *smallest* to *largest* bytes were sent.

    A surplus of frames explains nothing either: a problem of its own names it.
    """
    found = []
    for row in directions:
        if row.offered and row.forwarded and row.offered_bytes and row.forwarded_bytes:
            frames, missing = row.offered - row.forwarded, row.offered_bytes - row.forwarded_bytes
            explained = smallest * frames <= missing <= largest * frames
            sent, received = row.offered_bytes / row.offered, row.forwarded_bytes / row.forwarded
            found.append(FrameSizes(row.tx_port, row.rx_port, sent, received, explained))
    return tuple(found)


def shortened_frames(row: DirectionCount, sizes: tuple[int, int], spare: int) -> tuple[int, int]:
    """Return how many frames of *row* certainly came back shorter than they were sent, and by how many bytes in all.

    *sizes*: the smallest and the largest frames that were sent; *spare*: bytes that each may lose on its way.
    """
    if not row.offered_bytes or not row.forwarded_bytes:
        return 0, 0
    lost = max(0, row.offered - row.received)
    short = row.offered_bytes - sizes[1] * lost - spare * row.received - row.forwarded_bytes
    return max(0, math.ceil(short / max(1, sizes[1] - SHORTEST))), max(0, short)
