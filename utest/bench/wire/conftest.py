"""Ports between network namespaces, with a router of this machine's kernel between them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from lineproof.system import children
from lineproof.system.network_namespace import configure, inside
from lineproof.testbed.netns import Topology, build_topology
from lineproof.testbed.settings import default_side
from lineproof_bench.wire.backend import WireBackend, WirePort


@pytest.fixture(scope="module")
def topology() -> Iterator[Topology]:
    """Both namespaces, with a Linux router configured in one."""
    with contextlib.closing(build_topology()) as built:
        for cable in built.cables:
            interface, side = f"dev {cable.router_interface}", default_side(cable.index)
            configure(
                built.router,
                f"addr add {side.address} {interface}",
                f"neigh add {side.peer} lladdr {cable.port_mac} nud permanent {interface}",
                f"route add {side.network} via {side.peer}",
            )
        children.run((*inside(built.router), "sysctl", "-q", "-w", "net.ipv4.ip_forward=1"), 60)
        yield built


@pytest.fixture
def backend(topology: Topology) -> Iterator[WireBackend]:
    made = WireBackend(
        [
            WirePort(
                *(cable.index, cable.port_mac, cable.router_mac),
                ipv4=side.peer,
                peer_ipv4=side.address.partition("/")[0],
                interface=cable.port,
                netns=topology.generator,
            )
            for cable in topology.cables
            for side in [default_side(cable.index)]
        ]
    )
    with contextlib.closing(made):
        yield made
