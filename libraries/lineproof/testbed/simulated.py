"""The simulated testbed: one process with a forwarding model, a TRex server before it, and its shells behind SSH."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from ..files import write_whole
from ..generators.site import GeneratorEndpoint
from ..platforms import Platform, RouterSetup
from ..routers.base import Side
from ..system.identity import ELSEWHERE
from ..system.installed import bench_command
from .facts import NO_ROUTER, RouterEndpoint, TestbedFacts
from .process import Belongings, TestbedProcess
from .settings import SimulatedSettings, next_hops

HOST = "127.0.0.1"
USER = "lineproof"


def start_simulated(
    settings: SimulatedSettings,
    platform: Platform,
    software: str,
    platform_file: Path,
    belongings: Belongings,
    rpc_port: int = 0,
    pub_port: int = 0,
    *,
    bypass: bool = False,
    setups: tuple[RouterSetup, ...] = (),
) -> TestbedFacts:
    """Start the one process of a simulated testbed; returns its facts. Raises TestbedError.

    ``rpc_port`` and ``pub_port``: TCP ports of the TRex server, 0 for free ones. ``bypass``: no router, the server's
    ports are cabled to each other. ``setups``: what a study's commands make of the router.
    """
    folder, commands = belongings.folder, [setup.model_dump() for setup in setups]
    client = make_key(folder / "client_key")
    shells = {
        "software": platform.software[software].shell,
        "host": HOST,
        "port": 0,
        "user": USER,
        "authorized_key": client.public,
        "sudo": True,
        "setups": commands,
    }
    process = belongings.keep(
        TestbedProcess(
            "server",
            bench_command(),
            folder / "server.log",
            {
                "backend": "model",
                "platform_file": str(platform_file.resolve()),
                "software": software,
                "rx_queues": settings.rx_queues,
                "nic": settings.nic,
                "seed": settings.seed,
                "bypass": bypass,
                "set_up": list(settings.set_up),
                "setups": commands,
                "noise": settings.noise.model_dump() if settings.noise else None,
                "router_habits": settings.router_habits.model_dump(),
                "faults": [fault.model_dump(exclude_none=True) for fault in settings.faults],
                "habits": [habit.model_dump(exclude_none=True) for habit in settings.habits],
                "next_hops": [[side.peer, side.address.partition("/")[0]] for side in settings.cabled_sides],
                "clock_speed": settings.clock_speed,
                "host": HOST,
                "rpc_port": rpc_port,
                "pub_port": pub_port,
                "shells": None if bypass else shells,
                "folder": str(folder),
            },
        )
    )
    ready, router = process.facts, NO_ROUTER
    if not bypass:
        known_hosts = folder / "known_hosts"
        write_known_hosts(known_hosts, HOST, ready["ssh_port"], ready["host_key"])
        router = RouterEndpoint(HOST, ready["ssh_port"], USER, client.path, known_hosts, sudo=True)
    interfaces = platform.software[software].interfaces
    sides = tuple(
        Side(interface, side.address, side.peer, side.peer_mac or port["mac"], side.network)
        for interface, side, port in zip(interfaces, settings.cabled_sides, ready["ports"], strict=False)
    )
    return TestbedFacts(
        generator=GeneratorEndpoint(
            HOST,
            ready["rpc_port"],
            ready["pub_port"],
            tuple(range(len(sides))),
            settings.client,
            promiscuous=settings.promiscuous,
            next_hops=next_hops(range(len(sides)), settings.cabled_sides),
        ),
        router=router,
        sides=sides,
        link_bps=platform.link_bps,
        label=f"{platform.description}, {software}",
        clock_speed=settings.clock_speed,
        simulated=True,
        runtime=folder,
    )


@dataclass(frozen=True, slots=True)
class KeyPair:
    """An Ed25519 key: ``path`` of the private half (OpenSSH format, 0600), ``public`` as ``ssh-ed25519 AAAA…``."""

    path: Path
    public: str


def make_key(path: Path) -> KeyPair:
    """A new key pair. Raises TestbedError where it cannot be kept."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    write_whole(path, private, ELSEWHERE, 0o600)
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode("ascii")
    return KeyPair(path, public)


def write_known_hosts(path: Path, host: str, port: int, public: str) -> None:
    """Write a ``known_hosts`` file with one server's *public* key, ``ssh-ed25519 AAAA…`` with or without a comment."""
    name = host if port == 22 else f"[{host}]:{port}"
    write_whole(path, f"{name} {' '.join(public.split()[:2])}\n", ELSEWHERE)
