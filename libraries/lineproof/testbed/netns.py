"""The netns testbed: an embedded or a real TRex server with real frames, a Linux router in a namespace, a real sshd.

The keys of TRex's platform configuration (``trex_cfg.yaml``, version 2) are those of its manual, "Platform YAML
configuration", and of its reader, ``src/platform_cfg.cpp`` (v3.08).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from ..errors import ConfigError, TestbedError
from ..generators.kinds import GeneratorEndpoint, GeneratorSettings, Place, connect_trex
from ..generators.trex.clients import HOME_VARIABLE, PYPI
from ..generators.trex.driver import TrexSettings
from ..platforms import Platform
from ..routers.base import Side
from ..system.installed import bench_command
from . import namespaces, sshd
from .facts import NO_ROUTER, TestbedFacts
from .namespaces import Topology
from .process import Belongings, TestbedProcess
from .settings import NetnsSettings, next_hops
from .trex.start import start_in_namespace

HOST = "127.0.0.1"


def start_netns(
    settings: NetnsSettings,
    platform: Platform,
    software: str,
    belongings: Belongings,
    local_ports: tuple[int, int],
    *,
    bypass: bool,
) -> TestbedFacts:
    """Make the namespaces and start the TRex server, and sshd if there is a router; returns the testbed's facts.

    ``local_ports``: TCP ports of the TRex server, 0 for free ones. ``bypass``: no router, the ports are
    the two ends of one cable. Raises TestbedError if this machine or this user cannot make namespaces, ConfigError for
    a platform whose software is not Linux.
    """
    chosen = platform.software[software]
    if chosen.shell != sys.platform:
        raise ConfigError(
            f"the router of testbed '{settings.testbed}' is this machine's Linux kernel, and '{software}' of"
            f" platform '{platform.platform}' speaks '{chosen.shell}'; take a software with 'shell: {sys.platform}', or"
            " a simulated testbed"
        )
    home = home_of_trex(settings.testbed) if settings.generator == "trex" else None
    programs = settings.generator if isinstance(settings.generator, GeneratorSettings) else None
    topology = namespaces.build_topology(
        chosen.interfaces[: 2 * settings.pairs],
        bypass=bypass,
        apart=programs is not None,
        folder=belongings.folder,
    )
    belongings.later(topology.close)
    cables, ports = topology.cables, tuple(range(2 * settings.pairs))
    ends = zip(settings.cabled_sides, cables, strict=True)
    sides = tuple(side.of_router(cable.router_interface, cable.port_mac) for side, cable in ends)
    speeds = tuple(platform.ports.values())
    sender, hops = None, next_hops(ports, settings.cabled_sides)
    # without a router the two ports of a pair are the ends of one cable
    far_macs = [cables[cable.index ^ 1].port_mac if bypass else cable.router_mac for cable in cables]
    if programs is not None:
        # a generator that sends from the ports themselves
        places = tuple(Place(cable.port, cable.namespace, mac) for cable, mac in zip(cables, far_macs, strict=True))
        generator = GeneratorEndpoint(ports, programs.connect, hops, places=places)
    else:
        if home is None:
            server = start_embedded(belongings, topology, sides, speeds, local_ports)
            rpc_port, pub_port, sender, namespace = server["rpc_port"], server["pub_port"], server["sender"], ""
        else:
            rpc_port, pub_port, namespace = RPC_PORT, PUB_PORT, topology.generator
            prefix, speed = f"lineproof-{belongings.folder.name}", round(max(speeds) / 1e6)
            # the MAC addresses are known, so it starts without ARP
            infos = [(cable.port, side.peer_mac, mac) for cable, side, mac in zip(cables, sides, far_macs, strict=True)]
            config = config_text(infos, max(os.sched_getaffinity(0)), prefix, speed)
            start_in_namespace(belongings, namespace, home, config, rpc_port)
        # a current server takes only the client that it ships
        client = settings.client if home is None or settings.client != PYPI else str(home)
        known = TrexSettings(
            HOST,
            rpc_port,
            pub_port,
            ports,
            client=client,
            promiscuous=settings.promiscuous,
            outlives_run=False,
            namespace=namespace,
        )
        generator = GeneratorEndpoint(ports, connect_trex, hops, known)
    router = NO_ROUTER
    if not bypass:
        router = sshd.start(belongings, topology.router)
    return TestbedFacts(
        generator=generator,
        router=router,
        sides=sides,
        label=f"{platform.description}, {software}, in network namespaces of this machine",
        sender=sender,
        namespaces=topology.namespaces,
    )


def start_embedded(
    belongings: Belongings,
    topology: Topology,
    sides: Sequence[Side],
    speeds: Sequence[float],
    local_ports: tuple[int, int] = (0, 0),
) -> Mapping[str, Any]:
    """Start the embedded server on the ports of *topology*; returns what it says of itself. Raises TestbedError.

    *speeds* in bit/s; *local_ports*: its TCP ports, 0: a free one.
    """
    ports = [
        {
            "index": cable.index,
            "interface": cable.port,
            "netns": topology.generator,
            "mac": side.peer_mac,
            "peer_mac": cable.router_mac,
            "ipv4": side.peer,
            "peer_ipv4": side.address.partition("/")[0],
            "speed_bps": speed_bps,
        }
        for side, cable, speed_bps in zip(sides, topology.cables, speeds, strict=False)
    ]
    specification = {
        "backend": "wire",
        "ports": ports,
        "rpc_port": local_ports[0],
        "pub_port": local_ports[1],
    }
    log = belongings.folder / "server.log"
    return belongings.keep(TestbedProcess("server", bench_command(), log, specification)).facts


def home_of_trex(testbed: str = "netns") -> Path:
    """The TRex installation that the environment variable TREX_HOME names. Raises TestbedError."""
    named = os.environ.get(HOME_VARIABLE, "")
    if not named:
        raise TestbedError(
            f"testbed '{testbed}' needs a real TRex server, and the environment variable {HOME_VARIABLE} is not set;"
            " expected the folder of a TRex installation, the one that holds t-rex-64"
        )
    folder = Path(named).expanduser().absolute()
    for place in (folder, folder / "scripts"):
        if (place / "_t-rex-64").is_file():
            return place
    raise TestbedError(
        f"{HOME_VARIABLE} names '{folder}', and there is no TRex in it; expected the folder that holds t-rex-64"
    )


RPC_PORT, PUB_PORT = 4501, 4500
"""TCP ports of TRex's API, in a network namespace of its own."""

