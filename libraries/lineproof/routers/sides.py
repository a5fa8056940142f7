"""The values of a side and the names of interfaces, checked before they come into a command."""

from __future__ import annotations

import ipaddress
import re

from ..errors import TestbedError
from .base import Side

_INTERFACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./:@-]{0,62}")
_MAC = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")


def validated_interface(name: str) -> str:
    """Return *name*. Raises TestbedError if it cannot be the name of an interface."""
    if not _INTERFACE.fullmatch(name):
        raise TestbedError(
            f"{name!r} is not the name of an interface; expected letters, digits and any of _ . / : @ -,"
            " for example 'eth1' or 'TenGigabitEthernet3/0/0'"
        )
    return name


def validated_side(side: Side) -> Side:
    """Return *side* with its prefix normalised. Raises TestbedError that names a wrong value."""
    validated_interface(side.interface)
    if not _MAC.fullmatch(side.peer_mac):
        raise TestbedError(f"{side.peer_mac!r} is not a MAC address; expected for example '02:00:00:00:01:02'")
    try:
        ipaddress.IPv4Address(side.peer)
        ipaddress.IPv4Interface(side.address)
        network = ipaddress.IPv4Network(side.network)
    except ValueError as error:
        raise TestbedError(
            f"interface {side.interface} cannot be configured: {error}; expected for example address"
            " 100.65.1.1/24, peer 100.65.1.2 and network 16.0.0.0/8"
        ) from None
    if "/" not in side.address:
        raise TestbedError(f"the address {side.address} of {side.interface} needs a prefix length, as in 100.65.1.1/24")
    return Side(side.interface, side.address, side.peer, side.peer_mac.lower(), str(network))
