# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""Scenes played with trex-stl-lib 0.3: ``server_client.py SCENE RPC_PORT PUB_PORT``, result as JSON."""

from __future__ import annotations

import json
import sys
import time
import types
import warnings
from typing import Any

warnings.simplefilter("ignore")
if "imp" not in sys.modules and sys.version_info >= (3, 12):
    # the client imports imp for load_py, which no scene uses
    sys.modules["imp"] = types.ModuleType("imp")

from trex_stl_lib.api import (  # noqa: E402
    IP,
    UDP,
    Ether,
    LoggerApi,
    STLClient,
    STLPktBuilder,
    STLScVmRaw,
    STLStream,
    STLTXCont,
    STLVmFixIpv4,
    STLVmFlowVar,
    STLVmWrFlowVar,
)

SCENE, RPC, PUB = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


class Quiet(LoggerApi):  # type: ignore[misc]
    def write(self, msg: str, newline: bool = True) -> None:
        pass

    def flush(self) -> None:
        pass


def connected(user: str) -> Any:
    client = STLClient(username=user, server="127.0.0.1", sync_port=RPC, async_port=PUB, logger=Quiet())
    client.connect()
    return client


def stream() -> Any:
    vm = STLScVmRaw(
        [
            STLVmFlowVar("src", min_value="16.0.0.4", max_value="16.0.0.254", size=4, op="inc"),
            STLVmWrFlowVar(fv_name="src", pkt_offset=26),
            STLVmFlowVar("dst", min_value="48.0.0.4", max_value="48.0.0.254", size=4, op="inc"),
            STLVmWrFlowVar(fv_name="dst", pkt_offset=30),
            STLVmFixIpv4(offset=14),
        ]
    )
    packet = Ether() / IP(src="16.0.0.4", dst="48.0.0.4") / UDP(dport=12, sport=1025) / (18 * b"x")
    return STLStream(packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont(pps=1))


def session() -> dict[str, Any]:
    client = connected("alice")
    client.acquire([0, 1])
    client.reset([0, 1])
    for port in (0, 1):
        client.add_streams(stream(), ports=[port])
    saw: dict[str, Any] = {"sent": {}, "received": {}, "overhead": []}
    for mult in ("10%", "14.88mpps", "1000pps"):
        client.clear_stats()
        begin = time.monotonic()
        client.start([0, 1], mult=mult, duration=2)
        client.wait_on_traffic([0, 1], timeout=5)
        stats = client.get_stats()
        saw["overhead"].append(time.monotonic() - begin)
        saw["sent"][mult] = [stats[port]["opackets"] for port in (0, 1)]
        saw["received"][mult] = [stats[port]["ipackets"] for port in (0, 1)]
    client.start([0], mult="10%", duration=60)
    client.stop([0])
    saw["stopped"] = client.get_active_ports()
    client.release([0, 1])
    client.disconnect()
    return saw


def steer() -> dict[str, Any]:
    client = connected("alice")
    client.acquire([0, 1])
    client.reset([0, 1])
    client.add_streams(stream(), ports=[0])
    client.validate([0])
    client.start([0], mult="1kpps")
    saw: dict[str, Any] = {"active": client.get_active_ports()}
    client.update([0], mult="500pps")
    time.sleep(0.05)
    client.pause([0])
    client.clear_stats()
    time.sleep(0.1)
    saw["counted_while_paused"] = client.get_stats()[0]["opackets"]
    client.resume([0])
    client.stop([0])
    saw["after_stop"] = client.get_active_ports()
    client.get_util_stats()
    client.get_xstats(0)
    client.release([0, 1])
    saw["owner_after_release"] = client.get_port_attr(0).get("owner", "")
    client.disconnect()
    return saw


if __name__ == "__main__":
    scenes = {"session": session, "steer": steer}
    print(json.dumps(scenes[SCENE]()), flush=True)
