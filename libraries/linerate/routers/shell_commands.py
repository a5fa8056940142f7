"""Runs commands on a router through its shell: quotes and checks them, undoes changes in reverse order."""

from __future__ import annotations

import ipaddress
import re
import shlex
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ..counts.under_load import SampledStacks
from ..errors import TestbedError
from ..platforms import Tuning
from ..traffic.frame_kinds import FrameKinds, NotForwarded
from .base import RESTORE_LIMIT, Result, RouterUnreachable, Shell, Side
from .change_journal import Change, ChangeJournal
from .command_line_shell import CommandLineShell
from .shell_output import already_gone, first_line, plain_text
from .vpp_output import strip_banner

EXCHANGE_LIMIT = 10.0
"""Default limit in s of one exchange with a router."""

UNPRIVILEGED = frozenset(
    {
        "cat",
        "date",
        "ethtool",
        "grep",
        "head",
        "hostname",
        "kldstat",
        "ls",
        "lscpu",
        "lspci",
        "netstat",
        "pgrep",
        "readlink",
        "sh",
        "tc",
    }
    | {"od", "top", "uname", "vmstat", "wc"}
)
"""Commands that every user may run. They run without sudo, which may be limited to a few programs."""

_INTERFACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./:@-]{0,62}")
_MAC = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")
_STATUS_LINE = re.compile(r"@@linerate ([0-9]{1,4}) ([0-9]{1,4})[ \t]*\r*\n?")


def validated_interface(name: str) -> str:
    """Return *name*. Raises TestbedError if it cannot be the name of an interface."""
    if not _INTERFACE.fullmatch(name):
        raise TestbedError(
            f"{name!r} is not the name of an interface; expected letters, digits and any of _ . / : @ -,"
            " for example 'eth1' or 'TenGigabitEthernet3/0/0'"
        )
    return name


def validated_side(side: Side) -> Side:
    """Return *side* with its prefix normalised. Raises TestbedError that names a wrong value."""
    validated_interface(side.interface)
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


def kernel_facts(software: str, uname: str) -> dict[str, str]:
    """What ``uname -a`` says of a router that runs *software*. Raises TestbedError."""
    words = uname.split()
    if len(words) < 3:
        raise TestbedError(f"'uname -a' was not understood: '{first_line(uname) or 'no output'}'")
    return {"software": software, "kernel": uname.strip(), "version": words[2]}


def _incomplete(line: str, text: str) -> TestbedError:
    return TestbedError(f"the router's answer to '{line}' is not complete: '{first_line(text[-80:])}'; run again")


