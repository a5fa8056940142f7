"""Commands on a router through its shell: quoted, checked, several in one round trip, and undone last first."""

from __future__ import annotations

import ipaddress
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence

from ..errors import TestbedError
from ..traffic.frame_kinds import FrameKinds, Lacking
from .base import Shell, Side
from .text import first_line, plain
from .vpp_text import uncover

LIMIT = 10.0
"""Seconds that one exchange with a router may take unless the caller says otherwise."""

UNPRIVILEGED = frozenset({"cat", "date", "ethtool", "hostname", "netstat", "tc", "uname"})
"""Commands that every user may run: never put behind sudo, which may be allowed for a few programs only."""

_INTERFACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./:@-]{0,62}")
_MAC = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")
_MARK = re.compile(r"@@linerate (\d+) (\d+)[ \t]*\r*\n?")


def checked_interface(name: str) -> str:
    """*name*, or TestbedError if it cannot be the name of an interface."""
    if not _INTERFACE.fullmatch(name):
        raise TestbedError(
            f"{name!r} is not the name of an interface; expected letters, digits and any of _ . / : @ -,"
            " for example 'eth1' or 'TenGigabitEthernet3/0/0'"
        )
    return name


def checked_side(side: Side) -> Side:
    """*side* with its prefix normalised, or TestbedError naming the value that is not an address."""
    checked_interface(side.interface)
    if not _MAC.fullmatch(side.peer_mac):
        raise TestbedError(f"{side.peer_mac!r} is not a MAC address; expected for example '02:00:00:00:01:02'")
    try:
        ipaddress.IPv4Address(side.peer)
        ipaddress.IPv4Interface(side.address)
        network = ipaddress.IPv4Network(side.network)
    except ValueError as error:
        raise TestbedError(
            f"interface {side.interface} cannot be configured: {error}; expected for example address"
            " 100.65.1.1/24, peer 100.65.1.2 and network 16.0.0.0/8"
        ) from None
    if "/" not in side.address:
        raise TestbedError(f"the address {side.address} of {side.interface} needs a prefix length, as in 100.65.1.1/24")
    return Side(side.interface, side.address, side.peer, side.peer_mac.lower(), str(network))


class Remote:
    """A shell that runs argument lists. ``limit`` s per exchange; ``sudo``: put ``sudo -n`` before what needs root."""

    def __init__(self, shell: Shell, limit: float = LIMIT, sudo: bool = False) -> None:
        self._shell, self._limit, self._sudo = shell, limit, sudo
        self._undo: list[tuple[str, Callable[[str], str]]] = []

    def line(self, argv: Sequence[str]) -> str:
        """*argv* as one quoted shell command."""
        words = list(argv)
        if self._sudo and words[0] not in UNPRIVILEGED:
            words = ["sudo", "-n", *words]
        return shlex.join(words)

    def run(self, *argv: str) -> str:
        """Run one command. Returns its plain output. Raises TestbedError when its status is not 0."""
        command = self.line(argv)
        result = self._shell(command, self._limit)
        if result.status != 0:
            raise _refused(command, result.status, first_line(result.stderr) or first_line(result.stdout))
        return plain(result.stdout)

    def gather(self, commands: Mapping[str, tuple[str, ...]], optional: Collection[str] = ()) -> dict[str, str]:
        """Run all *commands* in one exchange. Returns the plain output of each by its name.

        Those named in *optional* may fail and give ``""``; another's failure is a TestbedError. ``sh -c`` makes this
        independent of the login shell (csh on FreeBSD).
        """
        lines = [self.line(argv) for argv in commands.values()]
        script = "; ".join(f'{line}; echo "@@linerate {index} $?"' for index, line in enumerate(lines))
        result = self._shell(f"sh -c {shlex.quote(script)}", self._limit)
        found: dict[str, str] = {}
        start = 0
        for mark, name, line in zip(_MARK.finditer(result.stdout), commands, lines, strict=False):
            text, status = plain(result.stdout[start : mark.start()]), int(mark[2])
            start = mark.end()
            if status != 0 and name not in optional:
                raise _refused(line, status, first_line(result.stderr) or first_line(text))
            found[name] = text if status == 0 else ""
        if len(found) != len(commands):
            missing = lines[len(found)]
            raise TestbedError(
                f"the router's shell did not answer '{missing}'"
                f" ({first_line(result.stderr) or first_line(result.stdout) or 'no output'}); it must be a POSIX system"
                " whose login runs commands given over SSH, without a menu"
            )
        return found

    def change(self, argv: tuple[str, ...], undo: tuple[str, ...] | None, silent: bool = False) -> None:
        """Run *argv*; :meth:`restore` will run *undo*. ``silent``: any output means that the command failed."""
        run = self.run_silent if silent else self.run_command
        if undo is None:
            run(self.line(argv))
            return
        step = (self.line(undo), run)
        # told anew after a link was down: it is undone once
        self._undo = [known for known in self._undo if known != step]
        try:
            run(self.line(argv))
        except Refused:
            raise
        except TestbedError:
            # the link failed: whether the command was carried out is unknown, so it is undone too
            self._undo.append(step)
            raise
        self._undo.append(step)

    def run_command(self, command: str) -> str:
        """Run a quoted *command*; Refused when its status is not 0."""
        result = self._shell(command, self._limit)
        if result.status != 0:
            raise _refused(command, result.status, first_line(result.stderr) or first_line(result.stdout))
        return plain(result.stdout)

    def run_silent(self, command: str) -> str:
        """Run a quoted VPP *command*, which says nothing when it succeeds and exits 0 when it fails."""
        said = uncover(self.run_command(command))
        if said.strip():
            raise _refused(command, 0, first_line(said))
        return said

    def restore(self) -> None:
        """Undo every change, last first, all of them even if some fail; then TestbedError naming those that failed."""
        failed: dict[str, list[str]] = {}
        while self._undo:
            command, run = self._undo.pop()
            try:
                run(command)
            except TestbedError as error:
                why = error.why if isinstance(error, Refused) else str(error)
                if _GONE.search(why):
                    continue
                failed.setdefault(why, []).append(f"'{command}'")
        if failed:
            told = "; ".join(f"{', '.join(commands)} ({why})" for why, commands in failed.items())
            raise TestbedError(f"the router's former configuration could not be restored in full: {told}")

    def forget(self) -> None:
        """There is nothing to undo any more."""
        self._undo.clear()


