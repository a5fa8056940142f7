"""Single frames: ``capture`` keeps those that a port receives, ``push_pkts`` sends those of a client.

Several captures may look at one port. What is pushed are mostly questions for a neighbour's MAC address.
"""

from __future__ import annotations

import base64
import ipaddress
import re
import struct
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from lineproof.core.traffic.ip_header import ipv4_checksum

from ..backend import Backend, CapturedFrame, StreamTraffic
from .ports import TYPES, ServerHabits, ServerPort, headers_of
from .rpc import Params, refused
from .streams import PADDED_TO, mac_bytes, packet_bytes

ANSWER_DELAY = 50e-6
"""Seconds until a modelled router answers."""
MOST_FRAMES = 100_000
"""Most frames one capture may keep."""
MOST_CAPTURES = 10
"""Captures that there may be at once, as on a TRex."""


@dataclass(slots=True)
class _Capture:
    number: int
    rx: tuple[int, ...]
    limit: int
    started: float
    filter: str
    terms: Sequence[Set[str]]
    cyclic: bool
    kept: list[CapturedFrame] = field(default_factory=list)
    """Frames that were not fetched yet."""
    active: bool = True
    fetched: int = 0

    def take(self, frames: list[CapturedFrame]) -> None:
        """Keep those that fit: the first, or the last when cyclic; of several ports in the order of their time."""
        new = [frame for frame in frames if not self.filter or any(term <= words_of(frame.data) for term in self.terms)]
        self.kept += new if self.cyclic else new[: self.room]
        self.kept = sorted(self.kept, key=lambda frame: frame.timestamp)[-self.limit :]

    @property
    def room(self) -> int:
        """Frames that it can still keep."""
        left = self.limit if self.cyclic else self.limit - self.fetched - len(self.kept)
        return left if self.active else 0


def words_of(frame: bytes) -> set[str]:
    """Return the words of a filter that *frame* fits: its type, behind any tags, and whether it has any."""
    headers = headers_of(frame)
    kinds = {word for word, kind in TYPES.items() if kind == headers.kind}
    return kinds | {"vlan"} if headers.tags else kinds


_ALL = r"\w+(?: +and +\w+)*"
_FILTER = re.compile(rf"(?:{_ALL}|\({_ALL}\))(?: +or +\w+| +or *\({_ALL}\))*|")
"""A rest behind ``or`` needs brackets round ``and``: pcap-filter(7) reads ``ip or vlan and arp`` from left to right."""


def filter_terms(text: str) -> list[set[str]]:
    """Return the sets of words of which a frame has to fit one. Raises RpcError for a filter that is not known."""
    terms = [set(re.findall(r"\w+", term)) - {"and"} for term in re.split(r"\bor\b", text)]
    if not _FILTER.fullmatch(text) or set[str]().union(*terms) - {*TYPES, "vlan"}:
        raise refused(f"the filter '{text:.80}' is not on this server; expected {', '.join(TYPES)}, vlan, and, or")
    return terms


