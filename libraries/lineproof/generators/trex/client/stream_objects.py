# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""Converts streams into objects of a TRex client library: both libraries use the same names."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from ..next_hops import MAC_FROM_PACKET

OWN_RATES = {"type": "raw", "value": 1.0, "op": "abs"}
"""The multiplier for streams whose rates are final."""


def build_stream(library: SimpleNamespace, item: Mapping[str, Any]) -> Any:
    """The library's stream of *item*, a :class:`lineproof.generators.streams.Stream` as data.

    *library* has its modules ``builder`` (packets) and ``streams``.
    """
    builder, streams = library.builder, library.streams
    commands: list[Any] = []
    for variable in item["variables"]:
        # offsets are numbers: names ("IP.src") need the Scapy that TRex ships
        commands += [
            builder.STLVmFlowVar(
                name=variable["name"],
                min_value=variable["minimum"],
                max_value=variable["maximum"],
                size=variable["size"],
                step=variable["step"],
                op="inc",
            ),
            builder.STLVmWrFlowVar(fv_name=variable["name"], pkt_offset=variable["offset"]),
        ]
    if item["fix_ipv4"] is not None:
        commands.append(builder.STLVmFixIpv4(offset=item["fix_ipv4"]))
    frame, own_macs = bytes.fromhex(item["frame"]), {}
    if to := item.get("destination"):
        frame = _mac(to) + frame[6:]
        own_macs = {"mac_src_override_by_pkt": 0, "mac_dst_override_mode": MAC_FROM_PACKET}
    # a packet as bytes also means that the port's own MAC addresses go into it, unless they are named
    packet = builder.STLPktBuilder(pkt_buffer=frame, vm=builder.STLScVmRaw(commands) if commands else None)
    group = item.get("group")
    if group is not None:
        measured = streams.STLFlowLatencyStats(pg_id=group)
        mode = streams.STLTXCont(pps=item["pps"])
        return streams.STLStream(packet=packet, mode=mode, isg=item["gap"], flow_stats=measured, **own_macs)
    if item.get("burst"):
        mode = streams.STLTXSingleBurst(pps=item["share"], total_pkts=item["burst"])
    else:
        mode = streams.STLTXCont(pps=item["share"])
    return streams.STLStream(packet=packet, mode=mode, isg=item["gap"], **own_macs)


def stream_data(library: SimpleNamespace, item: Mapping[str, Any]) -> dict[str, Any]:
    """*item* as parameters of ``add_stream`` of TRex v3."""
    if not item["program"]:
        built: dict[str, Any] = build_stream(library, item).to_json()
        return built | {"next_stream_id": -1}
    data = program_data(item)
    # trex-stl-lib 0.3 splits a program among cores by one variable, later clients by each variable
    data["vm"].pop("split_by_var", None)
    return {"start_paused": False, "core_id": -1, **data}


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


def scaled_pattern(items: Sequence[Mapping[str, Any]], pps: float) -> list[dict[str, Any]]:
    """Streams of a pattern of one port, with rates and pauses scaled to *pps* frames/s in all."""
    scaled = pps - sum(item["pps"] for item in items if not item["pattern_pps"])
    found = []
    for item in items:
        if item["pattern_pps"]:
            factor, data = scaled / item["pattern_pps"], json.loads(item["program"])
            mode = data["mode"]
            mode["rate"]["value"] *= factor
            if "ibg" in mode:
                mode["ibg"] /= factor
            data["isg"] /= factor
            item = {**item, "program": json.dumps(data)}
        found.append(dict(item))
    return found
