"""Routers described in YAML: which commands to run, and what to read from their output. ``variables/shells/*.yaml``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from ..command_values import compiled
from ..config import Config, Location, read_yaml, validate_config
from ..errors import ConfigError, TestbedError
from ..platforms import named_file
from ..project import Folder
from ..system.ssh_terminal import Dialogue
from ..visible import shortened
from .queries import (
    WORD_IN_BRACES,
    CountersQuery,
    Expression,
    Line,
    LinkSpeedQuery,
    LoadQuery,
    NeighboursQuery,
    Query,
    TemperatureQuery,
    UptimeQuery,
    VersionQuery,
    check_words,
)

SIDE_WORDS = (
    *("interface", "address", "ip", "length", "mask"),
    *("peer", "peer_mac", "peer_mac_dotted", "peer_mac_dashed"),
    *("network", "network_ip", "network_length", "network_mask"),
)
"""The words that may stand in braces in a command of ``configure``; see :func:`.generic.side_words`."""


class Commands(Config):
    """The questions to a router. A key that is missing is not read."""

    version: VersionQuery | None = None
    uptime: UptimeQuery | None = None
    counters: CountersQuery | None = None
    load: LoadQuery | None = None
    temperature: TemperatureQuery | None = None
    neighbours: NeighboursQuery | None = None
    link_speed: LinkSpeedQuery | None = None

    def items(self) -> Iterator[tuple[str, Query]]:
        """Yield those that there are, by name."""
        for name in type(self).model_fields:
            if (command := getattr(self, name)) is not None:
                yield name, command


class LookQuery(Query):
    """The state before an undo: ``value``, which is somebody else's if it is not ``ours``, or that is missing."""

    groups = needed = ("value",)

    ours: Line | None = None

    @classmethod
    def words(cls) -> tuple[str, ...]:
        """Return those of a side."""
        return SIDE_WORDS

    @model_validator(mode="after")
    def _check_look(self) -> LookQuery:
        if len(self.pattern) != 1:
            raise ValueError("expected one expression in 'pattern'")
        check_words(self.ours or "", SIDE_WORDS)
        return self


class DescribedChange(Config):
    """Commands that change the configuration, and those that undo it; with {words} of a side, for each side.

    ``look``: whether what they have set is still there, before it is undone.
    """

    do: Annotated[tuple[Line, ...], Field(min_length=1)]
    undo: tuple[Line, ...] = ()
    look: LookQuery | None = None

    @model_validator(mode="after")
    def _check(self) -> DescribedChange:
        for line in (*self.do, *self.undo):
            check_words(line, SIDE_WORDS)
        if self.look is not None:
            if not self.undo:
                raise ValueError("'look' comes before an 'undo'; expected both, or the file's own 'look' for 'restore'")
            named = tuple(
                dict.fromkeys(word for line in (*self.do, *self.undo) for word in WORD_IN_BRACES.findall(line))
            )
            for line in (self.look.run, self.look.ours or ""):
                check_words(line, named)
        return self

    @property
    def for_each_side(self) -> bool:
        """Return whether it names something of a side."""
        return any(WORD_IN_BRACES.search(line) for line in (*self.do, *self.undo))


class Terminal(Config):
    """How to talk to a command line that needs a terminal. ``prompt``, ``pager``: match the whole last line.

    ``prompts``: examples of the prompt. ``answer``: to the pager. ``first``: commands after the login.
    """

    prompt: Expression
    prompts: Annotated[tuple[str, ...], Field(min_length=1)]
    pager: Expression | None = None
    answer: Annotated[str, Field(min_length=1)] = " "
    first: tuple[Line, ...] = ()

    @model_validator(mode="after")
    def _check_prompts(self) -> Terminal:
        pattern = compiled(self.prompt)
        for example in self.prompts:
            if not pattern.fullmatch(example.rstrip()):
                raise ValueError(f"'prompt' does not match all of '{shortened(example)}', which is in 'prompts'")
        if pattern.fullmatch(""):
            raise ValueError("'prompt' matches an empty line; expected an expression of what a prompt ends with")
        return self


