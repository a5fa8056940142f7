"""Runs commands on a router through its shell: quotes and checks them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..command_values import compiled
from ..errors import TestbedError
from .shell_output import first_line, plain_text


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a shell command. ``duration`` in s."""

    stdout: str
    stderr: str
    status: int
    duration: float


class RouterUnreachable(TestbedError):
    """No login to the router succeeds: the next command would not get there either."""


Shell = Callable[[str, float], Result]
"""``shell(command, limit in s) -> Result``. Raises TestbedError when the link drops or the limit passes; of these
RouterUnreachable when it drops and a new login fails."""


@dataclass(frozen=True, slots=True)
class ShellHabits:
    """The part of a :class:`.RouterDescription` about its shell, a POSIX one unless it says otherwise.

    ``prints``: an expression for all that a command of a change may print; ``ignore``: for what is no part of an
    answer; ``gone``: for what a refused command of an undo says that has nothing to undo. ``client``: the program that
    talks to the router, called ``title``, and ends with status 1 where that does not answer.
    """

    is_posix: bool = True
    prints: str | None = None
    ignore: str | None = None
    gone: tuple[str, ...] = ()
    client: str = ""
    title: str = ""


POSIX = ShellHabits()


def incomplete(line: str, text: str) -> TestbedError:
    """The error that *text*, the answer to *line*, is cut."""
    return TestbedError(f"the router's answer to '{line}' is not complete: '{first_line(text[-80:])}'; run again")


def is_cut(command: str, text: str) -> bool:
    """Return whether the last line of *command*'s answer has no end. A file of a person may lack it."""
    return bool(text) and not text.endswith("\n") and not command.startswith("cat /etc/")


def whole(command: str, text: str) -> str:
    """*text*, the answer to *command*. Raises TestbedError if it is cut."""
    if is_cut(command, text):
        raise incomplete(command, text)
    return text


class CommandRefused(TestbedError):
    """The router did not run a command. ``why``: the reason without the command; ``output``: all that it printed."""

    def __init__(self, message: str, why: str, output: str = "") -> None:
        super().__init__(message)
        self.why, self.output = why, output or why


def refusal(command: str, status: int, output: str, habits: ShellHabits = POSIX) -> CommandRefused:
    """The error that the router did not run *command*, whose *output* says why."""
    if status == 1 and habits.client in command.split()[:3] and not output.startswith("sudo:"):
        # a command that the router itself refuses has status 0
        why = f"{habits.title} does not answer{f': {output}' if output else ''}"
        return CommandRefused(
            f"'{command}': {why}; check that it runs, and that the user may use its CLI socket ('sudo: true' for"
            " the router in the testbed file)",
            why,
        )
    reason = f": {output}" if output else ""
    return CommandRefused(
        f"the router refused '{command}' (status {status}){reason}; check the user's rights and the names given",
        f"status {status}{reason}",
    )


EXCHANGE_LIMIT = 10.0
"""Default limit in s of one exchange with a router."""

AT_ONCE = 8
"""Looks in one exchange: csh, the login shell of FreeBSD up to 13, takes words of 1024 characters (tcsh(1))."""

UNPRIVILEGED = frozenset(
    {
        *("cat", "date", "ethtool", "grep", "head", "hostname", "kldstat", "ls", "lscpu", "lspci", "netstat", "od"),
        *("pgrep", "readlink", "sh", "tc", "top", "uname", "vmstat", "wc"),
    }
)
"""Commands that every user may run. They run without sudo, which may be limited to a few programs."""

_STATUS_LINE = re.compile(r"@@lineproof ([0-9]{1,4}) ([0-9]{1,4})[ \t]*\r*\n?")


class CommandLineShell:
    """*shell* of a router that ends with status 0 whatever it refuses: here that is 1. ``close`` logs out.

    It is a :data:`~lineproof.routers.base.Shell`. *refusal_in*: the line of an output that is a refusal, "" if none is.
    """

    def __init__(self, shell: Shell, refusal_in: Callable[[str], str]) -> None:
        self._shell, self._refusal_in = shell, refusal_in

    def __call__(self, command: str, limit: float) -> Result:
        """Run *command* within *limit* s."""
        result = self._shell(command, limit)
        if refused := self._refusal_in(result.stdout) or self._refusal_in(result.stderr):
            return replace(result, stderr=refused, status=result.status or 1)
        return result

    def close(self) -> None:
        """End the login; the next command logs in again."""
        getattr(self._shell, "close", lambda: None)()


