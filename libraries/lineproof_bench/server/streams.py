"""TRex stream objects read into plain data, and the load that those of a port ask for together.

Facts from TRex's server (src/stx/stl, TrexStreamsGraph): frames shorter than 60 bytes are padded with zeros; rates
count the FCS. The load of a port is the highest that its streams ask for at one moment. Latency streams have fixed
rates: they are not multiplied, and taken off before the multiplier is computed. A per cent multiplier is of the port's
L1 speed.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from lineproof.units import FCS, l1_bits, l2_bits

from ..backend import PortDescription, StreamGroup, StreamTraffic
from .field_engine import FieldProgram
from .rpc import Params, bad_parameter, refused

SHORTEST, LONGEST, PADDED_TO = 14, 9238, 60
"""Bytes without FCS that a stream's frame may have, and those it is padded to."""
DUMMY = 8
"""The bit of ``flags`` for a stream that sends nothing."""
FROM_PACKET = 1
"""Destination MAC mode (bits 1 and 2 of ``flags``): the frame's own. Modes 0 and 2 take the port's."""
RATES = ("pps", "bps_L1", "bps_L2", "percentage")
RULES = ("stats", "latency")


@dataclass(frozen=True, slots=True)
class ServerStream:
    """A stream as added. ``pps``: frames/s before the multiplier. ``frame``: without FCS, with the client's MACs.

    ``burst``: frames after which it ends, None for a continuous stream. ``isg_usec``: µs before the first.
    """

    stream_id: int
    json: Mapping[str, Any]
    frame: bytes
    pps: float
    source_from_packet: bool
    destination_from_packet: bool
    program: FieldProgram
    burst: int | None = None
    isg_usec: float = 0.0
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
        return None if self.burst is None or self.pps <= 0 else (self.burst - 1) / self.pps * 1e6

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

    def traffic(self, factor: float, source: str, destination: str) -> tuple[StreamTraffic, ...]:
        """The backend's traffic from a port with these MACs: one stream for each length of its frames."""
        frame, lengths = self.addressed(source, destination), self.program.lengths
        pieces = len(lengths) or 1
        found = []
        for place in range(pieces):
            frames = None if self.burst is None else (self.burst + pieces - 1 - place) // pieces
            if frames == 0:
                continue
            length = max(PADDED_TO, lengths[place]) if lengths else len(frame)
            variables = self.program.of_length(place) if lengths else self.program.variables
            found.append(
                StreamTraffic(
                    stream_id=self.stream_id,
                    frame=frame[:length],
                    pps=self.rate(factor) / pieces,
                    variables=tuple(row for row in variables if row.offset + row.size <= length),
                    count=frames,
                    fix_ipv4_checksum=self.program.fix_ipv4_checksum,
                    group=self.group,
                    isg_usec=self.isg_usec,
                    phase=0.5 - (place + 0.5) / pieces,
                )
            )
        return tuple(found)


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
    if kind not in ("continuous", "single_burst"):
        raise bad_parameter(f"bad stream type provided: '{kind:.40}'; expected continuous or single_burst here")
    frame = packet_bytes(data.object("packet")).ljust(PADDED_TO, b"\0")
    program = FieldProgram(data.object("vm").objects("instructions"), frame)
    flags = data.integer("flags", most=0xFFFF)
    if flags & DUMMY or not (data.boolean("enabled") and data.boolean("self_start")):
        raise refused("a stream that sends nothing by itself is not on this server; expected it left out")
    if data.integer("next_stream_id", -1, least=-1) != -1:
        raise refused("streams that start others are not on this server; expected streams that begin together")
    rule, group = data.object("flow_stats"), None
    if rule.boolean("enabled", False):
        group = StreamGroup(rule.integer("stream_id", most=2**32 - 1), rule.choice("rule_type", RULES))
    lengths = [max(length, PADDED_TO) for length in program.lengths] or [len(frame)]
    return ServerStream(
        stream_id=stream_id,
        json=dict(data.data) | {"next_stream_id": -1},
        frame=frame,
        pps=_rate(mode.object("rate"), FCS + sum(lengths) / len(lengths), port.speed_bps),
        source_from_packet=bool(flags & 1),
        destination_from_packet=flags >> 1 & 3 == FROM_PACKET,
        program=program,
        burst=mode.integer("total_pkts", least=1, most=2**32 - 1) if kind == "single_burst" else None,
        isg_usec=data.number("isg", least=0),
        group=group,
    )


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


