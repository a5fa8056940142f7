# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""Flow statistics and latency through trex-stl-lib 0.3: ``server_flows.py RPC_PORT PUB_PORT``, result as JSON."""

from __future__ import annotations

import json
import sys
import types
import warnings
from typing import Any

warnings.simplefilter("ignore")
if "imp" not in sys.modules and sys.version_info >= (3, 12):
    # the client imports imp for load_py, which is not used here
    sys.modules["imp"] = types.ModuleType("imp")

from trex_stl_lib.api import (  # noqa: E402
    IP,
    UDP,
    Ether,
    LoggerApi,
    STLClient,
    STLFlowLatencyStats,
    STLFlowStats,
    STLPktBuilder,
    STLStream,
    STLTXCont,
    STLTXSingleBurst,
)

RPC, PUB = int(sys.argv[1]), int(sys.argv[2])
ENDS = ("16.0.0.1", "48.0.0.1")


class Quiet(LoggerApi):  # type: ignore[misc]
    def write(self, msg: str, newline: bool = True) -> None:
        pass

    def flush(self) -> None:
        pass


def stream(port: int, mode: Any, flow: Any) -> Any:
    packet = Ether() / IP(src=ENDS[port], dst=ENDS[1 - port]) / UDP(dport=9, sport=1025) / (18 * b"x")
    return STLStream(packet=STLPktBuilder(pkt=packet), mode=mode, flow_stats=flow)


def figures(stats: Any, port: int) -> dict[str, Any]:
    flow, timed = stats["flow_stats"][1 + port], stats["flow_stats"][11 + port]
    latency = stats["latency"][11 + port]
    row = latency["latency"]
    return {
        "flow": {
            "tx": flow["tx_pkts"]["total"],
            "rx": flow["rx_pkts"]["total"],
            "tx_bytes": flow["tx_bytes"]["total"],
            "rx_by_port": {str(other): flow["rx_pkts"][other] for other in (0, 1)},
        },
        "latency_flow": {"tx": timed["tx_pkts"]["total"], "rx": timed["rx_pkts"]["total"]},
        "latency": {
            **{key: latency["err_cntrs"][key] for key in ("dropped", "out_of_order", "dup")},
            **{key: row[key] for key in ("average", "total_min", "total_max")},
            "frames": sum(row["histogram"].values()),
            "short": sum(frames for least, frames in row["histogram"].items() if int(least) == 0),
        },
    }


def main() -> None:
    client = STLClient(username="alice", server="127.0.0.1", sync_port=RPC, async_port=PUB, logger=Quiet())
    client.connect()
    client.acquire([0, 1])
    trials = []
    for burst in (True, False):
        client.reset([0, 1])
        for port in (0, 1):
            plain = STLTXSingleBurst(pps=10, total_pkts=5000) if burst else STLTXCont(pps=10)
            timed = STLTXSingleBurst(pps=1000, total_pkts=500) if burst else STLTXCont(pps=1000)
            client.add_streams(stream(port, plain, STLFlowStats(1 + port)), ports=[port])
            client.add_streams(stream(port, timed, STLFlowLatencyStats(11 + port)), ports=[port])
        client.clear_stats()
        client.start([0, 1], mult="11kpps", duration=-1 if burst else 0.5)
        client.wait_on_traffic([0, 1], timeout=60)
        stats = client.get_stats()
        trials.append({str(port): figures(stats, port) for port in (0, 1)})
    ids = client.get_active_pgids()
    client.reset([0, 1])
    client.disconnect()
    print(json.dumps({"trials": trials, "ids": ids}), flush=True)


main()
