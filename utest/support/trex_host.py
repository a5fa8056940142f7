"""A simulated machine for TRex, with habits: its shell here, and behind an SSH server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lineproof.routers.base import Shell
from lineproof.system.known_hosts import write_known_hosts
from lineproof.system.private_key import make_key
from lineproof_bench.shells import trex_host
from lineproof_bench.shells.machine import Machine, Memory
from support.embedded_server import bench_process
from support.fake_router import shell_of as shell_on

USER = "trex"


def shell_of(*habits: str) -> Shell:
    return shell_on(Machine(trex_host.software(habits), trex_host.no_router, Memory(), USER, sudo=True))


@dataclass(frozen=True)
class TrexHost:
    """A login of a testbed file: ``ssh`` is its YAML."""

    port: int
    ssh: str


@contextmanager
def trex_host_server(folder: Path, *habits: str) -> Iterator[TrexHost]:
    """The machine behind an SSH server at 127.0.0.1, until the context ends."""
    key = folder / "trex_client"
    shells = {
        "software": trex_host.KIND,
        "habits": list(habits),
        "host": "127.0.0.1",
        "port": 0,
        "user": USER,
        "authorized_key": make_key(key),
        "sudo": True,
    }
    with bench_process({"shells": shells}) as (_, facts):
        known = folder / "trex_known_hosts"
        write_known_hosts(known, "127.0.0.1", facts["ssh_port"], facts["host_key"])
        yield TrexHost(
            facts["ssh_port"], f"{{user: {USER}, port: {facts['ssh_port']}, key: {key}, known_hosts: {known}}}"
        )
