"""TRex stream objects read into what a backend sends, and the arithmetic of multipliers.

Facts from TRex's server (src/stx/stl): frames shorter than 60 bytes are padded with zeros; rates count the FCS; a
per cent multiplier is of the port's L1 speed, except in an update with ``add`` or ``sub``: there of what is sent now.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...units import FCS, l1_bits, l2_bits
from ..backend import FieldVariable, PortDescription, StreamTraffic
from .params import Params, bad, refused

SHORTEST, LONGEST, PADDED = 14, 9238, 60
"""Bytes without FCS that a stream's frame may have, and those it is padded to."""
FROM_PACKET = 1
"""Destination MAC mode (bits 1 and 2 of ``flags``): the frame's own. Modes 0 and 2 take the port's."""
KNOWN_INSTRUCTIONS = ("flow_var", "write_flow_var", "fix_checksum_ipv4")
RATES = ("pps", "bps_L1", "bps_L2", "percentage")
MULTIPLIERS = ("raw", "bps", "bpsl1", "pps", "percentage")


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream as added. ``pps``: frames/s before the multiplier. ``frame``: without FCS, with the client's MACs."""

    stream_id: int
    json: Mapping[str, Any]
    frame: bytes
    pps: float
    sends: bool
    source_from_packet: bool
    destination_from_packet: bool
    variables: tuple[FieldVariable, ...] = ()
    fix_ipv4_checksum: int | None = None
    count: int | None = None
    isg_usec: float = 0.0

    @property
    def size(self) -> int:
        """Bytes with FCS."""
        return len(self.frame) + FCS

    def traffic(self, factor: float, source: str, destination: str) -> StreamTraffic:
        """What is sent when the rate is multiplied by *factor* and the port has these MACs."""
        frame = bytearray(self.frame)
        if not self.destination_from_packet:
            frame[0:6] = mac_bytes(destination)
        if not self.source_from_packet:
            frame[6:12] = mac_bytes(source)
        return StreamTraffic(
            stream_id=self.stream_id,
            frame=bytes(frame),
            pps=self.pps * factor,
            variables=self.variables,
            count=self.count,
            fix_ipv4_checksum=self.fix_ipv4_checksum,
            isg_usec=self.isg_usec,
        )


def mac_bytes(text: str) -> bytes:
    """``02:00:00:00:00:01`` as six bytes. Raises RpcError."""
    try:
        found = bytes.fromhex(text.replace(":", "").replace("-", ""))
    except ValueError:
        found = b""
    if len(found) != 6:
        raise bad(f"'{text}' is not a MAC address; right would be for example '02:00:00:00:00:01'")
    return found


def parse_stream(stream_id: int, data: Params, port: PortDescription) -> Stream:
    """A stream from ``add_stream``. Raises RpcError, one sentence, for anything that could not be sent as asked."""
    mode = data.object("mode")
    kind = mode.choice("type", ("continuous", "single_burst", "multi_burst"))
    frame = _frame(data.object("packet"))
    size = len(frame) + FCS
    variables, checksum = _field_engine(data.object("vm").objects("instructions"), len(frame))
    flags = data.integer("flags", most=0xFFFF)
    following = data.integer("next_stream_id", -1, least=-1)
    self_start = data.boolean("self_start")
    name = f"stream {stream_id}"
    if kind == "multi_burst":
        raise refused(
            f"{name} has mode 'multi_burst', not known to this server; right would be 'continuous' or 'single_burst'"
        )
    if following != -1 or not self_start:
        raise refused(
            f"{name} is one of a chain, not known to this server; right would be self_start and no next stream"
        )
    if data.object("flow_stats").boolean("enabled", False):
        raise refused(f"{name} asks for flow statistics, which this server does not keep; add it without flow_stats")
    return Stream(
        stream_id=stream_id,
        json=dict(data.data) | {"next_stream_id": following},
        frame=frame,
        pps=_rate(mode.object("rate"), size, port.speed_bps),
        sends=data.boolean("enabled") and not flags & 8,
        source_from_packet=bool(flags & 1),
        destination_from_packet=flags >> 1 & 3 == FROM_PACKET,
        variables=variables,
        fix_ipv4_checksum=checksum,
        count=mode.integer("total_pkts", least=1) if kind == "single_burst" else None,
        isg_usec=data.number("isg", least=0),
    )


def _frame(packet: Params) -> bytes:
    try:
        frame = base64.b64decode(packet.text("binary"), validate=True)
    except (binascii.Error, ValueError):
        raise bad("field 'binary' is not base64") from None
    if not SHORTEST <= len(frame) <= LONGEST:
        raise refused(f"Bad packet size provided: {len(frame)}. Should be between {SHORTEST} and {LONGEST}")
    return frame.ljust(PADDED, b"\0")


def _rate(rate: Params, size: int, speed_bps: float) -> float:
    kind, value = rate.choice("type", RATES), rate.number("value", least=0)
    if kind == "pps":
        return value
    if kind == "bps_L2":
        return value / l2_bits(size)
    return (value if kind == "bps_L1" else value / 100 * speed_bps) / l1_bits(size)


