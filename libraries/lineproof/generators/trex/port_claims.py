"""Files with the claimed ports of this user's runs, so that a later run can release the ports of a killed one.

A server gives a handler with each port, and only that handler releases the port. A user who has acquired the port since
has another handler and loses nothing. One file per run in :func:`.runtime_folder`, readable by its owner only, written
after the ports were acquired and removed after their release; a reboot empties that folder.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from ...errors import TestbedError
from ...files import write_whole
from ...system.identity import ProcessIdentity, identify, runtime_folder

_SUFFIX = ".held"


@dataclass(frozen=True, slots=True)
class PortClaim:
    """The ports of one run. ``since``: s since the epoch; ``handlers`` by port number, as text."""

    path: Path
    server: str
    since: float
    handlers: Mapping[str, str]
    holder: ProcessIdentity

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
        path = runtime_folder() / f"{secrets.token_hex(8)}{_SUFFIX}"
        claim = PortClaim(path, server, time.time(), dict(handlers), identify(os.getpid()))
        write_whole(path, TypeAdapter(PortClaim).dump_json(claim), mode=0o600)
    except (OSError, TestbedError):
        return None
    return claim


def read_claims(server: str) -> tuple[list[PortClaim], list[PortClaim]]:
    """Claims of this user's runs on ports of *server*: those of ended processes, and those of running ones."""
    ended, running = list[PortClaim](), list[PortClaim]()
    with contextlib.suppress(OSError, TestbedError):
        for path in sorted(runtime_folder().glob(f"*{_SUFFIX}")):
            with contextlib.suppress(OSError, ValueError):
                claim = TypeAdapter(PortClaim).validate_json(path.read_bytes())
                if claim.server == server:
                    (running if claim.holder.alive else ended).append(claim)
    return ended, running
