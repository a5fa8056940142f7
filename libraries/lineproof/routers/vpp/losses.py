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

from ...core.causes import Cause, Role, Stage
from ..base import CARD_QUEUE_FULL

_DAMAGED = "its card took them for damaged: look at cable and transceivers"
_NO_BUFFERS = "failed allocations: no buffers; see 'buffers' in startup.conf"
_FULL = "its sending queue was full"
_COUNTERS = {
    "rx-miss": (Stage.ARRIVING, Role.LOSS, CARD_QUEUE_FULL),
    "rx-error": (Stage.ARRIVING, Role.LOSS, _DAMAGED),
    "rx-no-buf": (Stage.ARRIVING, Role.REASON, _NO_BUFFERS),
    "drops": (Stage.PASSING, Role.LOSS, ""),
    "punts": (Stage.PASSING, Role.LOSS, "given to the router's own stack"),
    "tx-error": (Stage.LEAVING, Role.LOSS, _FULL),
}
FREE_BUFFERS = "free buffers of "
"""How a pool's reading begins in :attr:`UnderLoad.condition`, before its name."""

_ANSWERED = re.compile(r"ip[46]-icmp-error: .* sent")
_NO_BUFFER = re.compile(r"rx-no-buf|\S*input: (?=.*buffer).*\b(?:no|alloc\w*|out of|exhausted)\b.*", re.IGNORECASE)
_EVENTS = re.compile(r"sendto|completion", re.IGNORECASE)
_DAMAGED_COUNT = re.compile(r"rx_\w*(?:crc|symbol|illegal_byte|align)\w*")


def vpp_causes(
    counts: Mapping[str, Mapping[str, int]],
    errors: Mapping[str, int],
    cards: Mapping[str, Mapping[str, int]],
) -> tuple[Cause, ...]:
    """*counts*: ``show interface`` by interface; *errors*: ``show errors``; *cards*: extended counters by interface."""
    found = [
        Cause(stage, name, interface, rows.get(name, 0), role, meaning)
        for interface, rows in counts.items()
        for name, (stage, role, meaning) in _COUNTERS.items()
    ]
    found += (_error_cause(name, count, counts) for name, count in errors.items())
    # what 'rx-error' counts together
    found += (
        Cause(Stage.ARRIVING, name, interface, count, Role.REASON, _DAMAGED)
        for interface, rows in cards.items()
        for name, count in rows.items()
        if _DAMAGED_COUNT.fullmatch(name)
    )
    return tuple(found)


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