RING_ARGUMENTS = "blocksz=593920,framesz=9280,framecnt=4096,qdisc_bypass=1"
"""Arguments of DPDK's af_packet driver: TRex's own block and frame size (jumbo frames fit), 16 times its 256 frames.

With 256 TRex v3.08 on a veth pair of a shared machine with two CPUs missed 0.1 % of 50 000 frames/s and 3 % of 400 000;
with 4096 (38 MB for each port and direction) none.
"""


def config_text(ports: Sequence[tuple[str, str, str]], core: int, prefix: str, port_speed: int) -> str:
    """Return the file's text. *ports*: Linux interface, its MAC address, and the one that it sends to, without ARP.

    *core*: the one CPU that the server uses; *port_speed*: Mbit/s that every port reports. *prefix* tells two servers
    on one machine apart.
    """
    data = {
        "version": 2,
        "port_limit": len(ports),
        "interfaces": [
            f"--vdev=net_af_packet{index},iface={name},{RING_ARGUMENTS}" for index, (name, _, _) in enumerate(ports)
        ],
        "zmq_rpc_port": RPC_PORT,
        "zmq_pub_port": PUB_PORT,
        # before 'low_end_core', whose meaning it changes
        "low_end": True,
        "low_end_core": core,
        "prefix": prefix,
        "port_speed": port_speed,
        "port_info": [{"src_mac": own, "dest_mac": far} for _, own, far in ports],
    }
    return yaml.safe_dump([data], sort_keys=False)
