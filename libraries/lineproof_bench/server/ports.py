"""A port as its clients see it: owner, streams, state, addresses, processors, habits, and the card that it plays.

The facts of a card are in a file of ``nics/``, each behind its source: files and lines of TRex's sources, DPDK's among
them. Without a file the server answers as TRex does in software mode, and its counters leave nothing out.
"""

from __future__ import annotations

import ipaddress
import secrets
import string
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from lineproof.config import Config, load_config, read_yaml
from lineproof.simulation import BY_A_MODEL, MODEL_DRIVER, Habit, HabitKind

from ..backend import PortDescription, StreamTraffic
from .rpc import bad_parameter, refused
from .streams import ServerStream, mac_bytes


class ServerHabits:
    """*habits* of the testbed; *next_hops* by port: its own IPv4 address and the router's."""

    def __init__(self, habits: Sequence[Habit] = (), next_hops: Sequence[Sequence[str]] = ()) -> None:
        self._habits, self._next_hops = habits, [(row[0], row[1]) for row in next_hops]

    def has(self, kind: HabitKind, port: int) -> bool:
        """Return whether *port* has this habit."""
        return any(habit.kind == kind and habit.port in (None, port) for habit in self._habits)

    def unresolved(self, port: int) -> tuple[str, str] | None:
        """Return the addresses of *port* and its gateway, whose MAC address the server does not know; None: it does."""
        if not (self.has("silent gateway", port) or self.has("gateway unknown at start", port)):
            return None
        return self._next_hops[port] if port < len(self._next_hops) else ("0.0.0.0", "0.0.0.0")


ANSWERS: Mapping[str, Mapping[str, Any]] = read_yaml(Path(__file__).with_name("answers.yaml"))[0]
"""The parts of answers that never change."""
NO_MAC = "00:00:00:00:00:00"
_ALPHABET = string.ascii_letters + string.digits


