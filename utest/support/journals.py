"""Journals of a router's changes in tests: whose they are, and a run that is killed."""

from __future__ import annotations

import os
from pathlib import Path

from lineproof.routers.base import Result, Shell
from lineproof.routers.change_journal import ChangeJournal
from lineproof.routers.changes import Change
from lineproof.routers.occasion import Occasion

ROUTER = "192.0.2.1:22"
CHANGE = Change(("ip", "link", "set", "dev", "eth1", "up"), ("ip", "link", "set", "dev", "eth1", "down"))


class Killed(BaseException):
    """SIGKILL, here."""


def dying(shell: Shell, exchanges: int, *, before: bool) -> Shell:
    """*shell* until it has answered so many *exchanges*: then this process is killed, *before* or after the next."""
    count = 0

    def run(command: str, limit: float) -> Result:
        nonlocal count
        count += 1
        if count > exchanges and before:
            raise Killed
        found = shell(command, limit)
        if count > exchanges:
            raise Killed
        return found

    return run


def occasion(uptime: float | None = 100.0, kind: str = "linux") -> Occasion:
    """This process, now, and a router that runs for *uptime* seconds."""
    return Occasion.now(ROUTER, kind, "SHA256:key", uptime)


def left(*changes: Change) -> Path:
    """The journal of a run that made *changes* and was killed."""
    journal = ChangeJournal.claim(ROUTER)
    journal.begin(occasion())
    for change in changes:
        journal.add(change)
    os.close(journal._descriptor)
    return journal.leftover.path