class CommandFile(Config):
    """A router's command line. ``channel``: ``exec`` runs each command by itself, ``terminal`` types it at a prompt.

    ``refused``: expressions that are found in the output of a command that was refused; ``gone``: in that of a line of
    an ``undo`` that has nothing to undo. ``save``, ``restore``: how the router keeps its configuration and goes back to
    it. ``look``: what others have changed meanwhile, over which it is not to go. ``configure``: the changes for a test.
    """

    shell: str
    description: str = ""
    channel: Literal["exec", "terminal"] = "exec"
    terminal: Terminal | None = None
    refused: tuple[Expression, ...] = ()
    gone: tuple[Expression, ...] = ()
    limit: Annotated[float, Field(ge=1, le=120)] = 10.0
    """Seconds that a command may take."""
    commands: Commands = Commands()
    save: tuple[Line, ...] = ()
    restore: tuple[Line, ...] = ()
    look: LookQuery | None = None
    configure: tuple[DescribedChange, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> CommandFile:
        if (self.channel == "terminal") != (self.terminal is not None):
            raise ValueError("'channel: terminal' and the key 'terminal' go together; expected both or none of them")
        if bool(self.save) != bool(self.restore):
            raise ValueError("'save' and 'restore' go together; expected both or none of them")
        for line in (*self.save, *self.restore, *((self.look.run, self.look.ours or "") if self.look else ())):
            check_words(line, ())
        if self.look is not None and not self.restore:
            raise ValueError("the file's 'look' comes before its 'restore'; expected both, or 'look' beside an 'undo'")
        for number_, change in enumerate(self.configure, 1):
            if change.look and self.restore:
                raise ValueError(
                    f"'configure': number {number_} has a 'look', and 'restore' undoes all at once; expected the"
                    " file's own 'look'"
                )
            if not change.undo and not self.restore:
                raise ValueError(
                    f"'configure': number {number_} has no 'undo', and there is no 'restore'; expected one"
                )
        return self

    @property
    def uptime_step(self) -> float:
        """Seconds by which the uptime that is read advances; 0 where none is read."""
        return self.commands.uptime.step if self.commands.uptime else 0.0

    @property
    def dialogue(self) -> Dialogue | None:
        """How to talk to it in a terminal; None: it needs none."""
        if (terminal := self.terminal) is None:
            return None
        pager = None if terminal.pager is None else compiled(terminal.pager)
        return Dialogue(compiled(terminal.prompt), pager, terminal.answer, terminal.first)

    def refusal_in(self, output: str) -> str:
        """The line of *output* that says that the command was refused; "": it was not."""
        for text in self.refused:
            if found := compiled(text).search(output):
                start = output.rfind("\n", 0, found.start()) + 1
                return output[start : found.end()].strip() + output[found.end() :].partition("\n")[0].rstrip()
        return ""

    def says_gone(self, output: str) -> bool:
        """Return whether *output*, of a refused line of an ``undo``, says that there is nothing to undo."""
        return any(compiled(text).search(output) for text in self.gone)

    def _queries(self) -> Iterator[tuple[Location, Query]]:
        """All that are run and read, by where they stand."""
        for name, command in self.commands.items():
            yield ("commands", name), command
        for at, change in enumerate(self.configure):
            if change.look is not None:
                yield ("configure", str(at), "look"), change.look
        if self.look is not None:
            yield ("look",), self.look

    def problems(self) -> Iterator[tuple[Location, str]]:
        """Place and problem of each command whose example does not give what is expected."""
        for name, command in self._queries():
            expected = dict(command.expected)
            interface = str(expected.pop("interface", "")) if name[-1] == "counters" else ""
            if refusal := self.refusal_in(command.example):
                yield name, f"its example is taken for a refusal, by '{shortened(refusal)}'; expected other 'refused'"
            if self.terminal is not None:
                prompt = compiled(self.terminal.prompt)
                for line in command.example.splitlines():
                    if prompt.fullmatch(line.rstrip()):
                        yield name, f"the line '{shortened(line)}' of its example is taken for a prompt"
            try:
                found = command.results(command.example, interface)
            except TestbedError as error:
                yield name, f"in its example: {error}"
                continue
            for key, value in expected.items():
                if key not in found:
                    yield name, f"'expected' names '{shortened(key)}'; its example gives {_shown(found)}"
                elif not _equal(found[key], value):
                    text = isinstance(found[key], str) and not isinstance(value, str)
                    quotes = " (a text: write it in quotes)" if text else ""
                    yield name, f"its example gives {key} {_word(found[key])}; expected {shortened(value)}{quotes}"


def _equal(found: str | float, expected: str | float) -> bool:
    if isinstance(found, str):
        return found == str(expected)
    return not isinstance(expected, str) and abs(found - expected) <= 1e-9 * max(1.0, abs(expected))


def _shown(found: Mapping[str, str | float]) -> str:
    return ", ".join(f"{name} {_word(value)}" for name, value in found.items())


def _word(value: str | float) -> str:
    return shortened(value if isinstance(value, str) else f"{value:.15g}", 40)


def read_command_file(folder: Folder, name: str) -> CommandFile:
    """The command line *name* of *folder*, with its examples tried. Raises ConfigError."""
    path = named_file(folder, name, "shell")
    data, lines = read_yaml(path)
    found = validate_config(data, CommandFile, path, lines)
    if found.shell != name:
        raise ConfigError(f"says 'shell: {shortened(found.shell)}'; in a file of this name expected '{name}'", path)
    for place, problem in found.problems():
        raise ConfigError(f"'{'.'.join(map(str, place))}': {problem}", path, lines.get(place))
    return found
