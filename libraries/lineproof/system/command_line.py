"""A machine's command line: how it talks, commands that are run there as root where needed, and what they answer."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from ..command_values import Expression, Expressions, Fact, compiled, picked
from ..config import Config
from ..errors import TestbedError
from .ssh_shell import Dialogue, Result, Shell, first_line, plain_text


class CommandChannel(Config):
    """A machine's way to take commands, and its words for what it refuses.

    ``channel``: ``posix`` is a shell of POSIX; ``exec`` a command line that takes single commands. At a ``terminal``
    they are typed at a prompt; the channel need not say it. ``refused``: expressions that are found in the output of a
    command that was refused; ``prints``: all that a command of a change may print where none is; ``gone``: in that of a
    line of an ``undo`` that has nothing to undo; ``refusals``: examples of these outputs; ``ignore``: is no part of
    what it shows.
    """

    channel: Literal["posix", "exec", "terminal"] = "exec"
    terminal: Dialogue | None = None
    refused: Expressions = ()
    prints: Expression | None = None
    gone: Expressions = ()
    refusals: tuple[str, ...] = ()
    ignore: Expression | None = None
    limit: Annotated[float, Field(ge=1, le=120)] = 10.0
    """Seconds that a command may take."""

    @property
    def title(self) -> str:
        """Return its name for a person."""
        return "the machine"

    def refusal_in(self, output: str) -> str:
        """Return the line of *output* that says that the command was refused; "": it was not."""
        for text in self.refused:
            if match := compiled(text).search(output):
                start = output.rfind("\n", 0, match.start()) + 1
                return output[start : match.end()].strip() + output[match.end() :].partition("\n")[0].rstrip()
        return ""

    @property
    def is_posix(self) -> bool:
        """Return whether it has a shell of POSIX, and no command line of its own."""
        return self.channel == "posix"


POSIX = CommandChannel(channel="posix")


def is_cut(command: str, text: str) -> bool:
    """Return whether the last line of *command*'s answer has no end. A file of a person may lack it."""
    return bool(text) and not text.endswith("\n") and not command.startswith("cat /etc/")


def whole(command: str, text: str) -> str:
    """Return *text*, the answer to *command*. Raises TestbedError if it is cut."""
    if is_cut(command, text):
        last = first_line(text[-80:])
        raise TestbedError(f"the router's answer to '{command}' is not complete: '{last}'; run again")
    return text


class CommandRefused(TestbedError):
    """The router refused a command. ``why``: the reason alone; ``output``: all that it printed."""

    def __init__(self, message: str, why: str, output: str = "") -> None:
        super().__init__(message)
        self.why, self.output = why, output or why


UNPRIVILEGED = frozenset(
    {
        *("cat", "date", "ethtool", "grep", "head", "hostname", "kldstat", "ls", "lscpu", "lspci", "netstat", "od"),
        *("pgrep", "readlink", "sh", "tc", "top", "uname", "uptime", "vmstat", "wc"),
    }
)
"""Commands that every user may run. They run without sudo, which may be limited to a few programs."""


