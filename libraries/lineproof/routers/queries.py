"""Questions to a router, as a file describes them: commands, and the values in their output.

Values are found by regular expressions, or by paths where the router prints JSON.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from ..command_values import JsonPath, compiled, value_at
from ..config import Config
from ..core.causes import Stage
from ..errors import TestbedError
from ..json_text import parse_json
from ..visible import shortened
from .shell_output import first_line, parser

MOST_OUTPUT = 1 << 20
"""Characters of an output that are searched; the longest answers of a router have some 100 kB."""

Values = Mapping[str, str]


@parser("its output")
def read_values(output: str, patterns: Sequence[re.Pattern[str]], paths: Mapping[str, str], interface: str) -> Values:
    """The groups of *patterns*, each searched once; or what *paths* lead to. A group that took no part is left out.

    Raises TestbedError for output that is too long, is not JSON, or has none of the values.
    """
    if len(output) > MOST_OUTPUT:
        raise TestbedError(f"its output has {len(output)} characters; expected at most {MOST_OUTPUT}")
    if paths:
        return _read_json(output, paths, interface)
    found: dict[str, str] = {}
    for pattern in patterns:
        if match := pattern.search(output):
            found |= {name: value for name, value in match.groupdict().items() if value is not None}
    if not found:
        raise TestbedError(f"nothing that is searched is in '{shortened(first_line(output)) or 'no output'}'")
    return found


def _read_json(output: str, paths: Mapping[str, str], interface: str) -> Values:
    begin = min((at for at in map(output.find, "{[") if at >= 0), default=0)
    try:
        data = parse_json(output[begin:].strip(), 4 * MOST_OUTPUT, strict=False)
    except ValueError as error:
        where = shortened(first_line(output)) or "no output"
        raise TestbedError(f"its output is not JSON ({shortened(error)}): '{where}'") from None
    found = {name: value for name, path in paths.items() if (value := value_at(data, path, interface)) is not None}
    if not found:
        raise TestbedError(f"its JSON has nothing at {', '.join(paths.values())}")
    return found


COUNTERS = (
    *("rx_packets", "rx_bytes", "rx_drops", "rx_errors"),
    *("tx_packets", "tx_bytes", "tx_drops", "tx_errors"),
)
UPTIME_UNITS = {
    "years": 365 * 86400.0,
    "weeks": 7 * 86400.0,
    "days": 86400.0,
    "hours": 3600.0,
    "minutes": 60.0,
    "seconds": 1.0,
    "milliseconds": 0.001,
}
"""Seconds of each group of ``uptime``."""

SPEED_UNITS = {"gbps": 1e9, "mbps": 1e6, "kbps": 1e3, "bps": 1.0}
"""bit/s of each group of ``link_speed``."""

LOSS_GROUP = re.compile(rf"(?P<stage>{'|'.join(stage.name.lower() for stage in Stage)})_(?P<name>\w+)")
"""A counter of lost frames of its own: ``passing_no_route``."""

WORD_IN_BRACES = re.compile(r"\{([a-z_]+)\}")


def _checked_line(value: str) -> str:
    if not value.strip() or "\n" in value:
        raise ValueError("expected one command, in one line")
    return value


def _checked_expression(value: str) -> str:
    compiled(value)
    return value


Line = Annotated[str, AfterValidator(_checked_line)]
Expression = Annotated[str, AfterValidator(_checked_expression)]


def filled(command: str, words: Mapping[str, str]) -> str:
    """*command* with the values of *words* in place of ``{word}``; other braces stay."""
    return WORD_IN_BRACES.sub(lambda found: words.get(found[1], found[0]), command)


def check_words(command: str, known: tuple[str, ...]) -> None:
    """Raise ValueError where a word in braces of *command* is none of *known*."""
    for word in WORD_IN_BRACES.findall(command):
        if word not in known:
            expected = ", ".join(f"{{{each}}}" for each in known) or "no word in braces"
            raise ValueError(f"'{{{word}}}' is not known in '{shortened(command)}'; expected {expected}")


class Query(Config):
    """A command that shows something. ``pattern``: expressions, each searched once; their named groups are the values.

    ``json_paths``: value -> path, where the router prints JSON. ``example``: its output, in which ``expected`` must be
    found; ``source``: where the example is from.
    """

    groups: ClassVar[tuple[str, ...]] = ()
    needed: ClassVar[tuple[str, ...]] = ()

    run: Line
    pattern: tuple[Expression, ...] = ()
    json_paths: Mapping[str, JsonPath] = {}
    example: str
    expected: Annotated[Mapping[str, str | int | float], Field(min_length=1)]
    source: str = ""

    @field_validator("pattern", mode="before")
    @classmethod
    def _one_or_more(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("run")
    @classmethod
    def _check_run(cls, value: str) -> str:
        check_words(value, cls.words())
        return value

    @classmethod
    def words(cls) -> tuple[str, ...]:
        """Return what may stand in braces in ``run``."""
        return ()

    @property
    def named(self) -> frozenset[str]:
        """The values that it reads."""
        found = {name for text in self.pattern for name in compiled(text).groupindex}
        return frozenset(found | set(self.json_paths))

    @model_validator(mode="after")
    def _check_values(self) -> Query:
        if bool(self.pattern) == bool(self.json_paths):
            raise ValueError("expected one of 'pattern' and 'json_paths'")
        for name in sorted(self.named):
            if not self.knows(name):
                key = "pattern" if self.pattern else "json_paths"
                raise ValueError(f"{key} names '{shortened(name)}'; expected of {', '.join(self.groups)}")
        if lacking := [name for name in self.needed if name not in self.named]:
            raise ValueError(
                f"names no '{lacking[0]}'; expected a group (?P<{lacking[0]}>…), or its path in 'json_paths'"
            )
        return self

    def knows(self, name: str) -> bool:
        """Return whether *name* is a value of such a command."""
        return name in self.groups

    def read(self, output: str, interface: str = "") -> Values:
        """The values in *output*. Raises TestbedError that says what was not found."""
        return read_values(output, tuple(map(compiled, self.pattern)), self.json_paths, interface)

    def results(self, output: str, interface: str = "") -> Mapping[str, str | float]:
        """Return what is made of :meth:`read`, by the names that ``expected`` may use."""
        return dict(self.read(output, interface))


class VersionQuery(Query):
    """``version``: text that identifies the software; ``software``, ``hardware``: likewise."""

    groups = ("version", "software", "hardware")
    needed = ("version",)


class UptimeQuery(Query):
    """The time since the start, as a number in each of the groups; those that are missing are 0.

    ``step``: s by which it advances where the router prints it, as 60 for one that shows minutes.
    """

    groups = tuple(UPTIME_UNITS)

    step: Annotated[float, Field(gt=0, le=3600)] = 1.0

    def results(self, output: str, interface: str = "") -> Mapping[str, str | float]:
        """``uptime`` in s."""
        parts = {name: number(name, value) for name, value in self.read(output).items()}
        if not parts:
            raise TestbedError(f"no {', '.join(sorted(self.named))} were found")
        return {"uptime": sum(UPTIME_UNITS[name] * value for name, value in parts.items())}


class LoadQuery(Query):
    """The load of the processors: ``percent``, or ``idle`` in per cent."""

    groups = ("percent", "idle")

    def results(self, output: str, interface: str = "") -> Mapping[str, str | float]:
        """``percent``."""
        found = {name: number(name, value) for name, value in self.read(output).items()}
        if not found:
            raise TestbedError("neither 'percent' nor 'idle' was found")
        return {"percent": found["percent"] if "percent" in found else 100 - found["idle"]}


class TemperatureQuery(Query):
    """``celsius``."""

    groups = needed = ("celsius",)

    def results(self, output: str, interface: str = "") -> Mapping[str, str | float]:
        """``celsius``."""
        return {name: number(name, value) for name, value in self.read(output).items()}


class LinkSpeedQuery(Query):
    """The speed of an interface's link, as a number in one of the groups."""

    groups = tuple(SPEED_UNITS)

    @classmethod
    def words(cls) -> tuple[str, ...]:
        """The interface."""
        return ("interface",)

    @model_validator(mode="after")
    def _check_interface(self) -> LinkSpeedQuery:
        if "{interface}" not in self.run:
            raise ValueError("'run' is for one interface; expected {interface} there")
        return self

    def results(self, output: str, interface: str = "") -> Mapping[str, str | float]:
        """``speed`` in bit/s; nothing where none is shown."""
        found = {name: number(name, value) for name, value in self.read(output, interface).items()}
        return {"speed": sum(SPEED_UNITS[name] * value for name, value in found.items())} if found else {}


