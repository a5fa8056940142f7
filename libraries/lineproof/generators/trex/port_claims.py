"""Files with the claimed ports of this user's runs, so that a later run can release the ports of a killed one.

A server gives a handler with each port, and only that handler releases the port. A user who has acquired the port since
has another handler and loses nothing. One file per run in :func:`.runtime_folder`, readable by its owner only, written
after the ports were acquired and removed after their release.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from ...errors import TestbedError
from ...files import write_whole
from ...json_text import parse_json
from ...system.identity import ProcessIdentity, identify, machine_uptime, runtime_folder

CLAIM_LIFETIME = 7 * 86400.0
"""Seconds after which the claim of an ended run is removed: no server keeps ports that long."""

_SUFFIX = ".held"


@dataclass(frozen=True, slots=True)
class PortClaim:
    """The ports of one run. ``since``: s since the epoch; ``handlers`` by port number, as text."""

    path: Path
    server: str
    since: float
    handlers: Mapping[str, str]
    holder: ProcessIdentity
    uptime: float = 0.0
    """The clock of this machine when it was written, s: its clock may be set, and must not make a claim old."""

    @property
    def outlived(self) -> bool:
        """Return whether it is older than CLAIM_LIFETIME."""
        now = machine_uptime()
        # less than at its writing: this machine has restarted since
        return now - (self.uptime if self.uptime <= now else 0.0) > CLAIM_LIFETIME

    @property
    def ports(self) -> str:
        """The port numbers, for messages."""
        return ", ".join(self.handlers)

    def __str__(self) -> str:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since))
        return f"process {self.holder.pid} of this machine, since {when}"

    def remove(self) -> None:
        """Remove the file. May be repeated."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)


def write_claim(server: str, handlers: Mapping[str, str]) -> PortClaim | None:
    """Write the claim of this process on ports of *server* (``host:port``); None if it cannot be written."""
    try:
        holder = identify(os.getpid())
        path = runtime_folder() / f"{secrets.token_hex(8)}{_SUFFIX}"
        found = PortClaim(path, server, time.time(), dict(handlers), holder, machine_uptime())
        data = {name: value for name, value in asdict(found).items() if name != "path"}
        write_whole(path, json.dumps(data), mode=0o600)
    except (OSError, TestbedError):
        return None
    return found


def read_claims(server: str) -> tuple[tuple[PortClaim, ...], tuple[PortClaim, ...]]:
    """Claims of this user's runs on ports of *server*: those of ended processes, and those of running ones."""
    ended: list[PortClaim] = []
    running: list[PortClaim] = []
    with contextlib.suppress(OSError, TestbedError):
        for path in sorted(runtime_folder().glob(f"*{_SUFFIX}")):
            try:
                data = parse_json(path.read_bytes(), own=True)
                handlers = {str(int(key)): str(value) for key, value in data["handlers"].items()}
                holder, uptime = ProcessIdentity(**data["holder"]), float(data.get("uptime", 0.0))
                found = PortClaim(path, str(data["server"]), float(data["since"]), handlers, holder, uptime)
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                continue
            if found.holder.alive:
                if found.server == server:
                    running.append(found)
            elif found.outlived:
                found.remove()
            elif found.server == server:
                ended.append(found)
    return tuple(ended), tuple(running)
