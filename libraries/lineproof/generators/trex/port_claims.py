"""Files with the claimed ports of this user's runs, so that a later run can release the ports of a killed one.

A server gives a handler with each port, and only that handler releases the port. A user who has acquired the port since
has another handler and loses nothing. One file per run in :func:`.runtime_folder`, readable by its owner only: written
after the ports were acquired, locked until its process ends, and removed once the ports are released, by whomever.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from ...errors import TestbedError
from ...system.folders import is_locked, lock_within, runtime_folder

_SUFFIX = ".held"


@dataclass(frozen=True, slots=True)
class PortClaim:
    """The ports of one run. ``since``: s since the epoch; ``handlers`` by port number, as text.

    ``file``: locked, where the run is this process.
    """

    path: Path
    server: str
    since: float
    handlers: Mapping[int, str]
    pid: int
    file: FileIO | None = None

    @property
    def ports(self) -> str:
        """The port numbers, for messages."""
        return ", ".join(map(str, self.handlers))

    def __str__(self) -> str:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since))
        return f"process {self.pid} of this machine, since {when}"

    def remove(self) -> None:
        """Remove the file. May be repeated."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)
        if self.file is not None:
            self.file.close()


def write_claim(server: str, handlers: Mapping[int, str]) -> PortClaim | None:
    """Write the claim of this process on ports of *server* (``host:port``); None if it cannot be written."""
    try:
        path = runtime_folder() / f"{secrets.token_hex(8)}{_SUFFIX}"
        file = FileIO(path, "x", opener=lambda name, flags: os.open(name, flags, 0o600))
        lock_within(file.fileno())
        claim = PortClaim(path, server, time.time(), dict(handlers), os.getpid(), file)
        data = {name: getattr(claim, name) for name in ("server", "since", "handlers", "pid")}
        file.write(json.dumps(data).encode())
    except (OSError, TestbedError):
        return None
    return claim


def read_claims(server: str) -> tuple[list[PortClaim], list[PortClaim]]:
    """Claims of this user's runs on ports of *server*: those of ended processes, and those of running ones."""
    ended, running = list[PortClaim](), list[PortClaim]()
    with contextlib.suppress(OSError, TestbedError):
        for path in sorted(runtime_folder().glob(f"*{_SUFFIX}")):
            try:
                with FileIO(path) as file:
                    claims = running if is_locked(file.fileno()) else ended
                    data = json.loads(file.read())
                handlers = {int(key): str(value) for key, value in data["handlers"].items()}
                claim = PortClaim(path, str(data["server"]), float(data["since"]), handlers, int(data["pid"]))
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                continue
            if claim.server == server:
                claims.append(claim)
    return ended, running