class ShellCommands:
    """Runs argument lists in *shell*. *limit*: s per exchange; *sudo*: use ``sudo -n`` for what needs root."""

    def __init__(self, shell: Shell, limit: float = EXCHANGE_LIMIT, sudo: bool = False) -> None:
        self._shell, self._limit, self._sudo = shell, limit, sudo
        self._undo: list[Change] = []
        self._journal: ChangeJournal | None = None
        self._rehearsed: list[Change] | None = None

    @contextmanager
    def rehearsal(self) -> Iterator[list[Change]]:
        """Meanwhile each change is only put on the list, and not made."""
        self._rehearsed = []
        try:
            yield self._rehearsed
        finally:
            self._rehearsed = None

    def keep_journal(self, journal: ChangeJournal) -> None:
        """Have each change in *journal* before it is made. What it has pending is undone by :meth:`restore`, too."""
        self._journal = journal
        self._undo = [*journal.pending, *self._undo]

    @property
    def rehearsing(self) -> bool:
        """Whether nothing may be changed now."""
        return self._rehearsed is not None

    def quoted(self, argv: Sequence[str], changes: bool = False) -> str:
        """*argv* as one quoted shell command. *changes*: it needs root, whatever it is."""
        words = list(argv)
        if self._sudo and (changes or words[0] not in UNPRIVILEGED):
            words = ["sudo", "-n", *words]
        return shlex.join(words)

    def run(self, *argv: str) -> str:
        """Run one command and return its output. Raises CommandRefused if its status is not 0."""
        return self.run_quoted(self.quoted(argv))

    def run_all(self, commands: Mapping[str, tuple[str, ...]], optional: Collection[str] = ()) -> dict[str, str]:
        """Run all *commands* in one exchange and return the output of each by its name.

        Commands named in *optional* may fail and give ``""``; other failures raise TestbedError. ``sh -c``: the login
        shell may be another one (csh on FreeBSD).
        """
        lines = [self.quoted(argv) for argv in commands.values()]
        result, answers = self._exchange(lines)
        found: dict[str, str] = {}
        for (text, status), name, line in zip(answers, commands, lines, strict=True):
            if status != 0 and name not in optional:
                raise _refusal(line, status, first_line(result.stderr) or first_line(text))
            found[name] = _whole(line, text) if status == 0 else ""
        return found

    def try_all(self, *commands: tuple[str, ...]) -> dict[str, tuple[str, int]]:
        """Run all *commands* in one exchange: output and exit status of each by its words.

        Raises TestbedError only if the exchange itself fails.
        """
        _, answers = self._exchange([self.quoted(argv) for argv in commands])
        return {" ".join(argv): answer for argv, answer in zip(commands, answers, strict=True)}

    def pipe(self, *commands: tuple[str, ...], seconds: float) -> Result:
        """Run *commands*, each of which reads what the one before writes; they take *seconds* and a limit's time.

        The status is the last one's. Raises TestbedError only if the exchange itself fails.
        """
        line = " | ".join(map(self.quoted, commands))
        return self._shell(f"sh -c {shlex.quote(line)}", seconds + self._limit)

    def _exchange(self, lines: Sequence[str]) -> tuple[Result, list[tuple[str, int]]]:
        """The result of all command *lines* together, and output and status of each. Raises TestbedError."""
        script = "; ".join(f'{line}; echo "@@linerate {index} $?"' for index, line in enumerate(lines))
        result = self._shell(f"sh -c {shlex.quote(script)}", self._limit)
        found: list[tuple[str, int]] = []
        start = 0
        for mark in _STATUS_LINE.finditer(result.stdout):
            text = plain_text(result.stdout[start : mark.start()])
            if int(mark[1]) != len(found):
                raise _incomplete(lines[min(len(found), len(lines) - 1)], text)
            found.append((text, int(mark[2])))
            start = mark.end()
        if len(found) < len(lines):
            missing = lines[len(found)]
            raise TestbedError(
                f"the router's shell did not answer '{missing}'"
                f" ({first_line(result.stderr) or first_line(result.stdout) or 'no output'}); it must be a POSIX system"
                " whose login runs commands given over SSH, without a menu"
            )
        return result, found[: len(lines)]

    def change(self, argv: tuple[str, ...], undo: tuple[str, ...], silent: bool = False) -> None:
        """Run *argv*; :meth:`restore` will run *undo*. *silent*: any output means that the command failed."""
        self.make(Change(argv, undo, silent))

    def make(self, step: Change) -> None:
        """Make the change *step*; :meth:`restore` will undo it.

        Of a refused one of several lines the first ones may have run, so that it is undone too.
        """
        if self._rehearsed is not None:
            self._rehearsed.append(step)
            return
        if self._journal:
            self._journal.add(step)
        # noted first: it may run although the link fails or a user interrupts; repeated after a link was down: once
        self._undo = [*(other for other in self._undo if other.undo != step.undo), step]
        try:
            self._running(step)(self._text(step, step.do))
        except CommandRefused:
            if not step.lines or len(step.do) == 1:
                self._undone(step)
            raise

    def _text(self, step: Change, words: tuple[str, ...]) -> str:
        """What the router is given to make or undo *step*."""
        return "\n".join(words) if step.lines else self.quoted(words, changes=True)

    def _running(self, step: Change) -> Callable[..., str]:
        return self.run_silent if step.silent else self.run_quoted

    def _undone(self, step: Change) -> None:
        self._undo.remove(step)
        if self._journal:
            self._journal.drop(step)

    def run_quoted(self, command: str, limit: float | None = None) -> str:
        """Run a quoted *command* and return its output. Raises CommandRefused if its status is not 0."""
        return _whole(in_one_line(command), self.run_unchecked(command, limit))

    def run_unchecked(self, command: str, limit: float | None = None) -> str:
        """As :meth:`run_quoted`, where who reads the output sees by itself whether its end is missing, as of JSON."""
        return _accepted(command, self._shell(command, self._limit if limit is None else limit))

    def run_silent(self, command: str, limit: float | None = None) -> str:
        """Run a quoted VPP *command*, which prints only errors and exits 0 in any case."""
        output = strip_banner(self.run_unchecked(command, limit))
        if output.strip():
            raise _refusal(command, 0, first_line(output))
        return output

    def _undo_lines(self, command: str, left: float) -> None:
        """Undo what may be there in part, in *left* s: lines of *command* that have nothing to undo are no failure."""
        if not isinstance(self._shell, CommandLineShell):
            raise TypeError(f"'{in_one_line(command)}' is for a command line that a file describes")
        _whole(in_one_line(command), _accepted(command, self._shell.undo(command, self._limit, left)))

    def restore(self) -> None:
        """Undo every change, last first, even if some fail, within RESTORE_LIMIT; no further one if a login fails.

        Raises TestbedError with the commands that undo what stays on the router. An interrupt keeps what is not undone
        for the next call.
        """
        failed: dict[str, list[str]] = {}
        until = time.monotonic() + RESTORE_LIMIT
        while self._undo:
            step = self._undo[-1]
            command = self._text(step, step.undo)
            try:
                if (left := until - time.monotonic()) <= 0:
                    raise RouterUnreachable(f"not within the {RESTORE_LIMIT:g} s for all of them")
                if step.lines and not step.whole:
                    self._undo_lines(command, left)
                else:
                    self._running(step)(command, min(self._limit, left))
            except RouterUnreachable as error:
                failed.setdefault(str(error), []).extend(
                    f"'{in_one_line(self._text(other, other.undo))}'" for other in reversed(self._undo)
                )
                self._undo.clear()
                break
            except TestbedError as error:
                why = error.why if isinstance(error, CommandRefused) else str(error)
                if step.lines or not already_gone(why):
                    failed.setdefault(why, []).append(f"'{in_one_line(command)}'")
                    self._undo.pop()  # it stays in the journal, for the next run
                    continue
            self._undone(step)
        if failed:
            listed = "; ".join(f"{', '.join(commands)} ({why})" for why, commands in failed.items())
            raise TestbedError(
                "the router's former configuration could not be restored in full; what is left there is undone by these"
                f" commands on the router, in this order: {listed}"
            )

    def forget_changes(self) -> None:
        """Drop the list of changes: there is nothing to undo."""
        self._undo.clear()
        if self._journal:
            self._journal.forget()