class SingleFrames:
    """All captures, and frames that are pushed. *now* is the bench's clock in s.

    A backend keeps the last frames after a request. They are collected whenever a client asks for anything about
    captures: a capture of the first frames misses those that do not fit between two questions.
    """

    def __init__(self, backend: Backend, now: Callable[[], float], habits: ServerHabits) -> None:
        self._backend, self._now, self._habits = backend, now, habits
        self._captures: dict[int, _Capture] = {}
        self._requested: dict[int, int] = {}
        """Frames that the backend keeps, by port."""
        self._count = 0

    def capture(self, params: Params) -> Any:
        """Answer the method ``capture``."""
        command = params.choice("command", ("start", "stop", "fetch", "status", "remove"))
        if command == "start":
            return self._start(params)
        if command != "remove":
            self._collect()
        if command == "status":
            return [self._status(capture) for capture in self._captures.values()]
        number = params.integer("capture_id")
        capture = self._captures.get(number)
        if capture is None:
            raise refused(f"capture ID {number} does not exist")
        if command == "fetch":
            return self._fetch(capture, params.integer("pkt_limit", least=1), params.integer("snaplen", 0))
        capture.active = False
        if command == "remove":
            del self._captures[number]
        self._request()
        return {} if command == "remove" else {"pkt_count": len(capture.kept), "endpoint": ""}

    def _start(self, params: Params) -> dict[str, Any]:
        wanted, limit = params.text("filter", ""), params.integer("limit", least=1, most=MOST_FRAMES)
        cyclic = params.choice("mode", ("fixed", "cyclic"), "fixed") == "cyclic"
        rx, tx = tuple(dict.fromkeys(params.integers("rx"))), params.integers("tx")
        known = {port.index for port in self._backend.ports}
        if tx or not rx or not known.issuperset(rx):
            raise refused(f"'rx' is {list(rx)}, 'tx' is {tx}; expected 'rx' of the ports {sorted(known)}, and no 'tx'")
        if len(self._captures) >= MOST_CAPTURES:
            raise refused("capture limit has reached")
        self._collect()
        self._count += 1
        capture = _Capture(self._count, rx, limit, self._now(), wanted, filter_terms(wanted), cyclic)
        self._captures[capture.number] = capture
        self._request()
        return {"capture_id": capture.number, "start_ts": capture.started}

    # -- looking at ports

    def _request(self) -> None:
        """Request as many frames from the backend as the captures have room for."""
        for port in (row.index for row in self._backend.ports):
            wanted = max((row.room for row in self._captures.values() if port in row.rx), default=0)
            requested = self._requested.get(port, 0)
            # a request that is large enough is left alone: no frame is missed meanwhile
            if wanted > requested or (requested and not wanted):
                self._requested[port] = wanted
                self._backend.capture(port, wanted)

    def _collect(self) -> None:
        """Take the frames that the backend has kept."""
        for port, requested in self._requested.items():
            frames = list(self._backend.captured(port)) if requested else []
            for capture in self._captures.values() if frames else ():
                if capture.active and port in capture.rx:
                    capture.take(frames)
        self._request()

    def keeps_service(self, port: int) -> str:
        """Return what keeps *port* in service mode, in TRex's words; "" if nothing does."""
        looking = any(capture.active and port in capture.rx for capture in self._captures.values())
        return f"an active capture on port {port} exists" if looking else ""

    # -- as reported to clients

    def _fetch(self, capture: _Capture, most: int, snaplen: int) -> dict[str, Any]:
        chosen, capture.kept = capture.kept[:most], capture.kept[most:]
        # those of a flow are the same
        texts = {data: base64.b64encode(data[: snaplen or None]).decode() for data in {frame.data for frame in chosen}}
        rows = [
            {
                "binary": texts[frame.data],
                "index": index,
                "origin": "RX",
                "port": frame.port,
                "ts": frame.timestamp,
                "wirelen": len(frame.data),
            }
            for index, frame in enumerate(chosen, capture.fetched + 1)
        ]
        capture.fetched += len(chosen)
        return {"pkts": rows, "pending": len(capture.kept), "start_ts": capture.started}

    @staticmethod
    def _status(capture: _Capture) -> dict[str, Any]:
        return {
            "id": capture.number,
            "state": "ACTIVE" if capture.active else "STOPPED",
            "count": len(capture.kept),
            "limit": capture.limit,
            # ports as bits of a number
            "filter": {"bpf": capture.filter, "rx": sum(1 << port for port in capture.rx), "tx": 0},
        }

    def close(self) -> None:
        """Stop all."""
        self._captures.clear()
        self._request()

    # -- pushed frames

    def push(self, port: ServerPort, params: Params) -> dict[str, Any]:
        """Answer the method ``push_pkts``. Raises RpcError when the frames cannot be sent."""
        frames = [_frame_of(port, packet) for packet in params.objects("pkts")]
        gap = max(1.0, params.number("ipg_usec", 0.0, least=0))
        pieces = tuple(
            StreamTraffic(number, frame.ljust(PADDED_TO, b"\0"), 1e6 / gap, count=1, isg_usec=number * gap)
            for number, frame in enumerate(frames)
        )
        if port.active and not self._backend.is_simulated:
            raise refused(f"port {port.index} sends streams; expected to stop them before packets are pushed")
        if not port.active and pieces:
            try:
                self._backend.start({port.index: pieces}, None)
            except Exception as error:
                raise refused(f"port {port.index} cannot send the packets: {error}") from error
        sent = self._now()
        for frame in frames:
            self._answer(port, frame)
        return {"sent": len(frames), "ts": sent}

    def _answer(self, port: ServerPort, frame: bytes) -> None:
        if not self._backend.is_simulated or self._habits.has("silent gateway", port.index):
            return

        def owns(address: str) -> bool:
            known = self._backend.answers(port.index, address)
            # a device without any address yet is assumed to have the one that the port was given
            return known if known is not None else port.ipv4 is not None and port.ipv4[1] == address

        if (reply := reply_to(frame, port.description.peer_mac, owns)) is not None:
            for capture in self._captures.values():
                if capture.active and port.index in capture.rx:
                    capture.take([CapturedFrame(port.index, reply, self._now() + ANSWER_DELAY)])


