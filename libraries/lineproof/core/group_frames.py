"""Frames to a group of receivers, multicast or broadcast, by the names that DPDK's drivers give their counters.

Spanning tree, LLDP, CDP, ARP requests and neighbour discovery are such frames (IEEE 802.1D, 802.1AB; RFC 826, 4861);
what a router forwards to one port of the generator is none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_GROUP = re.compile(r"rx_(?:q(?P<queue>[0-9]+)_)?(?P<kind>multicast|broadcast)_packets")


def is_group_count(name: str) -> bool:
    """Return whether *name* counts received frames to a group: ``rx_multicast_packets``, ``rx_q0_broadcast_…``."""
    return _GROUP.fullmatch(name) is not None


def group_frames(counters: Mapping[str, float]) -> int:
    """The frames to a group in all the *counters* of a port. A total counts, not also its queues."""
    found: dict[str, dict[bool, float]] = {}
    for name, count in counters.items():
        if match := _GROUP.fullmatch(name):
            sums = found.setdefault(match["kind"], {})
            by_queue = match["queue"] is not None
            sums[by_queue] = sums.get(by_queue, 0) + count
    return sum(round(max(sums.values())) for sums in found.values())
