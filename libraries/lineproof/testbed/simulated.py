"""The simulated testbed: the forwarding model behind an embedded TRex server, and the model's shells behind SSH."""

from __future__ import annotations

from pathlib import Path

from ..generators.site import GeneratorEndpoint
from ..platforms import Platform, RouterSetup
from ..routers.base import Side
from ..system.bench_command import bench_command
from .facts import NO_ROUTER, RouterEndpoint, TestbedFacts
from .keeper_plan import Facts, KeeperPlan, ProcessPlan
from .keys import KeyPair, make_key, write_known_hosts
from .leases import Lease
from .settings import SimulatedSettings, next_hops

HOST = "127.0.0.1"
USER = "lineproof"


class SimulatedSetup:
    """What one simulated testbed starts, and its facts.

    ``rpc_port`` and ``pub_port``: TCP ports of the TRex server, 0 for free ones. ``bypass``: no router, the server's
    ports are cabled to each other. ``setups``: what a study's commands make of the router.
    """

    def __init__(
        self,
        settings: SimulatedSettings,
        platform: Platform,
        software: str,
        platform_file: Path,
        lease: Lease,
        rpc_port: int = 0,
        pub_port: int = 0,
        *,
        bypass: bool = False,
        setups: tuple[RouterSetup, ...] = (),
    ) -> None:
        self._settings, self._platform, self._software = settings, platform, software
        self._file, self._lease = platform_file.resolve(), lease
        self._rpc_port, self._pub_port, self._bypass = rpc_port, pub_port, bypass
        self._setups = [setup.model_dump() for setup in setups]
        self._client: KeyPair = make_key(lease.folder / "client_key")

    def plan(self) -> KeeperPlan:
        """Two processes: the server with the model, and if there is a router, the SSH server with its shells."""
        folder, settings = self._lease.folder, self._settings
        host_key = make_key(folder / "host_key")
        server = ProcessPlan(
            name="server",
            argv=bench_command("server"),
            log=str(folder / "server.log"),
            spec={
                "backend": "model",
                "platform_file": str(self._file),
                "software": self._software,
                "rx_queues": settings.rx_queues,
                "nic": settings.nic,
                "seed": settings.seed,
                "bypass": self._bypass,
                "set_up": list(settings.set_up),
                "setups": self._setups,
                "noise": settings.noise.model_dump() if settings.noise else None,
                "router_habits": settings.router_habits.model_dump(),
                "faults": [fault.model_dump(exclude_none=True) for fault in settings.faults],
                "habits": [habit.model_dump(exclude_none=True) for habit in settings.habits],
                "next_hops": [[side.peer, side.address.partition("/")[0]] for side in settings.cabled_sides],
                "clock_speed": settings.clock_speed,
                "host": HOST,
                "rpc_port": self._rpc_port,
                "pub_port": self._pub_port,
            },
        )
        shells = ProcessPlan(
            name="shells",
            argv=bench_command("shells"),
            log=str(folder / "shells.log"),
            spec={
                "software": self._platform.software[self._software].shell,
                "host": HOST,
                "port": 0,
                "control_port": "${server.control_port}",
                "control_token": "${server.control_token}",
                "user": USER,
                "authorized_key": self._client.public,
                "host_key": str(host_key.path),
                "sudo": True,
                "setups": self._setups,
            },
        )
        processes = (server,) if self._bypass else (server, shells)
        return KeeperPlan(lease=str(self._lease.path), processes=processes, folders=self._lease.folders)

    def facts(self, ready: Facts) -> TestbedFacts:
        """From the ready lines and the platform."""
        server, router = ready["server"], NO_ROUTER
        if not self._bypass:
            shells, known_hosts = ready["shells"], self._lease.folder / "known_hosts"
            write_known_hosts(known_hosts, HOST, shells["port"], shells["host_key"])
            router = RouterEndpoint(HOST, shells["port"], USER, self._client.path, known_hosts, sudo=True)
        interfaces = self._platform.software[self._software].interfaces
        sides = tuple(
            Side(interface, side.address, side.peer, side.peer_mac or port["mac"], side.network)
            for interface, side, port in zip(interfaces, self._settings.cabled_sides, server["ports"], strict=False)
        )
        return TestbedFacts(
            generator=GeneratorEndpoint(
                HOST,
                server["rpc_port"],
                server["pub_port"],
                tuple(range(len(sides))),
                self._settings.client,
                promiscuous=self._settings.promiscuous,
                next_hops=next_hops(range(len(sides)), self._settings.cabled_sides),
            ),
            router=router,
            sides=sides,
            link_bps=self._platform.link_bps,
            label=f"{self._platform.description}, {self._software}",
            clock_speed=self._settings.clock_speed,
            simulated=True,
            runtime=self._lease.folder,
            control=(server["control_port"], server["control_token"]) if server.get("control_port") else None,
        )