def _frame_of(port: ServerPort, packet: Params) -> bytes:
    frame = bytearray(packet_bytes(packet))
    if packet.boolean("use_port_dst_mac", False):
        frame[0:6] = mac_bytes(port.destination_mac)
    if packet.boolean("use_port_src_mac", False):
        frame[6:12] = mac_bytes(port.source_mac)
    return bytes(frame)


BROADCAST, IPV6_GROUP = b"\xff" * 6, b"\x33\x33"


def reply_to(frame: bytes, mac: str, owns: Callable[[str], bool]) -> bytes | None:
    """Return the answer of a device with *mac* to *frame*, without FCS, or None. *owns*: whether it has an address."""
    own = mac_bytes(mac)
    if len(frame) < 14 or (frame[:6] not in (own, BROADCAST) and frame[:2] != IPV6_GROUP):
        return None
    headers = headers_of(frame)
    link = frame[6:12] + own + frame[12 : headers.l3]
    body = frame[headers.l3 :]
    if headers.kind == TYPES["arp"]:
        return _arp(link, body, own, owns)
    if headers.kind == TYPES["ip6"]:
        return _neighbour(link, body, own, owns)
    return None


def _arp(link: bytes, body: bytes, own: bytes, owns: Callable[[str], bool]) -> bytes | None:
    # Ethernet, IPv4, lengths 6 and 4, a request
    if len(body) < 28 or body[:8] != bytes.fromhex("0001080006040001"):
        return None
    wanted = body[24:28]
    if not owns(str(ipaddress.IPv4Address(wanted))):
        return None
    return link + bytes.fromhex("0001080006040002") + own + wanted + body[8:18]


def link_local(mac: bytes) -> bytes:
    """Return the link-local IPv6 address of an interface with *mac* (RFC 4291, appendix A)."""
    return bytes.fromhex("fe80000000000000") + bytes([mac[0] ^ 2]) + mac[1:3] + b"\xff\xfe" + mac[3:]


def _neighbour(link: bytes, body: bytes, own: bytes, owns: Callable[[str], bool]) -> bytes | None:
    # ICMPv6, hop limit 255, a solicitation
    if len(body) < 64 or body[6:8] != b"\x3a\xff" or body[40] != 135:
        return None
    asking, wanted = body[8:24], body[48:64]
    if wanted != link_local(own) and not owns(str(ipaddress.IPv6Address(wanted))):
        return None
    addresses = wanted + asking
    # an advertisement: of a router, solicited, overriding; its option is the target's MAC address
    message = bytearray(b"\x88\0\0\0\xe0\0\0\0" + wanted + b"\x02\x01" + own)
    checksum = ipv4_checksum(addresses + struct.pack("!II", len(message), 58) + message)
    message[2:4] = checksum.to_bytes(2, "big")
    return link + struct.pack("!IHBB", 6 << 28, len(message), 58, 255) + addresses + bytes(message)
