"""A simulated router as a machine that runs one command a time on the model, with some state of its own."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lineproof.errors import TestbedError
from lineproof.platforms import RouterSetup

from ..state import ModelledRouter, RouterConfiguration, RouterState

_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""", re.DOTALL)
_SETTING = re.compile(r"sysctl (?:-w )?(?P<name>[^\s=]+)=(?P<value>.*)")


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """Output and status of a command."""

    stdout: str = ""
    stderr: str = ""
    status: int = 0


@dataclass
class Memory:
    """State of the shell itself: kernel variables, interfaces with large receive offload, and whether pf runs."""

    sysctl: dict[str, str] = field(default_factory=dict)
    lro: set[str] = field(default_factory=set)
    packet_filter: bool = False


class CommandLine:
    """One command being run: one reading of the model. ``stdin``: its standard input."""

    def __init__(self, router: Callable[[], ModelledRouter], memory: Memory, stdin: str = "") -> None:
        self.memory, self.stdin, self._router = memory, stdin, router
        self._state: RouterState | None = None

    @property
    def state(self) -> RouterState:
        """The router, read once until it is changed."""
        if self._state is None:
            self._state = self._router().state()
        return self._state

    @property
    def configuration(self) -> RouterConfiguration:
        """The router's configuration."""
        return self.state.configuration

    def configure(self, configuration: RouterConfiguration) -> None:
        """Configure the model."""
        self._router().configure(configuration)
        self._state = None

    def change(self, **parts: Any) -> None:
        """Replace these *parts* of the configuration."""
        self.configure(replace(self.configuration, **parts))

    def clear(self) -> None:
        """``clear runtime``."""
        self._router().clear()
        self._state = None


Builtin = Callable[[Sequence[str], CommandLine], CommandOutput]
Commands = Mapping[str, Builtin]
"""All commands of one kind of machine, by name."""

Words = Mapping[str, str]
"""The words of a command by their names; "" for one that may be left out, and was."""
Handler = Callable[[Words, CommandLine], str]
Patterns = Mapping[str, Handler]
"""By a regular expression of a command's words: what the command does, and returns as its output."""


class UnknownInterface(ValueError):
    """An interface that the router does not have, by its name."""


def answer(patterns: Patterns, text: str, line: CommandLine) -> str | None:
    """Return the output of the first of *patterns* that *text* matches; None if there is none.

    Raises UnknownInterface for a ``name`` among the words that no interface has.
    """
    for pattern, handler in patterns.items():
        if match := re.fullmatch(pattern, text):
            groups = match.groupdict("")
            if (name := groups.get("name")) and name not in [one.name for one in line.state.interfaces]:
                raise UnknownInterface(name)
            return handler(groups, line)
    return None


def answer_of(patterns: Patterns, text: str, line: CommandLine, no_interface: str, unknown: str) -> CommandOutput:
    """Return the output of *text*, as :func:`answer`. Raises ValueError: *unknown*, or *no_interface* and its name."""
    try:
        output = answer(patterns, text, line)
    except UnknownInterface as name:
        raise ValueError(no_interface.format(name)) from None
    if output is None:
        raise ValueError(unknown)
    return CommandOutput(output)


def refused(words: str) -> CommandOutput:
    """Return the answer of a command that fails with *words*."""
    return CommandOutput("", f"{words}\n", 1)


class Machine:
    """Runs commands for any number of sessions, all of whose users may use ``sudo``. *override*: a study's
    commands; it answers None to all others.

    *router*: the present one; a server that starts again begins a new one.
    """

    def __init__(
        self,
        commands: Commands,
        router: Callable[[], ModelledRouter],
        memory: Memory,
        override: Callable[[Sequence[str], CommandLine], CommandOutput | None] = lambda words, line: None,
    ) -> None:
        self.commands, self.memory, self._override, self._router = commands, memory, override, router

    def run(self, text: str, stdin: str = "") -> CommandOutput:
        """Run one command. Never raises: errors go to standard error, as in a shell."""
        try:
            parts = words_of(text)
        except ValueError as error:
            return CommandOutput("", f"sh: 1: Syntax error: {error}\n", 2)
        if parts[:1] == ["sudo"]:
            parts = parts[2:] if parts[1:2] == ["-n"] else parts[1:]
        if not parts:
            return CommandOutput()
        line = CommandLine(self._router, self.memory, stdin)
        if (output := self._override(parts, line)) is not None:
            return output
        name = parts[0].rpartition("/")[2]
        if (builtin := self.commands.get(name)) is None:
            return CommandOutput("", f"sh: 1: {parts[0]}: not found\n", 127)
        try:
            return builtin(parts[1:], line)
        except (TestbedError, ValueError) as error:
            return refused(f"{name}: {error}")


