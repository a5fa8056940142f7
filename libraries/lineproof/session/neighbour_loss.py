"""A FAIL under which the router had lost the address of the generator's port: not its forwarding was tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..core.neighbours import NeighbourEntry
from ..core.traffic.catalogue import Catalogue
from ..core.traffic.frame_kinds import FrameKind, FrameKinds, ipv6_address
from ..routers.base import Router, Side


def ipv6_sides(sides: Sequence[Side], catalogue: Catalogue) -> tuple[Side, ...]:
    """*sides* with the IPv6 address that the traffic words of *catalogue* have for each ``peer``."""
    kinds: tuple[FrameKind, ...] = ("ipv6",)
    prefixes = FrameKinds.of(catalogue, kinds).prefixes
    return tuple(replace(side, peer=ipv6_address(prefix, side.peer)) for prefix in prefixes for side in sides)


def ipv6_entries(router: Router, sides: Sequence[Side], catalogue: Catalogue) -> tuple[NeighbourEntry, ...]:
    """The IPv6 entries of *sides* that there are: nothing shows whether more are wanted. Raises TestbedError."""
    return tuple(found for found in router.neighbours(ipv6_sides(sides, catalogue)) if found.mac)
