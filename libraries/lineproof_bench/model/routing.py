"""Where a configured router sends a destination (longest prefix, next hop, neighbour), and when its links come up."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Iterable, Set
from dataclasses import replace
from typing import Literal, NamedTuple

from lineproof.simulation.habits import RouterHabits

from ..state import RouterConfiguration
from .flows import Flow

RouterFeature = Literal["ipv6", "vlan", "mpls"]
"""Kinds of frames that a router may forward without configuration by its shell."""

_IPV4 = 0xFFFFFFFF


class Exit(NamedTuple):
    """An interface and the MAC address of the neighbour behind it."""

    interface: str
    mac: str


class Fib:
    """Look-ups in *configuration*, IPv4 and IPv6. Raises ValueError with a sentence for invalid addresses.

    *features*: with ``vlan`` and ``mpls``, tagged and labelled frames are routed as the packet in them and keep their
    headers; with ``ipv6``, a destination without an IPv6 route is routed as the IPv4 address in its last 32 bits.
    Without these features such frames are not routed.
    """

    def __init__(self, configuration: RouterConfiguration, features: Set[RouterFeature] = frozenset()) -> None:
        up = set(configuration.up)
        self._features = features
        self._connected = [
            (ipaddress.ip_interface(address).network, name) for name, address in configuration.addresses if name in up
        ]
        self._neighbours = {
            (name, ipaddress.ip_address(address)): mac.lower() for name, address, mac in configuration.neighbours
        }
        rows = [
            (ipaddress.ip_network(prefix, strict=False), ipaddress.ip_address(hop))
            for prefix, hop in configuration.routes
        ]
        self._routes = {
            version: sorted(
                (
                    (net.prefixlen, int(net.network_address), int(net.netmask), hop)
                    for net, hop in rows
                    if net.version == version
                ),
                key=lambda row: row[:3],
                reverse=True,
            )
            for version in (4, 6)
        }
        self._known: dict[tuple[int, int], Exit | None] = {}

    def exit_for(self, flow: Flow | None) -> Exit | None:
        """The exit for frames of *flow*; None without a route, and for frames that are not IP."""
        if (
            flow is None
            or (flow.tags and "vlan" not in self._features)
            or (flow.labels and "mpls" not in self._features)
        ):
            return None
        found = self.lookup(flow.destination, flow.version)
        if found is None and flow.version == 6 and "ipv6" in self._features:
            return self.lookup(flow.destination & _IPV4)
        return found

    def lookup(self, destination: int, version: int = 4) -> Exit | None:
        """The exit for *destination* (an address as a number) of IP *version*; None without a route."""
        key = (version, destination)
        if key not in self._known:
            self._known[key] = self._find(destination, version)
        return self._known[key]

    def _find(self, destination: int, version: int) -> Exit | None:
        wanted = ipaddress.IPv4Address(destination) if version == 4 else ipaddress.IPv6Address(destination)
        direct = self._connected_to(wanted)
        for length, network, mask, hop in self._routes[version]:
            if destination & mask == network:
                if direct and direct[0] >= length:
                    break
                return self._neighbour(hop)
        return self._neighbour(wanted)

    def _connected_to(self, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> tuple[int, str] | None:
        return max(((net.prefixlen, name) for net, name in self._connected if address in net), default=None)

    def _neighbour(self, hop: ipaddress.IPv4Address | ipaddress.IPv6Address) -> Exit | None:
        found = self._connected_to(hop)
        mac = self._neighbours.get((found[1], hop)) if found else None
        return Exit(found[1], mac) if found and mac else None


def owns_address(configuration: RouterConfiguration, interface: str, address: str) -> bool | None:
    """Return whether *interface* is up and has this address, IPv4 or IPv6; None: it has no address yet."""
    own = [ipaddress.ip_interface(row).ip for name, row in configuration.addresses if name == interface]
    return interface in configuration.up and ipaddress.ip_address(address) in own if own else None


def check_names(configuration: RouterConfiguration, known: Iterable[str]) -> None:
    """Raise ValueError with a sentence for an interface that is not among *known*."""
    named = [*configuration.up, *(row[0] for row in (*configuration.addresses, *configuration.neighbours))]
    known = tuple(known)
    for name in named:
        if name not in known:
            raise ValueError(f"no interface '{name}'; known: {', '.join(known)}")


class RouterLinks:
    """The links of a router with *habits*, which began to look at them at *begin* (s of the testbed's clock)."""

    def __init__(self, habits: RouterHabits, begin: float) -> None:
        self._habits, self._begin, self._settled = habits, begin, begin
        self._always = habits == RouterHabits()
        """True: links are there at once, also of interfaces that are not up."""
        self._carrier: dict[str, float] = {}
        self.next_change = math.inf
        """When a link comes up next, or is noticed; infinite: not by itself."""

    def configured(self, up: Iterable[str], now: float) -> None:
        """The interfaces *up* are up now, administratively, and no others."""
        if not self._always:
            self._carrier = {name: self._carrier.get(name, now + self._habits.link_delay) for name in up}
            self.settle(self._settled)

    def restored(self, name: str, now: float) -> None:
        """The cable at *name* is plugged in again."""
        if name in self._carrier:
            self._carrier[name] = now
            self.settle(self._settled)

    def has_carrier(self, name: str, now: float) -> bool:
        """Return whether both ends of the cable at *name* have carrier."""
        return self._always or self._carrier.get(name, math.inf) <= now

    def is_seen(self, name: str, now: float) -> bool:
        """Return whether the router knows that *name* has carrier: it sends nothing there before."""
        return self._always or self._seen_at(self._carrier.get(name, math.inf)) <= now

    def _seen_at(self, carrier: float) -> float:
        every = self._habits.link_poll
        if not every or math.isinf(carrier):
            return carrier
        return self._begin + every * math.ceil((carrier - self._begin) / every)

    def settle(self, moment: float) -> None:
        """Take account of what happened up to *moment*."""
        moments = [moment for carrier in self._carrier.values() for moment in (carrier, self._seen_at(carrier))]
        self._settled, self.next_change = moment, min((row for row in moments if row > moment), default=math.inf)

    def in_force(self, found: RouterConfiguration, down: bool, now: float) -> RouterConfiguration:
        """The configuration *found* as far as frames see it; *down*: a cable is out."""
        if self._always and not down:
            return found
        if down or not all(self.has_carrier(name, now) for name in found.up):
            return replace(found, up=())
        return replace(found, up=tuple(name for name in found.up if self.is_seen(name, now)))
