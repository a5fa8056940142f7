"""TRex stream objects and field engines read into plain data, and the load that a port's ask for together.

Facts from TRex's server (src/stx/stl, TrexStreamsGraph): frames shorter than 60 bytes are padded with zeros; rates
count the FCS. The load of a port is the highest that its streams ask for at one moment. Latency streams have fixed
rates: they are not multiplied, and taken off before the multiplier is computed. A per cent multiplier is of the port's
L1 speed. Ranges of inc and dec are widened to a whole number of steps; a tuple's port moves on when its address wraps.
"""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
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


UNITS: Mapping[str, tuple[str, Callable[[float], float]]] = {
    "pps": ("pps", lambda size: 1.0),
    "bps": ("BPS L2", l2_bits),
    "bpsl1": ("BPS L1", l1_bits),
}
"""TRex's words for a unit of rates, and what a frame of so many bytes with FCS is in it."""


class RequestedLoad(NamedTuple):
    """The rates before the multiplier by unit: ``variable``, the highest sums, and ``fixed``, of latency streams.

    ``duration`` in µs, -1: without end.
    """

    variable: Mapping[str, float]
    fixed: Mapping[str, float]
    duration: float

    def at(self, factor: float) -> dict[str, float]:
        """All of it when the variable part is multiplied by *factor*."""
        return {unit: factor * rate + self.fixed[unit] for unit, rate in self.variable.items()}


def load_of(streams: Iterable[ServerStream]) -> RequestedLoad:
    """Return the load of *streams*."""
    streams = tuple(streams)
    changes: list[tuple[float, int, ServerStream]] = []
    """From when on (µs) a stream is sent, or no more."""
    for row in streams:
        if not row.fixed_rate:
            changes.append((row.isg_usec, 1, row))
            if row.lasts_usec is not None:
                changes.append((row.isg_usec + row.lasts_usec, -1, row))
    changes.sort(key=lambda change: change[0])
    variable, fixed = dict[str, float](), dict[str, float]()
    for unit, (_, amount) in UNITS.items():
        sums = accumulate((sign * row.pps * amount(row.mean_size) for _, sign, row in changes), initial=0.0)
        variable[unit] = max(sums)
        fixed[unit] = sum((row.pps * amount(row.mean_size) for row in streams if row.fixed_rate), 0.0)
    endless = any(stream.lasts_usec is None for stream in streams)
    return RequestedLoad(variable, fixed, -1.0 if endless else max((at for at, *_ in changes), default=0.0))


def factor_of(multiplier: Params, load: RequestedLoad, speed_bps: float, force: bool) -> float:
    """Return what the streams' rates are multiplied by.

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


MOST_LENGTHS = 64
"""The most lengths that one stream's frames have here: more are sampled evenly, their mean stays."""
UDP, TCP, IP = 11, 13, 17
"""``l4_type`` of fix_checksum_hw."""


