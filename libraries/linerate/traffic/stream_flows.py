"""Which addresses and how many flows a user's streams have, as far as frame and field-engine program tell.

Flows are told apart as those of captures: by what stands between MAC and IP header, by addresses and by UDP or TCP
ports. What cannot be counted (random values, masks, variables that move independently) is not guessed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .ip_header import ip_header

_UDP_TCP = (6, 17)
_ALL = (0, 0xFFFFFFFF)

Frames = Sequence[tuple[bytes, Sequence[Mapping[str, Any]]]]
"""Frames without FCS, each with the instructions of its field engine."""


_Key = tuple[tuple[int, int | None], ...]
_Varied = tuple[frozenset[int], frozenset[tuple["_Variable", int, int]]]


class Uncounted(Exception):
    """The flows cannot be counted."""


@dataclass(frozen=True, slots=True)
class _Variable:
    """``count`` values, ``low`` … ``high``, in ``size`` bytes; None: random. ``chain``: of which it turns."""

    name: str
    size: int
    low: int
    high: int
    count: int | None
    chain: str


@dataclass(frozen=True, slots=True)
class _Written:
    variable: _Variable
    at: int
    size: int
    add: int
    masked: bool


def flow_count(frames: Frames) -> int:
    """Number of different flows in *frames*; 0 where it is not known."""
    try:
        return _flow_count(frames)
    except (Uncounted, KeyError, TypeError, ValueError, ArithmeticError):
        return 0


def address_ranges(frames: Frames) -> tuple[tuple[int, int], tuple[int, int]]:
    """Least and greatest IPv4 source and destination address, as numbers; (0, 0) where there is none."""
    found: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for frame, instructions in frames:
        header = ip_header(frame)
        if header is None or header.version != 4:
            continue
        for rows, field in zip(found, header.addresses(), strict=True):
            try:
                rows.append(_range(frame, field, _writes(instructions)))
            except (Uncounted, KeyError, TypeError, ValueError, ArithmeticError):
                rows.append(_ALL)
    source, destination = (
        (min(low for low, _ in rows), max(high for _, high in rows)) if rows else (0, 0) for rows in found
    )
    return source, destination


def _range(frame: bytes, field: slice, writes: Sequence[_Written]) -> tuple[int, int]:
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


def _flow_count(frames: Frames) -> int:
    told: dict[tuple[_Key, _Varied], int] = {}
    for frame, instructions in frames:
        places = _places(frame)
        writes = [item for item in _writes(instructions) if places & set(range(item.at, item.at + item.size))]
        if any(item.masked for item in writes):
            raise Uncounted
        varying = frozenset(at for item in writes for at in range(item.at, item.at + item.size)) & places
        varied = varying, frozenset((item.variable, item.at, item.add) for item in writes)
        key = tuple((at, None if at in varying else frame[at]) for at in sorted(places))
        told[key, varied] = _combinations({item.variable for item in writes})
    for varying in {item for (_, (item, _)) in told if item}:
        # a flow that stands still for itself may be one of those that others come by
        alike: dict[_Key, _Varied] = {}
        for key, varied in told:
            masked = tuple((at, None if at in varying else value) for at, value in key)
            if alike.setdefault(masked, varied) != varied:
                raise Uncounted
    return sum(told.values())


def _places(frame: bytes) -> frozenset[int]:
    """Offsets of the bytes that tell *frame*'s flow from others."""
    header = ip_header(frame)
    if header is None:
        return frozenset(range(12, len(frame)))
    at = header.offset
    behind, protocol = (at + 4 * (frame[at] & 15), frame[at + 9]) if header.version == 4 else (at + 40, frame[at + 6])
    ports = range(behind, behind + 4) if protocol in _UDP_TCP else ()
    source, destination = header.addresses()
    return frozenset((*range(12, at), *range(source.start, destination.stop), *ports)) & frozenset(range(len(frame)))


def _combinations(variables: set[_Variable]) -> int:
    """How many different values *variables* have together."""
    counts = []
    for variable in variables:
        if variable.count is None:
            raise Uncounted
        counts.append(variable.count)
    chains = {variable.chain for variable in variables}
    if len(chains) == 1 and next(iter(chains)):
        return math.prod(counts)
    if any(chains):
        raise Uncounted
    return math.lcm(*counts) if counts else 1


def _writes(instructions: Sequence[Mapping[str, Any]]) -> list[_Written]:
    """What is written where. Raises Uncounted, KeyError, TypeError, ValueError for a program that is not understood."""
    known = _variables(instructions)
    found = []
    for item in instructions:
        if item["type"] in ("write_flow_var", "write_mask_flow_var"):
            variable = known[item["name"]]
            masked = item["type"] == "write_mask_flow_var" or not item.get("is_big_endian", True)
            size = int(item["pkt_cast_size"]) if item["type"] == "write_mask_flow_var" else variable.size
            found.append(_Written(variable, int(item["pkt_offset"]), size, int(item.get("add_value", 0)), masked))
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
                # the range is widened to a whole number of steps
                count = -(-(high - low + 1) // step)
            drawn = item["op"] == "random" and low != high
            found[name] = _Variable(name, int(item["size"]), low, high, None if drawn else count, chain)
        elif item["type"] == "flow_var_rand_limit":
            low, high = int(item["min_value"]), int(item["max_value"])
            found[name] = _Variable(name, int(item["size"]), low, high, None, "")
        elif item["type"] == "tuple_flow_var":
            low, high, first_port, last_port = (int(item[key]) for key in ("ip_min", "ip_max", "port_min", "port_max"))
            limited = None if item.get("limit_flows") else 1
            # the port moves on when the address begins anew
            found[f"{name}.ip"] = _Variable(f"{name}.ip", 4, low, high, limited and high - low + 1, name)
            ports = last_port - first_port + 1
            found[f"{name}.port"] = _Variable(f"{name}.port", 2, first_port, last_port, limited and ports, name)
    return found
