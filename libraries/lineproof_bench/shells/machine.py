"""A simulated router as a machine that runs command lines on the model, with some state of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from lineproof.errors import TestbedError

from ..state import ModelledRouter, RouterConfiguration, RouterState
from .language import STATUS_MARK, SyntaxIssue, parse

MOST_NESTED = 4
"""How deep ``sh -c`` and ``sudo`` may nest."""


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
    """One command line being run: one reading of the model and one clock for all of its commands."""

    def __init__(self, router: Callable[[], ModelledRouter], memory: Memory) -> None:
        self.memory, self._router = memory, router
        self.now = time.time()
        self.stdin = ""
        self.status = 0
        self.depth = 0
        self._state: RouterState | None = None

    @property
    def state(self) -> RouterState:
        """The router, read once for the whole line."""
        if self._state is None:
            self._state = self._router().state()
        return self._state

    def change(self, configuration: RouterConfiguration) -> None:
        """Configure the model; later commands of the line see it."""
        self._router().configure(configuration)
        self.forget()

    def clear(self) -> None:
        """``clear runtime``."""
        self._router().clear()
        self.forget()

    def forget(self) -> None:
        """Read the model again at the next use."""
        self._state = None
        self.now = time.time()


Builtin = Callable[[Sequence[str], CommandLine], CommandOutput]
Override = Callable[[Sequence[str], CommandLine], CommandOutput | None]
"""``override(words, line)``: answers some commands before the machine's own; None: not this one."""


@dataclass(frozen=True)
class MachineSoftware:
    """The commands and files of one kind of machine."""

    prompt: str
    commands: Mapping[str, Builtin]
    files: Mapping[str, Callable[[CommandLine], str]]


class Machine:
    """Runs command lines for any number of sessions. ``sudo``: whether the user may; *override*: of a study.

    *router*: the present one; a server that starts again begins a new one.
    """

    def __init__(
        self,
        software: MachineSoftware,
        router: Callable[[], ModelledRouter],
        memory: Memory,
        user: str = "root",
        sudo: bool = True,
        override: Override = lambda words, line: None,
    ) -> None:
        self.software, self.memory, self.user, self._override = software, memory, user, override
        self._router, self._sudo = router, sudo

    def run(self, text: str, stdin: str = "") -> CommandOutput:
        """Run one command line. Never raises: errors go to standard error, as in a shell."""
        line = CommandLine(self._router, self.memory)
        line.stdin = stdin
        return self._run(text, line)

    def _run(self, text: str, line: CommandLine) -> CommandOutput:
        if (answer := self._override([text], line)) is not None:
            return answer
        try:
            pipelines = parse(text)
        except SyntaxIssue as issue:
            return CommandOutput("", f"sh: 1: {issue}\n", 2)
        stdout, stderr, stdin = "", "", line.stdin
        for pipeline in pipelines:
            output = CommandOutput(stdin)
            for words in pipeline:
                line.stdin = output.stdout
                output = self.call([word.replace(STATUS_MARK, str(line.status)) for word in words], line)
                stderr += output.stderr
            stdout += output.stdout
            line.status = output.status
            if pipeline[-1][0] == "exit":
                break
        return CommandOutput(stdout, stderr, line.status)

    def call(self, words: Sequence[str], line: CommandLine) -> CommandOutput:
        """Run one simple command."""
        if not words:
            return CommandOutput()
        name, arguments = words[0].rpartition("/")[2], list(words[1:])
        if (answer := self._override([name, *arguments], line)) is not None:
            return answer
        if name in ("sudo", "sh"):
            return self._nested(name, arguments, line)
        if name == "whoami":
            return CommandOutput(f"{self.user}\n")
        builtin = self.software.commands.get(name)
        if builtin is None:
            return CommandOutput("", f"sh: 1: {words[0]}: not found\n", 127)
        try:
            return builtin(arguments, line)
        except (TestbedError, ValueError) as error:
            return CommandOutput("", f"{name}: {error}\n", 1)

    def _nested(self, name: str, arguments: list[str], line: CommandLine) -> CommandOutput:
        line.depth += 1
        try:
            if line.depth > MOST_NESTED:
                return CommandOutput("", f"{name}: nested too deeply for this simulated shell\n", 1)
            if name == "sh":
                if len(arguments) != 2 or arguments[0] != "-c":
                    return CommandOutput("", "sh: this simulated shell understands 'sh -c COMMAND'\n", 2)
                line.status = 0
                return self._run(arguments[1], line)
            if not self._sudo and self.user != "root":
                return CommandOutput("", "sudo: a password is required\n", 1)
            while arguments and arguments[0] in ("-n", "-E", "-S", "--"):
                del arguments[0]
            return self.call(arguments, line)
        finally:
            line.depth -= 1
