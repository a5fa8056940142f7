"""The netns testbed: an embedded or a real TRex server with real frames, a Linux router in a namespace, a real sshd.

Its cabling is two network namespaces, and a veth pair between them for each port:

    generator namespace    router namespace
    port0  =============   eth0
    port1  =============   eth1

No address is set here. The generator's interfaces need none: its frames are complete, and a kernel without addresses
answers nothing, so every frame counted is a frame of the test. The router's are set over SSH like any router's.

Receive packet steering and threaded NAPI stay off: measured on two CPUs, steering halves what the router forwards, and
threads change nothing. The router works on the CPU that sends, so an overloaded testbed offers less than its load
and loses no frames in a queue.

The keys of TRex's platform configuration (``trex_cfg.yaml``, version 2) are those of its manual, "Platform YAML
configuration", and of its reader, ``src/platform_cfg.cpp`` (v3.08).
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..core.telemetry import Side
from ..errors import ConfigError, TestbedError
from ..generators.site import GeneratorEndpoint, GeneratorSettings, Place, connect_trex
from ..generators.trex.clients import HOME_VARIABLE, PYPI
from ..generators.trex.driver import TrexSettings
from ..platforms import Platform
from ..system.children import bench_command
from ..system.network_namespace import Namespace, configure
from . import sshd
from .process import NO_ROUTER, Belongings, TestbedFacts, TestbedProcess
from .settings import NetnsSettings, next_hops
from .trex_start import PUB_PORT, RPC_PORT, start_in_namespace


def start_netns(
    settings: NetnsSettings,
    platform: Platform,
    software: str,
    belongings: Belongings,
    local_ports: tuple[int, int],
    *,
    bypass: bool,
) -> TestbedFacts:
    """Make the namespaces, start the TRex server and a router's sshd, and return the testbed's facts.

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
    program = settings.generator if isinstance(settings.generator, GeneratorSettings) else None
    interfaces = chosen.interfaces[: 2 * settings.pairs]
    topology = build_topology(interfaces, bypass=bypass, apart=program is not None, folder=belongings.folder)
    belongings.later(topology.close)
    cables, ports = topology.cables, tuple(range(2 * settings.pairs))
    sides = tuple(
        side.of_router(cable.router_interface, cable.port_mac)
        for side, cable in zip(settings.cabled_sides, cables, strict=True)
    )
    # without a router the two ports of a pair are the ends of one cable
    far_macs = [cables[cable.index ^ 1].port_mac if bypass else cable.router_mac for cable in cables]
    hops, sender = next_hops(ports, settings.cabled_sides), None
    if program is not None:
        # it sends from the ports themselves
        places = tuple(Place(cable.port, cable.namespace, mac) for cable, mac in zip(cables, far_macs, strict=True))
        generator = GeneratorEndpoint(ports, program.connect, hops, places=places)
    else:
        client, speeds = settings.client, tuple(platform.ports.values())
        if settings.generator == "trex":
            home, namespace, tcp_ports = home_of_trex(settings.testbed), topology.generator, (RPC_PORT, PUB_PORT)
            # the MAC addresses are known, so it starts without ARP
            infos = [(cable.port, cable.port_mac, mac) for cable, mac in zip(cables, far_macs, strict=True)]
            start_in_namespace(belongings, namespace, home, config_text(infos, belongings.folder.name, max(speeds)))
            # a current server takes only the client that it ships
            client = str(home) if client == PYPI else client
        else:
            server = start_embedded(belongings, topology, sides, speeds, local_ports)
            sender, namespace, tcp_ports = server["sender"], "", (server["rpc_port"], server["pub_port"])
        trex = TrexSettings(
            sshd.HOST,
            *tcp_ports,
            ports,
            client=client,
            promiscuous=settings.promiscuous,
            outlives_run=False,
            namespace=namespace,
        )
        generator = GeneratorEndpoint(ports, connect_trex, hops, trex)
    return TestbedFacts(
        generator=generator,
        router=NO_ROUTER if bypass else sshd.start(belongings, topology.router),
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
    """Start the embedded server on the ports of *topology*, and return its facts. Raises TestbedError.

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
    specification = {"backend": "wire", "ports": ports, "rpc_port": local_ports[0], "pub_port": local_ports[1]}
    return belongings.keep(TestbedProcess("server", bench_command(), specification)).facts


def home_of_trex(testbed: str = "netns") -> Path:
    """Return the TRex installation that the environment variable TREX_HOME names. Raises TestbedError."""
    named = os.environ.get(HOME_VARIABLE, "")
    folder = Path(named).expanduser().absolute()
    for place in (folder, folder / "scripts") if named else ():
        if (place / "_t-rex-64").is_file():
            return place
    raise TestbedError(
        f"testbed '{testbed}' needs a real TRex server, and the environment variable {HOME_VARIABLE} names '{named}',"
        " in which there is none; expected the folder that holds t-rex-64"
    )


RING_ARGUMENTS = "blocksz=593920,framesz=9280,framecnt=4096,qdisc_bypass=1"
"""Arguments of DPDK's af_packet driver: TRex's own block and frame size (jumbo frames fit), 16 times its 256 frames.

With 256 TRex v3.08 on a veth pair of a shared machine with two CPUs missed 0.1 % of 50 000 frames/s and 3 % of 400 000;
with 4096 (38 MB for each port and direction) none.
"""


def config_text(ports: Sequence[tuple[str, str, str]], name: str, speed: float) -> str:
    """Return the file's text. *ports*: Linux interface, its MAC address, and the one that it sends to.

    *name* tells two servers on one machine apart; *speed*: bit/s that every port reports. The server uses the last CPU.
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
        "low_end_core": max(os.sched_getaffinity(0)),
        "prefix": f"lineproof-{name}",
        "port_speed": round(speed / 1e6),
        "port_info": [{"src_mac": own, "dest_mac": far} for _, own, far in ports],
    }
    return yaml.safe_dump([data], sort_keys=False)


