"""Sides and links of a router."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ..errors import TestbedError
from .shell_commands import Result as Result
from .shell_commands import RouterUnreachable as RouterUnreachable
from .shell_commands import Shell as Shell

MAC = r"([0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5})"


@dataclass(frozen=True, slots=True)
class Side:
    """One side of the router: the interface cabled to a generator port, and what is reached through it.

    ``address`` as ``100.65.1.1/24``; ``peer`` is the generator port's address, ``peer_mac`` its MAC;
    ``network`` the prefix routed towards it, as ``16.0.0.0/8``.
    """

    interface: str
    address: str
    peer: str
    peer_mac: str
    network: str


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


def validated_side(side: Side) -> Side:
    """Return *side* with its MAC address in lower case. Raises TestbedError where a generator reports none."""
    if not re.fullmatch(MAC, side.peer_mac):
        raise TestbedError(f"{side.peer_mac!r} is not a MAC address; expected for example '02:00:00:00:01:02'")
    return replace(side, peer_mac=side.peer_mac.lower())
