"""Streams of a user's own profile, in TRex's format: what of them can be judged, and what it is in figures.

A sentence's load is frames/s of a port, all streams together, for as long as a trial lasts. Continuous streams are sent
in the ratio of their rates; TRex's multiplier leaves the rate of latency streams as it is, and takes it off the load.
Bursts and streams that start others are a pattern in time (:mod:`.profile_pattern`). The rest is refused in a sentence.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..units import FCS, l1_bits, l2_bits
from .ip_header import ip_header
from .patterns import Pattern, Timed, pattern
from .stream_flows import address_ranges, flow_count
from .trex_profile import ProfileSource, ProgramStream, TrexProfile, _mean

PADDED, LONGEST, SHORTEST = 60, 9238, 14
"""Bytes without FCS: what a shorter frame is padded to, and the most and least that TRex takes."""

MOST = 4096
"""The most streams that one direction takes."""

LATEST = 1000.0
"""Microseconds that a stream may begin after the others: more would be missing from a trial's frames."""

_DUMMY, _DESTINATION, _TTL = 8, 6, {4: 8, 6: 7}
_RIGHT = "expected continuous streams (STLTXCont), whose rate follows the sentence's load"
_PATTERN = "expected streams whose rate in pps or bit/s follows the load"


def read_program(answer: Mapping[str, Any], source: ProfileSource) -> TrexProfile:
    """What the process that ran a profile answered (see :mod:`.generators.trex.program_child`), judged.

    Raises ConfigError, one sentence, for what no sentence's load can be made of.
    """
    path = source.path
    first, second = answer["directions"]
    if source.mac_dst == "port":
        first, second = _to_the_port(first, path), _to_the_port(second, path)
    streams, ahead = _direction(first["streams"], path)
    one_direction = ""
    back: tuple[ProgramStream, ...] = ()
    behind: Pattern | None = None
    if path.suffix != ".py":
        one_direction = "a file of streams says nothing of a second direction"
    elif "error" in second:
        line = f" (line {second['error']['line']})" if second["error"]["line"] else ""
        one_direction = f"for the second direction, 'get_streams(direction=1)', it {second['error']['message']}{line}"
    elif not second["streams"]:
        one_direction = "it has no streams for the second direction, 'get_streams(direction=1)'"
    elif _packets(second["streams"]) == _packets(first["streams"]):
        # a router would send them back where they came from, and all would seem lost
        one_direction = "its frames are the same in both directions; expected addresses swapped for 'direction' 1"
    else:
        try:
            back, behind = _direction(second["streams"], path)
        except ConfigError as error:
            one_direction = f"for the second direction: {error.args[0]}"
    if back and abs(_mean(back) - _mean(streams)) > 1e-6 * _mean(streams):
        one_direction = (
            f"its frames have {_mean(streams):.6g} bytes on average, and {_mean(back):.6g} in the second direction"
        )
        back, behind = (), None
    programs = [(stream.frame, json.loads(stream.text)["vm"].get("instructions", ())) for stream in streams]
    flows, addresses = flow_count(programs), address_ranges(programs)
    return TrexProfile(source, (streams, back), one_direction, flows, addresses, (ahead, behind))


