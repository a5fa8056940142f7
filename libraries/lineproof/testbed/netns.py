"""The netns testbed: an embedded or a real TRex server with real frames, a Linux router in a namespace, a real sshd."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import ConfigError, TestbedError
from ..generators.kinds import generator_kind
from ..generators.settings import GeneratorSettings
from ..generators.site import GeneratorEndpoint, PortPlace
from ..generators.trex.client_choice import HOME_VARIABLE, PYPI
from ..platforms import Platform
from ..routers.base import Side
from ..system.bench_command import bench_command
from ..units import parse_link_speed
from . import namespaces, sshd
from .facts import NO_ROUTER, RouterEndpoint, TestbedFacts
from .keeper_plan import Facts, KeeperPlan, ProcessPlan
from .leases import Lease
from .settings import NetnsSettings, next_hops
from .trex.config_file import PUB_PORT, RPC_PORT, PortInfo, config_text
from .trex.server import PROCESS_NAME, ServerOrder
from .trex.wrapper import trex_arguments

HOST = "127.0.0.1"


class NetnsSetup:
    """What one testbed of network namespaces starts, and its facts.

    ``rpc_port`` and ``pub_port``: TCP ports of the TRex server, 0 for free ones. ``bypass``: no router, the ports are
    the two ends of one cable. Raises TestbedError if this machine or this user cannot make namespaces, ConfigError for
    a platform whose software is not Linux.
    """

    def __init__(
        self,
        settings: NetnsSettings,
        platform: Platform,
        software: str,
        lease: Lease,
        rpc_port: int = 0,
        pub_port: int = 0,
        *,
        bypass: bool = False,
    ) -> None:
        chosen = platform.software[software]
        if chosen.shell != "linux":
            raise ConfigError(
                f"the router of testbed '{settings.testbed}' is this machine's Linux kernel, and '{software}' of"
                f" platform '{platform.platform}' speaks '{chosen.shell}'; take a software with 'shell: linux', or a"
                " simulated testbed"
            )
        reason = namespaces.reason_against()
        if reason:
            raise TestbedError(f"testbed '{settings.testbed}' cannot be set up: {reason}")
        self._settings, self._lease = settings, lease
        self._rpc_port, self._pub_port = rpc_port, pub_port
        self._link_bps = parse_link_speed(settings.port_speed or platform.port_speed)
        self._label = f"{platform.description}, {software}, in network namespaces of this machine"
        tag = lease.folder.name
        self._ports = range(2 * settings.pairs)
        interfaces = chosen.interfaces[: len(self._ports)]
        self._programs = settings.generator if isinstance(settings.generator, GeneratorSettings) else None
        apart = self._programs is not None and generator_kind(self._programs.type).apart
        self._topology = namespaces.plan_topology(tag, interfaces, bypass=bypass, apart=apart)
        self._ssh = None if bypass else sshd.prepare(lease.folder / "ssh", self._topology.router)
        self._sides = tuple(map(self._side, self._ports))
        self._home = home_of_trex(settings.testbed) if settings.generator == "trex" else None

    def _side(self, index: int) -> Side:
        side, cable = self._settings.cabled_sides[index], self._topology.cables[index]
        mac = side.peer_mac or cable.port_mac
        return Side(cable.router_interface, side.address, side.peer, mac, side.network)

    def plan(self) -> KeeperPlan:
        """Namespaces, then the TRex server in one, and sshd in the other if there is a router."""
        folder, topology = self._lease.folder, self._topology
        ssh, listeners = self._ssh, tuple[ProcessPlan, ...]()
        if ssh is not None:
            log = str(folder / "sshd.log")
            listeners = (ProcessPlan(name="sshd", argv=ssh.argv, log=log, ready=(ssh.host, ssh.port)),)
        servers = tuple[ProcessPlan, ...]()
        if self._programs is None:
            servers = (self._embedded() if self._home is None else self._trex(self._home).process(folder),)
        return KeeperPlan(
            lease=str(self._lease.path),
            setup=(*topology.setup, *(ssh.setup if ssh else ())),
            processes=(*servers, *listeners),
            teardown=topology.teardown,
            folders=self._lease.folders,
        )

    def _embedded(self) -> ProcessPlan:
        topology = self._topology
        ports = [
            {
                "index": cable.index,
                "interface": cable.port,
                "netns": topology.generator,
                "mac": side.peer_mac,
                "peer_mac": cable.router_mac,
                "ipv4": side.peer,
                "peer_ipv4": side.address.partition("/")[0],
                "speed_bps": self._link_bps,
            }
            for side, cable in zip(self._sides, topology.cables, strict=True)
        ]
        return ProcessPlan(
            name="server",
            argv=bench_command("server"),
            log=str(self._lease.folder / "server.log"),
            spec={
                "backend": "wire",
                "ports": ports,
                "clock_speed": 1.0,
                "host": HOST,
                "rpc_port": self._rpc_port,
                "pub_port": self._pub_port,
            },
        )

    def _trex(self, home: Path) -> ServerOrder:
        """A real server on the same cables. The MAC addresses are known, so it starts without ARP."""
        cables, tag = self._topology.cables, self._lease.folder.name
        far_macs = [cable.router_mac for cable in cables]
        if self._ssh is None:  # one cable from port to port of each pair
            far_macs = [cables[cable.index ^ 1].port_mac for cable in cables]
        prefix = f"lineproof-{tag}"
        ports = tuple(
            PortInfo(cable.port, side.peer_mac, mac)
            for cable, side, mac in zip(cables, self._sides, far_macs, strict=True)
        )
        # the watchdog ends a server whose threads had to wait on a busy machine
        extra = ("--software", "--no-watchdog")
        return ServerOrder(
            home=str(home),
            arguments=trex_arguments(None, extra),
            config=config_text(ports, max(os.sched_getaffinity(0)), prefix, round(self._link_bps / 1e6)),
            linux=True,
            address=HOST,
            rpc_port=RPC_PORT,
            pub_port=PUB_PORT,
            grace=3,
            prefix=prefix,
            namespace=self._topology.generator,
            local_ports=(self._rpc_port, self._pub_port),
        )

    def facts(self, ready: Facts) -> TestbedFacts:
        """From the ready lines and the topology."""
        ssh = self._ssh
        return TestbedFacts(
            generator=self._generator(ready) if self._programs is None else self._program(self._programs),
            router=RouterEndpoint(ssh.host, ssh.port, ssh.user, ssh.client_key, ssh.known_hosts) if ssh else NO_ROUTER,
            sides=self._sides,
            link_bps=self._link_bps,
            label=self._label,
            runtime=self._lease.folder,
            sender=ready["server"].get("sender") if "server" in ready else None,
        )

    def _generator(self, ready: Facts) -> GeneratorEndpoint:
        server = ready["server" if self._home is None else PROCESS_NAME]
        # a current server takes only the client that it ships
        client = self._settings.client if self._home is None or self._settings.client != PYPI else str(self._home)
        return GeneratorEndpoint(
            HOST,
            server["rpc_port"],
            server["pub_port"],
            tuple(self._ports),
            client,
            promiscuous=self._settings.promiscuous,
            next_hops=next_hops(self._ports, self._settings.cabled_sides),
        )

    def _program(self, settings: GeneratorSettings) -> GeneratorEndpoint:
        """A generator that sends from the ports themselves."""
        cables = self._topology.cables
        # without a router the two ports of a pair are the ends of one cable
        far = [cable.router_mac if self._ssh else cables[cable.index ^ 1].port_mac for cable in cables]
        places = tuple(PortPlace(cable.port, cable.namespace, mac) for cable, mac in zip(cables, far, strict=True))
        hops = next_hops(self._ports, self._settings.cabled_sides)
        return GeneratorEndpoint(
            "", 0, 0, tuple(self._ports), next_hops=hops, type=settings.type, settings=settings, places=places
        )


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
        if any((place / program).is_file() for program in ("t-rex-64", "_t-rex-64")):
            return place
    raise TestbedError(
        f"{HOME_VARIABLE} names '{folder}', and there is no TRex in it; expected the folder that holds t-rex-64"
    )