def _field_engine(instructions: Iterable[Params], length: int) -> tuple[tuple[FieldVariable, ...], int | None]:
    known: dict[str, FieldVariable] = {}
    written: list[FieldVariable] = []
    drawn: set[str] = set()
    checksum: int | None = None
    for instruction in instructions:
        kind = instruction.text("type")
        if kind == "flow_var":
            known[instruction.text("name")] = _variable(instruction)
        elif kind == "write_flow_var":
            name = instruction.text("name")
            if name not in known:
                raise refused(f"the field engine writes '{name}', which no flow_var before it declares")
            if known[name].operation == "random" and name in drawn:
                raise refused(
                    f"the field engine writes the random variable '{name}' twice, which this server cannot do"
                )
            drawn.add(name)
            written.append(_written(instruction, known[name], length))
        elif kind == "fix_checksum_ipv4":
            offset = instruction.integer("pkt_offset", most=0xFFFF)
            if checksum is not None or offset + 20 > length:
                raise refused(
                    f"fix_checksum_ipv4 at offset {offset}: right would be one IPv4 header inside the {length} bytes"
                )
            checksum = offset
        else:
            raise refused(
                f"unknown field-engine instruction '{kind:.40}'; this server knows {', '.join(KNOWN_INSTRUCTIONS)}"
            )
    return tuple(written), checksum


def _variable(instruction: Params) -> FieldVariable:
    name = instruction.text("name")
    size = instruction.integer("size")
    if size not in (1, 2, 4, 8):
        raise bad(f"flow_var '{name}' has size {size}; right would be 1, 2, 4 or 8 bytes")
    if "value_list" in instruction or instruction.text("next_var", ""):
        raise refused(f"flow_var '{name}' has a value_list or a next_var, which this server does not know")
    operation = instruction.choice("op", ("inc", "dec", "random"))
    most = 256**size - 1
    low, high, first = (instruction.integer(key, most=most) for key in ("min_value", "max_value", "init_value"))
    step = instruction.integer("step", 1, least=1, most=most)
    if not low <= first <= high:
        raise bad(f"flow_var '{name}': init_value {first} is not within min_value {low} and max_value {high}")
    if operation != "random":
        # as TRex does: the range is widened to a whole number of steps
        missing = -(high - low + 1) % step
        low, high = (low, high + missing) if operation == "inc" else (low - missing, high)
        if low < 0 or high > most:
            raise refused(
                f"flow_var '{name}': max_value - min_value + 1 is not a multiple of step {step} and has no room to be"
            )
    return FieldVariable(0, size, low, high, first, step, operation)


def _written(instruction: Params, variable: FieldVariable, length: int) -> FieldVariable:
    offset = instruction.integer("pkt_offset", most=0xFFFF)
    add = instruction.integer("add_value", 0, least=-(2**63), most=2**63 - 1)
    if offset + variable.size > length:
        raise refused(
            f"write_flow_var at offset {offset} with {variable.size} bytes goes beyond the frame's {length} bytes"
        )
    if variable.size > 1 and not instruction.boolean("is_big_endian", True):
        raise refused(
            "write_flow_var in little-endian order is not known to this server; right would be is_big_endian true"
        )
    if variable.minimum + add < 0 or variable.maximum + add >= 256**variable.size:
        raise refused(f"write_flow_var with add_value {add} leaves the range of its {variable.size} bytes")
    return FieldVariable(
        offset,
        variable.size,
        variable.minimum + add,
        variable.maximum + add,
        variable.initial + add,
        variable.step,
        variable.operation,
    )


@dataclass(frozen=True, slots=True)
class Load:
    """The sum of some streams' rates before the multiplier: frames/s, L2 and L1 bit/s."""

    pps: float
    l2_bps: float
    l1_bps: float


def load_of(streams: Iterable[Stream]) -> Load:
    """The sum over those *streams* that send."""
    rows = [(stream.pps, stream.size) for stream in streams if stream.sends]
    return Load(
        sum(pps for pps, _ in rows),
        sum(pps * l2_bits(size) for pps, size in rows),
        sum(pps * l1_bits(size) for pps, size in rows),
    )


def factor_of(multiplier: Params, load: Load, speed_bps: float, force: bool, current: float | None = None) -> float:
    """What the streams' rates are multiplied by, for a start or for an update of a port that has the *current* factor.

    Raises RpcError when nothing would be sent, or, unless *force*, when it is more than the port's L1 speed.
    """
    kind = multiplier.choice("type", MULTIPLIERS)
    value = multiplier.number("value", least=0)
    operation = multiplier.choice("op", ("abs", "add", "sub"), "abs")
    if current is None and operation != "abs":
        raise refused("a start needs an absolute multiplier ('op' is 'abs')")
    if load.pps <= 0:
        raise refused("the streams of this port send nothing: their rate is zero")
    base = {"raw": 1.0, "bps": load.l2_bps, "bpsl1": load.l1_bps, "pps": load.pps, "percentage": load.l1_bps}[kind]
    factor = value / base
    if kind == "percentage":
        factor = value / 100 * (speed_bps / base if operation == "abs" else current or 0)
    if operation != "abs" and current is not None:
        factor = current + factor if operation == "add" else current - factor
        if factor <= 0:
            raise refused("Update request will lower traffic to less than zero")
    if factor <= 0:
        raise refused(f"Factor must be positive, got: {factor:g}")
    if not force and factor * load.l1_bps > speed_bps * 1.0001:
        asked, line = factor * load.l1_bps / 1e9, speed_bps / 1e9
        raise refused(f"Expected L1 B/W: '{asked:.4g} Gbps' exceeds port line rate: '{line:.4g} Gbps'")
    return factor if force else min(factor, speed_bps / load.l1_bps)
