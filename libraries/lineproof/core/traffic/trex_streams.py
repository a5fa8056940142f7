"""The streams of a user's profile in TRex's format, as a profile whose rate follows a load.

A load is frames/s of a port, all streams together. Continuous streams keep the ratio of their rates. TRex does not
multiply the rate of latency streams, so it is subtracted from the load. Bursts and streams that start others are a
pattern in time (:mod:`.patterns`). All else is refused.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import ConfigError
from ...units import FCS, l1_bits, l2_bits
from ...visible import shortened
from .counted_flows import address_ranges, flow_count
from .ip_header import why_not_routed
from .patterns import Pattern, StreamTiming, make_pattern
from .trex_profile import ProfileSource, ProgramStream, TrexProfile, mean_frame_size

MIN_BYTES, MAX_TREX_BYTES, MIN_TREX_BYTES = 60, 9238, 14
"""Bytes without FCS: padded size of short frames; the most and the least that TRex accepts."""

MAX_START_DELAY = 1000.0
"""Microseconds by which a stream may start late; with more, a trial would miss its frames."""

_DUMMY_FLAG, _DESTINATION_MAC_FLAGS = 8, 6
_BURST_FRAMES = {"single_burst": "total_pkts", "multi_burst": "pkts_per_burst"}
_CONTINUOUS = "expected continuous streams (STLTXCont), whose rate follows the sentence's load"
_FOLLOWS_LOAD = "expected streams whose rate in pps or bit/s follows the load"


def read_trex_profile(answer: Mapping[str, Any], source: ProfileSource) -> TrexProfile:
    """The profile in the *answer* of the process that ran it. Raises ConfigError for streams that no load can scale."""
    try:
        return _read_profile(answer, source)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:  # of a user's own streams
        raise ConfigError(f"has streams that TRex does not accept ({_reason(error)})", source.path) from None


def _read_profile(answer: Mapping[str, Any], source: ProfileSource) -> TrexProfile:
    path = source.path
    first, second = answer["directions"]
    if source.mac_dst == "port":
        first, second = _with_port_mac(first, path), _with_port_mac(second, path)
    streams, pattern = _read_direction(first.get("streams", ()), path)
    reason = ""
    back: tuple[ProgramStream, ...] = ()
    pattern_back: Pattern | None = None
    if path.suffix != ".py":
        reason = "a file of streams has no second direction"
    elif second.get("error"):
        problem, line = second["error"]["message"], second["error"]["line"]
        where = f" (line {line})" if line else ""
        reason = f"for the second direction, 'get_streams(direction=1)', it {problem}{where}"
    elif not second.get("streams"):
        reason = "it has no streams for the second direction, 'get_streams(direction=1)'"
    elif _packets(second["streams"]) == _packets(first["streams"]):
        # a router would send them back to the port they came from, and all would count as lost
        reason = "its frames are the same in both directions; expected addresses swapped for 'direction' 1"
    else:
        try:
            back, pattern_back = _read_direction(second["streams"], path)
        except ConfigError as error:
            reason = f"for the second direction: {error.args[0]}"
    size, size_back = mean_frame_size(streams), mean_frame_size(back)
    if back and abs(size_back - size) > 1e-6 * size:
        reason = f"its frames have {size:.6g} bytes on average, and {size_back:.6g} in the second direction"
        back, pattern_back = (), None
    programs = [(stream.frame, json.loads(stream.text)["vm"].get("instructions", ())) for stream in streams]
    flows, addresses = flow_count(programs), address_ranges(programs)
    patterns = pattern, pattern_back
    return TrexProfile(source, (streams, back), reason, flows, addresses, patterns, answer)


def _with_port_mac(direction: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The streams of a direction, changed so that TRex sets their destination MAC address (``flags``, bits 1 and 2)."""
    rows = []
    for number, item in enumerate(direction.get("streams", ()), 1):
        rows.append({**item, "flags": int(item.get("flags") or 0) & ~_DESTINATION_MAC_FLAGS})
        if any(int(row.get("pkt_offset", 6)) < 6 for row in item["vm"].get("instructions", ())):
            raise ConfigError(
                f"{_stream_name(number, item)} writes its destination MAC address by its field engine, which"
                " 'mac_dst: port' does not change; expected a profile that leaves it alone",
                path,
            )
    return {**direction, "streams": rows} if "streams" in direction else dict(direction)


