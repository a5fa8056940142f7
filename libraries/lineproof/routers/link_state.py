"""The state of a router's interfaces before configuration: MAC address, up or down, link or no link, its speed."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAC = r"([0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5})"


@dataclass(frozen=True, slots=True)
class LinkState:
    """``mac`` in lower case, "" if unknown; ``up``: administratively; ``carrier``: there is a link. None: unknown.

    ``speed_bps``: of the link that it has, as ``speed_from`` shows; None: not known, or only a convention's.
    """

    interface: str
    mac: str = ""
    up: bool | None = None
    carrier: bool | None = None
    speed_bps: float | None = None
    speed_from: str = ""


SPEED_BY_CONVENTION = re.compile(
    r"virtio|vtnet|vmxnet|vmx[0-9]|netvsc|hn[0-9]|xen|xn[0-9]|epair|af_packet|veth", re.IGNORECASE
)
"""Names of interfaces and drivers whose speed is a number by convention, and no link's."""