def words_of(text: str) -> list[str]:
    """Return the words of one command as a shell splits them. Raises ValueError for more of a shell's language."""
    if sign := re.search(r"[;|&<>()$`\n]", _QUOTED.sub("", text)):
        raise ValueError(f"'{sign[0]}' is more than this simulated shell understands: one command without signs")
    return shlex.split(text)


Files = Mapping[str, Callable[[CommandLine], str]]


def common_commands(
    files: Files, other: Callable[[str, CommandLine], str | None] = lambda path, line: None
) -> dict[str, Builtin]:
    """``cat`` and ``grep`` of *files* and of those that *other* has, and what needs no files."""

    def text_of(path: str, line: CommandLine) -> str | None:
        if path in files:
            return files[path](line)
        return line.memory.sysctl.get(path[10:].replace("/", "."), other(path, line))

    def cat(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        texts = {path: text_of(path, line) for path in arguments}
        missing = "".join(f"cat: {path}: No such file or directory\n" for path, text in texts.items() if text is None)
        return CommandOutput("".join(text or "" for text in texts.values()), missing, int(bool(missing)))

    def grep(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        """``-H`` and ``-r`` with ``--include`` of the last part of a path."""
        flags = "".join(word for word in arguments if re.fullmatch(r"-\w+", word))
        included = [word.partition("=")[2] for word in arguments if word.startswith("--include=")]
        pattern, *paths = [word for word in arguments if not word.startswith("-")]
        if "r" in flags:
            below = [path for path in files if path.startswith(tuple(f"{folder}/" for folder in paths))]
            paths = [path for path in below if not included or path.rpartition("/")[2] in included]
        texts = {path: text_of(path, line) for path in paths}
        rows = ((path, row) for path, text in texts.items() for row in (text or "").splitlines())
        matching = "".join(
            f"{path}:{row}\n" if "H" in flags else f"{row}\n" for path, row in rows if re.search(pattern, row)
        )
        return CommandOutput(matching, "", 2 if not texts or None in texts.values() else 0 if matching else 1)

    return {
        "cat": cat,
        "grep": grep,
        "hostname": lambda arguments, line: CommandOutput(f"{line.state.hostname}\n"),
        "true": lambda arguments, line: CommandOutput(),
    }


class StudyCommands:
    """The pairs of *setups*, each a :class:`.RouterSetup` as a mapping. *own*: programs that the machine has.

    Each can be done once and undone once. What they set by ``sysctl`` can be read: before a change is undone, its
    value is looked at.
    """

    def __init__(self, setups: Sequence[Mapping[str, Any]], own: Container[str] = ()) -> None:
        self._own = own
        pairs = [pair for setup in setups for pair in RouterSetup.model_validate(setup).commands]
        self._undo_of: dict[str, str] = {}
        for pair in pairs:
            self._undo_of.setdefault(pair.given, pair.undo)
        self._texts = {(*shlex.split(pair.undo), ""): pair.undo for pair in pairs}
        self._texts |= {(*shlex.split(pair.do), pair.stdin): pair.given for pair in pairs}

    def run(self, words: Sequence[str], line: CommandLine) -> CommandOutput | None:
        """Run a command. None: it is no command of the study."""
        key = tuple(words)
        text = self._texts.get((*key, line.stdin))
        if text is None:
            return self._variable(key[-1], line, bare="-n" in key) if key[:1] == ("sysctl",) else None
        done, program = line.configuration.done, key[0]
        undone = [do for do in done if self._undo_of[do] == text]
        if text in self._undo_of and text not in done:
            done = (*done, text)
        elif undone:
            done = tuple(do for do in done if do != undone[-1])
        elif text in done:
            return refused(f"{program}: File exists")
        elif program in self._own:
            return None  # as pfSense's own pf, which is on before any study begins
        else:
            return refused(f"{program}: No such file or directory")
        line.change(done=done)
        return CommandOutput()

    def _variable(self, name: str, line: CommandLine, bare: bool) -> CommandOutput | None:
        """``sysctl [-n] NAME`` of what the study sets: by its last command that is done, else by what undoes one."""
        done = line.configuration.done
        for text in (*reversed(done), *(undo for do, undo in self._undo_of.items() if do not in done)):
            setting = _SETTING.fullmatch(text)
            if setting and setting["name"] == name:
                return CommandOutput(f"{setting['value']}\n" if bare else f"{name}: {setting['value']}\n")
        return None