def _packets(streams: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [(item["packet"]["binary"], item["vm"].get("instructions")) for item in streams]


def _read_direction(items: Sequence[Mapping[str, Any]], path: Path) -> tuple[tuple[ProgramStream, ...], Pattern | None]:
    """The streams of one direction, and their pattern unless all are continuous. Raises ConfigError."""
    known = [(_stream_name(number, item), item) for number, item in enumerate(items, 1) if item.get("enabled", True)]
    if not known:
        raise ConfigError("has no streams; expected at least one from 'get_streams'", path)
    rows: list[tuple[Mapping[str, Any], bytes, tuple[tuple[int, float], ...], float, bool]] = []
    units = set()
    for name, item in known:
        try:
            frame, sizes = _frame(name, item, path)
            _check_mode(name, item, path)
            rate = item["mode"]["rate"]
            unit, value = str(rate["type"]), float(rate["value"])
            fixed = item["flow_stats"].get("enabled", False) and item["flow_stats"].get("rule_type") == "latency"
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise ConfigError(f"{name} is not a stream that TRex accepts ({_reason(error)})", path) from None
        if not 0 < value < math.inf or unit not in ("pps", "bps_L1", "bps_L2", "percentage"):
            raise ConfigError(f"{name} has a rate of {value:g} {shortened(unit)}; expected more than 0", path)
        if fixed and _is_intermittent(item):
            raise ConfigError(f"{name} measures latency in bursts, at a rate that no load changes; {_CONTINUOUS}", path)
        if unit == "percentage" and fixed:
            raise ConfigError(
                f"{name} measures latency at a rate in per cent of a link; expected frames/s (pps), for TRex"
                " keeps it whatever the load",
                path,
            )
        mean = sum(size * part for size, part in sizes)
        bits = {"pps": 1.0, "bps_L2": l2_bits(mean)}.get(unit, l1_bits(mean))
        if not fixed and not _has_single_frame_bursts(item):
            units.add(unit == "percentage")
        rows.append((item, frame, sizes, value / bits, fixed))
    if len(units) > 1:
        raise ConfigError(
            "has streams in per cent of a link and others at a rate of their own, so their ratio depends on the link;"
            " expected all of one kind",
            path,
        )
    if all(fixed for *_, fixed in rows):
        raise ConfigError(f"has latency streams only, whose rate no load changes; {_CONTINUOUS} as well", path)
    scaled = [place for place, row in enumerate(rows) if not row[-1]]
    if not any(_is_intermittent(item) for item, *_ in rows):
        found, after = None, {}
        rates = {place: rows[place][3] for place in scaled}
    else:
        timed = [rows[place][0] for place in scaled if not _has_single_frame_bursts(rows[place][0])]
        if any(item["mode"]["rate"]["type"] == "percentage" for item in timed):
            raise ConfigError(f"has bursts in per cent of a link, whose length depends on it; {_FOLLOWS_LOAD}", path)
        found = make_pattern(_stream_timings(known, rows, scaled, path), path)
        rates = {place: found.rate(number) for number, place in enumerate(scaled)}
        after = {place: (found.delays[number], found.after[number]) for number, place in enumerate(scaled)}
    total = sum(rates.values())
    streams = []
    for place, (item, frame, sizes, pps, fixed) in enumerate(rows):
        if fixed:
            streams.append(ProgramStream(_continuous_stream_json(item, pps), frame, 0.0, sizes, pps))
        elif found is None:
            streams.append(ProgramStream(_continuous_stream_json(item, pps / total), frame, pps / total, sizes))
        else:
            delay, number = after[place]
            following = -1 if number is None else scaled[number] + 1
            text = _pattern_stream_json(item, pps, delay, following)
            streams.append(ProgramStream(text, frame, rates[place] / total, sizes))
    return tuple(streams), found


def _is_intermittent(item: Mapping[str, Any]) -> bool:
    """Return whether a stream is not sent all the time."""
    return bool(item["mode"]["type"] != "continuous" or not item.get("self_start", True))


def _has_single_frame_bursts(item: Mapping[str, Any]) -> bool:
    """Return whether each of its bursts is one frame, so that its rate does not matter (TRex's captures)."""
    return bool(item["mode"].get(_BURST_FRAMES.get(item["mode"]["type"], "")) == 1)


def _stream_timings(
    known: Sequence[tuple[str, Mapping[str, Any]]], rows: Sequence[tuple[Any, ...]], scaled: Sequence[int], path: Path
) -> list[StreamTiming]:
    """The timings of the *scaled* streams, whose rate follows the load. Raises ConfigError."""
    places = {item["name"]: place for place, (_, item) in enumerate(known) if item.get("name") not in (None, "")}
    found = []
    for place in scaled:
        (name, item), pps, following = known[place], float(rows[place][3]), known[place][1].get("next")
        if following in (None, "", -1) or int(item.get("action_count") or 0) == 1:  # the first end is the last
            number = None
        elif following not in places:
            raise ConfigError(f"{name} starts '{shortened(following)}', and no stream that is sent has that name", path)
        elif places[following] not in scaled:
            raise ConfigError(f"{name} starts '{following}', which measures latency; {_FOLLOWS_LOAD}", path)
        else:
            number = scaled.index(places[following])
        timed = _stream_timing(name, item, pps, number)
        if timed.endless:
            _check_delay(name, item, path)
        found.append(timed)
    return found


def _stream_timing(name: str, item: Mapping[str, Any], pps: float, number: int | None) -> StreamTiming:
    """The timing of a stream. Raises KeyError, TypeError, ValueError, OverflowError for impossible values."""
    mode = item["mode"]
    several = mode["type"] == "multi_burst"
    count = None if mode["type"] == "continuous" else int(mode[_BURST_FRAMES[mode["type"]]])
    timed = StreamTiming(
        name,
        math.inf if _has_single_frame_bursts(item) and mode["rate"]["type"] == "percentage" else pps,
        count,
        int(mode["count"]) if several else 0 if count is None else 1,
        float(mode["ibg"]) / 1e6 if several else 0.0,
        float(item["isg"]) / 1e6,
        bool(item.get("self_start", True)),
        number,
    )
    if count is not None and count < 1:
        raise ValueError(f"{name} has a burst of no frames")
    if not (0 <= timed.gap < math.inf and 0 <= timed.delay < math.inf and timed.bursts >= 0):
        raise ValueError(f"{name} has a time or a count that is negative or no number")
    return timed


def _pattern_stream_json(item: Mapping[str, Any], pps: float, delay: float, following: int) -> str:
    """The stream as TRex takes it, at the file's rate; *delay* (s) and next stream ID are the pattern's."""
    data = {key: value for key, value in item.items() if key not in ("name", "next", "stream_id")}
    mode = {**item["mode"], "rate": {"type": "pps", "value": pps}}
    timing = {"mode": mode, "isg": delay * 1e6, "action_count": 0, "next_stream_id": following}
    return json.dumps({**data, **timing})


def _stream_name(number: int, item: Mapping[str, Any]) -> str:
    name = item.get("name")
    return f"stream {number}" + (f" ('{shortened(name, 60)}')" if name not in (None, "") else "")


def _continuous_stream_json(item: Mapping[str, Any], pps: float) -> str:
    """The stream as TRex takes it, with a rate in frames/s and no next stream."""
    data = {key: value for key, value in item.items() if key not in ("name", "next", "stream_id", "next_stream_id")}
    return json.dumps({**data, "mode": {"type": "continuous", "rate": {"type": "pps", "value": pps}}})


def _check_mode(name: str, item: Mapping[str, Any], path: Path) -> None:
    mode = item["mode"]
    kind = mode["type"]
    if kind not in ("continuous", "single_burst", "multi_burst"):
        raise ConfigError(f"{name} has the mode '{shortened(kind)}'; {_CONTINUOUS}", path)
    if int(item["flags"]) & _DUMMY_FLAG:
        raise ConfigError(f"{name} is a dummy, which sends nothing; {_CONTINUOUS}", path)
    if item.get("start_paused", False):
        raise ConfigError(f"{name} does not start by itself; {_CONTINUOUS}", path)
    if not _is_intermittent(item):
        _check_delay(name, item, path)


def _check_delay(name: str, item: Mapping[str, Any], path: Path) -> None:
    if float(item["isg"]) > MAX_START_DELAY:
        raise ConfigError(
            f"{name} starts {float(item['isg']) / 1e3:g} ms late (isg), so a trial would miss its frames; expected"
            f" at most {MAX_START_DELAY / 1e3:g} ms",
            path,
        )


def _frame(name: str, item: Mapping[str, Any], path: Path) -> tuple[bytes, tuple[tuple[int, float], ...]]:
    """The first frame, without FCS, and the stream's sizes with FCS."""
    frame = base64.b64decode(item["packet"]["binary"], validate=True)
    if not MIN_TREX_BYTES <= len(frame) <= MAX_TREX_BYTES:
        right = f"expected {MIN_TREX_BYTES} to {MAX_TREX_BYTES} without FCS"
        raise ConfigError(f"{name}: its frame has {len(frame)} bytes; {right}", path)
    if why_not := why_not_routed(frame.ljust(MIN_BYTES, b"\0")):
        raise ConfigError(f"{name}: its frame {why_not}", path)
    lengths = _lengths(name, item["vm"].get("instructions", ()), len(frame), path)
    found: dict[int, float] = {}
    for length, part in lengths:
        size = max(length, MIN_BYTES) + FCS
        found[size] = found.get(size, 0.0) + part
    return frame.ljust(MIN_BYTES, b"\0"), tuple(found.items())


def _lengths(name: str, instructions: Sequence[Mapping[str, Any]], length: int, path: Path) -> list[tuple[int, float]]:
    """Frame lengths without FCS, each with its share of the frames, from the field-engine variable that trims them.

    Random lengths are evenly distributed, so their mean is that of the range.
    """
    trims = [item["name"] for item in instructions if item["type"] == "trim_pkt_size"]
    if not trims:
        return [(length, 1.0)]
    item = next((item for item in instructions if item.get("name") == trims[0] and "size" in item), None)
    if len(trims) > 1 or item is None or item["type"] != "flow_var" or item.get("next_var"):
        raise ConfigError(f"{name}: the sizes of its frames cannot be derived from its field engine", path)
    step = int(item.get("step", 1))
    if values := item.get("value_list"):
        if step != 1:
            raise ConfigError(f"{name}: the sizes of its frames cannot be derived from its field engine", path)
        row = [int(value) for value in values]
    else:
        low, high = int(item["min_value"]), int(item["max_value"])
        stride = 1 if item["op"] == "random" else step
        last = low + (high - low) // stride * stride
        # a wrong range could have 2**32 values
        row = list(range(low, last + 1, stride)) if MIN_TREX_BYTES <= low <= last <= length else [low, last]
    if not row or min(row) < MIN_TREX_BYTES or max(row) > length:
        raise ConfigError(
            f"{name}: its frames are cut to {min(row, default=0)} to {max(row, default=0)} bytes; expected"
            f" {MIN_TREX_BYTES} to the {length} of its packet",
            path,
        )
    return [(value, 1 / len(row)) for value in row]


def _reason(error: Exception) -> str:
    return f"{shortened(error)} is missing" if isinstance(error, KeyError) else shortened(error)
