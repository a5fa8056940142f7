"""A user's profile in TRex's format: the streams of each direction, whose rates follow a load.

A load is frames/s of a port, all streams together. Continuous streams keep the ratio of their rates. Streams
that measure latency are left out. Those that end or take turns (bursts, chains) are sent all the time, in the ratio of
their frames.
"""

from __future__ import annotations

import base64
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import ConfigError
from ...units import FCS, l1_bits, l2_bits
from ...visible import shortened
from .ip_header import why_not_routed

MIN_BYTES = 60
"""Bytes without FCS to which shorter frames are padded."""

MAX_START_DELAY = 1000.0
"""Microseconds by which a stream may start late; with more, a trial would miss its frames."""

_DUMMY_FLAG, _DESTINATION_MAC_FLAGS = 8, 6
_FRAMES = {"continuous": "", "single_burst": "total_pkts", "multi_burst": "pkts_per_burst"}
_UNITS = ("pps", "bps_L1", "bps_L2", "percentage")
_EXPECTED = "expected continuous streams (STLTXCont) that start within 1 ms,"


@dataclass(frozen=True, slots=True)
class ProgramStream:
    """A stream. ``text``: JSON for TRex's ``add_stream``; ``frame``: the first one, without FCS.

    ``share`` of the frames, 0..1; ``sizes``: (bytes with FCS, share of the stream's frames). ``is_steady``: the file
    sends it all the time, too.
    """

    text: str
    frame: bytes
    share: float
    sizes: tuple[tuple[int, float], ...]
    is_steady: bool = True


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
        facts = {"file": self.path.name, "sha256": self.sha256, "tunables": self.tunables, "client": self.client}
        return facts if self.mac_dst == "packet" else {**facts, "mac_dst": self.mac_dst}


@dataclass(frozen=True)
class TrexProfile:
    """``directions``: the streams of each; ``one_direction_reason``: why the second has none, or "".

    ``answer``: the file that it was read from, as JSON data.
    """

    source: ProfileSource
    directions: tuple[tuple[ProgramStream, ...], tuple[ProgramStream, ...]]
    one_direction_reason: str
    answer: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def pattern(self) -> str:
        """How the frames are sent in another pattern than the file's; "": in its own."""
        streams = [stream for direction in self.directions for stream in direction]
        if not (others := sum(not stream.is_steady for stream in streams)):
            return ""
        return (
            f"{others} of {len(streams)} streams of the file are bursts, or follow others; here they are sent all the"
            " time, in the ratio of their frames"
        )

    def sizes(self) -> tuple[tuple[int, float], ...]:
        """Frame sizes (bytes with FCS) of the first direction, each with its share of the frames."""
        shares: dict[int, float] = {}
        for stream in self.directions[0]:
            for size, part in stream.sizes:
                shares[size] = shares.get(size, 0.0) + stream.share * part
        return tuple(shares.items())


# -- reading -----------------------------------------------------------------------------------------------------------


def read_trex_profile(answer: Mapping[str, Any], source: ProfileSource) -> TrexProfile:
    """Return the profile in the *answer* of its process. Raises ConfigError for streams that no load can scale."""
    first, second = answer["directions"]
    try:
        streams = _read_direction(first, source)
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
            back = _read_direction(second, source)
        except ConfigError as error:
            reason = f"for the second direction: {error}"
    size, size_back = (
        sum(stream.share * part * size for stream in direction for size, part in stream.sizes)
        for direction in (streams, back)
    )
    if back and abs(size_back - size) > 1e-6 * size:
        reason = f"its frames have {size:.6g} bytes on average, and {size_back:.6g} in the second direction"
        back = ()
    return TrexProfile(source, (streams, back), reason, answer)


def _packets(direction: Mapping[str, Any]) -> list[Any]:
    return [(item.get("packet"), item.get("vm")) for item in direction["streams"]]


@dataclass(frozen=True, slots=True)
class _Row:
    """A stream of a file: its ``data`` for ``add_stream`` but for the rate, and its part of the load.

    ``weight``: in ``unit`` (``pps``; ``percentage`` of a link; ``frames`` of a stream that ends).
    """

    data: Mapping[str, Any]
    frame: bytes
    sizes: tuple[tuple[int, float], ...]
    weight: float
    unit: str
    is_steady: bool

    def stream(self, total: float) -> ProgramStream:
        """Return the continuous stream of these frames; *total*: the weight of all streams."""
        share = self.weight / total
        mode = {"type": "continuous", "rate": {"type": "pps", "value": share}}
        text = json.dumps({**self.data, "mode": mode})
        return ProgramStream(text, self.frame, share, self.sizes, self.is_steady)


