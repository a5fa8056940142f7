"""Two ports on real interfaces with a Linux router between them, and what the kernel says became of their frames."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from typing import Any

from lineproof.system.network_namespace import inside
from lineproof.testbed.namespaces import Cable, Topology
from lineproof_bench.backend import FieldVariable, StreamTraffic
from lineproof_bench.wire import WireBackend
from support.patience import wait_until


def run(*command: str) -> str:
    """Return what *command* prints. Raises CalledProcessError."""
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def kernel(namespace: str, interface: str) -> dict[str, dict[str, int]]:
    """The kernel's counts of *interface*, as ``ip -s -s link`` has them."""
    found = json.loads(run(*inside(namespace), "ip", "-s", "-s", "-j", "link", "show", "dev", interface))
    stats: dict[str, dict[str, int]] = found[0]["stats64"]
    return stats


def stream(
    cable: Cable,
    pps: float,
    group: int | None = None,
    size: int = 60,
    flows: int = 251,
    **more: Any,
) -> StreamTraffic:
    """UDP through the router from this cable's network to the other's, from *flows* addresses.

    *group*: the packet group in which its latency is measured.
    """
    source, target = (0x10000001, 0x30000001) if cable.index == 0 else (0x30000001, 0x10000001)
    ethernet = bytes.fromhex((cable.router_mac + cable.port_mac).replace(":", "") + "0800")
    ip = bytes.fromhex("4500") + (size - 14).to_bytes(2, "big")
    ip += bytes.fromhex("0000000040110000") + source.to_bytes(4, "big") + target.to_bytes(4, "big")
    udp = bytes.fromhex("04010009") + (size - 34).to_bytes(2, "big") + bytes(2)
    flow = None if group is None else {"stream_id": group, "rule_type": "latency"}
    variable = FieldVariable(26, 4, source, source + flows - 1, source)
    frame = (ethernet + ip + udp).ljust(size, b"\0")
    found = StreamTraffic(size, frame, pps, (variable,), fix_ipv4_checksum=14, flow_stats=flow)
    return replace(found, **more)


class Refused:
    """Frames that the kernel refused since this was made: a processor had no room for more (``netdev_max_backlog``).

    A machine that is busy may come to that. A veth pair counts them at the end that sent them.
    """

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._before = self._read()

    def _read(self) -> list[int]:
        router = self._topology.router
        return [kernel(router, cable.router_interface)["tx"]["dropped"] for cable in self._topology.cables]

    def behind_router(self, port: int) -> int:
        """Frames from *port* that the router forwarded and the other port did not take."""
        other = 1 - port
        return self._read()[other] - self._before[other]


def finish(backend: WireBackend) -> None:
    """Wait until both ports have sent their last frame."""
    wait_until(lambda: not any(backend.sending(port) for port in (0, 1)), "the end of sending")


def arrived(backend: WireBackend, refused: Refused, port: int = 0) -> None:
    """Every frame that left *port* came back at the other, but for those that the kernel says it refused."""

    def counts() -> tuple[int, int, int]:
        sent, back = backend.counters(port).opackets, backend.counters(1 - port).ipackets
        return sent, back, refused.behind_router(port)

    wait_until(lambda: (found := counts())[0] == sum(found[1:]), lambda: f"(sent, back, refused) is {counts()}", 10)