class NeighboursQuery(Query):
    """``address`` and ``mac`` of each neighbour: the expression is searched as often as it is found.

    ``learned``: what the router shows of an entry that will age, and not of one that was set.
    """

    groups = ("address", "mac", "interface", "learned")
    needed = ("address", "mac")

    @model_validator(mode="after")
    def _check_one(self) -> NeighboursQuery:
        if len(self.pattern) != 1:
            raise ValueError("expected one expression in 'pattern', which finds each neighbour")
        return self


class CountersQuery(Query):
    """Counters of an interface since the router's start; ``run`` names it, or ``block`` finds where it begins.

    Beside those of COUNTERS each group ``arriving_…``, ``passing_…``, ``leaving_…`` counts lost frames at that stage.
    ``absent_is_zero``: counters that the router leaves out while they are 0. ``drops``: the stage of ``rx_drops``.
    """

    groups = COUNTERS
    needed = ("rx_packets", "tx_packets")

    block: Expression | None = None
    absent_is_zero: tuple[str, ...] = ()
    drops: Literal["arriving", "passing"] = "arriving"

    @classmethod
    def words(cls) -> tuple[str, ...]:
        """The interface."""
        return ("interface",)

    @property
    def by_interface(self) -> bool:
        """Return whether the command is run for each interface."""
        return "{interface}" in self.run

    def knows(self, name: str) -> bool:
        """A counter, or one of lost frames."""
        return name in COUNTERS or LOSS_GROUP.fullmatch(name) is not None

    @model_validator(mode="after")
    def _check_block(self) -> CountersQuery:
        if self.block is not None and "interface" not in compiled(self.block).groupindex:
            raise ValueError("'block' finds the first line of each interface; expected a group (?P<interface>…)")
        selects = any("{interface}" in path for path in self.json_paths.values())
        if not self.by_interface and self.block is None and not selects:
            raise ValueError("'run' is for all interfaces; expected {interface} there or in 'json_paths', or 'block'")
        if unknown := sorted(set(self.absent_is_zero) - self.named):
            raise ValueError(
                f"'absent_is_zero' names '{shortened(unknown[0])}', which is not read; expected of"
                f" {', '.join(sorted(self.named))}"
            )
        return self

    def block_of(self, output: str, interface: str) -> str:
        """The part of *output* about *interface*. Raises TestbedError that lists those there are."""
        if self.block is None:
            return output
        begins = list(compiled(self.block).finditer(output))
        for at, found in enumerate(begins):
            if found["interface"] == interface:
                return output[found.start() : begins[at + 1].start() if at + 1 < len(begins) else len(output)]
        known = ", ".join(shortened(found["interface"], 40) for found in begins[:20]) or "none"
        raise TestbedError(f"the router has no interface '{interface}'; it has {known}")

    def results(self, output: str, interface: str = "") -> Mapping[str, str | float]:
        """Each counter, an int. Raises TestbedError for one that is missing and not in ``absent_is_zero``."""
        found = self.read(self.block_of(output, interface), interface)
        for name in sorted(self.named - set(found) - set(self.absent_is_zero)):
            raise TestbedError(f"no '{name}' was found for interface '{interface}'")
        return {name: count(name, found[name]) if name in found else 0 for name in sorted(self.named)}


def number(name: str, text: str) -> float:
    """A number that a router printed, without what groups its digits. Raises TestbedError."""
    plain = re.sub(r"(?<=\d)[ ,'](?=\d)", "", text.strip())
    if not re.fullmatch(r"-?[0-9]{1,20}(\.[0-9]{1,20})?", plain):
        raise TestbedError(f"'{name}' is '{shortened(text)}'; expected a number")
    return float(plain)


def count(name: str, text: str) -> int:
    """A count that a router printed. Raises TestbedError."""
    plain = re.sub(r"(?<=\d)[ ,'](?=\d)", "", text.strip())
    if not re.fullmatch(r"[0-9]{1,20}", plain):
        raise TestbedError(f"'{name}' is '{shortened(text)}'; expected a count")
    return int(plain)


def plain_mac(text: str) -> str:
    """*text* as ``02:00:00:00:00:01``, from whatever separators a router prints; unchanged if it is no MAC address."""
    digits = "".join(each for each in text.lower() if each in "0123456789abcdef")
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2)) if len(digits) == 12 else text
