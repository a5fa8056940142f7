"""The frames of a stream, and where a configured router sends them: routes, neighbours, and when its links come up."""

from __future__ import annotations

import ipaddress
import math
import struct
from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import replace
from functools import lru_cache
from typing import Literal, NamedTuple

from lineproof.core.traffic.ip_header import ip_header, ipv4_checksum
from lineproof.simulation import RouterHabits

from ..backend import StreamTraffic
from ..state import RouterConfiguration

IPV4 = 14
"""Offset of the IPv4 header in an untagged frame."""

MOST_SAMPLED = 4096
"""The most frames that are examined for a stream's flows; longer periods are sampled evenly."""

HEADERS = 96
"""Bytes at a frame's beginning that decide its flow: Ethernet, tags, labels, IPv4 or IPv6, ports."""


class Flow(NamedTuple):
    """Frames with the same tags, labels, addresses and ports.

    ``hashed`` as RSS sees addresses and ports; ``destination`` address as a number; ``version`` 4 or 6; ``tags`` (VLAN
    identifiers) and ``labels`` (MPLS), outermost first; ``ip``: offset of the IP header in the frame.
    """

    hashed: bytes
    destination: int
    version: int = 4
    tags: tuple[int, ...] = ()
    labels: tuple[int, ...] = ()
    ip: int = IPV4


def frame_of(stream: StreamTraffic, number: int) -> bytes:
    """Return the bytes of frame *number*, without FCS."""
    frame = bytearray(stream.frame)
    for variable in stream.variables:
        frame[variable.offset : variable.offset + variable.size] = variable.written(number).to_bytes(
            variable.size, "big"
        )
    if stream.fix_ipv4_checksum is not None:
        fix_checksum(frame, stream.fix_ipv4_checksum)
    if stream.is_latency:
        # TRex writes its magic, which frame it is, and when it left
        frame[-16:] = b"\xab" + number.to_bytes(15, "big")
    return bytes(frame)


def period_of(stream: StreamTraffic) -> int:
    """Return after how many frames the bytes of *stream* come again; 0: never, or after more than MOST_SAMPLED."""
    if stream.is_latency or any(variable.operation == "random" for variable in stream.variables):
        return 0
    period = math.lcm(*(variable.period(0) for variable in stream.variables))
    return period if period <= MOST_SAMPLED else 0


def fix_checksum(frame: bytearray, offset: int) -> None:
    """Write the checksum of the IPv4 header at *offset* (RFC 1071)."""
    frame[offset + 10 : offset + 12] = b"\0\0"
    checksum = ipv4_checksum(frame[offset : offset + 4 * (frame[offset] & 0x0F)])
    frame[offset + 10 : offset + 12] = checksum.to_bytes(2, "big")


def flow_of(frame: bytes) -> Flow | None:
    """Return the flow of an IP frame, tagged and labelled or not; None for anything else.

    Ports count where they are: UDP and TCP, first fragment.
    """
    if (header := ip_header(frame)) is None:
        return None
    ip, version = header.offset, header.version
    source, destination = header.addresses()
    addresses = frame[source.start : destination.stop]
    if version == 4:
        ports, protocol = ip + 4 * (frame[ip] & 0x0F), frame[ip + 9]
        whole = not struct.unpack_from("!H", frame, ip + 6)[0] & 0x3FFF
    else:
        ports, protocol, whole = ip + 40, frame[ip + 6], True
    l4 = frame[ports : ports + 4] if protocol in (6, 17) and whole else b""
    return Flow(addresses + l4, int.from_bytes(frame[destination], "big"), version, header.tags, header.labels, ip)


def spread(stream: StreamTraffic) -> dict[Flow | None, float]:
    """Return the distinct flows of *stream*, each with its share of the frames (together 1)."""
    deciding = tuple(variable for variable in stream.variables if variable.offset + variable.size <= HEADERS)
    headers = replace(stream, frame=stream.frame[:HEADERS], variables=deciding, fix_ipv4_checksum=None)
    period = math.lcm(*(variable.period(MOST_SAMPLED) for variable in deciding))
    # a prime stride: samples must not coincide with the steps of the variables
    looked, stride = (period, 1) if period <= MOST_SAMPLED else (MOST_SAMPLED, 7919)
    flows = Counter(flow_of(frame_of(headers, number * stride)) for number in range(looked))
    return {flow: count / looked for flow, count in flows.items()}


def forwarded_frame(frame: bytes, flow: Flow | None, source_mac: str, destination_mac: str) -> bytes:
    """Return *frame* of *flow* as it is forwarded (RFC 1812 5.2.1.2): new MAC addresses, TTL one less, right checksum.

    A labelled frame's TTL is that of its outermost label (RFC 3443). Tags and labels stay as they are.
    """
    new = bytearray(frame)
    new[0:6], new[6:12] = mac_bytes(destination_mac), mac_bytes(source_mac)
    where = ttl_offset(flow)
    new[where] -= 1
    if flow and not flow.labels and flow.version == 4:
        fix_checksum(new, flow.ip)
    return bytes(new)


def ttl_offset(flow: Flow | None) -> int:
    """Return the offset of the TTL (IPv6: hop limit) that the router examines."""
    if flow is None:
        return IPV4 + 8
    if flow.labels:
        return flow.ip - 4 * len(flow.labels) + 3
    return flow.ip + (8 if flow.version == 4 else 7)


@lru_cache
def mac_bytes(text: str) -> bytes:
    """Return the six bytes of ``02:00:…``."""
    return bytes.fromhex(text.replace(":", ""))


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
        """Return the exit for frames of *flow*; None without a route, and for frames that are not IP."""
        if (
            flow is None
            or (flow.tags and "vlan" not in self._features)
            or (flow.labels and "mpls" not in self._features)
        ):
            return None
        exit_ = self.lookup(flow.destination, flow.version)
        if exit_ is None and flow.version == 6 and "ipv6" in self._features:
            return self.lookup(flow.destination & _IPV4)
        return exit_

    def lookup(self, destination: int, version: int = 4) -> Exit | None:
        """Return the exit for *destination* (an address as a number) of IP *version*; None without a route."""
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
        network = self._connected_to(hop)
        mac = self._neighbours.get((network[1], hop)) if network else None
        return Exit(network[1], mac) if network and mac else None


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
        """Take the interfaces *up* up now, and all others down."""
        if not self._always:
            self._carrier = {name: self._carrier.get(name, now + self._habits.link_delay) for name in up}
            self.settle(self._settled)

    def restored(self, name: str, now: float) -> None:
        """Plug the cable at *name* in again."""
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

    def in_force(self, configuration: RouterConfiguration, down: bool, now: float) -> RouterConfiguration:
        """Return *configuration* as far as frames see it; *down*: a cable is out."""
        if self._always and not down:
            return configuration
        if down or not all(self.has_carrier(name, now) for name in configuration.up):
            return replace(configuration, up=())
        return replace(configuration, up=tuple(name for name in configuration.up if self.is_seen(name, now)))
