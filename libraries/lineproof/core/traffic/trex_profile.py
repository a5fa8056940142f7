"""A user's profile in TRex's format: the streams of each direction, whose rates follow a load.

A load is frames/s of a port, all streams together. Continuous streams keep the ratio of their rates. TRex does not
multiply the rate of latency streams, so it is subtracted from the load. Streams that end or take turns (bursts, chains)
are sent all the time, in the ratio of their frames.

Flows differ by what is between MAC and IP header, by addresses, or by UDP or TCP ports. How many a field-engine program
makes of one frame is not known.
"""

from __future__ import annotations

import base64
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import ConfigError
from ...units import FCS, l1_bits, l2_bits
from ...visible import shortened
from .ip_header import ip_header, why_not_routed

MIN_BYTES = 60
"""Bytes without FCS to which shorter frames are padded."""

MAX_START_DELAY = 1000.0
"""Microseconds by which a stream may start late; with more, a trial would miss its frames."""

_DUMMY_FLAG, _DESTINATION_MAC_FLAGS = 8, 6
_FRAMES = {"continuous": "", "single_burst": "total_pkts", "multi_burst": "pkts_per_burst"}
_UNITS = ("pps", "bps_L1", "bps_L2", "percentage")
_EXPECTED = (
    "expected continuous streams (STLTXCont) that start within 1 ms, and whose rate follows the load; latency in pps"
)


@dataclass(frozen=True, slots=True)
class ProgramStream:
    """A stream. ``text``: JSON for TRex's ``add_stream``; ``frame``: the first one, without FCS.

    ``share``: of the frames that follow the load, 0..1; 0 for a stream with the fixed rate ``pps``. ``sizes``: (bytes
    with FCS, share of the stream's frames).
    """

    text: str
    frame: bytes
    share: float
    sizes: tuple[tuple[int, float], ...]
    pps: float = 0.0

    @property
    def instructions(self) -> Sequence[Mapping[str, Any]]:
        """The instructions of its field engine."""
        found: Sequence[Mapping[str, Any]] = json.loads(self.text)["vm"].get("instructions", ())
        return found


@dataclass(frozen=True, slots=True)
class ProfileSource:
    """The file of a profile, its ``sha256``, its ``tunables`` and the ``client`` that loaded it.

    ``mac_dst``: "port" where all streams use the port's destination MAC address.
    """

    path: Path
    sha256: str
    tunables: str
    client: str
    mac_dst: str = "packet"

    def to_json(self) -> dict[str, str]:
        """Data of a record."""
        found = {"file": self.path.name, "sha256": self.sha256, "tunables": self.tunables, "client": self.client}
        return found if self.mac_dst == "packet" else {**found, "mac_dst": self.mac_dst}


@dataclass(frozen=True)
class TrexProfile:
    """``directions``: the streams of each; ``one_direction_reason``: why the second has none, or "".

    ``flows``: number in the first direction, 0: not known; ``addresses``: least and greatest IPv4 source and
    destination address there. ``steady``: whether the file has only streams that are sent all the time. ``answer``: the
    file that it was read from, as JSON data.
    """

    source: ProfileSource
    directions: tuple[tuple[ProgramStream, ...], tuple[ProgramStream, ...]]
    one_direction_reason: str
    flows: int
    addresses: tuple[tuple[int, int], tuple[int, int]]
    steady: bool = True
    answer: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def to_json(self) -> dict[str, str]:
        """Data of a record: the file, and that its bursts are not sent as such."""
        changed = {"pattern": "all streams at the same time, in the ratio of their frames, without bursts and pauses"}
        return self.source.to_json() | ({} if self.steady else changed)

    @property
    def fixed_pps(self) -> float:
        """Frames/s of each port at a fixed rate, independent of the load."""
        return max(sum(stream.pps for stream in direction) for direction in self.directions)

    def mean_size(self, pps: float) -> float:
        """Mean frame size in bytes with FCS at *pps* frames/s, latency streams included."""
        fixed = [
            (stream.pps, size * part) for stream in self.directions[0] for size, part in stream.sizes if stream.pps
        ]
        follow = pps - sum(stream.pps for stream in self.directions[0])
        return (follow * _mean_frame_size(self.directions[0]) + sum(rate * size for rate, size in fixed)) / pps

    def sizes(self) -> tuple[tuple[int, float], ...]:
        """Frame sizes (bytes with FCS) of the first direction, each with its share of the frames."""
        return _size_shares(self.directions[0])


