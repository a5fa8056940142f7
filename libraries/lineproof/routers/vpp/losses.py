"""Where VPP lost frames, from ``show interface`` and ``show errors``. Semantics as in VPP's source, v26.10-rc0.

* ``rx-miss`` is DPDK's *imissed* and ``rx-error`` its *ierrors*: neither is in ``rx packets``, which the input node
  counts. VPP updates them every 10 s, and at once for ``show hardware-interfaces``. VPP's own drivers (rdma, af_packet)
  do not read what the card or the kernel's ring lost: nothing shows it.
* ``rx-no-buf`` is DPDK's *rx_nombuf*: failed allocations, not frames. The frames that they lost are in ``rx-miss``.
* Input nodes of VPP's own drivers count the same as ``buffer alloc error``, ``buffer allocation failed`` (memif) or
  ``no available buffer`` (vhost-user).
* The nodes error-drop and error-punt count ``drops`` and ``punts`` at the interface that received the frame. The rows
  of ``show errors`` are the reasons of these drops, not further losses.
* A frame that is answered with an ICMP error (TTL, no host) becomes the answer: it is not in ``drops``, only in the
  rows of ``ip4-icmp-error``.
* ``tx packets`` is counted *before* the sending node and includes frames that it could not send: ``tx-error`` with
  DPDK, with other drivers only an error of the node ``<interface>-tx``. DPDK counts both.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ...core.causes import Cause, Role, Stage
from ..base import CARD_QUEUE_FULL
from .output import strip_banner

_NO_BUFFERS = "failed allocations: no buffers; see 'buffers' in startup.conf"
_ARRIVING = {
    "rx-miss": (Role.LOSS, CARD_QUEUE_FULL),
    "rx-error": (Role.LOSS, "its card took them for damaged: look at cable and transceivers"),
    "rx-no-buf": (Role.REASON, _NO_BUFFERS),
}
FREE_BUFFERS = "free buffers of "
"""How a pool's reading begins in :attr:`UnderLoad.condition`, before its name."""

_PASSING = {"drops": "", "punts": "given to the router's own stack"}
_FULL = "its sending queue was full"
_ANSWERED = re.compile(r"ip[46]-icmp-error: .* sent")
_NO_BUFFER = re.compile(r"rx-no-buf|\S*input: (?=.*buffer).*\b(?:no|alloc\w*|out of|exhausted)\b.*", re.IGNORECASE)
_POOL = re.compile(r"^(\S+) +\d+ +\d+ +\d+ +(\d+) +(\d{1,9}) +(\d{1,9}) +(\d{1,9}) +(\d{1,9})", re.MULTILINE)
_EVENTS = re.compile(r"sendto|completion", re.IGNORECASE)


def vpp_causes(counts: Mapping[str, Mapping[str, int]], errors: Mapping[str, int]) -> tuple[Cause, ...]:
    """*counts*: rows of ``show interface`` by interface; *errors*: rows of ``show errors`` as ``node: reason``."""
    found = []
    for interface, rows in counts.items():
        for name, (role, meaning) in _ARRIVING.items():
            found.append(Cause(Stage.ARRIVING, name, interface, rows.get(name, 0), role, meaning))
        for name, meaning in _PASSING.items():
            found.append(Cause(Stage.PASSING, name, interface, rows.get(name, 0), Role.LOSS, meaning))
        found.append(Cause(Stage.LEAVING, "tx-error", interface, rows.get("tx-error", 0), Role.LOSS, _FULL))
    return (*found, *(_error_cause(name, count, counts) for name, count in errors.items()))


def _error_cause(name: str, count: int, interfaces: Collection[str]) -> Cause:
    node = name.partition(":")[0]
    sender = node.removesuffix("-tx") if node.endswith("-tx") else ""
    if sender in interfaces:
        # a failed send is one event, whatever its number of frames
        role = Role.REASON if _EVENTS.search(name) else Role.OVERLAPPING
        return Cause(Stage.LEAVING, name, sender, count, role, _FULL if role is Role.OVERLAPPING else "")
    if is_failed_allocation(name):
        return Cause(Stage.ARRIVING, name, "", count, Role.REASON, _NO_BUFFERS)
    if _ANSWERED.fullmatch(name):
        return Cause(Stage.PASSING, name, "", count, Role.LOSS, "answered with an ICMP error instead")
    return Cause(Stage.PASSING, name, "", count, Role.REASON)


def is_failed_allocation(name: str) -> bool:
    """Return whether the counter *name* is of reads that found no free buffer: events, not frames."""
    return _NO_BUFFER.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class BufferPool:
    """A pool of ``show buffers``: all its buffers, and those that are free (in caches of threads, too)."""

    name: str
    size: int
    total: int
    available: int
    cached: int


def parse_buffers(text: str) -> tuple[BufferPool, ...]:
    """``show buffers``: the pools, one for each NUMA node."""
    return tuple(BufferPool(row[1], *map(int, row.groups()[1:5])) for row in _POOL.finditer(strip_banner(text)))
