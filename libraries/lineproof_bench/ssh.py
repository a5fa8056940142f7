"""A simulated router's SSH server, as its specification says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from lineproof.errors import TestbedError

from .bench import EmbeddedBench
from .shells import freebsd, linux, trex_host, vpp
from .shells.machine import Machine, MachineSoftware, Memory
from .shells.server import listen
from .shells.ssh_library import asyncssh
from .shells.study_commands import StudyCommands

SPECIFIED = {"software", "host", "port", "user", "authorized_key", "sudo"}


@asynccontextmanager
async def listening(specification: Mapping[str, Any], bench: EmbeddedBench | None) -> AsyncIterator[dict[str, Any]]:
    """Serve the shells of *specification*, and yield ``ssh_port`` and ``host_key``, which is a new one.

    ``software``: vpp, linux or freebsd on the model of *bench*, or trex-host, a machine for TRex with ``habits``
    (:mod:`.shells.trex_host`); ``host``, ``port`` (0: free); ``user`` and ``authorized_key`` (OpenSSH) that may log in;
    ``sudo``: whether the user may; ``setups`` that a study's commands make of the router. Raises TestbedError.
    """
    missing = SPECIFIED - specification.keys()
    if missing:
        raise TestbedError(f"the specification of the simulated router lacks {', '.join(sorted(missing))}")
    box = machine(specification, bench)
    key = asyncssh.generate_private_key("ssh-ed25519")
    host, port, user = str(specification["host"]), int(specification["port"]), str(specification["user"])
    authorized = str(specification["authorized_key"])
    query = (lambda: bench.router.ssh_fault()) if bench else dict
    async with await listen(box, host, port, user, authorized, key, query) as acceptor:
        yield {
            "ssh_port": acceptor.get_port(),
            "host_key": " ".join(key.export_public_key().decode().split()[:2]),
        }


def machine(specification: Mapping[str, Any], bench: EmbeddedBench | None) -> Machine:
    """Return the machine for *specification*. Raises TestbedError for software without a shell."""
    user, sudo, kind = str(specification["user"]), bool(specification["sudo"]), str(specification["software"])
    if kind == trex_host.KIND:
        software = trex_host.software(specification.get("habits") or ())
        return Machine(software, trex_host.no_router, Memory(), user, sudo)
    kinds: dict[str, MachineSoftware] = {
        "vpp": vpp.software(),
        "linux": linux.software(),
        "freebsd": freebsd.software(),
    }
    if kind not in kinds or bench is None:
        raise TestbedError(f"no simulated shell for software '{kind}'; there are {', '.join(kinds)}, each with a model")
    names = [interface.name for interface in bench.router.state().interfaces]
    memories: dict[str, Memory] = {"freebsd": freebsd.first_memory(names), "linux": linux.first_memory(names)}
    memory = memories.get(kind) or linux.first_memory(())
    override = StudyCommands(specification.get("setups") or (), kinds[kind].commands).run
    return Machine(kinds[kind], lambda: bench.router, memory, user, sudo, override)
