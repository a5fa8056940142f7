"""Simulated routers of every kind, whose configuration is compared before and after, and journals of runs that end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lineproof.routers import make_router
from lineproof.routers.described import Router
from lineproof.routers.description import RouterDescription
from lineproof.routers.journal import Change, ChangeJournal, Occasion
from lineproof.session.router import undo_leftover
from lineproof.system.ssh_shell import Result, Shell
from support.described_router import DESCRIPTIONS, description, machine_of
from support.fake_router import SIDES, shell_of, simulated

ROUTER, KEY = "192.0.2.1:22", "SHA256:key"
CHANGE = Change(("ip link set dev eth1 up",), ("ip link set dev eth1 down",))


class Killed(BaseException):
    """SIGKILL, here."""


def dying(shell: Shell, exchanges: int, *, before: bool) -> Shell:
    """Return *shell* that kills this process after so many *exchanges*, *before* or after the next one."""
    count = 0

    def run(command: str, limit: float) -> Result:
        nonlocal count
        count += 1
        if count > exchanges and before:
            raise Killed
        answer = shell(command, limit)
        if count > exchanges:
            raise Killed
        return answer

    return run


def occasion(kind: str = "linux") -> Occasion:
    return Occasion(ROUTER, kind)


def left(*changes: Change) -> Path:
    """Write the journal of a run that made *changes* and was killed."""
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
    now = now or occasion(kind=file.shell if file else "linux")
    router = make_router(now.kind, shell, sudo=sudo, file=file)
    journal = ChangeJournal.claim(now, KEY)
    try:
        return undo_leftover(journal, router, asked)
    finally:
        journal.close()
        assert router.changes == (), "what stays is not for the end of this run"


def untouched(command: str, limit: float) -> Result:
    """Return the shell of a router that must not be given any command."""
    pytest.fail(command)


@contextmanager
def full_disk() -> Iterator[None]:
    """Provide a disk to which nothing can be written."""

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", full)
        yield


STATE = {
    "vpp": (*("interface address", "ip fib 16.0.0.0/8", "ip fib 48.0.0.0/8", "ip neighbors"),),
    "linux": (
        *("ip addr", "ip route", "ip neigh", "sysctl net.ipv4.ip_forward net.ipv4.conf.all.rp_filter"),
        "sysctl net.ipv4.conf.eth1.rp_filter",
    ),
    "freebsd": (
        *("ifconfig eth1", "ifconfig eth2", "netstat -rnW -f inet", "arp -an"),
        *("sysctl net.inet.ip.forwarding", "pfctl -s info"),
    ),
}
"""Commands that show all that is configured."""
EARLIER = {
    "linux": (
        "ip link set dev eth1 up",
        "ip addr add 192.0.2.1/24 dev eth1",
        "ip route add 16.0.0.0/8 via 192.0.2.9 dev eth1",
        "ip neigh replace 100.65.1.2 lladdr 02:00:00:00:00:77 nud permanent dev eth1",
    ),
    "freebsd": (
        "ifconfig eth1 inet 192.0.2.1/24 alias",
        "ifconfig eth1 inet 100.65.1.1/28 alias",
        "route add -net 16.0.0.0/8 192.0.2.9",
        "arp -S 100.65.1.2 02:00:00:00:00:77",
    ),
    "vpp": ("vppctl set ip neighbor eth1 100.65.1.2 02:00:00:00:00:77 static",),
}
"""The configuration that a router may have already where a run sets something else."""


@dataclass
class Machine:
    """A router that is simulated. ``shell``: a Shell, or a :class:`.CommandLine`; ``state``: its configuration."""

    kind: Any
    shell: Any
    state: Callable[[], str]
    file: RouterDescription | None = None

    @classmethod
    def new(cls, name: str, earlier: bool = False) -> Machine:
        if name in DESCRIPTIONS:
            line = machine_of(name)
            return cls(name, line, lambda: line.configuration, description(name))
        shell = shell_of(simulated(name)[0])
        commands = [f"vppctl show {words}" for words in STATE[name]] if name == "vpp" else STATE[name]
        for command in EARLIER[name] if earlier else ():
            assert shell(command, 1.0).status == 0
        return cls(name, shell, lambda: "".join(shell(command, 1.0).stdout for command in commands))

    def router(self, shell: Shell | None = None) -> Router:
        return make_router(self.kind, shell or self.shell, ("eth1", "eth2"), file=self.file)

    def configure(self, router: Router) -> None:
        router.configure(SIDES)

    def begun(self, shell: Shell | None = None) -> tuple[ChangeJournal, Router]:
        """Return a router whose changes are kept in a journal."""
        journal, router = ChangeJournal.claim(occasion(kind=self.kind), KEY), self.router(shell)
        router.keep_journal(journal)
        return journal, router

    def run(self, shell: Shell | None = None, restores: bool = True) -> tuple[Change, ...]:
        """Return the changes of a run with a journal, that ends with Killed or by itself."""
        journal, router = self.begun(shell)
        try:
            self.configure(router)
            changes = router.changes
            if restores:
                router.restore()
            return changes
        finally:
            journal.close()

    def undone(self, shell: Shell | None = None, asked: bool = False) -> str:
        """Return what the next start says; *asked*: what ``lineproof restore`` says."""
        getattr(self.shell, "close", lambda: None)()
        return undone(shell or self.shell, occasion(kind=self.kind), self.file, asked=asked)