def _size_shares(streams: Sequence[ProgramStream]) -> tuple[tuple[int, float], ...]:
    found: dict[int, float] = {}
    for stream in streams:
        for size, part in stream.sizes:
            if stream.share:
                found[size] = found.get(size, 0.0) + stream.share * part
    return tuple(found.items())


def _mean_frame_size(streams: Sequence[ProgramStream]) -> float:
    """Bytes with FCS, without streams at a fixed rate."""
    return sum(size * part for size, part in _size_shares(streams))


# -- reading -----------------------------------------------------------------------------------------------------------


def read_trex_profile(answer: Mapping[str, Any], source: ProfileSource) -> TrexProfile:
    """The profile in the *answer* of the process that ran it. Raises ConfigError for streams that no load can scale."""
    first, second = answer["directions"]
    try:
        streams, steady = _read_direction(first, source)
    except ConfigError as error:
        raise ConfigError(str(error), source.path) from None
    reason, back = "", tuple[ProgramStream, ...]()
    if source.path.suffix != ".py":
        reason = "a file of streams has no second direction"
    elif second.get("error"):
        problem, line = second["error"]["message"], second["error"]["line"]
        where = f" (line {line})" if line else ""
        reason = f"for the second direction, 'get_streams(direction=1)', it {problem}{where}"
    elif not second.get("streams"):
        reason = "it has no streams for the second direction, 'get_streams(direction=1)'"
    elif _packets(second) == _packets(first):
        # a router would send them back to the port they came from, and all would count as lost
        reason = "its frames are the same in both directions; expected addresses swapped for 'direction' 1"
    else:
        try:
            back, _ = _read_direction(second, source)
        except ConfigError as error:
            reason = f"for the second direction: {error}"
    size, size_back = _mean_frame_size(streams), _mean_frame_size(back)
    if back and abs(size_back - size) > 1e-6 * size:
        reason = f"its frames have {size:.6g} bytes on average, and {size_back:.6g} in the second direction"
        back = ()
    programs = [(stream.frame, stream.instructions) for stream in streams]
    flows, addresses = flow_count(programs), address_ranges(programs)
    return TrexProfile(source, (streams, back), reason, flows, addresses, steady, answer)


def _packets(direction: Mapping[str, Any]) -> list[Any]:
    return [(item.get("packet"), item.get("vm")) for item in direction["streams"]]


@dataclass(frozen=True, slots=True)
class _Row:
    """A stream of a file: its ``data`` for ``add_stream`` but for the rate, and its part of the load.

    ``weight``: in ``unit`` (``pps``; ``percentage`` of a link; ``frames`` of a stream that ends; ``latency``: frames/s
    with every load). ``steady``: whether the file sends it all the time.
    """

    data: Mapping[str, Any]
    frame: bytes
    sizes: tuple[tuple[int, float], ...]
    weight: float
    unit: str
    steady: bool

    def stream(self, total: float) -> ProgramStream:
        """It as a continuous stream; *total*: the weight of all streams that follow the load."""
        share, pps = (0.0, self.weight) if self.unit == "latency" else (self.weight / total, 0.0)
        mode = {"type": "continuous", "rate": {"type": "pps", "value": pps or share}}
        return ProgramStream(json.dumps({**self.data, "mode": mode}), self.frame, share, self.sizes, pps)


def _read_direction(direction: Mapping[str, Any], source: ProfileSource) -> tuple[tuple[ProgramStream, ...], bool]:
    """The streams of one direction, and whether the file sends all of them all the time. Raises ConfigError."""
    items = {n: item for n, item in enumerate(direction.get("streams", ()), 1) if item.get("enabled", True)}
    if not items:
        raise ConfigError("has no streams; expected at least one from 'get_streams'")
    started, rows = {item.get("next") for item in items.values()} - {None}, list[_Row]()
    for number, item in items.items():
        label = item.get("name")
        name = f"stream {number}" + (f" ('{shortened(label, 60)}')" if label not in (None, "") else "")
        starts = item.get("self_start", True) or label in started
        try:
            rows.append(_read_stream(name, item if starts else {**item, "start_paused": True}, source.mac_dst))
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:  # a user's own stream
            words = f"{shortened(error)} is missing" if isinstance(error, KeyError) else shortened(error)
            raise ConfigError(f"{name} is not a stream that TRex accepts ({words})") from None
    scaled = [row for row in rows if row.unit != "latency"]
    if not scaled:
        raise ConfigError(f"has latency streams only, whose rate no load changes; {_EXPECTED} as well")
    if len({row.unit for row in scaled}) > 1:
        raise ConfigError(
            "has streams whose ratio depends on the link or on the time; expected all in per cent of a link, all at a"
            " rate of their own, or all of a number of frames"
        )
    total = sum(row.weight for row in scaled)
    return tuple(row.stream(total) for row in rows), all(row.steady for row in rows)