def new_handle() -> str:
    """Return eight random characters, as TRex's API and port handlers are."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(8))


class ServerPort:
    """One port. Nothing here sends: see ``transmission``.

    *unresolved*: it starts with these IPv4 addresses, its own and its gateway's, without the gateway's MAC address.
    """

    def __init__(
        self, description: PortDescription, nic: ServerCard, unresolved: tuple[str, str] | None = None
    ) -> None:
        self._nic = nic
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
        """Take the port from its owner. It goes on sending."""
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
        """Leave the state of sending."""
        self.state = "STREAMS" if self.streams else "IDLE"

    def admit(self, stream: ServerStream) -> None:
        """Raise RpcError if *stream* cannot be added: the port sends, or has this stream already."""
        self.require("add_stream", "IDLE", "STREAMS")
        if stream.stream_id in self.streams:
            raise refused(f"stream {stream.stream_id} already exists in profile_id(_)")

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
        """Return all that is sent at *factor*. Raises RpcError when streams cannot be sent together.

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
        return tuple(stream.traffic(factor, *macs) for stream in sending)

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
        """Set Ethernet mode towards *destination*."""
        mac_bytes(destination)
        self.destination_mac, self.ipv4 = destination.lower(), None

    def set_l3(self, source: str, destination: str, resolved: str) -> None:
        """Set IPv4 mode; *resolved*: the next hop's MAC or empty. The backend's own neighbour needs no resolving."""
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
        """Return ``attr`` of ``get_port_status``."""
        down = self._nic.speed_while_down
        speed = self.description.speed_bps if link_up or down is None else down * 1e6
        ether = {"src": self.source_mac, "dst": self.destination_mac if self.has_destination else NO_MAC}
        source, destination = self.ipv4 or ("none", "none")
        state = "none" if self.ipv4 is None else "resolved" if self.has_destination else "unresolved"
        return {
            **ANSWERS["attributes"],
            "fc": {"mode": self._nic.flow_control},
            "layer_cfg": {
                "ether": ether | {"state": "configured" if self.has_destination else "unconfigured"},
                "ipv4": {"src": source, "dst": destination, "state": state},
                "ipv6": {"enabled": False},
            },
            "link": {"up": link_up},
            "promiscuous": {"enabled": self.promiscuous},
            "speed": speed / 1e9,
        }

    def status(self, link_up: bool) -> dict[str, Any]:
        """Return the answer to ``get_port_status``, for both clients."""
        return {
            **ANSWERS["status"],
            "attr": self.attributes_json(link_up),
            "max_stream_id": max(self.streams, default=0),
            "owner": self.owner,
            "service": self.service,
            "state": self.state,
        }

    def information(self) -> dict[str, Any]:
        """Return its entry in ``get_system_info``. One core sends for both ports of a pair."""
        name = self._nic.description or self.description.interface or f"port {self.index}"
        return {
            **ANSWERS["port"],
            "index": self.index,
            "hw_mac": self.description.mac,
            "driver": self.description.driver,
            "description": f"{name}, {BY_A_MODEL}" if self._by_a_model else name,
            "pci_addr": self._nic.pci.format(port=self.index),
            "supp_speeds": list(self._nic.supported_speeds),
            "rx": {"caps": list(self._nic.rx_caps), "counters": 1023},
            "is_virtual": self._nic.is_virtual,
            "cores": [self.index // 2],
            "numa": -1,
        }


FOLDER = Path(__file__).parent / "nics"

UNKNOWN_SPEED_BPS = 200e9
"""The speed that TRex v3.08 reports for one that the driver does not know: DPDK's 4294967295 Mbit/s, cut to the highest
speed that TRex has (src/trex_port_attr.h:50)."""

FrameLayer = Literal["ipv6", "vlan", "qinq", "mpls"]
"""Headers that a frame may have beside plain IPv4 over Ethernet."""


class ServerCard(Config):
    """The answers of a server about its ports, and how it counts: a file of ``nics/``.

    ``driver``, ``trex``: "" for the backend's driver and the server's own version. ``pci``: ``{port}`` is the port's
    number. ``knows_speed``: False for a driver that does not know its link's speed; ``speed_while_down`` in Mbit/s;
    None: as while it is up. ``flow_control``: RTE_ETH_FC_* of the port, -1: the driver cannot say.
    ``refused_groups``: the server's words for streams of a packet group whose frames have such a layer;
    ``unseen_groups``: layers whose frames the card does not lead to the core that counts groups.

    ``missed_errors``: how many ``ierrors`` a frame makes that the card missed; ``missed_received``: whether it is in
    ``ipackets`` all the same. ``received_fcs``: whether ``ibytes`` has the FCS. ``xstats_take``: reading the extended
    counters clears registers that TRex has not read yet, so that its own counters miss these frames. ``xstats``: those
    extended counters that count anything here, in the driver's order, and the field of PortCounters that each shows;
    bytes without FCS.
    """

    driver: str = ""
    trex: str = ""
    description: str = ""
    pci: str = "N/A"
    knows_speed: bool = True
    speed_while_down: int | None = None
    supported_speeds: tuple[int, ...] = ()
    flow_control: Annotated[int, Field(ge=-1, le=3)] = -1
    is_virtual: bool = True
    rx_caps: tuple[str, ...] = ("flow_stats", "latency", "rx_bytes")
    refused_groups: Mapping[FrameLayer, str] = {}
    unseen_groups: tuple[FrameLayer, ...] = ()
    missed_errors: Annotated[int, Field(ge=0)] = 1
    missed_received: bool = False
    received_fcs: bool = True
    xstats_take: bool = False
    xstats: Mapping[str, str] = {
        "rx_good_packets": "ipackets",
        "tx_good_packets": "opackets",
        "rx_good_bytes": "ibytes",
        "tx_good_bytes": "obytes",
        "rx_multicast_packets": "multicasts",
        "rx_errors": "ierrors",
        "tx_errors": "oerrors",
        "rx_xoff_packets": "pauses_received",
        "tx_xoff_packets": "pauses_sent",
    }

    def refusal_of(self, frame: bytes) -> str | None:
        """Return the words for a stream with this *frame* that shall be counted; None: it may be."""
        return next((self.refused_groups[layer] for layer in layers_of(frame) if layer in self.refused_groups), None)

    def sees(self, frame: bytes) -> bool:
        """Return whether received frames like this one reach the core that counts groups."""
        return not set(layers_of(frame)) & set(self.unseen_groups)


TAGS = (0x8100, 0x88A8, 0x9100)
TYPES = {"arp": 0x0806, "ip": 0x0800, "ip6": 0x86DD}


class HeaderOffsets(NamedTuple):
    """Where a frame's headers are. ``l3``: offset behind the Ethernet header and its tags, whose type is ``kind``.

    ``tags``: the EtherTypes of the tags.
    """

    tags: tuple[int, ...]
    kind: int
    l3: int


def headers_of(frame: bytes) -> HeaderOffsets:
    """Return the headers of an Ethernet frame."""
    at, tags = 12, list[int]()
    kind = int.from_bytes(frame[at : at + 2], "big")
    while kind in TAGS and len(frame) >= at + 6:
        at += 4
        tags.append(kind)
        kind = int.from_bytes(frame[at : at + 2], "big")
    return HeaderOffsets(tuple(tags), kind, at + 2)


def layers_of(frame: bytes) -> list[FrameLayer]:
    """Return what *frame*, an Ethernet frame, has beside plain IPv4."""
    headers = headers_of(frame)
    layers: list[FrameLayer] = ["qinq" if at or tag == 0x88A8 else "vlan" for at, tag in enumerate(headers.tags)]
    kinds: dict[int, FrameLayer] = {0x86DD: "ipv6", 0x8847: "mpls"}
    return layers + [layer for kind, layer in kinds.items() if kind == headers.kind]


def read_card(name: str) -> ServerCard:
    """Return the card of the file *name* of ``nics/``. Raises ConfigError with file, line and key."""
    return load_config(FOLDER / f"{name}.yaml", ServerCard)
