# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""The only file that imports ``trex_stl_lib``, and how a stream becomes its object. For the client's process alone."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from linerate.generators.trex import imp_bridge
from linerate.generators.trex.service import Refusal


def load_library() -> SimpleNamespace:
    """The parts of trex-stl-lib that are used here. Raises Refusal."""
    imp_bridge.install()
    try:
        import scapy
        import zmq
        from trex_stl_lib import trex_stl_packet_builder_scapy as builder
        from trex_stl_lib import trex_stl_streams as streams
        from trex_stl_lib.trex_stl_client import STLClient
        from trex_stl_lib.trex_stl_types import RpcCmdData
    except Exception as error:
        raise Refusal("install", f"the TRex client cannot be imported ({type(error).__name__}: {error})") from error
    return SimpleNamespace(
        scapy=scapy, zmq=zmq, builder=builder, streams=streams, STLClient=STLClient, RpcCmdData=RpcCmdData
    )


def build_stream(library: SimpleNamespace, item: Mapping[str, Any]) -> Any:
    """The library's stream of *item*, a :class:`linerate.generators.streams.Stream` as data."""
    builder, streams = library.builder, library.streams
    commands: list[Any] = []
    for variable in item["variables"]:
        # offsets are numbers: the names ("IP.src") rely on a Scapy that the library brought along once
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
    # a packet given as bytes also says that the port's own MAC addresses go into it
    packet = builder.STLPktBuilder(
        pkt_buffer=bytes.fromhex(item["frame"]), vm=builder.STLScVmRaw(commands) if commands else None
    )
    group = item.get("group")
    if group is not None:
        measured = streams.STLFlowLatencyStats(pg_id=group)
        return streams.STLStream(packet=packet, mode=streams.STLTXCont(pps=item["pps"]), flow_stats=measured)
    if item.get("burst"):
        mode = streams.STLTXSingleBurst(pps=item["share"], total_pkts=item["burst"])
    else:
        mode = streams.STLTXCont(pps=item["share"])
    return streams.STLStream(packet=packet, mode=mode, isg=item["gap"])
