"""The simulated testbed: one process with a forwarding model, a TRex server before it, and its shells behind SSH."""

from __future__ import annotations

from pathlib import Path

from ..generators.site import GeneratorEndpoint, connect_trex
from ..generators.trex.driver import TrexSettings
from ..platforms import Platform, RouterSetup
from ..system.installed import bench_command
from ..system.login import Login
from ..system.ssh_keys import make_key, write_known_hosts
from .process import NO_ROUTER, Belongings, TestbedFacts, TestbedProcess
from .settings import SimulatedSettings, next_hops

HOST = "127.0.0.1"
USER = "lineproof"

HANDED_ON = {"rx_queues", "nic", "seed", "set_up", "noise", "router_habits", "faults", "habits", "clock_speed"}
"""The keys of a testbed's file that are the bench's, too."""


def start_simulated(
    settings: SimulatedSettings,
    platform: Platform,
    software: str,
    platform_file: Path,
    belongings: Belongings,
    ports: tuple[int, int],
    *,
    bypass: bool,
    setups: tuple[RouterSetup, ...],
) -> TestbedFacts:
    """Start the one process of a simulated testbed; returns its facts. Raises TestbedError.

    ``ports``: TCP ports of the TRex server, 0 for free ones. ``bypass``: no router, the server's
    ports are cabled to each other. ``setups``: what a study's commands make of the router.
    """
    folder, key = belongings.folder, belongings.folder / "client_key"
    shells = {"user": USER, "authorized_key": make_key(key)}
    process = belongings.keep(
        TestbedProcess(
            "server",
            bench_command(),
            folder / "server.log",
            {
                **settings.model_dump(mode="json", by_alias=True, exclude_none=True, include=HANDED_ON),
                "backend": "model",
                "platform_file": str(platform_file.resolve()),
                "software": software,
                "cabled": list(platform.ports)[: 2 * settings.pairs],
                "bypass": bypass,
                "setups": [setup.model_dump() for setup in setups],
                "next_hops": [[side.peer, side.address.partition("/")[0]] for side in settings.cabled_sides],
                "rpc_port": ports[0],
                "pub_port": ports[1],
                "shells": None if bypass else shells,
                "folder": str(folder),
            },
        )
    )
    ready, router = process.facts, NO_ROUTER
    if not bypass:
        known_hosts = folder / "known_hosts"
        write_known_hosts(known_hosts, HOST, ready["ssh_port"], ready["host_key"])
        router = Login(HOST, ready["ssh_port"], USER, key, known_hosts, sudo=True)
    interfaces = platform.software[software].interfaces
    ends = zip(interfaces, settings.cabled_sides, ready["ports"], strict=False)
    sides = tuple(side.of_router(name, port["mac"]) for name, side, port in ends)
    numbers = tuple(range(len(sides)))
    server = TrexSettings(
        HOST,
        ready["rpc_port"],
        ready["pub_port"],
        numbers,
        outlives_run=False,
        **settings.model_dump(include={"client", "clock_speed", "promiscuous"}),
    )
    return TestbedFacts(
        generator=GeneratorEndpoint(numbers, connect_trex, next_hops(numbers, settings.cabled_sides), server),
        router=router,
        sides=sides,
        label=f"{platform.description}, {software}",
        clock_speed=settings.clock_speed,
        simulated=True,
    )
