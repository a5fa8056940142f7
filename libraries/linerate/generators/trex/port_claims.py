"""Ports that this user's runs hold, written down so that a later run can give back what a killed one left.

A server hands out a handler with each port, by which alone a port can be given back: nothing is taken away from
anybody with it, for whoever took the port since has another one. One file per run in :func:`folder`, readable by its
owner only, written after the ports were taken and removed once they were given back.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import TestbedError
from ...system.identity import Identity, identify, runtime_folder

KEPT = 7 * 86400.0
"""Seconds after which a note of a dead run is thrown away: no server has kept the ports that long."""

_SUFFIX = ".held"


def folder() -> Path:
    """Where the notes are."""
    return runtime_folder()


@dataclass(frozen=True, slots=True)
class Note:
    """What one run holds. ``since``: s since the epoch; ``handlers`` by port number, as text."""

    path: Path
    server: str
    since: float
    handlers: Mapping[str, str]
    holder: Identity

    @property
    def ports(self) -> str:
        """Its ports, for a sentence."""
        return ", ".join(self.handlers)

    def __str__(self) -> str:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since))
        return f"process {self.holder.pid} of this machine, since {when}"

    def remove(self) -> None:
        """Forget it. Harmless when repeated."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)


def note(server: str, handlers: Mapping[str, str]) -> Note | None:
    """Write down that this process holds ports of *server* (``host:port``); None where that cannot be written."""
    try:
        holder = identify(os.getpid())
        path = folder() / f"{secrets.token_hex(8)}{_SUFFIX}"
        found = Note(path, server, time.time(), dict(handlers), holder)
        data = {
            "server": server,
            "since": found.since,
            "handlers": found.handlers,
            "holder": {"pid": holder.pid, "start": holder.start, "where": holder.where},
        }
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(data, file)
    except (OSError, TestbedError):
        return None
    return found


def notes(server: str) -> tuple[tuple[Note, ...], tuple[Note, ...]]:
    """This user's runs that hold, or held, ports of *server*: those whose process is gone, and the others."""
    dead: list[Note] = []
    alive: list[Note] = []
    with contextlib.suppress(OSError, TestbedError):
        for path in sorted(folder().glob(f"*{_SUFFIX}")):
            try:
                data = json.loads(path.read_text(encoding="utf-8"))
                handlers = {str(int(key)): str(value) for key, value in data["handlers"].items()}
                found = Note(path, str(data["server"]), float(data["since"]), handlers, Identity(**data["holder"]))
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                continue
            if found.holder.alive:
                if found.server == server:
                    alive.append(found)
            elif time.time() - found.since > KEPT:
                found.remove()
            elif found.server == server:
                dead.append(found)
    return tuple(dead), tuple(alive)
