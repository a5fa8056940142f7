"""TRex stream objects read into plain data, and the load that a port's ask for together.

Facts from TRex's server (src/stx/stl, TrexStreamsGraph): frames shorter than 60 bytes are padded with zeros; rates
count the FCS. Latency streams have fixed rates: they are not multiplied, and taken off before the multiplier is
computed. A per cent multiplier is of the port's L1 speed. Ranges of inc and dec are widened to a whole number of steps.
"""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from lineproof.units import FCS, l1_bits, l2_bits

from ..backend import FieldVariable, PortDescription, StreamGroup, StreamTraffic
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
    variables: tuple[FieldVariable, ...] = ()
    fix_ipv4_checksum: int | None = None
    burst: int | None = None
    isg_usec: float = 0.0
    group: StreamGroup | None = None

    @property
    def fixed_rate(self) -> bool:
        """Return whether no multiplier changes its rate."""
        return self.group is not None and self.group.rule == "latency"

    @property
    def size(self) -> int:
        """Bytes with FCS of its frames."""
        return len(self.frame) + FCS

    @property
    def lasts_usec(self) -> float | None:
        """µs from its first frame to its last, before the multiplier; None: without end. As TRex's graph has it."""
        return None if self.burst is None or self.pps <= 0 else (self.burst - 1) / self.pps * 1e6

    def rate(self, factor: float) -> float:
        """Return its frames/s when the port's rates are multiplied by *factor*."""
        return self.pps if self.fixed_rate else self.pps * factor

    def traffic(self, factor: float, source: str, destination: str) -> StreamTraffic:
        """Return the backend's traffic from a port with these MACs."""
        frame = bytearray(self.frame)
        if not self.destination_from_packet:
            frame[0:6] = mac_bytes(destination)
        if not self.source_from_packet:
            frame[6:12] = mac_bytes(source)
        return StreamTraffic(
            stream_id=self.stream_id,
            frame=bytes(frame),
            pps=self.rate(factor),
            variables=self.variables,
            count=self.burst,
            fix_ipv4_checksum=self.fix_ipv4_checksum,
            group=self.group,
            isg_usec=self.isg_usec,
        )


def mac_bytes(text: str) -> bytes:
    """Return the six bytes of ``02:00:00:00:00:01``. Raises RpcError."""
    try:
        octets = bytes.fromhex(text.replace(":", "").replace("-", ""))
    except ValueError:
        octets = b""
    if len(octets) != 6:
        raise bad_parameter(f"'{text}' is not a MAC address; expected for example '02:00:00:00:00:01'")
    return octets


def parse_stream(stream_id: int, data: Params, port: PortDescription) -> ServerStream:
    """Return a stream of ``add_stream``. Raises RpcError, one sentence, for what could not be sent as asked."""
    mode = data.object("mode")
    kind = mode.text("type")
    if kind not in ("continuous", "single_burst"):
        raise bad_parameter(f"bad stream type provided: '{kind:.40}'; expected continuous or single_burst here")
    frame = packet_bytes(data.object("packet")).ljust(PADDED_TO, b"\0")
    flags, isg = data.integer("flags", most=0xFFFF), data.number("isg", least=0)
    if flags & DUMMY or not (data.boolean("enabled") and data.boolean("self_start")):
        raise refused("a stream that sends nothing by itself is not on this server; expected it left out")
    if data.integer("next_stream_id", -1, least=-1) != -1:
        raise refused("streams that start others are not on this server; expected all at once")
    rule, group = data.object("flow_stats"), None
    if rule.boolean("enabled", False):
        group = StreamGroup(rule.integer("stream_id", most=2**32 - 1), rule.choice("rule_type", RULES))
    variables, checksum = field_program(data.object("vm").objects("instructions"), len(frame))
    return ServerStream(
        stream_id=stream_id,
        json=dict(data.data) | {"next_stream_id": -1},
        frame=frame,
        pps=_rate(mode.object("rate"), FCS + len(frame), port.speed_bps),
        source_from_packet=bool(flags & 1),
        destination_from_packet=flags >> 1 & 3 == FROM_PACKET,
        variables=variables,
        fix_ipv4_checksum=checksum,
        burst=mode.integer("total_pkts", least=1, most=2**32 - 1) if kind == "single_burst" else None,
        isg_usec=isg,
        group=group,
    )


def packet_bytes(packet: Params) -> bytes:
    """Return the frame of a client's *packet*, without FCS. Raises RpcError if it is not base64 or has a wrong size."""
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


UNITS: Mapping[str, tuple[str, Callable[[float], float]]] = {
    "pps": ("pps", lambda size: 1.0),
    "bps": ("BPS L2", l2_bits),
    "bpsl1": ("BPS L1", l1_bits),
}
"""TRex's words for a unit of rates, and what a frame of so many bytes with FCS is in it."""


class RequestedLoad(NamedTuple):
    """The rates before the multiplier by unit: ``variable``, and ``fixed``, of latency streams.

    ``duration`` in µs, -1: without end.
    """

    variable: Mapping[str, float]
    fixed: Mapping[str, float]
    duration: float

    def at(self, factor: float) -> dict[str, float]:
        """Return the whole load when the variable part is multiplied by *factor*."""
        return {unit: factor * rate + self.fixed[unit] for unit, rate in self.variable.items()}


