"""Bytes compared with frames: were the frames that came back those that were sent?

A generator counts every frame that a port receives. If the bytes that are missing cannot be those of the frames that
are missing, other frames were counted too, or the router changed the size of its frames (a tag, a label), or a card
counts the FCS in one direction only. The counts do not show which: it is named. What none of these explains is frames
that came back shorter, which are none that was sent.
"""

from __future__ import annotations

import math

from ..units import FCS
from .trial import DirectionCount

SHORTEST = 64
"""Bytes with FCS of the shortest frame of Ethernet (IEEE 802.3 4.2.3.3)."""


def size_problem(row: DirectionCount, smallest: int, largest: int) -> str:
    """Return that the missing bytes of *row* are not those of its missing frames, in words; "" if they may be.

    Frames of *smallest* to *largest* bytes were sent. A surplus of frames explains nothing: a problem of its own names
    it.
    """
    if not (row.offered and row.forwarded and row.offered_bytes and row.forwarded_bytes):
        return ""
    frames, missing = row.offered - row.forwarded, row.offered_bytes - row.forwarded_bytes
    if smallest * frames <= missing <= largest * frames:
        return ""
    sent, received = row.offered_bytes / row.offered, row.forwarded_bytes / row.forwarded
    words = f"port {row.tx_port} to {row.rx_port}: {received:.8g} bytes per frame received, {sent:.8g} sent, "
    if abs(sent - received - FCS) < 1e-6:
        return (
            f"{words}{FCS} fewer: the generator's card counts no FCS of what it receives (net_ixgbe does not), or the"
            " router takes off a tag"
        )
    return f"{words}which lost frames do not explain: other frames were counted too, or the router changes their size"


def shortened_frames(row: DirectionCount, sizes: tuple[int, int], spare: int) -> tuple[int, int]:
    """Return how many frames of *row* certainly came back shorter than they were sent, and by how many bytes in all.

    *sizes*: the smallest and the largest frames that were sent; *spare*: bytes that each may lose on its way.
    """
    if not row.offered_bytes or not row.forwarded_bytes:
        return 0, 0
    lost = max(0, row.offered - row.received)
    short = row.offered_bytes - sizes[1] * lost - spare * row.received - row.forwarded_bytes
    return max(0, math.ceil(short / max(1, sizes[1] - SHORTEST))), max(0, short)