def _read_direction(direction: Mapping[str, Any], source: ProfileSource) -> tuple[ProgramStream, ...]:
    """Return the streams of one direction. Raises ConfigError."""
    items = {
        number: item
        for number, item in enumerate(direction.get("streams", ()), 1)
        if item.get("enabled", True) and not _measures_latency(item)
    }
    if not items:
        raise ConfigError("has no streams beside those that measure latency; expected at least one from 'get_streams'")
    started, rows = {item.get("next") for item in items.values()} - {None}, list[_Row]()
    for number, item in items.items():
        label = item.get("name")
        name = f"stream {number}" + (f" ('{shortened(label, 60)}')" if label not in (None, "") else "")
        starts = item.get("self_start", True) or label in started
        try:
            rows.append(_read_stream(name, item if starts else {**item, "start_paused": True}, source.mac_dst))
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:  # a user's own stream
            reason = f"{shortened(error)} is missing" if isinstance(error, KeyError) else shortened(error)
            raise ConfigError(f"{name} is not a stream that TRex accepts ({reason})") from None
    if len({row.unit for row in rows}) > 1:
        raise ConfigError(
            "has streams whose ratio depends on the link or on the time; expected all in per cent of a link, all at a"
            " rate of their own, or all of a number of frames"
        )
    total = sum(row.weight for row in rows)
    return tuple(row.stream(total) for row in rows)


def _measures_latency(item: Mapping[str, Any]) -> bool:
    """Return whether the stream counts latency: at a rate that no load changes, and for nobody who reads it here."""
    counted = item.get("flow_stats")
    return isinstance(counted, Mapping) and bool(counted.get("enabled")) and counted.get("rule_type") == "latency"


def _read_stream(name: str, item: Mapping[str, Any], mac_dst: str) -> _Row:
    """Read a stream. Raises ConfigError if no load can scale it, other errors if TRex does not accept it."""
    mode, flags, instructions = item["mode"], int(item["flags"] or 0), item["vm"].get("instructions", ())
    kind, rate_unit, rate = mode["type"], str(mode["rate"]["type"]), float(mode["rate"]["value"])
    steady = kind == "continuous" and bool(item.get("self_start", True))
    frame = base64.b64decode(item["packet"]["binary"], validate=True).ljust(MIN_BYTES, b"\0")
    if mac_dst == "port":
        flags &= ~_DESTINATION_MAC_FLAGS
    if why_not := why_not_routed(frame):
        raise ConfigError(f"{name}: its frame {why_not}")
    for words, is_wrong in {
        f"has the mode '{shortened(kind)}'": kind not in _FRAMES,
        "is a dummy, which sends nothing": flags & _DUMMY_FLAG,
        "does not start by itself": item.get("start_paused", False),
        f"starts {float(item['isg']) / 1e3:g} ms late (isg)": steady and float(item["isg"]) > MAX_START_DELAY,
        f"has a rate of {rate:g} {shortened(rate_unit)}": not 0 < rate < math.inf or rate_unit not in _UNITS,
    }.items():
        if is_wrong:
            raise ConfigError(f"{name} {words}; {_EXPECTED}")
    sizes = _sizes(name, instructions, len(frame))
    mean = sum(size * part for size, part in sizes)
    weight = rate / {"pps": 1.0, "bps_L2": l2_bits(mean)}.get(rate_unit, l1_bits(mean))
    unit = "percentage" if rate_unit == "percentage" else "pps"
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
    """Return sizes with FCS and their shares of the frames, by the field-engine variable that trims their *length*.

    Random lengths are evenly distributed, so their mean is that of the range. Raises ConfigError.
    """
    trims = [own["name"] for own in instructions if own["type"] == "trim_pkt_size"]
    lengths: Sequence[int] = [length]
    if trims:
        resized = next((own for own in instructions if own.get("name") == trims[0] and "size" in own), {})
        step, values = int(resized.get("step", 1)), resized.get("value_list")
        if len(trims) > 1 or resized.get("type") != "flow_var" or resized.get("next_var") or (values and step != 1):
            raise ConfigError(f"{name}: the sizes of its frames cannot be derived from its field engine")
        stride = 1 if resized["op"] == "random" else step
        lengths = values or range(int(resized["min_value"]), int(resized["max_value"]) + 1, stride)
        if not lengths or lengths[-1] > length or max(lengths) > length:
            raise ConfigError(f"{name}: its frames are cut to more than the {length} bytes of its packet")
    counted = Counter(max(value, MIN_BYTES) + FCS for value in lengths)
    return tuple((size, frames / len(lengths)) for size, frames in counted.items())
