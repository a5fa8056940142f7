"""A simulated router as a machine that runs one command a time on the model, with some state of its own."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from lineproof.errors import TestbedError

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
Override = Callable[[Sequence[str], CommandLine], CommandOutput | None]
"""``override(words, line)``: answers some commands before the machine's own; None: not this one."""


class Machine:
    """Runs commands for any number of sessions, all of whose users may use ``sudo``. *override*: of a study.

    *router*: the present one; a server that starts again begins a new one.
    """

    def __init__(
        self,
        commands: Commands,
        router: Callable[[], ModelledRouter],
        memory: Memory,
        override: Override = lambda words, line: None,
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


def no_other(path: str, line: CommandLine) -> None:
    """Return no text: there is no such file."""


def common_commands(files: Files, other: Callable[[str, CommandLine], str | None] = no_other) -> dict[str, Builtin]:
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
