"""A port as its clients see it (owner, streams, state, addresses), its processors and its card, and its habits."""

from __future__ import annotations

import ipaddress
import secrets
import string
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lineproof.simulation.habits import BY_A_MODEL, MODEL_DRIVER, Habit, HabitKind

from ..backend import PortDescription, StreamTraffic
from .nic import UNKNOWN_SPEED_BPS, ServerCard
from .rpc import bad_parameter, refused
from .streams import ServerStream, mac_bytes

ALL_CORES = (1 << 64) - 1
"""TRex's mask where a client gives none."""


@dataclass(frozen=True, slots=True)
class Places:
    """``cores`` that send, for each pair of ports. ``numa``, ``pci``: each port's node, and its own address."""

    cores: int = 1
    numa: Sequence[int] = ()
    pci: Sequence[str] = ()

    def check_mask(self, mask: int) -> None:
        """Raise RpcError for a mask of ``start_traffic`` that leaves none of a pair's cores."""
        if not mask & (1 << self.cores) - 1:
            raise refused(f"core_mask: '0x{mask:x}' for {self.cores} cores generates an empty set")

    def of_port(self, index: int) -> dict[str, Any]:
        """Return its part of the port's entry. The ports of a pair share their cores."""
        first = index // 2 * self.cores
        return {
            "cores": list(range(first, first + self.cores)),
            "numa": self.numa[index] if index < len(self.numa) else -1,
            **({"pci_addr": self.pci[index]} if index < len(self.pci) else {}),
        }


class ServerHabits:
    """*habits* of the testbed; *next_hops* by port: its own IPv4 address and the router's."""

    def __init__(self, habits: Sequence[Habit] = (), next_hops: Sequence[Sequence[str]] = ()) -> None:
        self._habits, self._next_hops = habits, [(row[0], row[1]) for row in next_hops]

    def has(self, kind: HabitKind, port: int) -> bool:
        """Return whether *port* has this habit."""
        return any(habit.kind == kind and habit.port in (None, port) for habit in self._habits)

    def unresolved(self, port: int) -> tuple[str, str] | None:
        """The addresses of *port* and of its gateway, whose MAC address the server does not know; None: it does."""
        if not (self.has("silent gateway", port) or self.has("gateway unknown at start", port)):
            return None
        return self._next_hops[port] if port < len(self._next_hops) else ("0.0.0.0", "0.0.0.0")


STREAM_LIMIT = 20_000
MOST_LENGTHS = 2000
"""Lengths of frames of all streams of a port together, of each stream at least one."""
NOT_SUPPORTED = tuple(f"is_{what}_supported" for what in ("fc", "led", "link", "vxlan", "ieee1588"))
"""What no port can do here, whatever its card: no client of ours asks for it."""
NO_MAC = "00:00:00:00:00:00"
_ALPHABET = string.ascii_letters + string.digits