class ShellCommands:
    """Runs argument lists in *shell*. *sudo*: use ``sudo -n`` for what needs root.

    Several commands are run one after the other. A link that drops, or a command without end, ends them all.

    *line*: how the machine takes commands. *client*: the
    program that talks to the router, and ends with status 1 where that does not answer.
    """

    def __init__(self, shell: Shell, sudo: bool = False, line: CommandChannel = POSIX, client: str = "") -> None:
        self._shell, self._sudo, self.line, self._client = shell, sudo, line, client
        self.limit = line.limit

    def quoted(self, argv: Sequence[str], changes: bool = False) -> str:
        """Return *argv* as one quoted shell command. *changes*: it needs root, whatever it is."""
        arguments = list(argv)
        if self._sudo and (changes or arguments[0] not in UNPRIVILEGED):
            arguments = ["sudo", "-n", *arguments]
        return shlex.join(arguments)

    def as_given(self, line: str, changes: bool = False) -> str:
        """Return *line*, of a description, as the router is given it."""
        return self.quoted(shlex.split(line), changes) if self.line.is_posix else line

    def show(self, line: str, limit: float | None = None, partial: bool = False, ends: bool = True) -> str:
        """Return the answer to *line* of a description. Raises CommandRefused, but not if it may be *partial*.

        *ends*: it has to end with a line's end.
        """
        command = self.as_given(line)
        shown = self.plain(self.answer(line).stdout) if partial else self.run_unchecked(command, limit)
        return whole(command, shown) if ends else shown

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
        if output and self.line.prints and not compiled(self.line.prints).fullmatch(output):
            raise self._refusal(command, 0, first_line(output))

    def reset(self) -> None:
        """Log out of a command line of its own; the next command logs in again."""
        if not self.line.is_posix:
            getattr(self._shell, "close", lambda: None)()

    def leave_mode(self) -> None:
        """Log out of a terminal that shows another prompt than after its login: its configuration is open."""
        if getattr(self._shell, "is_in_a_mode", False):
            self.reset()

    def plain(self, output: str) -> str:
        """Return *output* as text, without what is no part of an answer."""
        text = plain_text(output)
        return compiled(self.line.ignore).sub("", text) if self.line.ignore else text

    def _refusal(self, command: str, status: int, output: str) -> CommandRefused:
        """Return the error that the router did not run *command*; *output* says why."""
        if status == 1 and self._client in command.split()[:3] and not output.startswith("sudo:"):
            # a command that the router itself refuses has status 0
            why = f"{self.line.title} does not answer{f': {output}' if output else ''}"
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
        """Return the result of *line*, also a refusal. Raises TestbedError only if the shell does."""
        return self._shell(self.as_given(line), self.limit)

    def pipe(self, *commands: tuple[str, ...], seconds: float) -> Result:
        """Run *commands* as a pipe for at most *seconds* more than the usual limit.

        The status is the last one's. Raises TestbedError only if the shell does.
        """
        line = " | ".join(map(self.quoted, commands))
        return self._shell(f"sh -c {shlex.quote(line)}", seconds + self.limit)

    def run_unchecked(self, command: str, limit: float | None = None, stdin: str = "") -> str:
        """Return the output of a quoted *command*, perhaps cut. Raises CommandRefused by status or words."""
        result = self._shell(command, self.limit if limit is None else limit, *([stdin] if stdin else []))
        refused = self.line.refusal_in(result.stdout) or self.line.refusal_in(result.stderr)
        if result.status != 0 or refused:
            reason = refused or first_line(result.stderr) or first_line(result.stdout)
            error = self._refusal(command, result.status or 1, reason)
            error.output = result.stdout + result.stderr
            raise error
        return self.plain(result.stdout)


# -- facts, by commands of which any may be missing: what one does not answer is not read, and never fails a run


class Answers:
    """Asks through *commands*. ``unread``: command -> why it gave nothing; ``status``: by command, of whole answers.

    *refusal*: returns the line in which a command is refused in words alone.
    """

    def __init__(self, commands: ShellCommands, refusal: Callable[[str, str], str] = lambda *_: "") -> None:
        self._commands, self._refusal = commands, refusal
        self.unread: dict[str, str] = {}
        self.status: dict[str, int] = {}

    def ask(self, *lines: str) -> dict[str, str]:
        """Return the output of each of *lines*; "" where there is none. Never raises."""
        answers = dict.fromkeys(lines, "")
        try:
            results = {line: self._commands.answer(line) for line in answers}
        except TestbedError as error:
            self.unread |= dict.fromkeys(lines, first_line(str(error)))
            return answers
        for name, result in results.items():
            text = self._commands.plain(result.stdout)
            if why := "the answer is not complete" if is_cut(name, text) else self._refusal(name, text):
                self.unread[name] = why
                continue
            self.status[name] = result.status
            answers[name] = text
            if not text.strip("[ ]\r\n\t"):  # an empty list of JSON is none, either
                self.unread[name] = f"no output, status {result.status}"
        return answers

    def facts(self, facts: Mapping[str, Fact]) -> dict[str, str]:
        """Run the commands of *facts*, each once; return those that they show, by name."""
        return picked(self.ask(*(command for command, _ in facts.values())), facts)