def load_of(streams: Iterable[ServerStream]) -> RequestedLoad:
    """Return the load of *streams*, which is highest when all of them are sent."""
    streams = tuple(streams)

    def together(fixed: bool) -> dict[str, float]:
        chosen = [row for row in streams if row.fixed_rate is fixed]
        return {unit: sum((row.pps * amount(row.size) for row in chosen), 0.0) for unit, (_, amount) in UNITS.items()}

    lasts = [row.lasts_usec for row in streams]
    duration = -1.0 if None in lasts else max((usec for usec in lasts if usec is not None), default=0.0)
    return RequestedLoad(together(False), together(True), duration)


def factor_of(multiplier: Params, load: RequestedLoad, speed_bps: float, force: bool) -> float:
    """Return the factor by which the rates of the streams are multiplied.

    Raises RpcError when nothing would be sent, or, unless *force*, when it is more than the port's L1 speed.
    """
    kind = multiplier.choice("type", ("raw", "percentage", *UNITS))
    value = multiplier.number("value", least=0)
    multiplier.choice("op", ("abs",), "abs")
    if load.at(1.0)["pps"] <= 0:
        raise refused("the streams of this port send nothing: their rate is zero")
    if load.variable["pps"] <= 0:
        # nothing but latency streams, which no multiplier changes
        return 1.0
    if kind == "percentage":
        kind, value = "bpsl1", value / 100 * speed_bps
    if kind != "raw":
        if value < (fixed := load.fixed[kind]):
            raise refused(f"current stream configuration enforces a minimum rate of '{fixed:g}' {UNITS[kind][0]}")
        value = (value - fixed) / load.variable[kind]
    if value <= 0:
        raise refused(f"Factor must be positive, got: {value:g}")
    asked = load.at(value)["bpsl1"]
    if not force and asked > speed_bps * 1.0001:
        line = speed_bps / 1e9
        raise refused(f"Expected L1 B/W: '{asked / 1e9:.4g} Gbps' exceeds port line rate: '{line:.4g} Gbps'")
    return value if force else min(value, (speed_bps - load.fixed["bpsl1"]) / load.variable["bpsl1"])


INSTRUCTIONS = ("flow_var", "write_flow_var", "fix_checksum_ipv4")


def field_program(instructions: Iterable[Params], length: int) -> tuple[tuple[FieldVariable, ...], int | None]:
    """Return the variables of the field engine as they are written into frames of *length* bytes without FCS.

    And the offset of the IPv4 header whose checksum is fixed, or None. Raises RpcError, one sentence, for what cannot
    be sent.
    """
    declared: dict[str, FieldVariable] = {}
    uses, written, checksum = Counter[str](), list[FieldVariable](), None
    for instruction in instructions:
        kind = instruction.text("type")
        if kind not in INSTRUCTIONS:
            known = ", ".join(INSTRUCTIONS)
            raise refused(f"unknown field-engine instruction '{kind:.40}'; this server knows {known}")
        if kind == "fix_checksum_ipv4":
            offset = instruction.integer("pkt_offset", most=0xFFFF)
            if checksum not in (None, offset) or offset + 20 > length:
                raise refused(f"{kind} at offset {offset}: expected one IPv4 header inside the {length} bytes")
            checksum = offset
            continue
        name = instruction.text("name")
        if kind == "flow_var":
            declared[name] = _variable(name, instruction)
        elif name not in declared:
            raise refused(f"the field engine writes '{name:.40}', which no flow_var before it declares")
        else:
            uses[name] += 1
            written.append(_written(declared[name], instruction, length))
    for name, times in uses.items():
        if times > 1 and declared[name].operation == "random":
            raise refused(f"the field engine uses the random variable '{name:.40}' twice, which this server cannot do")
    return tuple(written), checksum


def _written(variable: FieldVariable, instruction: Params, length: int) -> FieldVariable:
    """Return *variable* where, and with what added, it is written into frames of *length* bytes."""
    add = instruction.integer("add_value", 0, least=-(2**63), most=2**63 - 1)
    offset = instruction.integer("pkt_offset", most=0xFFFF)
    if offset + variable.size > length:
        beyond = f"at offset {offset} with {variable.size} bytes goes beyond the frame's {length} bytes"
        raise refused(f"write_flow_var {beyond}")
    if variable.size > 1 and not instruction.boolean("is_big_endian", True):
        raise refused("writing in little-endian order is not known to this server; expected is_big_endian true")
    low, high, first = (value + add for value in (variable.minimum, variable.maximum, variable.initial))
    return replace(variable, offset=offset, minimum=low, maximum=high, initial=first)


def _variable(name: str, instruction: Params) -> FieldVariable:
    size = instruction.integer("size")
    if size not in (1, 2, 4, 8):
        raise bad_parameter(f"flow_var '{name:.40}' has size {size}; expected 1, 2, 4 or 8 bytes")
    if instruction.text("next_var", "") or "value_list" in instruction:
        raise refused(f"flow_var '{name:.40}' has a next_var or a value_list, which this server does not know")
    operation, most = instruction.choice("op", ("inc", "dec", "random")), 256**size - 1
    step = instruction.integer("step", 1, least=1, most=most)
    low, high, first = (instruction.integer(key, most=most) for key in ("min_value", "max_value", "init_value"))
    if not low <= first <= high:
        raise bad_parameter(
            f"flow_var '{name:.40}': init_value {first} is not within min_value {low} and max_value {high}"
        )
    if operation != "random":
        missing = -(high - low + 1) % step
        low, high = (low, high + missing) if operation == "inc" else (low - missing, high)
        if low < 0 or high > most:
            raise refused(
                f"flow_var '{name:.40}': max_value - min_value + 1 is not a multiple of step {step}"
                " and has no room to be"
            )
    return FieldVariable(0, size, low, high, first, step, operation)
