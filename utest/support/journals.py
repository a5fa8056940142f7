"""Journals of a router's changes in tests: whose they are, and a run that is killed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lineproof.routers import make_router
from lineproof.routers.base import Result, Shell
from lineproof.routers.description import RouterDescription
from lineproof.routers.journal import Change, ChangeJournal, Occasion
from lineproof.session.router import undo_leftover

ROUTER, KEY = "192.0.2.1:22", "SHA256:key"
CHANGE = Change(("ip link set dev eth1 up",), ("ip link set dev eth1 down",))


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


def occasion(kind: str = "linux") -> Occasion:
    """This process, now."""
    return Occasion.now(ROUTER, kind)


def left(*changes: Change) -> Path:
    """The journal of a run that made *changes* and was killed."""
    journal = ChangeJournal.claim(occasion(), KEY)
    for change in changes:
        journal.add(change)
    journal.close()
    return journal.path


def undone(
    shell: Shell,
    now: Occasion | None = None,
    file: RouterDescription | None = None,
    sudo: bool = False,
    asked: bool = False,
) -> str:
    """Return what the next start does, by default at :func:`occasion`; *asked*: what ``lineproof restore`` does."""
    now = now or occasion(kind="generic" if file else "linux")
    router = make_router(now.kind, shell, sudo=sudo, file=file)  # type: ignore[arg-type]
    journal = ChangeJournal.claim(now, KEY)
    try:
        return undo_leftover(journal, router, asked)
    finally:
        journal.close()
        assert router.changes == (), "what stays is not for the end of this run"


def untouched(command: str, limit: float) -> Result:
    """The shell of a router that must not be given any command."""
    pytest.fail(command)


@contextmanager
def full_disk() -> Iterator[None]:
    """Nothing can be written."""

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", full)
        yield