def _to_the_port(direction: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The streams of a direction, whose destination MAC address TRex is to fill in (``flags``, bits 1 and 2)."""
    rows = []
    for number, item in enumerate(direction.get("streams", ()), 1):
        try:
            rows.append({**item, "flags": int(item.get("flags") or 0) & ~_DESTINATION})
            written = any(int(row.get("pkt_offset", 6)) < 6 for row in item["vm"].get("instructions", ()))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = _words(error)
            raise ConfigError(f"{_named(number, item)} is no stream that TRex would take ({reason})", path) from None
        if written:
            raise ConfigError(
                f"{_named(number, item)} writes its destination MAC address by its field engine, which 'mac_dst: port'"
                " does not change; expected a profile that leaves it alone",
                path,
            )
    return {**direction, "streams": rows} if "streams" in direction else dict(direction)


def _packets(streams: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [(item["packet"]["binary"], item["vm"].get("instructions")) for item in streams]


def _direction(items: Sequence[Mapping[str, Any]], path: Path) -> tuple[tuple[ProgramStream, ...], Pattern | None]:
    """The streams of one direction, and their pattern where they are not all sent all the time. Raises ConfigError."""
    if len(items) > MOST:
        raise ConfigError(f"has {len(items)} streams; expected at most {MOST}", path)
    known = [(_named(number, item), item) for number, item in enumerate(items, 1) if item.get("enabled", True)]
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
            raise ConfigError(f"{name} is no stream that TRex would take ({_words(error)})", path) from None
        if not 0 < value < math.inf or unit not in ("pps", "bps_L1", "bps_L2", "percentage"):
            raise ConfigError(f"{name} has a rate of {value:g} {unit}; expected more than 0", path)
        if fixed and _in_turn(item):
            raise ConfigError(f"{name} measures latency in bursts, at a rate that no load changes; {_RIGHT}", path)
        if unit == "percentage" and fixed:
            raise ConfigError(
                f"{name} measures latency at a rate in per cent of a link; expected frames/s (pps), for TRex"
                " keeps it whatever the load",
                path,
            )
        mean = sum(size * part for size, part in sizes)
        bits = {"pps": 1.0, "bps_L2": l2_bits(mean)}.get(unit, l1_bits(mean))
        if not fixed and not _alone(item):
            units.add(unit == "percentage")
        rows.append((item, frame, sizes, value / bits, fixed))
    if len(units) > 1:
        raise ConfigError(
            "has streams in per cent of a link and others at a rate of their own, so their ratio depends on the link;"
            " expected all of one kind",
            path,
        )
    if all(fixed for *_, fixed in rows):
        raise ConfigError(f"has latency streams only, whose rate no load changes; {_RIGHT} beside them", path)
    follow = [place for place, row in enumerate(rows) if not row[-1]]
    if not any(_in_turn(item) for item, *_ in rows):
        found, after = None, {}
        rates = {place: rows[place][3] for place in follow}
    else:
        timed = [rows[place][0] for place in follow if not _alone(rows[place][0])]
        if any(item["mode"]["rate"]["type"] == "percentage" for item in timed):
            raise ConfigError(f"has bursts in per cent of a link, whose length depends on it; {_PATTERN}", path)
        found = pattern(_all_timed(known, rows, follow, path), path)
        rates = {place: found.rate(number) for number, place in enumerate(follow)}
        after = {place: (found.delays[number], found.after[number]) for number, place in enumerate(follow)}
    whole = sum(rates.values())
    streams = []
    for place, (item, frame, sizes, pps, fixed) in enumerate(rows):
        if fixed:
            streams.append(ProgramStream(_text(item, pps), frame, 0.0, sizes, pps))
        elif found is None:
            streams.append(ProgramStream(_text(item, pps / whole), frame, pps / whole, sizes))
        else:
            delay, number = after[place]
            following = -1 if number is None else follow[number] + 1
            text = _text_in_turn(item, pps, delay, following)
            streams.append(ProgramStream(text, frame, rates[place] / whole, sizes))
    return tuple(streams), found


def _in_turn(item: Mapping[str, Any]) -> bool:
    """Whether a stream is not sent all the time that others are."""
    return bool(item["mode"]["type"] != "continuous" or not item.get("self_start", True))


def _alone(item: Mapping[str, Any]) -> bool:
    """Whether each of its bursts is a frame by itself, whose rate does not matter: TRex makes captures of them."""
    counts = {"single_burst": "total_pkts", "multi_burst": "pkts_per_burst"}
    return bool(item["mode"].get(counts.get(item["mode"]["type"], "")) == 1)


def _all_timed(
    known: Sequence[tuple[str, Mapping[str, Any]]],
    rows: Sequence[tuple[Any, ...]],
    follow: Sequence[int],
    path: Path,
) -> list[Timed]:
    """The streams whose rate follows the load, with ``next`` as a place among them. Raises ConfigError."""
    places = {item["name"]: place for place, (_, item) in enumerate(known) if item.get("name") not in (None, "")}
    found = []
    for place in follow:
        (name, item), pps, following = known[place], float(rows[place][3]), known[place][1].get("next")
        try:
            if following in (None, "", -1) or int(item.get("action_count") or 0) == 1:  # the first end is the last
                number = None
            elif following not in places:
                raise ConfigError(f"{name} begins '{following}', and no stream that is sent has that name", path)
            elif places[following] not in follow:
                raise ConfigError(f"{name} begins '{following}', which measures latency; {_PATTERN}", path)
            else:
                number = follow.index(places[following])
            timed = _timed(name, item, pps, number)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ConfigError(f"{name} is no stream that TRex would take ({_words(error)})", path) from None
        if timed.endless:
            _check_delay(name, item, path)
        found.append(timed)
    return found


def _timed(name: str, item: Mapping[str, Any], pps: float, number: int | None) -> Timed:
    """One of them. Raises KeyError, TypeError, ValueError, OverflowError for what is no number, or none that fits."""
    mode, kind = item["mode"], item["mode"]["type"]
    frames = {"single_burst": lambda: int(mode["total_pkts"]), "multi_burst": lambda: int(mode["pkts_per_burst"])}
    count = frames[kind]() if kind in frames else None
    several = kind == "multi_burst"
    timed = Timed(
        name,
        math.inf if _alone(item) and mode["rate"]["type"] == "percentage" else pps,
        count,
        int(mode["count"]) if several else 0 if count is None else 1,
        float(mode["ibg"]) / 1e6 if several else 0.0,
        float(item["isg"]) / 1e6,
        bool(item.get("self_start", True)),
        number,
    )
    if count is not None and count < 1:
        raise ValueError("a burst of no frames")
    if not (0 <= timed.gap < math.inf and 0 <= timed.delay < math.inf and timed.bursts >= 0):
        raise ValueError("a time or a count that is negative or no number")
    return timed


def _text_in_turn(item: Mapping[str, Any], pps: float, delay: float, following: int) -> str:
    """The stream as TRex takes it, at the file's own rate: unchanged, but that what ends is begun again."""
    data = {key: value for key, value in item.items() if key not in ("name", "next", "stream_id")}
    mode = {**item["mode"], "rate": {"type": "pps", "value": pps}}
    turn = {"mode": mode, "isg": delay * 1e6, "action_count": 0, "next_stream_id": following}
    return json.dumps({**data, **turn})


def _named(number: int, item: Mapping[str, Any]) -> str:
    name = item.get("name")
    return f"stream {number}" + (f" ('{name}')" if name not in (None, "") else "")


def _text(item: Mapping[str, Any], pps: float) -> str:
    """The stream as TRex takes it: unchanged, but that its rate is in frames/s and that it is followed by none."""
    data = {key: value for key, value in item.items() if key not in ("name", "next", "stream_id", "next_stream_id")}
    return json.dumps({**data, "mode": {"type": "continuous", "rate": {"type": "pps", "value": pps}}})


def _check_mode(name: str, item: Mapping[str, Any], path: Path) -> None:
    mode = item["mode"]
    kind = mode["type"]
    if kind not in ("continuous", "single_burst", "multi_burst"):
        raise ConfigError(f"{name} has the mode '{kind}'; {_RIGHT}", path)
    if int(item["flags"]) & _DUMMY:
        raise ConfigError(f"{name} is a dummy, which sends nothing; {_RIGHT}", path)
    if item.get("start_paused", False):
        raise ConfigError(f"{name} does not begin by itself; {_RIGHT}", path)
    if not _in_turn(item):
        _check_delay(name, item, path)


def _check_delay(name: str, item: Mapping[str, Any], path: Path) -> None:
    if float(item["isg"]) > LATEST:
        raise ConfigError(
            f"{name} begins {float(item['isg']) / 1e3:g} ms late (isg), so a trial would miss its frames; expected"
            f" at most {LATEST / 1e3:g} ms",
            path,
        )


def _frame(name: str, item: Mapping[str, Any], path: Path) -> tuple[bytes, tuple[tuple[int, float], ...]]:
    """The first frame, without FCS, and the stream's sizes with FCS."""
    try:
        frame = base64.b64decode(item["packet"]["binary"], validate=True)
    except binascii.Error:
        raise ConfigError(f"{name}: its packet is not base64", path) from None
    if not SHORTEST <= len(frame) <= LONGEST:
        right = f"expected {SHORTEST} to {LONGEST} without FCS"
        raise ConfigError(f"{name}: its frame has {len(frame)} bytes; {right}", path)
    header = ip_header(frame.ljust(PADDED, b"\0"))
    if header is None:
        raise ConfigError(f"{name}: its frame is not IP; expected only frames that a router forwards", path)
    if frame[header.offset + _TTL[header.version]] < 2:
        raise ConfigError(f"{name}: its frame has no time to live left; expected 2 or more for a router", path)
    lengths = _lengths(name, item["vm"].get("instructions", ()), len(frame), path)
    found: dict[int, float] = {}
    for length, part in lengths:
        size = max(length, PADDED) + FCS
        found[size] = found.get(size, 0.0) + part
    return frame.ljust(PADDED, b"\0"), tuple(found.items())


def _lengths(name: str, instructions: Sequence[Mapping[str, Any]], length: int, path: Path) -> list[tuple[int, float]]:
    """Lengths of the frames, without FCS, each with how many of them have it: what the variable of a trim counts.

    A random one is drawn evenly, so a mean over many frames is that of the range.
    """
    trims = [item["name"] for item in instructions if item["type"] == "trim_pkt_size"]
    if not trims:
        return [(length, 1.0)]
    item = next((item for item in instructions if item.get("name") == trims[0] and "size" in item), None)
    if len(trims) > 1 or item is None or item["type"] != "flow_var" or item.get("next_var"):
        raise ConfigError(f"{name}: the sizes of its frames cannot be told from its field engine", path)
    step = int(item.get("step", 1))
    if values := item.get("value_list"):
        if step != 1:
            raise ConfigError(f"{name}: the sizes of its frames cannot be told from its field engine", path)
        row = [int(value) for value in values]
    else:
        low, high = int(item["min_value"]), int(item["max_value"])
        stride = 1 if item["op"] == "random" else step
        last = low + (high - low) // stride * stride
        # a range that is wrong may be four thousand million long
        row = list(range(low, last + 1, stride)) if SHORTEST <= low <= last <= length else [low, last]
    if not row or min(row) < SHORTEST or max(row) > length:
        raise ConfigError(
            f"{name}: its frames are cut to {min(row, default=0)} to {max(row, default=0)} bytes; expected"
            f" {SHORTEST} to the {length} of its packet",
            path,
        )
    return [(value, 1 / len(row)) for value in row]


def _words(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)