def is_cut(command: str, text: str) -> bool:
    """Whether the last line of *command*'s answer has no end. A file of a person may lack it."""
    return bool(text) and not text.endswith("\n") and not command.startswith("cat /etc/")


def _whole(command: str, text: str) -> str:
    """*text*, the answer to *command*. Raises TestbedError if it is cut."""
    if is_cut(command, text):
        raise _incomplete(command, text)
    return text


def _accepted(command: str, result: Result) -> str:
    """The output of *command*. Raises CommandRefused if its status is not 0."""
    if result.status != 0:
        raise _refusal(command, result.status, first_line(result.stderr) or first_line(result.stdout))
    return plain_text(result.stdout)


def in_one_line(command: str) -> str:
    """*command*, which may have several lines, for a message."""
    return " / ".join(command.splitlines())


class CommandRefused(TestbedError):
    """The router did not run a command. ``why``: the reason without the command."""

    def __init__(self, message: str, why: str) -> None:
        super().__init__(message)
        self.why = why


def _refusal(command: str, status: int, output: str) -> CommandRefused:
    if status == 1 and "vppctl" in command.split()[:3] and not output.startswith("sudo:"):
        # a command that VPP itself refuses has status 0
        why = f"VPP does not answer{f': {output}' if output else ''}"
        return CommandRefused(
            f"'{command}': {why}; check that it runs, and that the user may use its CLI socket ('sudo: true' for"
            " the router in the testbed file)",
            why,
        )
    reason, command = f": {output}" if output else "", in_one_line(command)
    return CommandRefused(
        f"the router refused '{command}' (status {status}){reason}; check the user's rights and the names given",
        f"status {status}{reason}",
    )


class ShellRouter:
    """The common part of all routers. *interfaces*: those under test, which must exist; *limit*: s per exchange."""

    def __init__(
        self, shell: Shell, limit: float = EXCHANGE_LIMIT, interfaces: tuple[str, ...] = (), sudo: bool = False
    ) -> None:
        self._commands = ShellCommands(shell, limit, sudo)
        self._interfaces = tuple(validated_interface(name) for name in interfaces)
        self._notes: list[str] = []
        self._not_forwarded: NotForwarded = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Changes of forwarding, packet filter and the like, in words: evidence."""
        return tuple(self._notes)

    def tune(self, tuning: Tuning) -> None:
        """Nothing, unless a subclass has it: other platforms' files have no ``tuning``."""

    def sample_stacks(self, seconds: float) -> SampledStacks:
        """Nothing, unless a subclass knows how."""
        return SampledStacks(seconds, why="it is not known how to sample stacks there")

    def configure_frames(self, sides: tuple[Side, ...], frames: FrameKinds) -> None:
        """Raises TestbedError, unless a subclass supports other frames than plain IPv4."""
        raise TestbedError(
            "the testbed file has 'set_up', and only Linux routers can be set up from here for IPv6, tags or labels;"
            " set the router up by hand and remove the key"
        )

    @property
    def not_forwarded(self) -> NotForwarded:
        """Frames that :meth:`configure_frames` could not configure, and why."""
        return self._not_forwarded

    def clear(self) -> None:
        """Nothing, unless a subclass can reset counters: readers use differences."""

    def _require_interfaces(self, existing: Collection[str], owner: str = "the router") -> None:
        for name in self._interfaces:
            if name not in existing:
                raise TestbedError(f"{owner} has no interface '{name}'; it has {', '.join(sorted(existing))}")

    def keep_journal(self, journal: ChangeJournal) -> None:
        """Have each change in *journal* before it is made."""
        self._commands.keep_journal(journal)

    def restore(self) -> None:
        """Undo all changes, last first. May be repeated. Raises TestbedError that names failed ones."""
        self._commands.restore()
        self._notes.clear()
        self._not_forwarded = {}

    @contextmanager
    def rehearsal(self) -> Iterator[list[Change]]:
        """Meanwhile each change is only put on the list, and not made."""
        notes, not_forwarded = list(self._notes), self._not_forwarded
        try:
            with self._commands.rehearsal() as found:
                yield found
        finally:
            self._notes[:], self._not_forwarded = notes, not_forwarded

    def forget_changes(self) -> None:
        """The router has restarted and lost its changes: there is nothing to undo."""
        self._notes.clear()
        self._not_forwarded = {}
        self._commands.forget_changes()