_GONE = re.compile(
    r"RTNETLINK answers: (No such process|No such file or directory|Cannot assign requested address)"
    r"|not found for interface|not in table"
)
"""What is said where that which is to be taken away is not there: it went with a link, or somebody took it."""


class Refused(TestbedError):
    """The router answered that it did not carry out a command. ``why``: without naming the command."""

    def __init__(self, message: str, why: str) -> None:
        super().__init__(message)
        self.why = why


def _refused(command: str, status: int, said: str) -> Refused:
    if status == 1 and "vppctl" in command.split()[:3] and not said.startswith("sudo:"):
        # a command that VPP itself refuses ends with 0
        why = f"VPP does not answer{f': {said}' if said else ''}"
        return Refused(
            f"'{command}': {why}; look whether it runs, and whether the user may use its CLI socket ('sudo: true' for"
            " the router in the testbed file)",
            why,
        )
    told = f"status {status}{f': {said}' if said else ''}"
    why = f": {said}" if said else ""
    return Refused(
        f"the router refused '{command}' (status {status}){why}; check the user's rights and the names given", told
    )


class RemoteRouter:
    """What every router here is made of. *interfaces*: those under test, which must exist; *limit*: s per exchange.

    *sudo*: the user is not root but may ``sudo -n``.
    """

    def __init__(
        self, shell: Shell, limit: float = LIMIT, interfaces: tuple[str, ...] = (), sudo: bool = False
    ) -> None:
        self._remote = Remote(shell, limit, sudo)
        self._interfaces = tuple(checked_interface(name) for name in interfaces)
        self._notes: list[str] = []
        self._lacking: Lacking = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """What configuring changed beyond addresses, neighbours and routes (forwarding, packet filter): evidence."""
        return tuple(self._notes)

    def set_up(self, sides: tuple[Side, ...], frames: FrameKinds) -> None:
        """Raises TestbedError: only where a subclass knows how is a router set up for *frames* beside plain IPv4."""
        raise TestbedError(
            "the testbed file says 'set_up', and this router's software cannot be set up from here for IPv6, tags or"
            " labels, only Linux can; set it up by hand and take the key away"
        )

    @property
    def lacking(self) -> Lacking:
        """What :meth:`set_up` could not do."""
        return self._lacking

    def restore(self) -> None:
        """Undo what was configured, last first. Harmless when repeated. Raises TestbedError naming what could not be."""
        self._notes.clear()
        self._lacking = {}
        self._remote.restore()

    def forget(self) -> None:
        """The router has restarted: what was configured is gone, and so is what there was to undo."""
        self._notes.clear()
        self._lacking = {}
        self._remote.forget()
