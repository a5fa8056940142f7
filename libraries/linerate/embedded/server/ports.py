"""A port as its clients see it: who owns it, its streams, its state (IDLE, STREAMS, TX, PAUSE) and its addresses."""

from __future__ import annotations

import ipaddress
import secrets
import string
from dataclasses import replace
from typing import Any

from ..backend import PortDescription, StreamTraffic
from .attributes import Attributes, Tags
from .legs import MOST, legs_of, traffic_of
from .params import bad, refused
from .streams import Stream, mac_bytes

STREAM_LIMIT = 20_000
NO_MAC = "00:00:00:00:00:00"
_ALPHABET = string.ascii_letters + string.digits


def handle() -> str:
    """Eight random characters, as TRex's API and port handlers are."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(8))


class Port:
    """One port. Nothing here sends: see ``transmission``."""

    def __init__(self, description: PortDescription) -> None:
        self.description = description
        self.index = description.index
        self.owner = ""
        self.session = 0
        self._handler = ""
        self.streams: dict[int, Stream] = {}
        self.state = "IDLE"
        self.factor: float | None = None
        self.sent: tuple[StreamTraffic, ...] = ()
        self.applied: tuple[StreamTraffic, ...] = ()
        """What the backend was told last."""
        self.highest_stream = 0
        self.duration: float | None = None
        self.paused: frozenset[int] = frozenset()
        self.attributes = Attributes()
        self.vlan = Tags()
        self.service = False
        self.source_mac = description.mac
        self.destination_mac = description.peer_mac
        self.ipv4: tuple[str, str] | None = None
        if description.ipv4 != "0.0.0.0":
            self.ipv4 = (description.ipv4, description.peer_ipv4)

    # -- owners

    def acquire(self, user: str, session: int, force: bool) -> tuple[str, bool]:
        """Give the port to *user*. Returns the new handler and whether force was needed. Raises RpcError when taken."""
        taken = bool(self.owner)
        if taken and not force:
            if self.owner == user:
                raise refused(f"port is already owned by another session of '{user}'")
            raise refused(f"port is already taken by '{self.owner}'")
        self.owner, self.session, self._handler = user, session, handle()
        return self._handler, taken

    def verify(self, handler: str) -> None:
        """Raise RpcError unless *handler* is the present owner's."""
        if not self.owner:
            raise refused("please acquire the port before modifying port state")
        if not secrets.compare_digest(handler.encode(), self._handler.encode()):
            raise refused(f"please acquire the port before modifying port state: it is now owned by '{self.owner}'")

    def release(self) -> None:
        """Nobody owns the port any more. What it sends goes on."""
        self.owner, self.session, self._handler = "", 0, ""

    # -- states

    @property
    def active(self) -> bool:
        """Whether it sends or pauses."""
        return self.state in ("TX", "PAUSE")

    def require(self, command: str, *states: str) -> None:
        """Raise RpcError unless the port is in one of *states*."""
        if self.state not in states:
            raise refused(f"command '{command}' cannot be executed on current state: '{self.state} on profile_id(_).'")

    def idle(self) -> None:
        """Sending has ended."""
        self.state = "STREAMS" if self.streams else "IDLE"
        self.factor = None

    # -- streams

    def admit(self, stream: Stream) -> None:
        """Raise RpcError when *stream* cannot be added: the port sends, or has this stream, or has too many."""
        self.require("add_stream", "IDLE", "STREAMS")
        if stream.stream_id in self.streams:
            raise refused(f"stream {stream.stream_id} already exists")
        if len(self.streams) >= STREAM_LIMIT:
            raise refused(f"Reached limit of {STREAM_LIMIT} streams at the port.")

    def add(self, stream: Stream) -> None:
        """Add a stream that was admitted."""
        self.streams[stream.stream_id] = stream
        self.highest_stream = max(self.highest_stream, stream.stream_id)
        self.state = "STREAMS"

    def remove(self, stream_id: int) -> Stream:
        """Remove a stream and return it. Raises RpcError when there is none of that id."""
        self.require("remove_stream", "STREAMS", "IDLE")
        found = self.streams.pop(stream_id, None)
        if found is None:
            raise refused(f"stream {stream_id} does not exist")
        self.idle()
        return found

    def remove_all(self) -> list[Stream]:
        """Remove all streams and return them."""
        self.require("remove_all_streams", "IDLE", "STREAMS")
        found = list(self.streams.values())
        self.streams.clear()
        self.highest_stream = 0
        self.idle()
        return found

    def traffic(self, factor: float, duration: float | None = None, force: bool = True) -> tuple[StreamTraffic, ...]:
        """All that is sent within *duration* s, at *factor*. Raises RpcError when streams cannot be sent together.

        Unless *force*, also when a destination MAC is missing.
        """
        sending = [stream for stream in self.streams.values() if stream.sends]
        if not force and not self.has_destination and any(not stream.destination_from_packet for stream in sending):
            text = f"Port {self.index} dest MAC is invalid and there are streams without explicit dest MAC."
            raise refused(text)
        legs = legs_of(self.streams.values(), factor, duration)
        found = tuple(row for leg in legs for row in traffic_of(leg, self.source_mac, self.destination_mac))
        if len(found) > MOST:
            raise refused(
                f"the streams of port {self.index} have {len(found)} bursts and lengths of frames together;"
                f" right would be at most {MOST}"
            )
        return found

    def multiplied(self, traffic: tuple[StreamTraffic, ...], factor: float) -> tuple[StreamTraffic, ...]:
        """*traffic* of this port with all rates times *factor*, but for those that no multiplier changes."""
        fixed = {stream.stream_id for stream in self.streams.values() if stream.fixed_rate}
        return tuple(row if row.stream_id in fixed else replace(row, pps=row.pps * factor) for row in traffic)

    @property
    def present(self) -> tuple[StreamTraffic, ...]:
        """``sent`` with nothing of the streams that are paused."""
        return tuple(replace(row, pps=0.0) if row.stream_id in self.paused else row for row in self.sent)

    # -- addresses

    @property
    def has_destination(self) -> bool:
        """Whether the next hop's MAC is known."""
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
                raise bad(f"'{address}' is not an IPv4 address") from None
        if resolved:
            mac_bytes(resolved)
        elif destination == self.description.peer_ipv4:
            resolved = self.description.peer_mac
        self.ipv4, self.destination_mac = (source, destination), resolved.lower() or NO_MAC

    # -- as told to clients

    def told(self, link_up: bool) -> dict[str, Any]:
        """``attr`` of ``get_port_status``."""
        ether = {"src": self.source_mac, "dst": self.destination_mac if self.has_destination else NO_MAC}
        ipv4 = {"src": "none", "dst": "none", "state": "none"}
        if self.ipv4:
            ipv4 = {
                "src": self.ipv4[0],
                "dst": self.ipv4[1],
                "state": "resolved" if self.has_destination else "unresolved",
            }
        return {
            "fc": {"mode": -1},
            "layer_cfg": {
                "ether": ether | {"state": "configured" if self.has_destination else "unconfigured"},
                "ipv4": ipv4,
                "ipv6": {"enabled": False},
            },
            "link": {"up": link_up},
            "multicast": {"enabled": self.attributes.multicast},
            "promiscuous": {"enabled": self.attributes.promiscuous},
            "rx_filter_mode": "hw",
            "speed": self.description.speed_bps / 1e9,
            "vlan": {"tags": list(self.vlan.tags)},
            "vxlan_fs": [],
        }

    def status(self, link_up: bool) -> dict[str, Any]:
        """The answer to ``get_port_status``, for both clients."""
        off = {"is_active": False}
        return {
            "attr": self.told(link_up),
            "max_stream_id": self.highest_stream,
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

    def information(self, counts: bool) -> dict[str, Any]:
        """Its entry in ``get_system_info``. *counts*: whether packet groups are counted."""
        return {
            "index": self.index,
            "hw_mac": self.description.mac,
            "driver": self.description.driver,
            "description": self.description.interface or "simulated",
            "pci_addr": "N/A",
            "numa": -1,
            "cores": [0],
            "supp_speeds": [],
            "stack": "legacy",
            "rx": {"caps": ["flow_stats", "latency", "rx_bytes"], "counters": 1023}
            if counts
            else {"caps": [], "counters": 0},
            "is_fc_supported": False,
            "is_ieee1588_supported": False,
            "is_led_supported": False,
            "is_link_supported": False,
            "is_prom_supported": True,
            "is_virtual": True,
            "is_vxlan_supported": False,
        }
