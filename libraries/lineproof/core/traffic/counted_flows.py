"""How many flows frames and their field-engine programs (TRex's) have, and between which addresses.

Flows differ by what is between MAC and IP header, by addresses, or by UDP or TCP ports. What cannot be counted (random
values, masks, variables that change independently) is not guessed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .ip_header import ip_header

_UDP_TCP = (6, 17)
_UNCOUNTABLE = (KeyError, TypeError, ValueError, ArithmeticError)
_ALL = (0, 0xFFFFFFFF)

Frames = Sequence[tuple[bytes, Sequence[Mapping[str, Any]]]]
"""Frames without FCS, each with its field-engine instructions."""

_Key = tuple[tuple[int, int | None], ...]
_Varied = tuple[frozenset[int], frozenset[tuple["_Variable", int, int]]]


@dataclass(frozen=True, slots=True)
class _Variable:
    """``count`` values (None: random), ``low`` … ``high``, in ``size`` bytes; ``chain``: its first variable, or ""."""

    name: str
    size: int
    low: int
    high: int
    count: int | None
    chain: str


@dataclass(frozen=True, slots=True)
class _Write:
    variable: _Variable
    at: int
    size: int
    add: int
    masked: bool

    @property
    def bytes(self) -> frozenset[int]:
        """Offsets of the bytes that it writes."""
        return frozenset(range(self.at, self.at + self.size))


def flow_count(frames: Frames) -> int:
    """Number of different flows in *frames*; 0: not known."""
    try:
        return _counted_flows(frames)
    except _UNCOUNTABLE:
        return 0


def address_ranges(frames: Frames) -> tuple[tuple[int, int], tuple[int, int]]:
    """Least and greatest IPv4 source and destination address, as numbers; (0, 0): none."""
    found: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for frame, instructions in frames:
        header = ip_header(frame)
        if header is None or header.version != 4:
            continue
        for rows, field in zip(found, header.addresses(), strict=True):
            try:
                rows.append(_address_bounds(frame, field, _writes(instructions)))
            except _UNCOUNTABLE:
                rows.append(_ALL)
    source, destination = (
        (min(low for low, _ in rows), max(high for _, high in rows)) if rows else (0, 0) for rows in found
    )
    return source, destination


def _address_bounds(frame: bytes, field: slice, writes: Sequence[_Write]) -> tuple[int, int]:
    value = int.from_bytes(frame[field], "big")
    low = high = value
    for item in writes:
        if item.at + item.size <= field.start or item.at >= field.stop:
            continue
        least, most = item.variable.low + item.add, item.variable.high + item.add
        if item.masked or item.at < field.start or item.at + item.size != field.stop or low != high:
            return _ALL
        if least < 0 or most >= 256**item.size:
            return _ALL
        before = value & ~(256**item.size - 1)
        low, high = before | least, before | most
    return low, high


def _counted_flows(frames: Frames) -> int:
    counted: dict[tuple[_Key, _Varied], int] = {}
    for frame, instructions in frames:
        places = _flow_bytes(frame)
        writes = [item for item in _writes(instructions) if places & item.bytes]
        if any(item.masked for item in writes):
            raise ValueError("these flows cannot be counted")
        varying = frozenset(at for item in writes for at in item.bytes) & places
        varied = varying, frozenset((item.variable, item.at, item.add) for item in writes)
        key = tuple((at, None if at in varying else frame[at]) for at in sorted(places))
        counted[key, varied] = _combinations({item.variable for item in writes})
    for varying in {item for (_, (item, _)) in counted if item}:
        # a constant flow may be one of those that another stream varies through
        by_constant_part: dict[_Key, _Varied] = {}
        for key, varied in counted:
            constant_part = tuple((at, None if at in varying else value) for at, value in key)
            if by_constant_part.setdefault(constant_part, varied) != varied:
                raise ValueError("these flows cannot be counted")
    return sum(counted.values())


def _flow_bytes(frame: bytes) -> frozenset[int]:
    """Offsets of the bytes that identify *frame*'s flow."""
    header = ip_header(frame)
    if header is None:
        return frozenset(range(12, len(frame)))
    protocol, end = header.payload(frame)
    ports = range(end, end + 4) if protocol in _UDP_TCP else ()
    source, destination = header.addresses()
    parts = *range(12, header.offset), *range(source.start, destination.stop), *ports
    return frozenset(parts) & frozenset(range(len(frame)))


def _combinations(variables: set[_Variable]) -> int:
    """Number of different combinations of *variables*' values."""
    counts = [variable.count for variable in variables if variable.count is not None]
    if len(counts) < len(variables):
        raise ValueError("these flows cannot be counted")
    chains = {variable.chain for variable in variables}
    if len(chains) == 1 and next(iter(chains)):
        return math.prod(counts)
    if any(chains):
        raise ValueError("these flows cannot be counted")
    return math.lcm(*counts) if counts else 1


def _writes(instructions: Sequence[Mapping[str, Any]]) -> list[_Write]:
    """All writes of a program. Raises KeyError, TypeError, ValueError where it is not understood."""
    known = _variables(instructions)
    found = []
    for item in instructions:
        if item["type"] in ("write_flow_var", "write_mask_flow_var"):
            variable = known[item["name"]]
            masked = item["type"] == "write_mask_flow_var" or not item.get("is_big_endian", True)
            size = int(item["pkt_cast_size"]) if item["type"] == "write_mask_flow_var" else variable.size
            found.append(_Write(variable, int(item["pkt_offset"]), size, int(item.get("add_value", 0)), masked))
    return found


def _variables(instructions: Sequence[Mapping[str, Any]]) -> dict[str, _Variable]:
    found: dict[str, _Variable] = {}
    following = {item["next_var"]: item["name"] for item in instructions if item.get("next_var")}
    for item in instructions:
        name = item.get("name", "")
        if item["type"] == "flow_var":
            first, passed = name, {name}
            while first in following and following[first] not in passed:
                first = following[first]
                passed.add(first)
            chain = first if first in following.values() else ""
            values = item.get("value_list")
            step = int(item.get("step", 1))
            count: int | None
            if values:
                low, high = min(values), max(values)
                count = len(values) if step == 1 and len(set(values)) == len(values) else None
            else:
                low, high = int(item["min_value"]), int(item["max_value"])
                # TRex widens the range to a whole number of steps
                count = -(-(high - low + 1) // step)
            is_random = item["op"] == "random" and low != high
            found[name] = _Variable(name, int(item["size"]), low, high, None if is_random else count, chain)
        elif item["type"] == "flow_var_rand_limit":
            low, high = int(item["min_value"]), int(item["max_value"])
            found[name] = _Variable(name, int(item["size"]), low, high, None, "")
        elif item["type"] == "tuple_flow_var":
            low, high, first_port, last_port = (int(item[key]) for key in ("ip_min", "ip_max", "port_min", "port_max"))
            limited = None if item.get("limit_flows") else 1
            # the port changes when the address starts again
            found[f"{name}.ip"] = _Variable(f"{name}.ip", 4, low, high, limited and high - low + 1, name)
            ports = last_port - first_port + 1
            found[f"{name}.port"] = _Variable(f"{name}.port", 2, first_port, last_port, limited and ports, name)
    return found
