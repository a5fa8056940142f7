"""Where VPP lost frames, from ``show interface`` and ``show errors``. Semantics as in VPP's source, v26.10-rc0.

* ``rx-miss`` is DPDK's *imissed* and ``rx-error`` its *ierrors*: neither is in ``rx packets``, which the input node
  counts. VPP fetches them every 10 s, and at once when asked for ``show hardware-interfaces``. Drivers of VPP's own
  (rdma, af_packet) do not fetch what the card or the kernel's ring lost before them: nothing shows it.
* ``rx-no-buf`` is DPDK's *rx_nombuf*: allocations that failed, not frames. Frames lost by it are in ``rx-miss``.
* ``drops`` and ``punts`` are counted by the nodes error-drop and error-punt at the interface that the frame came from.
  The rows of ``show errors`` say why: reasons of these, not losses besides.
* A frame that is answered with an ICMP error (TTL, no host) is turned into the answer: it is in no ``drops``, only in
  the rows of ``ip4-icmp-error``.
* ``tx packets`` is counted *before* the sending node, and includes what that could not send: ``tx-error`` with DPDK,
  only an error of the node ``<interface>-tx`` with other drivers. DPDK counts both.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from ..counts.causes import Cause, Role, Stage

MISSED = "its card's queue was full: the cores are too slow"

_ARRIVING = {
    "rx-miss": (Role.LOSS, MISSED),
    "rx-error": (Role.LOSS, "its card took them for damaged: look at cable and transceivers"),
    "rx-no-buf": (Role.REASON, "allocations that failed for want of buffers; see 'buffers' in startup.conf"),
}
_PASSING = {"drops": "", "punts": "given to the router's own stack"}
_FULL = "its sending queue was full: the line is slower than what it is given"
_ANSWERED = re.compile(r"ip[46]-icmp-error: .* sent")
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
    return (*found, *(_of_error(name, count, counts) for name, count in errors.items()))


def _of_error(name: str, count: int, interfaces: Collection[str]) -> Cause:
    node = name.partition(":")[0]
    sender = node.removesuffix("-tx") if node.endswith("-tx") else ""
    if sender in interfaces:
        # a send that failed is one event, of however many frames
        role = Role.REASON if _EVENTS.search(name) else Role.BEYOND
        return Cause(Stage.LEAVING, name, sender, count, role, _FULL if role is Role.BEYOND else "")
    if _ANSWERED.fullmatch(name):
        return Cause(Stage.PASSING, name, "", count, Role.LOSS, "answered with an ICMP error instead")
    return Cause(Stage.PASSING, name, "", count, Role.REASON)
