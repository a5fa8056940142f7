"""TRex stream objects read into plain data.

Facts from TRex's server (src/stx/stl): frames shorter than 60 bytes are padded with zeros; rates count the FCS; a
stream of a chain begins ``isg`` after the last frame of the one before it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from lineproof.units import FCS, l1_bits, l2_bits

from ..backend import PortDescription
from .field_engine import FieldProgram, read_program
from .params import Params, bad_parameter, refused

SHORTEST, LONGEST, PADDED_TO = 14, 9238, 60
"""Bytes without FCS that a stream's frame may have, and those it is padded to."""
DUMMY = 8
"""The bit of ``flags`` for a stream that only takes its time in a chain."""
FROM_PACKET = 1
"""Destination MAC mode (bits 1 and 2 of ``flags``): the frame's own. Modes 0 and 2 take the port's."""
RATES = ("pps", "bps_L1", "bps_L2", "percentage")
RULES = ("stats", "latency")


class StreamGroup(NamedTuple):
    """The packet group that a stream is counted in; ``rule`` is one of RULES."""

    number: int
    rule: str


@dataclass(frozen=True, slots=True)
class ServerStream:
    """A stream as added. ``pps``: frames/s before the multiplier. ``frame``: without FCS, with the client's MACs.

    ``burst``: frames of one burst, None for a continuous stream; ``bursts``: how many of them, 0: without end;
    ``gap_usec``: µs between two of them.
    """

    stream_id: int
    json: Mapping[str, Any]
    frame: bytes
    pps: float
    self_start: bool
    source_from_packet: bool
    destination_from_packet: bool
    program: FieldProgram
    burst: int | None = None
    bursts: int = 1
    gap_usec: float = 0.0
    isg_usec: float = 0.0
    next_stream_id: int = -1
    group: StreamGroup | None = None

    @property
    def fixed_rate(self) -> bool:
        """Return whether no multiplier changes its rate."""
        return self.group is not None and self.group.rule == "latency"

    @property
    def mean_size(self) -> float:
        """Bytes with FCS, on the average of its frames."""
        lengths = self.program.lengths
        return FCS + (sum(max(length, PADDED_TO) for length in lengths) / len(lengths) if lengths else len(self.frame))

    @property
    def lasts_usec(self) -> float | None:
        """µs from its first frame to its last, before the multiplier; None: without end. As TRex's graph has it."""
        if self.burst is None or self.bursts == 0 or self.pps <= 0:
            return None
        once = (self.burst - 1) / self.pps * 1e6
        return once if self.bursts == 1 else (once + self.gap_usec) * self.bursts

    def rate(self, factor: float) -> float:
        """Frames/s when the port's rates are multiplied by *factor*."""
        return self.pps if self.fixed_rate else self.pps * factor

    def addressed(self, source: str, destination: str) -> bytes:
        """The frame when the port has these MACs."""
        frame = bytearray(self.frame)
        if not self.destination_from_packet:
            frame[0:6] = mac_bytes(destination)
        if not self.source_from_packet:
            frame[6:12] = mac_bytes(source)
        if self.program.udp_checksum is not None:
            frame[self.program.udp_checksum : self.program.udp_checksum + 2] = b"\0\0"
        return bytes(frame)


def mac_bytes(text: str) -> bytes:
    """``02:00:00:00:00:01`` as six bytes. Raises RpcError."""
    try:
        found = bytes.fromhex(text.replace(":", "").replace("-", ""))
    except ValueError:
        found = b""
    if len(found) != 6:
        raise bad_parameter(f"'{text}' is not a MAC address; expected for example '02:00:00:00:00:01'")
    return found


def parse_stream(stream_id: int, data: Params, port: PortDescription) -> ServerStream:
    """A stream from ``add_stream``. Raises RpcError, one sentence, for anything that could not be sent as asked."""
    mode = data.object("mode")
    kind = mode.text("type")
    if kind not in ("continuous", "single_burst", "multi_burst"):
        raise bad_parameter(f"bad stream type provided: '{kind:.40}'")
    frame = packet_bytes(data.object("packet")).ljust(PADDED_TO, b"\0")
    program = read_program(data.object("vm").objects("instructions"), frame)
    flags = data.integer("flags", most=0xFFFF)
    following = data.integer("next_stream_id", -1, least=-1)
    if kind == "continuous" and following != -1:
        raise refused(f"continous stream '{stream_id}' cannot point to another stream")
    if flags & DUMMY or not data.boolean("enabled") or data.integer("action_count", 0):
        raise refused("a stream that sends nothing, or ends its chain, is not on this server; expected it left out")
    count = {"single_burst": "total_pkts", "multi_burst": "pkts_per_burst"}.get(kind)
    lengths = [max(length, PADDED_TO) for length in program.lengths] or [len(frame)]
    return ServerStream(
        stream_id=stream_id,
        json=dict(data.data) | {"next_stream_id": following},
        frame=frame,
        pps=_rate(mode.object("rate"), FCS + sum(lengths) / len(lengths), port.speed_bps),
        self_start=data.boolean("self_start"),
        source_from_packet=bool(flags & 1),
        destination_from_packet=flags >> 1 & 3 == FROM_PACKET,
        program=program,
        burst=_frames(mode, kind, count) if count else None,
        bursts=mode.integer("count", most=2**32 - 1) if kind == "multi_burst" else 1,
        gap_usec=mode.number("ibg", least=0) if kind == "multi_burst" else 0.0,
        isg_usec=data.number("isg", least=0),
        next_stream_id=following,
        group=_group(data.object("flow_stats")),
    )


def _frames(mode: Params, kind: str, name: str) -> int:
    found = mode.integer(name, most=2**32 - 1)
    if not found:
        raise bad_parameter(f"{kind}: '{name}' cannot be zero.")
    return found


def _group(rule: Params) -> StreamGroup | None:
    if not rule.boolean("enabled", False):
        return None
    return StreamGroup(rule.integer("stream_id", most=2**32 - 1), rule.choice("rule_type", RULES))


def packet_bytes(packet: Params) -> bytes:
    """The frame of a client's *packet*, without FCS. Raises RpcError if it is not base64 or has a wrong size."""
    try:
        frame = base64.b64decode(packet.text("binary", longest=2 * LONGEST), validate=True)
    except (binascii.Error, ValueError):
        raise bad_parameter("field 'binary' is not base64") from None
    if not SHORTEST <= len(frame) <= LONGEST:
        raise refused(f"Bad packet size provided: {len(frame)}. Should be between {SHORTEST} and {LONGEST}")
    return frame


def _rate(rate: Params, size: float, speed_bps: float) -> float:
    kind, value = rate.choice("type", RATES), rate.number("value", least=0)
    if kind == "pps":
        return value
    if kind == "bps_L2":
        return value / l2_bits(size)
    return (value if kind == "bps_L1" else value / 100 * speed_bps) / l1_bits(size)