MTU = 9216
"""Bytes after the Ethernet header: enough for the profiles' longest frames."""

CONTROL = "control"
"""The interface of a port's namespace that leads to its pair's other port, where each has a namespace of its own."""


@dataclass(frozen=True, slots=True)
class Cable:
    """A veth pair from ``port`` number ``index`` of the generator, in ``namespace``, to the router."""

    index: int
    port: str
    port_mac: str
    namespace: str
    router_interface: str
    router_mac: str


@dataclass(frozen=True, slots=True)
class Topology:
    """Namespaces, by path, and the cables between them, until :meth:`close` or this process's end.

    ``generator``: "" where each port has a namespace of its own; ``router``: "" where there is none. ``namespaces``:
    the router's last.
    """

    generator: str
    router: str
    namespaces: tuple[str, ...]
    cables: tuple[Cable, ...]
    close: Callable[[], None]
    """Remove all of it, and end every program that is bound to it. May be repeated."""


def build_topology(
    router_interfaces: tuple[str, ...] = ("eth0", "eth1"),
    *,
    bypass: bool = False,
    apart: bool = False,
    folder: Path | None = None,
) -> Topology:
    """Make the testbed. Raises TestbedError if it cannot be made here.

    A port and a cable for each of *router_interfaces*, an even number. *bypass*: no router namespace; ``port0`` and
    ``port1`` are the two ends of one veth pair, and so are those of each further pair. *apart*: each port has a
    namespace of its own, joined to that of its pair's other port by a second veth pair, :data:`CONTROL`. *folder* is
    removed with the namespaces.
    """
    with contextlib.ExitStack() as failing:
        paths = list[str]()
        for index in range((len(router_interfaces) if apart else 1) + (not bypass)):
            holder = Namespace(None if index else folder)
            failing.callback(holder.close)
            paths.append(holder.path)
        cables = tuple(
            Cable(n, f"port{n}", f"02:6c:72:00:01:{n:02x}", paths[n * apart], name, f"02:6c:72:00:02:{n:02x}")
            for n, name in enumerate(router_interfaces)
        )
        router = "" if bypass else paths[-1]
        _connect(cables, router, apart)
        return Topology("" if apart else paths[0], router, tuple(paths), cables, failing.pop_all().close)


def _connect(cables: tuple[Cable, ...], router: str, apart: bool) -> None:
    """Lay the cables, to *router* or ("") from port to port of each pair. Raises TestbedError."""
    near = [f"{cable.port} address {cable.port_mac} netns {cable.namespace}" for cable in cables]
    far = [f"{cable.router_interface} address {cable.router_mac} netns {router}" for cable in cables]
    ends = zip(near, far, strict=True) if router else zip(near[::2], near[1::2], strict=True)
    links = [f"link add {one} mtu {MTU} type veth peer {other} mtu {MTU}" for one, other in ends]
    for first, second in zip(cables[::2], cables[1::2], strict=True) if apart else ():
        # a way from port to port past the router, for what controls a program: its frames are not of the test
        links.append(f"link add {CONTROL} netns {first.namespace} type veth peer {CONTROL} netns {second.namespace}")
    configure(None, *links)
    interfaces: dict[str, list[str]] = {cable.namespace: ["lo", *[CONTROL] * apart] for cable in cables}
    for cable in cables:
        interfaces[cable.namespace].append(f"{cable.port} arp off")
    if router:
        # without multicast the kernel joins and reports no group; routers join one for IPv6
        interfaces[router] = ["lo", *(f"{cable.router_interface} multicast off" for cable in cables)]
    for namespace, names in interfaces.items():
        configure(namespace, *(f"link set dev {name} up" for name in names))
