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
from ...system.folders import lock_within, runtime_folder

_SUFFIX = ".held"


@dataclass(frozen=True, slots=True)
class PortClaim:
    """The ports of one run, in a *file* that is locked until it is closed. ``handlers`` by port; ``run``: in words."""

    path: Path
    file: FileIO
    handlers: Mapping[int, str]
    run: str

    def remove(self) -> None:
        """Remove the file. May be repeated."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)
        self.file.close()


def write_claim(server: str, handlers: Mapping[int, str]) -> PortClaim | None:
    """Write the claim of this process on ports of *server* (``host:port``); None if it cannot be written."""
    run = f"process {os.getpid()} of this machine, since {time.strftime('%Y-%m-%d %H:%M:%S')}"
    with contextlib.suppress(OSError, TestbedError):
        path = runtime_folder() / f"{secrets.token_hex(8)}{_SUFFIX}"
        file = FileIO(path, "x", opener=lambda name, flags: os.open(name, flags, 0o600))
        lock_within(file.fileno())
        file.write(json.dumps([server, dict(handlers), run]).encode())
        return PortClaim(path, file, handlers, run)
    return None


def left_claims(server: str) -> list[PortClaim]:
    """Return the claims on ports of *server* of this user's runs that have ended; from now on they are this one's."""
    claims = list[PortClaim]()
    with contextlib.suppress(OSError, TestbedError):
        for path in sorted(runtime_folder().glob(f"*{_SUFFIX}")):
            file = FileIO(path)
            with contextlib.suppress(ValueError):  # its run was killed while it wrote
                if lock_within(file.fileno()):
                    where, handlers, run = json.loads(file.read())
                    if where == server:
                        claims.append(PortClaim(path, file, {int(port): handlers[port] for port in handlers}, run))
                        continue
            file.close()
    return claims
