"""Reads TRex's profiles that are data: ``.yaml`` of its earlier consoles and of its GUI, and ``.json``.

There are two shapes: that of ``add_stream``, and that of TRex's console, which names a capture as ``pcap`` relative to
the file and its rate as one key (``pps: 100``). Neither has directions.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...config import parse_yaml
from ...errors import ConfigError
from ...json_text import JsonError, parse_json
from ...traffic.captures import first_frame
from ...visible import shortened

RATES = ("pps", "bps_L1", "bps_L2", "percentage")


def read_streams(path: Path, text: str) -> list[dict[str, Any]]:
    """The streams of *text*, the content of the file *path*. Raises ConfigError."""
    try:
        data = parse_json(text) if path.suffix == ".json" else parse_yaml(text, path)[0]
    except JsonError as error:
        raise ConfigError(f"cannot be read: {error}", path, error.line) from None
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise ConfigError("is no list of streams", path, 1)
    found = []
    for number, item in enumerate(data, 1):
        try:
            found.append(_stream(number, item, path))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ConfigError(f"stream {number} is not a stream that TRex accepts ({shortened(error)})", path) from None
    return found


def _stream(number: int, item: Mapping[str, Any], path: Path) -> dict[str, Any]:
    inner = item.get("stream", item)
    packet, mode = (inner.get(key) if isinstance(inner, dict) else None for key in ("packet", "mode"))
    if not isinstance(packet, dict) or not isinstance(mode, dict):
        raise ConfigError(f"stream {number} has no 'packet' and 'mode'", path)
    defaults = {"action_count": 0, "enabled": True, "self_start": True, "isg": 0.0}
    counted = inner.get("flow_stats")
    is_counted = isinstance(counted, dict) and counted
    machine = inner.get("vm") or {}
    return {
        "flags": inner.get("flags", int(bool(inner.get("mac_src_override_by_pkt", 0)))),
        **{key: inner.get(key, value) for key, value in defaults.items()},
        "mode": _mode(number, mode, path),
        "packet": {"binary": _packet_base64(number, packet, path), "meta": ""},
        "vm": {**machine, "instructions": list(machine.get("instructions") or ())},
        "flow_stats": {"rule_type": "stats", **counted} if is_counted else {"enabled": False},
        "name": item.get("name"),
        "next": item.get("next"),
    }


def _mode(number: int, mode: Mapping[str, Any], path: Path) -> dict[str, Any]:
    if isinstance(mode.get("rate"), dict):
        return dict(mode)
    rates = [name for name in RATES if name in mode]
    if len(rates) != 1:
        raise ConfigError(f"stream {number}: expected one of {', '.join(RATES)} in its 'mode'", path)
    defaults = {"total_pkts": 1, "pkts_per_burst": 1, "ibg": 0.0, "count": 1, "type": "continuous"}
    return {**defaults, **mode, "rate": {"type": rates[0], "value": mode[rates[0]]}}


def _packet_base64(number: int, packet: Mapping[str, Any], path: Path) -> str:
    if packet.get("binary"):
        return str(packet["binary"])
    if packet.get("pcap"):
        return base64.b64encode(first_frame(path.parent / str(packet["pcap"]))).decode()
    raise ConfigError(f"stream {number}: expected 'binary' or 'pcap' in its 'packet'", path)
