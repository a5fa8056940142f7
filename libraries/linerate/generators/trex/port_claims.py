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
from ...system.identity import ProcessIdentity, identify, runtime_folder

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
        found = PortClaim(path, server, time.time(), dict(handlers), holder)
        data = {"server": server, "since": found.since, "handlers": found.handlers, "holder": asdict(holder)}
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(data, file)
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
                data = json.loads(path.read_text(encoding="utf-8"))
                handlers = {str(int(key)): str(value) for key, value in data["handlers"].items()}
                found = PortClaim(
                    path, str(data["server"]), float(data["since"]), handlers, ProcessIdentity(**data["holder"])
                )
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                continue
            if found.holder.alive:
                if found.server == server:
                    running.append(found)
            elif time.time() - found.since > CLAIM_LIFETIME:
                found.remove()
            elif found.server == server:
                ended.append(found)
    return tuple(ended), tuple(running)
