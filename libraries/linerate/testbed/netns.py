"""The netns bench: the embedded TRex server with real frames, a Linux router in a namespace, a real sshd."""

from __future__ import annotations

import sys

from ..errors import BenchError, ConfigError
from ..platforms import Platform
from ..routers.base import Side
from ..units import parse_link_speed
from . import namespaces, sshd
from .facts import NO_ROUTER, BenchFacts, GeneratorEndpoint, RouterEndpoint
from .leases import Lease
from .plan import Facts, Plan, ProcessPlan
from .settings import NetnsSettings

HOST = "127.0.0.1"


class NetnsBench:
    """What is to be started for one bench of network namespaces, and what is known of it then.

    ``rpc_port`` and ``pub_port``: TCP ports of the TRex server, 0 for free ones. ``bypass``: no router, the ports are
    the two ends of one cable. Raises BenchError where this machine or this user cannot make namespaces, ConfigError for
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
        reason = namespaces.available()
        if reason:
            raise BenchError(f"testbed '{settings.testbed}' cannot be set up: {reason}")
        self._settings, self._lease = settings, lease
        self._rpc_port, self._pub_port = rpc_port, pub_port
        self._link_bps = parse_link_speed(settings.port_speed or platform.port_speed)
        self._label = f"{platform.description}, {software}, in network namespaces of this machine"
        tag = lease.folder.name
        interfaces = (chosen.interfaces[0], chosen.interfaces[1])
        self._topology = namespaces.plan(tag, interfaces, bypass=bypass)
        self._ssh = None if bypass else sshd.prepare(lease.folder / "ssh", self._topology.router)
        self._sides = (self._side(0), self._side(1))

    def _side(self, index: int) -> Side:
        side, cable = self._settings.sides[index], self._topology.cables[index]
        mac = side.peer_mac or cable.port_mac
        return Side(cable.router_interface, side.address, side.peer, mac, side.network)

    def plan(self) -> Plan:
        """Namespaces, then the server within reach of one and sshd for the other, if there is a router."""
        folder, topology = self._lease.folder, self._topology
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
        server = ProcessPlan(
            name="server",
            argv=(sys.executable, "-P", "-m", "linerate.embedded.server"),
            log=str(folder / "server.log"),
            spec={
                "backend": "wire",
                "ports": ports,
                "clock_speed": 1.0,
                "host": HOST,
                "rpc_port": self._rpc_port,
                "pub_port": self._pub_port,
            },
        )
        ssh, listeners = self._ssh, tuple[ProcessPlan, ...]()
        if ssh is not None:
            log = str(folder / "sshd.log")
            listeners = (ProcessPlan(name="sshd", argv=ssh.argv, log=log, ready=(ssh.host, ssh.port)),)
        return Plan(
            lease=str(self._lease.path),
            setup=(*topology.setup, *(ssh.setup if ssh else ())),
            processes=(server, *listeners),
            teardown=topology.teardown,
            folders=self._lease.folders,
        )

    def facts(self, ready: Facts) -> BenchFacts:
        """What the ready lines tell."""
        server, ssh = ready["server"], self._ssh
        return BenchFacts(
            generator=GeneratorEndpoint(HOST, server["rpc_port"], server["pub_port"], client=self._settings.client),
            router=RouterEndpoint(ssh.host, ssh.port, ssh.user, ssh.client_key, ssh.known_hosts) if ssh else NO_ROUTER,
            sides=self._sides,
            link_bps=self._link_bps,
            label=self._label,
            runtime=self._lease.folder,
        )