class ShellCommands:
    """Runs argument lists in *shell*. *limit*: s per exchange; *sudo*: use ``sudo -n`` for what needs root.

    *habits*: of a router that has a description; it may have no POSIX shell, but a command line of its own.
    """

    def __init__(
        self,
        shell: Shell,
        limit: float = EXCHANGE_LIMIT,
        sudo: bool = False,
        habits: ShellHabits = POSIX,
    ) -> None:
        self._shell, self.limit, self._sudo, self.habits = shell, limit, sudo, habits

    def quoted(self, argv: Sequence[str], changes: bool = False) -> str:
        """*argv* as one quoted shell command. *changes*: it needs root, whatever it is."""
        words = list(argv)
        if self._sudo and (changes or words[0] not in UNPRIVILEGED):
            words = ["sudo", "-n", *words]
        return shlex.join(words)

    def as_given(self, line: str, changes: bool = False) -> str:
        """Return *line*, of a description, as the router is given it."""
        return self.quoted(shlex.split(line), changes) if self.habits.is_posix else line

    def show(self, line: str, limit: float | None = None) -> str:
        """Return what the command *line* of a description shows. Raises CommandRefused."""
        return self.run_quoted(self.as_given(line), limit)

    def show_all(self, lines: Iterable[str]) -> dict[str, str | None]:
        """Return what each of *lines* shows, None where it was refused; of a POSIX shell some in each exchange."""
        own = list(dict.fromkeys(lines))
        if not self.habits.is_posix:
            return {line: self.show(line) for line in own}
        shown: dict[str, str | None] = {}
        for at in range(0, len(own), AT_ONCE):
            given = {line: self.as_given(line) for line in own[at : at + AT_ONCE]}
            _, answers = self._exchange(list(given.values()))
            for (line, command), (text, status) in zip(given.items(), answers, strict=True):
                shown[line] = None if status else whole(command, text)
        return shown

    def change(self, line: str, limit: float | None = None) -> None:
        """Run *line*, of a description, which changes the router. Raises CommandRefused."""
        command = self.as_given(line, changes=True)
        output = self.run_quoted(command, limit).strip()
        if output and self.habits.prints and not compiled(self.habits.prints).fullmatch(output):
            raise refusal(command, 0, first_line(output))

    def reset(self) -> None:
        """Log out of a command line of its own; the next command logs in again."""
        if not self.habits.is_posix:
            getattr(self._shell, "close", lambda: None)()

    def plain(self, output: str) -> str:
        """Return *output* as text, without what is no part of an answer."""
        text = plain_text(output)
        return compiled(self.habits.ignore).sub("", text) if self.habits.ignore else text

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
                raise refusal(line, status, first_line(result.stderr) or first_line(text), self.habits)
            found[name] = whole(line, text) if status == 0 else ""
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
        return self._shell(f"sh -c {shlex.quote(line)}", seconds + self.limit)

    def _exchange(self, lines: Sequence[str]) -> tuple[Result, list[tuple[str, int]]]:
        """The result of all command *lines* together, and output and status of each. Raises TestbedError."""
        script = "; ".join(f'{line}; echo "@@lineproof {index} $?"' for index, line in enumerate(lines))
        result = self._shell(f"sh -c {shlex.quote(script)}", self.limit)
        found: list[tuple[str, int]] = []
        start = 0
        for mark in _STATUS_LINE.finditer(result.stdout):
            text = self.plain(result.stdout[start : mark.start()])
            if int(mark[1]) != len(found):
                raise incomplete(lines[min(len(found), len(lines) - 1)], text)
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

    def run_quoted(self, command: str, limit: float | None = None) -> str:
        """Run a quoted *command* and return its output. Raises CommandRefused if its status is not 0."""
        return whole(command, self.run_unchecked(command, limit))

    def run_unchecked(self, command: str, limit: float | None = None) -> str:
        """Run it as :meth:`run_quoted`, where the reader sees whether the output's end is missing, as of JSON."""
        result = self._shell(command, self.limit if limit is None else limit)
        if result.status != 0:
            reason = first_line(result.stderr) or first_line(result.stdout)
            refused = refusal(command, result.status, reason, self.habits)
            refused.output = result.stdout + result.stderr
            raise refused
        return self.plain(result.stdout)
