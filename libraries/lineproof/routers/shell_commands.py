"""Runs commands on a router through its shell: quotes and checks them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..command_values import compiled
from ..errors import TestbedError
from .description import RouterDescription
from .journal import NOTHING, Look
from .shell_output import already_gone, first_line, plain_text


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a shell command. ``duration`` in s."""

    stdout: str
    stderr: str
    status: int
    duration: float


class RouterUnreachable(TestbedError):
    """No login to the router succeeds: the next command would not get there either."""


Shell = Callable[..., Result]
"""``shell(command, limit in s) -> Result``; a third argument is text for the command's standard input.

Raises TestbedError when the link drops or the limit passes; of these RouterUnreachable when it drops and a new login
fails.
"""


POSIX = RouterDescription.model_validate({"shell": "sh", "channel": "posix"})


def is_cut(command: str, text: str) -> bool:
    """Return whether the last line of *command*'s answer has no end. A file of a person may lack it."""
    return bool(text) and not text.endswith("\n") and not command.startswith("cat /etc/")


def whole(command: str, text: str) -> str:
    """*text*, the answer to *command*. Raises TestbedError if it is cut."""
    if is_cut(command, text):
        last = first_line(text[-80:])
        raise TestbedError(f"the router's answer to '{command}' is not complete: '{last}'; run again")
    return text


class CommandRefused(TestbedError):
    """The router did not run a command. ``why``: the reason without the command; ``output``: all that it printed."""

    def __init__(self, message: str, why: str, output: str = "") -> None:
        super().__init__(message)
        self.why, self.output = why, output or why


UNPRIVILEGED = frozenset(
    {
        *("cat", "date", "ethtool", "grep", "head", "hostname", "kldstat", "ls", "lscpu", "lspci", "netstat", "od"),
        *("pgrep", "readlink", "sh", "tc", "top", "uname", "vmstat", "wc"),
    }
)
"""Commands that every user may run. They run without sudo, which may be limited to a few programs."""


class ShellCommands:
    """Runs argument lists in *shell*. *sudo*: use ``sudo -n`` for what needs root.

    Several commands are run one after the other. A link that drops, or a command without end, ends them all.

    *habits*: the description of the router, which may have no POSIX shell, but a command line of its own. *client*: the
    program that talks to the router, and ends with status 1 where that does not answer.
    """

    def __init__(
        self,
        shell: Shell,
        sudo: bool = False,
        habits: RouterDescription = POSIX,
        client: str = "",
    ) -> None:
        self._shell, self._sudo, self.habits, self._client = shell, sudo, habits, client
        self.limit = habits.limit

    def quoted(self, argv: Sequence[str], changes: bool = False) -> str:
        """*argv* as one quoted shell command. *changes*: it needs root, whatever it is."""
        words = list(argv)
        if self._sudo and (changes or words[0] not in UNPRIVILEGED):
            words = ["sudo", "-n", *words]
        return shlex.join(words)

    def as_given(self, line: str, changes: bool = False) -> str:
        """Return *line*, of a description, as the router is given it."""
        return self.quoted(shlex.split(line), changes) if self.habits.is_posix else line

    def show(self, line: str, limit: float | None = None, partial: bool = False) -> str:
        """Return what the command *line* of a description shows. Raises CommandRefused, not of a *partial* answer."""
        command = self.as_given(line)
        if partial:
            return whole(command, self.plain(self.answer(line).stdout))
        return whole(command, self.run_unchecked(command, limit))

    def values(self, look: Look, show: Callable[[str], str]) -> tuple[Mapping[str, str], ...]:
        """Return what *look* finds by *show*, as :meth:`.Look.values`; a refusal may say that there is nothing."""
        try:
            output = show(look.command)
        except CommandRefused as error:
            if not look.shows_none(error.output) and not (self.habits.is_posix and already_gone(error.why)):
                raise
            return NOTHING
        return look.values(output)

    def shown(self, line: str) -> str:
        """Return what the command *line* shows; "" where it is refused. Raises TestbedError."""
        try:
            return self.show(line)
        except CommandRefused:
            return ""

    def change(self, line: str, limit: float | None = None, stdin: str = "") -> None:
        """Run *line*, which changes the router, with *stdin* for its standard input. Raises CommandRefused."""
        command = self.as_given(line, changes=True)
        output = whole(command, self.run_unchecked(command, limit, stdin)).strip()
        if output and self.habits.prints and not compiled(self.habits.prints).fullmatch(output):
            raise self._refusal(command, 0, first_line(output))

    def reset(self) -> None:
        """Log out of a command line of its own; the next command logs in again."""
        if not self.habits.is_posix:
            getattr(self._shell, "close", lambda: None)()

    def plain(self, output: str) -> str:
        """Return *output* as text, without what is no part of an answer."""
        text = plain_text(output)
        return compiled(self.habits.ignore).sub("", text) if self.habits.ignore else text

    def _refusal(self, command: str, status: int, output: str) -> CommandRefused:
        """The error that the router did not run *command*, whose *output* says why."""
        if status == 1 and self._client in command.split()[:3] and not output.startswith("sudo:"):
            # a command that the router itself refuses has status 0
            why = f"{self.habits.title} does not answer{f': {output}' if output else ''}"
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

    def answer(self, line: str) -> Result:
        """Return whatever comes of *line*, also where it is refused. Raises TestbedError only if the shell does."""
        return self._shell(self.as_given(line), self.limit)

    def pipe(self, *commands: tuple[str, ...], seconds: float) -> Result:
        """Run *commands*, each of which reads what the one before writes; they take *seconds* and a limit's time.

        The status is the last one's. Raises TestbedError only if the shell does.
        """
        line = " | ".join(map(self.quoted, commands))
        return self._shell(f"sh -c {shlex.quote(line)}", seconds + self.limit)

    def run_unchecked(self, command: str, limit: float | None = None, stdin: str = "") -> str:
        """Return what a quoted *command* prints, whose end may be missing. Raises CommandRefused by status or words."""
        result = self._shell(command, self.limit if limit is None else limit, *([stdin] if stdin else []))
        refused = self.habits.refusal_in(result.stdout) or self.habits.refusal_in(result.stderr)
        if result.status != 0 or refused:
            reason = refused or first_line(result.stderr) or first_line(result.stdout)
            error = self._refusal(command, result.status or 1, reason)
            error.output = result.stdout + result.stderr
            raise error
        return self.plain(result.stdout)