def _read_stream(name: str, item: Mapping[str, Any], mac_dst: str) -> _Row:
    """Raises ConfigError for a stream that no load can scale, other errors for one that TRex does not accept."""
    mode, flags, instructions = item["mode"], int(item["flags"] or 0), item["vm"].get("instructions", ())
    kind, rate_unit, rate = mode["type"], str(mode["rate"]["type"]), float(mode["rate"]["value"])
    steady = kind == "continuous" and bool(item.get("self_start", True))
    counted = item["flow_stats"]
    is_latency = counted.get("enabled", False) and counted.get("rule_type") == "latency"
    frame = base64.b64decode(item["packet"]["binary"], validate=True).ljust(MIN_BYTES, b"\0")
    if mac_dst == "port":
        flags &= ~_DESTINATION_MAC_FLAGS
        if any(int(row.get("pkt_offset", 6)) < 6 for row in instructions):
            raise ConfigError(
                f"{name} writes its destination MAC address by its field engine, which 'mac_dst: port' does not change;"
                " expected a profile that leaves it alone"
            )
    if why_not := why_not_routed(frame):
        raise ConfigError(f"{name}: its frame {why_not}")
    for words, is_wrong in {
        f"has the mode '{shortened(kind)}'": kind not in _FRAMES,
        "is a dummy, which sends nothing": flags & _DUMMY_FLAG,
        "does not start by itself": item.get("start_paused", False),
        f"starts {float(item['isg']) / 1e3:g} ms late (isg)": steady and float(item["isg"]) > MAX_START_DELAY,
        f"has a rate of {rate:g} {shortened(rate_unit)}": not 0 < rate < math.inf or rate_unit not in _UNITS,
        "measures latency in bursts": is_latency and not steady,
        "measures latency at a rate in per cent of a link": is_latency and rate_unit == "percentage",
    }.items():
        if is_wrong:
            raise ConfigError(f"{name} {words}; {_EXPECTED}")
    sizes = _sizes(name, instructions, len(frame))
    mean = sum(size * part for size, part in sizes)
    weight = rate / {"pps": 1.0, "bps_L2": l2_bits(mean)}.get(rate_unit, l1_bits(mean))
    unit = "latency" if is_latency else "percentage" if rate_unit == "percentage" else "pps"
    if kind != "continuous":
        frames, bursts = int(mode[_FRAMES[kind]]), int(mode.get("count", 1))
        if bursts:
            weight, unit = frames * bursts, "frames"
        else:  # without end: at its mean rate
            weight = frames / ((frames - 1) / weight + float(mode["ibg"]) / 1e6)
    if not weight > 0:
        raise ValueError("it has no frames")
    data = {key: value for key, value in item.items() if key not in ("name", "next", "stream_id")}
    data |= {"flags": flags} | ({} if steady else {"isg": 0.0, "self_start": True, "action_count": 0})
    return _Row({**data, "next_stream_id": -1}, frame, sizes, weight, unit, steady)


def _sizes(name: str, instructions: Sequence[Mapping[str, Any]], length: int) -> tuple[tuple[int, float], ...]:
    """Bytes with FCS, each with its share of the frames, from the field-engine variable that trims their *length*.

    Random lengths are evenly distributed, so their mean is that of the range. Raises ConfigError.
    """
    trims = [item["name"] for item in instructions if item["type"] == "trim_pkt_size"]
    lengths: Sequence[int] = [length]
    if trims:
        item = next((item for item in instructions if item.get("name") == trims[0] and "size" in item), {})
        step, values = int(item.get("step", 1)), item.get("value_list")
        if len(trims) > 1 or item.get("type") != "flow_var" or item.get("next_var") or (values and step != 1):
            raise ConfigError(f"{name}: the sizes of its frames cannot be derived from its field engine")
        stride = 1 if item["op"] == "random" else step
        lengths = values or range(int(item["min_value"]), int(item["max_value"]) + 1, stride)
        if not lengths or lengths[-1] > length or max(lengths) > length:
            raise ConfigError(f"{name}: its frames are cut to more than the {length} bytes of its packet")
    counted = Counter(max(value, MIN_BYTES) + FCS for value in lengths)
    return tuple((size, frames / len(lengths)) for size, frames in counted.items())


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
        for rows, place in zip(found, header.addresses(), strict=True):
            rows.append(_ALL if writes is None else _address_bounds(frame, place, writes))
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