def new_handle() -> str:
    """Eight random characters, as TRex's API and port handlers are."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(8))


class ServerPort:
    """One port. Nothing here sends: see ``transmission``.

    *unresolved*: it starts with these IPv4 addresses, its own and its gateway's, without the gateway's MAC address.
    """

    def __init__(
        self,
        description: PortDescription,
        nic: ServerCard | None = None,
        unresolved: tuple[str, str] | None = None,
    ) -> None:
        self._nic = nic = nic or ServerCard()
        self._by_a_model = description.driver == MODEL_DRIVER
        speed = description.speed_bps if nic.knows_speed else UNKNOWN_SPEED_BPS
        self.description = replace(description, driver=nic.driver or description.driver, speed_bps=speed)
        self.index = description.index
        self.owner = ""
        self.session = 0
        self._handler = ""
        self.streams: dict[int, ServerStream] = {}
        self.state = "IDLE"
        self.factor = 1.0
        self.sent: tuple[StreamTraffic, ...] = ()
        """The streams that the backend sends, or sent last."""
        self.duration: float | None = None
        self.promiscuous = False
        self.service = False
        self.source_mac = description.mac
        self.destination_mac = description.peer_mac
        self.ipv4: tuple[str, str] | None = None
        if description.ipv4 != "0.0.0.0":
            self.ipv4 = (description.ipv4, description.peer_ipv4)
        self._answers = unresolved is None
        if unresolved:
            self.ipv4, self.destination_mac = unresolved, NO_MAC

    # -- owners

    def acquire(self, user: str, session: int, force: bool) -> tuple[str, bool]:
        """Give the port to *user*. Returns the new handler and whether force was needed. Raises RpcError when taken."""
        taken = bool(self.owner)
        if taken and not force:
            if self.owner == user:
                raise refused(f"port is already owned by another session of '{user}'")
            raise refused(f"port is already taken by '{self.owner}'")
        self.owner, self.session, self._handler = user, session, new_handle()
        return self._handler, taken

    def verify(self, handler: str) -> None:
        """Raise RpcError unless *handler* is the present owner's."""
        if not self.owner:
            raise refused("please acquire the port before modifying port state")
        if not secrets.compare_digest(handler.encode(), self._handler.encode()):
            raise refused(f"please acquire the port before modifying port state: it is now owned by '{self.owner}'")

    def release(self) -> None:
        """The port has no owner any more. It goes on sending."""
        self.owner, self.session, self._handler = "", 0, ""

    # -- streams

    @property
    def active(self) -> bool:
        """Return whether it sends or is paused."""
        return self.state in ("TX", "PAUSE")

    def require(self, command: str, *states: str) -> None:
        """Raise RpcError unless the port is in one of *states*."""
        if self.state not in states:
            raise refused(f"command '{command}' cannot be executed on current state: '{self.state} on profile_id(_).'")

    def idle(self) -> None:
        """Sending has ended."""
        self.state = "STREAMS" if self.streams else "IDLE"

    def admit(self, stream: ServerStream) -> None:
        """Raise RpcError if *stream* cannot be added: the port sends, has this stream already, or has too many."""
        self.require("add_stream", "IDLE", "STREAMS")
        if stream.stream_id in self.streams:
            raise refused(f"stream {stream.stream_id} already exists in profile_id(_)")
        if len(self.streams) >= STREAM_LIMIT:
            raise refused(f"Reached limit of {STREAM_LIMIT} streams at the port.")

    def add(self, stream: ServerStream) -> None:
        """Add a stream after :meth:`admit`."""
        self.streams[stream.stream_id] = stream
        self.state = "STREAMS"

    def remove_all(self) -> list[ServerStream]:
        """Remove all streams and return them."""
        self.require("remove_all_streams", "IDLE", "STREAMS")
        removed = list(self.streams.values())
        self.streams.clear()
        self.idle()
        return removed

    def traffic(self, factor: float, force: bool = True) -> tuple[StreamTraffic, ...]:
        """All that is sent at *factor*. Raises RpcError when streams cannot be sent together.

        Unless *force*, also when a destination MAC is missing.
        """
        if (
            not force
            and not self.has_destination
            and any(not stream.destination_from_packet for stream in self.streams.values())
        ):
            text = f"Port {self.index} dest MAC is invalid and there are streams without explicit dest MAC."
            raise refused(text)
        sending = (stream for stream in self.streams.values() if stream.rate(factor) > 0)
        macs = self.source_mac, self.destination_mac
        traffic = tuple(row for stream in sending for row in stream.traffic(factor, *macs))
        if len(traffic) > MOST_LENGTHS:
            raise refused(
                f"the streams of port {self.index} have {len(traffic)} lengths of frames together; expected at most"
                f" {MOST_LENGTHS}"
            )
        return traffic

    def multiplied(self, factor: float) -> tuple[StreamTraffic, ...]:
        """Return what it sends with all rates times *factor*, except fixed rates."""
        fixed = {stream.stream_id for stream in self.streams.values() if stream.fixed_rate}
        return tuple(row if row.stream_id in fixed else replace(row, pps=row.pps * factor) for row in self.sent)

    # -- addresses

    @property
    def has_destination(self) -> bool:
        """Return whether the next hop's MAC is known."""
        return self.destination_mac not in ("", NO_MAC)

    def set_l2(self, destination: str) -> None:
        """Ethernet mode towards *destination*."""
        mac_bytes(destination)
        self.destination_mac, self.ipv4 = destination.lower(), None

    def set_l3(self, source: str, destination: str, resolved: str) -> None:
        """IPv4 mode; *resolved*: the next hop's MAC or empty. The backend's own neighbour needs no resolving."""
        for address in (source, destination):
            try:
                ipaddress.IPv4Address(address)
            except ValueError:
                raise bad_parameter(f"'{address}' is not an IPv4 address") from None
        if resolved:
            mac_bytes(resolved)
        elif destination == self.description.peer_ipv4 and self._answers:
            resolved = self.description.peer_mac
        self.ipv4, self.destination_mac = (source, destination), resolved.lower() or NO_MAC

    # -- as reported to clients

    def attributes_json(self, link_up: bool) -> dict[str, Any]:
        """``attr`` of ``get_port_status``."""
        down = self._nic.speed_while_down
        speed = self.description.speed_bps if link_up or down is None else down * 1e6
        ether = {"src": self.source_mac, "dst": self.destination_mac if self.has_destination else NO_MAC}
        ipv4 = {"src": "none", "dst": "none", "state": "none"}
        if self.ipv4:
            ipv4 = {
                "src": self.ipv4[0],
                "dst": self.ipv4[1],
                "state": "resolved" if self.has_destination else "unresolved",
            }
        return {
            "fc": {"mode": self._nic.flow_control},
            "layer_cfg": {
                "ether": ether | {"state": "configured" if self.has_destination else "unconfigured"},
                "ipv4": ipv4,
                "ipv6": {"enabled": False},
            },
            "link": {"up": link_up},
            "multicast": {"enabled": False},
            "promiscuous": {"enabled": self.promiscuous},
            "rx_filter_mode": "hw",
            "speed": speed / 1e9,
            "vlan": {"tags": []},
            "vxlan_fs": [],
        }

    def status(self, link_up: bool) -> dict[str, Any]:
        """The answer to ``get_port_status``, for both clients."""
        off = {"is_active": False}
        return {
            "attr": self.attributes_json(link_up),
            "max_stream_id": max(self.streams, default=0),
            "owner": self.owner,
            "profile_count": 1,
            "rx_info": {
                "capture_port": off,
                "capwap_proxy": off,
                "grat_arp": {"is_active": False, "interval_sec": 0},
                "latency": off,
                "queue": off,
                "stack": off,
            },
            "service": self.service,
            "service_filtered": False,
            "state": self.state,
        }

    def information(self) -> dict[str, Any]:
        """Return its entry in ``get_system_info``, without its place."""
        name = self._nic.description or self.description.interface or f"port {self.index}"
        return {
            "index": self.index,
            "hw_mac": self.description.mac,
            "driver": self.description.driver,
            "description": f"{name}, {BY_A_MODEL}" if self._by_a_model else name,
            "pci_addr": self._nic.pci.format(port=self.index),
            "supp_speeds": list(self._nic.supported_speeds),
            "stack": "legacy",
            "rx": {"caps": list(self._nic.rx_caps), "counters": 1023},
            "is_prom_supported": True,
            "is_virtual": self._nic.is_virtual,
            **dict.fromkeys(NOT_SUPPORTED, False),
        }
