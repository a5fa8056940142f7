"""How many flows frames have whose field-engine programs (TRex's) vary none, and between which addresses they are.

Flows differ by what is between MAC and IP header, by addresses, or by UDP or TCP ports. How many a program makes of
one frame is not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .ip_header import ip_header

_UDP_TCP = (6, 17)
_ALL = (0, 0xFFFFFFFF)

Frames = Sequence[tuple[bytes, Sequence[Mapping[str, Any]]]]
"""Frames without FCS, each with its field-engine instructions."""


class _Write(NamedTuple):
    """Values from ``low`` to ``high`` that are written in ``size`` bytes from ``at`` on; None: others, too."""

    at: int
    size: int
    bounds: tuple[int, int] | None


def flow_count(frames: Frames) -> int:
    """Number of different flows in *frames*; 0: not known."""
    flows = set[tuple[tuple[int, int], ...]]()
    for frame, instructions in frames:
        places, writes = _flow_bytes(frame), _writes(instructions)
        if writes is None or any(places & set(range(item.at, item.at + item.size)) for item in writes):
            return 0
        flows.add(tuple((at, frame[at]) for at in sorted(places)))
    return len(flows)


def address_ranges(frames: Frames) -> tuple[tuple[int, int], tuple[int, int]]:
    """Least and greatest IPv4 source and destination address, as numbers; (0, 0): none."""
    found: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for frame, instructions in frames:
        header = ip_header(frame)
        if header is None or header.version != 4:
            continue
        writes = _writes(instructions)
        for rows, field in zip(found, header.addresses(), strict=True):
            rows.append(_ALL if writes is None else _address_bounds(frame, field, writes))
    source, destination = (
        (min(low for low, _ in rows), max(high for _, high in rows)) if rows else (0, 0) for rows in found
    )
    return source, destination


def _address_bounds(frame: bytes, field: slice, writes: Sequence[_Write]) -> tuple[int, int]:
    value = int.from_bytes(frame[field], "big")
    inside = [item for item in writes if item.at + item.size > field.start and item.at < field.stop]
    if not inside:
        return value, value
    at, size, bounds = inside[0]
    if len(inside) > 1 or bounds is None or at < field.start or at + size != field.stop:
        return _ALL
    before = value & ~(256**size - 1)
    return (before | bounds[0], before | bounds[1]) if bounds[0] >= 0 and bounds[1] < 256**size else _ALL


def _flow_bytes(frame: bytes) -> set[int]:
    """Offsets of the bytes that identify *frame*'s flow."""
    header = ip_header(frame)
    if header is None:
        return set(range(12, len(frame)))
    protocol, end = header.payload(frame)
    ports = range(end, end + 4) if protocol in _UDP_TCP else ()
    source, destination = header.addresses()
    return {*range(12, header.offset), *range(source.start, destination.stop), *ports} & set(range(len(frame)))


def _writes(instructions: Sequence[Mapping[str, Any]]) -> list[_Write] | None:
    """Return all writes of a program; None where it is not understood."""
    sizes, bounds = dict[str, int](), dict[str, tuple[int, int]]()
    try:
        for item in instructions:
            kind, name = item["type"], item.get("name", "")
            if kind == "tuple_flow_var":
                for part, size in (("ip", 4), ("port", 2)):
                    sizes[f"{name}.{part}"] = size
                    bounds[f"{name}.{part}"] = int(item[f"{part}_min"]), int(item[f"{part}_max"])
            elif kind in ("flow_var", "flow_var_rand_limit"):
                ends = item.get("value_list") or (int(item["min_value"]), int(item["max_value"]))
                sizes[name], bounds[name] = int(item["size"]), (min(ends), max(ends))
        found = []
        for item in (item for item in instructions if item["type"] in ("write_flow_var", "write_mask_flow_var")):
            is_masked = item["type"] == "write_mask_flow_var"
            add, (low, high) = int(item.get("add_value", 0)), bounds[item["name"]]
            size = int(item["pkt_cast_size"]) if is_masked else sizes[item["name"]]
            is_plain = not is_masked and item.get("is_big_endian", True)
            found.append(_Write(int(item["pkt_offset"]), size, (low + add, high + add) if is_plain else None))
        return found
    except (KeyError, TypeError, ValueError, ArithmeticError):
        return None
