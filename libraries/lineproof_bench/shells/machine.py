"""A simulated router as a machine that runs one command a time on the model, with some state of its own."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lineproof.errors import TestbedError
from lineproof.platforms import RouterSetup

from ..state import ModelledRouter, RouterConfiguration, RouterState

_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""", re.DOTALL)


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
    """One command being run: one reading of the model and one clock. ``stdin``: its standard input."""

    def __init__(self, router: Callable[[], ModelledRouter], memory: Memory, stdin: str = "") -> None:
        self.memory, self.stdin, self._router = memory, stdin, router
        self.now = time.time()
        self._state: RouterState | None = None

    @property
    def state(self) -> RouterState:
        """The router, read once until it is changed."""
        if self._state is None:
            self._state = self._router().state()
        return self._state

    def change(self, configuration: RouterConfiguration) -> None:
        """Configure the model."""
        self._router().configure(configuration)
        self._state = None

    def clear(self) -> None:
        """``clear runtime``."""
        self._router().clear()
        self._state = None


Builtin = Callable[[Sequence[str], CommandLine], CommandOutput]
Commands = Mapping[str, Builtin]
"""All commands of one kind of machine, by name."""


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
            words = words_of(text)
        except ValueError as error:
            return CommandOutput("", f"sh: 1: Syntax error: {error}\n", 2)
        if words[:1] == ["sudo"]:
            words = words[2:] if words[1:2] == ["-n"] else words[1:]
        if not words:
            return CommandOutput()
        line = CommandLine(self._router, self.memory, stdin)
        if (answer := self._override(words, line)) is not None:
            return answer
        name = words[0].rpartition("/")[2]
        if (builtin := self.commands.get(name)) is None:
            return CommandOutput("", f"sh: 1: {words[0]}: not found\n", 127)
        try:
            return builtin(words[1:], line)
        except (TestbedError, ValueError) as error:
            return CommandOutput("", f"{name}: {error}\n", 1)


def words_of(text: str) -> list[str]:
    """Return the words of one command as a shell splits them. Raises ValueError for more of a shell's language."""
    if found := re.search(r"[;|&<>()$`\n]", _QUOTED.sub("", text)):
        raise ValueError(f"'{found[0]}' is more than this simulated shell understands: one command without signs")
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
        out, err = "", ""
        for path in arguments:
            text = text_of(path, line)
            out += text or ""
            err += f"cat: {path}: No such file or directory\n" if text is None else ""
        return CommandOutput(out, err, 1 if err else 0)

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
        found = "".join(
            f"{path}:{row}\n" if "H" in flags else f"{row}\n" for path, row in rows if re.search(pattern, row)
        )
        return CommandOutput(found, "", 2 if not texts or None in texts.values() else 0 if found else 1)

    return {
        "cat": cat,
        "grep": grep,
        "date": lambda arguments, line: CommandOutput(f"{int(line.now)}\n"),
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
        done, program = line.state.configuration.done, key[0]
        undone = [do for do in done if self._undo_of[do] == text]
        if text in self._undo_of and text not in done:
            done = (*done, text)
        elif undone:
            done = tuple(do for do in done if do != undone[-1])
        elif text in done:
            return CommandOutput("", f"{program}: File exists\n", 1)
        elif program in self._own:
            return None  # as pfSense's own pf, which is on before any study begins
        else:
            return CommandOutput("", f"{program}: No such file or directory\n", 1)
        line.change(replace(line.state.configuration, done=done))
        return CommandOutput()

    def _variable(self, name: str, line: CommandLine, bare: bool) -> CommandOutput | None:
        """``sysctl [-n] NAME`` of what the study sets: by its last command that is done, else by what undoes one."""
        done = line.state.configuration.done
        for text in (*reversed(done), *(undo for do, undo in self._undo_of.items() if do not in done)):
            found = _SETTING.fullmatch(text)
            if found and found["name"] == name:
                return CommandOutput(f"{found['value']}\n" if bare else f"{name}: {found['value']}\n")
        return None


_SETTING = re.compile(r"sysctl (?:-w )?(?P<name>[^\s=]+)=(?P<value>.*)")
