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
    before = {item["next_var"]: item["name"] for item in instructions if item.get("next_var")}
    for item in instructions:
        kind, name = item["type"], item.get("name", "")
        if kind == "tuple_flow_var":
            # the port changes when the address starts again
            for part, size in (("ip", 4), ("port", 2)):
                low, high = int(item[f"{part}_min"]), int(item[f"{part}_max"])
                count = None if item.get("limit_flows") else high - low + 1
                found[f"{name}.{part}"] = _Variable(f"{name}.{part}", size, low, high, count, name)
        elif kind in ("flow_var", "flow_var_rand_limit"):
            values, step = item.get("value_list") or (), int(item.get("step", 1))
            low, high = (min(values), max(values)) if values else (int(item["min_value"]), int(item["max_value"]))
            # TRex widens the range to a whole number of steps
            count = len(values) or -(-(high - low + 1) // step)
            is_random = kind == "flow_var_rand_limit" or (item["op"] == "random" and low != high)
            if is_random or (values and (step > 1 or len(set(values)) < len(values))):
                count = None
            found[name] = _Variable(name, int(item["size"]), low, high, count, _chain(name, before))
    return found


def _chain(name: str, before: Mapping[str, str]) -> str:
    """The first variable of the chain that *name* is in, by the variable *before* each; "" where it is in none."""
    first = name
    for _ in before:
        first = before.get(first, first)
    return first if first in before.values() else ""
