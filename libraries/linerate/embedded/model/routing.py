"""Where a configured router sends a destination: longest prefix, next hop, neighbour."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from ..state import RouterConfiguration


@dataclass(frozen=True, slots=True)
class Exit:
    """An interface and the MAC address of the neighbour behind it."""

    interface: str
    mac: str


class Fib:
    """Look-ups in *configuration*. Raises ValueError with a sentence for addresses or prefixes that are none."""

    def __init__(self, configuration: RouterConfiguration) -> None:
        up = set(configuration.up)
        self._connected = [
            (ipaddress.IPv4Interface(address).network, name) for name, address in configuration.addresses if name in up
        ]
        self._neighbours = {
            (name, int(ipaddress.IPv4Address(address))): mac.lower() for name, address, mac in configuration.neighbours
        }
        rows = [
            (ipaddress.IPv4Network(prefix, strict=False), int(ipaddress.IPv4Address(hop)))
            for prefix, hop in configuration.routes
        ]
        self._routes = sorted(
            ((net.prefixlen, int(net.network_address), int(net.netmask), hop) for net, hop in rows), reverse=True
        )
        self._known: dict[int, Exit | None] = {}

    def lookup(self, destination: int) -> Exit | None:
        """The exit for *destination* (an IPv4 address as a number); None where there is no way."""
        if destination not in self._known:
            self._known[destination] = self._find(destination)
        return self._known[destination]

    def _find(self, destination: int) -> Exit | None:
        direct = self._connected_to(destination)
        for length, network, mask, hop in self._routes:
            if destination & mask == network:
                if direct and direct[0] >= length:
                    break
                return self._neighbour(hop)
        return self._neighbour(destination)

    def _connected_to(self, address: int) -> tuple[int, str] | None:
        wanted = ipaddress.IPv4Address(address)
        return max(((net.prefixlen, name) for net, name in self._connected if wanted in net), default=None)

    def _neighbour(self, hop: int) -> Exit | None:
        found = self._connected_to(hop)
        mac = self._neighbours.get((found[1], hop)) if found else None
        return Exit(found[1], mac) if found and mac else None
