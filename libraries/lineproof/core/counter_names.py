"""Pause frames, errors and frames to a group, by the names that drivers give their counters.

Pause frames (IEEE 802.3, annex 31B; 802.1Qbb). DPDK: ``rx_xoff_packets``, ``rx_flow_control_xoff_packets``; Linux:
``port.tx_link_xoff``, ``rx_pause_ctrl_phy``, ``rx_prio0_pause``; FreeBSD: ``mac_stats.xoff_recvd``, ``stats.tx_pause``.

Frames to a group of receivers (multicast or broadcast), by the names of DPDK's drivers: spanning tree, LLDP, CDP, ARP
requests and neighbour discovery are such frames (IEEE 802.1D, 802.1AB; RFC 826, 4861); what a router forwards to one
port of the generator is none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

PORT_TOTALS = ("opackets", "ipackets", "obytes", "ibytes", "oerrors", "ierrors")
"""The totals of a generator's port, under TRex's names; bytes of sent frames with FCS."""

LONGEST_PAUSE_BITS = 65535 * 512
"""The longest time that one pause frame asks for, in bits of the link (IEEE 802.3 31B: quanta of 512 bits)."""

_PAUSE = re.compile(r"xoff|pause", re.IGNORECASE)
_OTHER = re.compile(r"xon|dur|time|quanta|transition|storm|warn|discard|drop|err|watchdog", re.IGNORECASE)
"""An end of a pause, how long pauses were, and what became of them."""
_RECEIVED = re.compile(r"(?<![a-z])(rx|recv|received)", re.IGNORECASE)
_SENT = re.compile(r"(?<![a-z])(tx|sent|xmit)", re.IGNORECASE)


def pause_seconds(frames: int, link_bps: float) -> float:
    """Return the most s for which so many pause *frames* stop the receiving end of a link of *link_bps* bit/s."""
    return frames * LONGEST_PAUSE_BITS / link_bps


def is_pause(name: str) -> bool:
    """Return whether the counter *name* counts pause frames of either direction."""
    return bool(_PAUSE.search(name) and not _OTHER.search(name) and (_RECEIVED.search(name) or _SENT.search(name)))


def is_received_pause(name: str) -> bool:
    """Return whether the counter *name* counts pause frames that were received."""
    return is_pause(name) and _RECEIVED.search(name) is not None


def received_pauses(counters: Mapping[str, int]) -> int:
    """Return those in all the *counters* of a port. Drivers repeat a count by another name, so the largest counts."""
    return max((count for name, count in counters.items() if is_received_pause(name)), default=0)


_ERROR = re.compile(r"err|miss|drop|discard|no_?buf|crc|fragment|jabber|undersize|oversize|runt|bad", re.IGNORECASE)


def is_error(name: str) -> bool:
    """Return whether a card's own counter of this *name* counts frames that were not sent or received whole."""
    return _ERROR.search(name) is not None


_GROUP = re.compile(r"rx_(?:q(?P<queue>[0-9]+)_)?(?P<kind>multicast|broadcast)_packets")


def is_group_count(name: str) -> bool:
    """Return whether *name* counts received frames to a group: ``rx_multicast_packets``, ``rx_q0_broadcast_…``."""
    return _GROUP.fullmatch(name) is not None


def group_frames(counters: Mapping[str, float]) -> int:
    """Return the frames to a group in all the *counters* of a port. A total counts, not also its queues."""
    frames_of_groups: dict[str, dict[bool, float]] = {}
    for name, count in counters.items():
        if match := _GROUP.fullmatch(name):
            sums = frames_of_groups.setdefault(match["kind"], {})
            by_queue = match["queue"] is not None
            sums[by_queue] = sums.get(by_queue, 0) + count
    return sum(round(max(sums.values())) for sums in frames_of_groups.values())