class FieldProgram:
    """The program of a stream whose packet is *frame*. Raises RpcError, one sentence, for what cannot be sent.

    ``lengths``: of consecutive frames, in bytes without FCS; empty: all have one length. ``fix_ipv4_checksum``: offset
    of that header, or None. ``udp_checksum``: offset of the UDP checksum to be right, which zero is (RFC 768), or None.
    TCP's checksum stays as it is.
    """

    def __init__(self, instructions: Iterable[Params], frame: bytes) -> None:
        self._frame = frame
        self._known: dict[str, FieldVariable] = {}
        self._used: Counter[str] = Counter()
        self._written: list[tuple[str, int, FieldVariable]] = []
        """Written values: name of the variable, what is added to it, and the sum."""
        self._trimmed = ""
        """Name of the variable that the lengths follow."""
        self.lengths: tuple[int, ...] = ()
        self.fix_ipv4_checksum: int | None = None
        self.udp_checksum: int | None = None
        for instruction in instructions:
            kind = instruction.text("type")
            if kind not in _INSTRUCTIONS:
                known = ", ".join(_INSTRUCTIONS)
                raise refused(f"unknown field-engine instruction '{kind:.40}'; this server knows {known}")
            _INSTRUCTIONS[kind](self, instruction)
        for name, times in self._used.items():
            if times > 1 and self._known[name].operation == "random" and name != self._trimmed:
                raise refused(
                    f"the field engine uses the random variable '{name:.40}' twice, which this server cannot do"
                )

    @property
    def variables(self) -> tuple[FieldVariable, ...]:
        """The variables that are written into frames of one length."""
        return tuple(variable for _, _, variable in self._written)

    def of_length(self, place: int) -> tuple[FieldVariable, ...]:
        """The variables in the frames number *place*, *place* + n, …, where n is the number of lengths."""
        found = []
        for name, add, variable in self._written:
            if name == self._trimmed:
                value = self.lengths[place] + add
                found.append(FieldVariable(variable.offset, variable.size, value, value, value))
            else:
                found.append(_every_nth(variable, place, len(self.lengths)))
        return tuple(found)

    def _declare(self, instruction: Params) -> None:
        name = instruction.text("name")
        if instruction.text("next_var", ""):
            raise refused(f"flow_var '{name:.40}' has a next_var, which this server does not know")
        self._known[name] = _variable(instruction)

    def _tuple(self, instruction: Params) -> None:
        name = instruction.text("name")
        low, high = (instruction.integer(key, most=2**32 - 1) for key in ("ip_min", "ip_max"))
        first, last = (instruction.integer(key, most=0xFFFF) for key in ("port_min", "port_max"))
        limit = instruction.integer("limit_flows", 0, most=2**32 - 1)
        if high < low or last < first:
            raise bad_parameter(f"tuple_flow_var '{name:.40}': a maximum is below its minimum")
        self._known[f"{name}.ip"] = FieldVariable(0, 4, low, high, low, limit=limit)
        self._known[f"{name}.port"] = FieldVariable(0, 2, first, last, first, every=high - low + 1, limit=limit)

    def _use(self, instruction: Params) -> tuple[str, FieldVariable]:
        name = instruction.text("name")
        if name not in self._known:
            raise refused(f"the field engine writes '{name:.40}', which no flow_var before it declares")
        self._used[name] += 1
        return name, self._known[name]

    def _write(self, instruction: Params) -> None:
        name, variable = self._use(instruction)
        add = instruction.integer("add_value", 0, least=-(2**63), most=2**63 - 1)
        offset, length = instruction.integer("pkt_offset", most=0xFFFF), len(self._frame)
        if offset + variable.size > length:
            beyond = f"at offset {offset} with {variable.size} bytes goes beyond the frame's {length} bytes"
            raise refused(f"write_flow_var {beyond}")
        if variable.size > 1 and not instruction.boolean("is_big_endian", True):
            raise refused("writing in little-endian order is not known to this server; expected is_big_endian true")
        if variable.values:
            moved = replace(variable, values=tuple(value + add for value in variable.values))
        else:
            low, high, first = (value + add for value in (variable.minimum, variable.maximum, variable.initial))
            moved = replace(variable, minimum=low, maximum=high, initial=first)
        self._written.append((name, add, replace(moved, offset=offset)))

    def _trim(self, instruction: Params) -> None:
        name, variable = self._use(instruction)
        found, length = _lengths(variable), len(self._frame)
        if self.lengths or min(found) < 14 or max(found) > length:
            raise refused(
                f"trim_pkt_size makes frames of {min(found)} to {max(found)} bytes; expected it once, with 14 to the"
                f" packet's {length}"
            )
        self.lengths, self._trimmed = found, name

    def _ipv4_checksum(self, instruction: Params) -> None:
        self._fix(instruction.integer("pkt_offset", most=0xFFFF), "fix_checksum_ipv4")

    def _fix(self, offset: int, kind: str) -> None:
        if self.fix_ipv4_checksum not in (None, offset) or offset + 20 > len(self._frame):
            raise refused(f"{kind} at offset {offset}: expected one IPv4 header inside the {len(self._frame)} bytes")
        self.fix_ipv4_checksum = offset

    def _hardware_checksum(self, instruction: Params) -> None:
        l2, l3, kind = (instruction.integer(key, most=0xFFFF) for key in ("l2_len", "l3_len", "l4_type"))
        if kind not in (UDP, TCP, IP) or l2 + l3 + 8 * (kind != IP) > len(self._frame):
            raise refused(
                f"fix_checksum_hw with l4_type {kind} at offset {l2 + l3}; expected UDP ({UDP}), TCP ({TCP}) or IP"
                f" ({IP}), inside the {len(self._frame)} bytes"
            )
        if self._frame[l2] >> 4 == 4:
            self._fix(l2, "fix_checksum_hw")
            if kind == UDP:
                self.udp_checksum = l2 + l3 + 6


_INSTRUCTIONS: dict[str, Callable[[FieldProgram, Params], None]] = {
    "flow_var": FieldProgram._declare,
    "tuple_flow_var": FieldProgram._tuple,
    "write_flow_var": FieldProgram._write,
    "trim_pkt_size": FieldProgram._trim,
    "fix_checksum_ipv4": FieldProgram._ipv4_checksum,
    "fix_checksum_hw": FieldProgram._hardware_checksum,
}


def _every_nth(variable: FieldVariable, place: int, step: int) -> FieldVariable:
    """*variable* in each *step*-th frame from *place* on; unchanged where it does not move on in each frame."""
    if variable.operation == "random" or variable.every > 1 or variable.limit:
        return variable
    return replace(variable, initial=variable.value(place), step=variable.step * step)


def _variable(instruction: Params) -> FieldVariable:
    name, size = instruction.text("name"), instruction.integer("size")
    if size not in (1, 2, 4, 8):
        raise bad_parameter(f"flow_var '{name:.40}' has size {size}; expected 1, 2, 4 or 8 bytes")
    operation = instruction.choice("op", ("inc", "dec", "random"))
    most = 256**size - 1
    step = instruction.integer("step", 1, least=1, most=most)
    if "value_list" in instruction:
        values = tuple(instruction.integers("value_list"))
        if not 0 < len(values) <= 0xFFFF or not all(0 <= value <= most for value in values) or step > len(values):
            raise bad_parameter(
                f"flow_var '{name:.40}': expected a value_list of 1 to 65535 values of {size} bytes"
                " and a step within its length"
            )
        return FieldVariable(0, size, 0, len(values) - 1, 0, step, operation, values=values)
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


def _lengths(variable: FieldVariable) -> tuple[int, ...]:
    """The lengths that *variable* gives consecutive frames, at most MOST_LENGTHS of them before they repeat."""
    span = variable.maximum - variable.minimum + 1
    # of a random one each equally often, so that the mean is exact
    period = span if variable.operation == "random" else variable.period(0)
    taken = min(MOST_LENGTHS, period)
    numbers = range(period) if taken == period else [(2 * at + 1) * period // (2 * taken) for at in range(taken)]
    if variable.operation == "random":
        variable = replace(variable, operation="inc", initial=variable.minimum, step=1)
    return tuple(variable.written(number) for number in numbers)
