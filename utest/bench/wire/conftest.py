"""Ports between network namespaces, with a router of this machine's kernel between them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from lineproof.system.network_namespace import configure, inside
from lineproof.testbed.namespaces import Topology, build_topology
from lineproof_bench.wire import WireBackend, WirePort
from support.wire_rig import run


@pytest.fixture(scope="module")
def topology() -> Iterator[Topology]:
    """Both namespaces, with a Linux router configured in one."""
    with build_topology() as found:
        for cable in found.cables:
            interface = f"dev {cable.router_interface}"
            configure(
                found.router,
                f"addr add {cable.router_address} {interface}",
                f"neigh add {cable.port_ipv4} lladdr {cable.port_mac} nud permanent {interface}",
                f"route add {cable.network} via {cable.port_ipv4}",
            )
        run(*inside(found.router), "sysctl", "-q", "-w", "net.ipv4.ip_forward=1")
        yield found


@pytest.fixture
def backend(topology: Topology) -> Iterator[WireBackend]:
    """A backend with both ports."""
    made = WireBackend(
        [
            WirePort(
                *(cable.index, cable.port, topology.generator, cable.port_mac, cable.router_mac),
                *(cable.port_ipv4, cable.router_ipv4),
            )
            for cable in topology.cables
        ]
    )
    with contextlib.closing(made):
        yield made