MULTIPLIERS = ("raw", "bps", "bpsl1", "pps", "percentage")


@dataclass(frozen=True, slots=True)
class LoadRates:
    """Frames/s, L2 and L1 bit/s."""

    pps: float = 0.0
    l2_bps: float = 0.0
    l1_bps: float = 0.0

    def __add__(self, other: LoadRates) -> LoadRates:
        return LoadRates(self.pps + other.pps, self.l2_bps + other.l2_bps, self.l1_bps + other.l1_bps)

    def times(self, factor: float) -> LoadRates:
        """This rate multiplied."""
        return LoadRates(self.pps * factor, self.l2_bps * factor, self.l1_bps * factor)


class RequestedLoad(NamedTuple):
    """The load before the multiplier: ``variable``, the highest sum, and ``fixed``, of latency streams.

    ``duration`` in µs, -1: without end.
    """

    variable: LoadRates
    fixed: LoadRates
    duration: float

    def at(self, factor: float) -> LoadRates:
        """All of it when the variable part is multiplied by *factor*."""
        return self.variable.times(factor) + self.fixed

    @property
    def pps(self) -> float:
        """Frames/s before the multiplier."""
        return self.at(1.0).pps


def rate_of(stream: ServerStream) -> LoadRates:
    """The rate of *stream* while it sends."""
    return LoadRates(stream.pps, stream.pps * l2_bits(stream.mean_size), stream.pps * l1_bits(stream.mean_size))


def load_of(streams: Iterable[ServerStream]) -> RequestedLoad:
    """Return the load of *streams*."""
    changes: list[tuple[float, LoadRates]] = []
    """From when on (µs) how much more is sent, or less."""
    fixed, endless = LoadRates(), False
    for stream in streams:
        rate, lasts = rate_of(stream), stream.lasts_usec
        endless = endless or lasts is None
        if stream.fixed_rate:
            fixed += rate
        else:
            changes.append((stream.isg_usec, rate))
            if lasts is not None:
                changes.append((stream.isg_usec + lasts, rate.times(-1)))
    changes.sort(key=lambda change: change[0])
    sums = list(accumulate((rate for _, rate in changes), initial=LoadRates()))
    highest = LoadRates(max(row.pps for row in sums), max(row.l2_bps for row in sums), max(row.l1_bps for row in sums))
    return RequestedLoad(highest, fixed, -1.0 if endless else max((at for at, _ in changes), default=0.0))


def factor_of(multiplier: Params, load: RequestedLoad, speed_bps: float, force: bool) -> float:
    """Return what the streams' rates are multiplied by.

    Raises RpcError when nothing would be sent, or, unless *force*, when it is more than the port's L1 speed.
    """
    kind = multiplier.choice("type", MULTIPLIERS)
    value = multiplier.number("value", least=0)
    multiplier.choice("op", ("abs",), "abs")
    if load.pps <= 0:
        raise refused("the streams of this port send nothing: their rate is zero")
    if load.variable.pps <= 0:
        # nothing but latency streams, which no multiplier changes
        return 1.0
    factor = _factor(kind, value, load, speed_bps)
    if factor <= 0:
        raise refused(f"Factor must be positive, got: {factor:g}")
    asked = load.at(factor).l1_bps
    if not force and asked > speed_bps * 1.0001:
        line = speed_bps / 1e9
        raise refused(f"Expected L1 B/W: '{asked / 1e9:.4g} Gbps' exceeds port line rate: '{line:.4g} Gbps'")
    return factor if force else min(factor, (speed_bps - load.fixed.l1_bps) / load.variable.l1_bps)


def _factor(kind: str, value: float, load: RequestedLoad, speed_bps: float) -> float:
    if kind == "raw":
        return value
    if kind == "percentage":
        kind, value = "bpsl1", value / 100 * speed_bps
    name, unit = {"pps": ("pps", "pps"), "bps": ("l2_bps", "BPS L2"), "bpsl1": ("l1_bps", "BPS L1")}[kind]
    fixed = getattr(load.fixed, name)
    if value < fixed:
        raise refused(f"current stream configuration enforces a minimum rate of '{fixed:g}' {unit}")
    found: float = (value - fixed) / getattr(load.variable, name)
    return found
