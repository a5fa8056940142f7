# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""A session played with the client that TRex ships: ``server_official.py TREX_HOME RPC_PORT PUB_PORT``, result as JSON.

The server's backend returns three of four frames, and its clock runs ten times as fast as the wall's.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

sys.path.insert(0, f"{sys.argv[1]}/automation/trex_control_plane/interactive")

from trex.stl.api import (
    IP,
    UDP,
    Ether,
    STLClient,
    STLFlowLatencyStats,
    STLFlowStats,
    STLPktBuilder,
    STLScVmRaw,
    STLStream,
    STLTXCont,
    STLTXMultiBurst,
    STLTXSingleBurst,
    STLVmFixIpv4,
    STLVmFlowVar,
    STLVmTrimPktSize,
    STLVmTupleGen,
    STLVmWrFlowVar,
    STLVmWrMaskFlowVar,
)


def packet(vm: Any = None, size: int = 60) -> Any:
    base = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(dport=12, sport=1025)
    return STLPktBuilder(pkt=base / ((size - len(base)) * b"x"), vm=vm)


def programs() -> list[Any]:
    wide = [
        STLVmFlowVar("s", min_value="16.0.0.1", max_value="16.0.0.254", size=4, op="inc"),
        STLVmWrFlowVar("s", pkt_offset="IP.src"),
        STLVmFixIpv4(offset="IP"),
    ]
    listed = [STLVmFlowVar("s", value_list=[1, 5, 9], size=2, op="inc"), STLVmWrFlowVar("s", pkt_offset="UDP.sport")]
    flows = [
        STLVmTupleGen(ip_min="16.0.0.1", ip_max="16.0.0.2", port_min=1025, port_max=65535, name="t"),
        STLVmWrFlowVar(fv_name="t.ip", pkt_offset="IP.src"),
        STLVmWrFlowVar(fv_name="t.port", pkt_offset="UDP.sport"),
    ]
    masked = [
        STLVmFlowVar("m", min_value=1, max_value=30, size=2, op="dec", step=1),
        STLVmWrMaskFlowVar(fv_name="m", pkt_offset=1, pkt_cast_size=1, mask=0xFF),
    ]
    trimmed = [
        STLVmFlowVar("z", min_value=64, max_value=1500, size=2, op="random"),
        STLVmTrimPktSize("z"),
        STLVmWrFlowVar("z", pkt_offset="IP.len", add_val=-14),
    ]
    return [packet(STLScVmRaw(rows), 1500) for rows in (wide, listed, flows, masked, trimmed)]


def counted(client: Any) -> list[int]:
    stats = client.get_stats()
    return [stats[0]["opackets"], stats[1]["ipackets"]]


def main() -> dict[str, Any]:
    saw: dict[str, Any] = {}
    client = STLClient(server="127.0.0.1", sync_port=int(sys.argv[2]), async_port=int(sys.argv[3]))
    begin = time.monotonic()
    client.connect()
    saw["connect_s"] = time.monotonic() - begin
    client.acquire([0, 1], force=True)
    client.reset([0, 1])
    client.add_streams([STLStream(packet=each, mode=STLTXCont(pps=100)) for each in programs()], ports=[0])
    client.ports[0].validate()
    client.clear_stats()
    client.start([0], mult="5kpps", duration=2)
    client.wait_on_traffic([0], timeout=10)
    saw["programs"] = counted(client)

    client.reset([0, 1])
    client.add_streams(
        [
            STLStream(packet=packet(), mode=STLTXCont(pps=100), flow_stats=STLFlowStats(pg_id=7)),
            STLStream(packet=packet(), mode=STLTXCont(pps=1000), flow_stats=STLFlowLatencyStats(pg_id=20)),
        ],
        ports=[0],
    )
    client.clear_stats()
    client.start([0], mult="20kpps")
    for multiplier in ("30%", "2mpps", "1gbps", "1gbpsl1", "3"):
        client.update([0], mult=multiplier)
    client.pause([0])
    client.resume([0])
    client.get_util_stats()
    client.get_xstats(0)
    stats = client.get_stats()
    saw["flow_stats"] = sorted(str(key) for key in stats["flow_stats"])
    saw["latency"] = stats["latency"][20]["latency"]
    saw["groups"] = {rule: sorted(numbers) for rule, numbers in client.get_active_pgids().items()}
    client.stop([0])

    client.reset([0, 1])
    chain = [
        STLStream(name="a", packet=packet(), mode=STLTXSingleBurst(pps=1000, total_pkts=100), next="b"),
        STLStream(
            name="b",
            self_start=False,
            packet=packet(),
            mode=STLTXMultiBurst(pps=1000, pkts_per_burst=10, ibg=1000.0, count=5),
        ),
    ]
    client.add_streams(chain, ports=[0])
    client.clear_stats()
    client.start([0], mult="1")
    client.wait_on_traffic([0], timeout=10)
    saw["chain"] = client.get_stats()[0]["opackets"]

    client.reset([0, 1])
    client.set_port_attr([0], promiscuous=True)
    saw["promiscuous"] = client.get_port_attr(0)["prom"]
    client.set_service_mode([0, 1], True)
    client.set_l3_mode(0, "100.65.1.2", "100.65.1.1")
    client.resolve([0])
    saw["resolved"] = client.get_port_attr(0)["arp"]
    client.set_service_mode([0, 1], False)
    saw["active"] = client.is_traffic_active()
    saw["events"] = sorted({str(event.msg).split(" ", 2)[0] for event in client.get_events()})
    client.release([0, 1])
    client.disconnect()
    return saw


if __name__ == "__main__":
    print(json.dumps(main(), default=sorted), flush=True)
