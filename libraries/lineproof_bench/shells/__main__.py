"""``python -m lineproof_bench.shells``: a simulated router's SSH server as a process of the bench.

Specification (one JSON line on standard input): ``software`` vpp, linux, freebsd, or trex-host, a machine for TRex with
``habits`` (:mod:`.trex_host`), which needs no model; ``host``, ``port`` (0: free);
``control_port`` and ``control_token`` of the model; ``user`` and ``authorized_key`` (OpenSSH) that may log in;
``host_key`` path of a private key, or null for a new one; ``sudo`` whether the user may; ``setups`` that a study's
commands make of the router (none). Ready: ``port``, ``host_key``.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lineproof.errors import TestbedError

from .. import process
from . import freebsd, linux, trex_host, vpp
from .control import ModelControl
from .machine import Machine, MachineSoftware, Memory
from .server import FaultQuery, listen
from .ssh_library import asyncssh
from .study_commands import StudyCommands

SPECIFIED = {"software", "host", "port", "control_port", "control_token", "user", "authorized_key", "host_key", "sudo"}


def machine(specification: Mapping[str, Any], control: ModelControl) -> Machine:
    """The machine for *specification*. Raises TestbedError for software without a shell."""
    user, sudo = str(specification["user"]), bool(specification["sudo"])
    if specification["software"] == trex_host.KIND:
        software = trex_host.software(specification.get("habits") or ())
        return Machine(software, trex_host.NoRouter(), Memory(), user, sudo)
    kinds: dict[str, MachineSoftware] = {
        "vpp": vpp.software(),
        "linux": linux.software(),
        "freebsd": freebsd.software(),
    }
    kind = str(specification["software"])
    if kind not in kinds:
        raise TestbedError(f"no simulated shell for software '{kind}'; there are {', '.join(kinds)}")
    names = [interface.name for interface in control.state().interfaces]
    memories: dict[str, Memory] = {"freebsd": freebsd.first_memory(names), "linux": linux.first_memory(names)}
    memory = memories.get(kind) or linux.first_memory(())
    override = StudyCommands(specification.get("setups") or (), kinds[kind].commands).run
    return Machine(kinds[kind], control, memory, user, sudo, override)


def host_key(path: str | None) -> asyncssh.SSHKey:
    """The private host key at *path*, or a new one. Raises TestbedError when it cannot be read."""
    if path is None:
        return asyncssh.generate_private_key("ssh-ed25519")
    try:
        return asyncssh.read_private_key(Path(path))
    except (OSError, asyncssh.KeyImportError) as error:
        raise TestbedError(f"the host key {path} of the simulated router cannot be read: {error}") from None


async def serve(specification: Mapping[str, Any]) -> None:
    """Serve until the parent goes or SIGTERM arrives."""
    missing = SPECIFIED - specification.keys()
    if missing:
        raise TestbedError(f"the specification of the simulated router lacks {', '.join(sorted(missing))}")
    control = ModelControl(int(specification["control_port"]), str(specification["control_token"]))
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    try:
        box = await asyncio.to_thread(machine, specification, control)
        key = host_key(specification["host_key"])
        host, port, user = str(specification["host"]), int(specification["port"]), str(specification["user"])

        def stop() -> None:
            loop.call_soon_threadsafe(over.set)

        authorized = str(specification["authorized_key"])
        faults: FaultQuery = dict if specification["software"] == trex_host.KIND else control.ssh_fault
        async with await listen(box, host, port, user, authorized, key, faults) as acceptor:
            process.on_end(stop)
            public = " ".join(key.export_public_key().decode().split()[:2])
            process.ready({"port": acceptor.get_port(), "host_key": public})
            await over.wait()
    finally:
        control.close()


def main() -> None:
    """Begin, serve, end."""
    specification = process.read_specification()
    try:
        asyncio.run(serve(specification))
    except TestbedError as error:
        process.refuse(str(error))
    sys.exit(0)


if __name__ == "__main__":
    main()
