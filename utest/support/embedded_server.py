"""The bench in a process of its own: the embedded server, or a simulated machine for TRex behind an SSH server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from lineproof.routers.base import Shell
from lineproof.system.known_hosts import write_known_hosts
from lineproof.system.private_key import make_key
from lineproof_bench.shells import trex_host
from lineproof_bench.shells.machine import Machine, Memory
from support.fake_router import shell_of as shell_on
from support.paths import LIBRARIES, VARIABLES


@dataclass(frozen=True)
class EmbeddedServer:
    """A running server and its first line."""

    process: subprocess.Popen[bytes]
    facts: dict[str, Any]
    log: Path

    @property
    def rpc(self) -> int:
        """The TCP port for requests."""
        return int(self.facts["rpc_port"])

    @property
    def runs(self) -> bool:
        """Return whether the process has not ended."""
        return self.process.poll() is None


@contextmanager
def bench_process(
    specification: dict[str, Any], errors: IO[bytes] | None = None
) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, Any]]]:
    """A process of the bench and its first line, until the context ends; *errors*: its standard error."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "lineproof_bench"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=os.environ | {"PYTHONPATH": str(LIBRARIES)},
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(json.dumps(specification).encode() + b"\n")
        process.stdin.flush()
        yield process, json.loads(process.stdout.readline())
    finally:
        process.stdin.close()
        try:
            process.wait(20)
        finally:
            process.kill()
            process.stdout.close()


@contextmanager
def embedded_server(folder: Path, **specification: Any) -> Iterator[EmbeddedServer]:
    """A simulated Netgate 6100, or what *specification* says, until the context ends."""
    platform = VARIABLES / "platforms" / "netgate6100.yaml"
    chosen = {"backend": "model", "platform_file": str(platform), "software": "vpp", "seed": 1, **specification}
    log = folder / "server.log"
    with log.open("wb") as out, bench_process(chosen, out) as (process, facts):
        yield EmbeddedServer(process, facts, log)


USER = "trex"


def shell_of(*habits: str) -> Shell:
    """The shell of a machine for TRex."""
    return shell_on(Machine(trex_host.software(habits), trex_host.no_router, Memory(), USER, sudo=True))


@contextmanager
def trex_host_server(folder: Path, *habits: str) -> Iterator[str]:
    """Such a machine behind an SSH server at 127.0.0.1, until the context ends: its login in YAML."""
    key, known = folder / "trex_client", folder / "trex_known_hosts"
    user = {"user": USER, "authorized_key": make_key(key), "sudo": True}
    shells = {"software": trex_host.KIND, "habits": list(habits), "host": "127.0.0.1", "port": 0, **user}
    with bench_process({"shells": shells}) as (_, facts):
        write_known_hosts(known, "127.0.0.1", facts["ssh_port"], facts["host_key"])
        yield f"{{user: {USER}, port: {facts['ssh_port']}, key: {key}, known_hosts: {known}}}"
