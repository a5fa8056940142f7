"""Two ports on real interfaces with a Linux router between them, and what the kernel says became of their frames."""

from __future__ import annotations

import contextlib
import json
import subprocess
import uuid
from collections.abc import Iterator

from lineproof.testbed.namespaces import Topology, existing_namespaces, plan_topology
from lineproof_bench.wire import WireBackend
from support.patience import wait_until


def run(*command: str) -> str:
    """What *command* prints. Raises CalledProcessError."""
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def kernel(namespace: str, interface: str) -> dict[str, dict[str, int]]:
    """The kernel's counts of *interface*, as ``ip -s -s link`` has them."""
    found = json.loads(run("ip", "-n", namespace, "-s", "-s", "-j", "link", "show", "dev", interface))
    stats: dict[str, dict[str, int]] = found[0]["stats64"]
    return stats


@contextlib.contextmanager
def routed() -> Iterator[Topology]:
    """Both namespaces, with a Linux router configured in one."""
    tag = f"t{uuid.uuid4().hex[:8]}"
    found = plan_topology(tag)
    try:
        for command in found.setup:
            run(*command)
        on = ("ip", "-n", found.router)
        for cable in found.cables:
            interface = ("dev", cable.router_interface)
            run(*on, "addr", "add", cable.router_address, *interface)
            run(*on, "neigh", "add", cable.port_ipv4, "lladdr", cable.port_mac, "nud", "permanent", *interface)
            run(*on, "route", "add", cable.network, "via", cable.port_ipv4)
        run("ip", "netns", "exec", found.router, "sysctl", "-q", "-w", "net.ipv4.ip_forward=1")
        yield found
    finally:
        for command in found.teardown:
            subprocess.run(command, check=False, capture_output=True, timeout=60)
        assert existing_namespaces(tag) == ()


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
