# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""Streams as TRex's ``add_stream`` takes them, which is the same for every server but for a few keys."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

MAC_FROM_PACKET = 1
"""TRex's mode of a stream's destination MAC address (bits 1 and 2 of its ``flags``): from the packet."""

OWN_RATES = {"type": "raw", "value": 1.0, "op": "abs"}
"""The multiplier for streams whose rates are final."""


def stream_data(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return *item*, a :class:`lineproof.generators.streams.Stream` as data, for ``add_stream``."""
    if item["program"]:
        return program_data(item)
    instructions: list[dict[str, Any]] = []
    for field in item["variables"]:
        limits = {"init_value": field["minimum"], "min_value": field["minimum"], "max_value": field["maximum"]}
        counter = {"type": "flow_var", "op": "inc", "name": field["name"], "size": field["size"], "step": field["step"]}
        written = {"type": "write_flow_var", "add_value": 0, "is_big_endian": True, "pkt_offset": field["offset"]}
        instructions += [counter | limits, written | {"name": field["name"]}]
    if item["fix_ipv4"] is not None:
        instructions.append({"type": "fix_checksum_ipv4", "pkt_offset": item["fix_ipv4"]})
    frame, flags = bytes.fromhex(item["frame"]), 0
    if to := item["destination"]:
        frame, flags = _mac(to) + frame[6:], MAC_FROM_PACKET << 1
    mode: dict[str, Any] = {"type": "continuous", "rate": {"type": "pps", "value": item["share"]}}
    counted: dict[str, Any] = {"enabled": False}
    if item["group"] is not None:
        counted = {"enabled": True, "rule_type": "latency", "stream_id": item["group"]}
        mode["rate"]["value"] = item["pps"]
    elif item["burst"]:
        mode |= {"type": "single_burst", "total_pkts": item["burst"]}
    return {
        "action_count": 0,
        "enabled": True,
        "flags": flags,
        "flow_stats": counted,
        "isg": item["gap"],
        "mode": mode,
        "next_stream_id": -1,
        "packet": {"binary": base64.b64encode(frame).decode(), "meta": ""},
        "self_start": True,
        "vm": {"instructions": instructions},
    }


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def program_data(item: Mapping[str, Any]) -> dict[str, Any]:
    """A stream of a user's own file as data: unchanged, or limited to the burst and with the destination of *item*."""
    data: dict[str, Any] = json.loads(item["program"])
    if to := item.get("destination"):
        frame = base64.b64decode(data["packet"]["binary"])
        data["packet"] = {**data["packet"], "binary": base64.b64encode(_mac(to) + frame[6:]).decode()}
        data["flags"] = data["flags"] & ~(3 << 1) | MAC_FROM_PACKET << 1
    if item["burst"]:
        data["mode"] = {**data["mode"], "type": "single_burst", "total_pkts": item["burst"]}
    return {"next_stream_id": -1, **data}
