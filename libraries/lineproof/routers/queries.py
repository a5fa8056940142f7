"""Questions to a router: commands, how their output is read, and an example that says so.

Values are found by regular expressions, or by paths where the router prints JSON.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BeforeValidator, Field, model_validator

from ..command_values import (
    INTERFACE,
    WORD_IN_BRACES,
    Expression,
    Expressions,
    JsonPath,
    Line,
    Lines,
    OneExpression,
    Problem,
    check_length,
    command_line,
    compiled,
    count,
    counter_value,
    filled,
    instead_of,
    json_in,
    number,
    unknown_words,
    value_at,
)
from ..config import Config, Location
from ..core.telemetry import Cause, InterfaceCounters, Role, Stage
from ..core.under_load import QueueLoad, rates
from ..errors import TestbedError
from ..system.ssh_shell import first_line
from ..visible import shortened, visible
from .journal import NONE, Look

V = TypeVar("V")
Counts = Mapping[str, int]
OfQueue = Literal["packets", "drops"]

CauseRule = Annotated[
    tuple[Literal["arriving", "passing", "leaving"], Literal["loss", "overlapping", "reason"], str, str],
    BeforeValidator(lambda rule: (*rule, "")[:4] if isinstance(rule, list) else rule),
]


Values = Mapping[str, str]
COUNTERS = ("rx_packets", "rx_drops", "rx_errors", "tx_packets", "tx_drops", "tx_errors")
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
"""bit/s of each group of ``link``."""


class Query(Config):
    """A command that shows values: named groups of ``pattern``, whose expressions are searched once.

    One of those with ``{interface}`` must be found: a router may answer ``te1`` with the counters of ``te10``.
    ``json_paths``: value -> path, where the router prints JSON. ``example``: its output, in which ``expected`` must be
    found, see :meth:`RouterDescription.problems`; by default that of another question with the same ``run``.
    """

    groups: ClassVar[tuple[str, ...]] = ()
    """The values that it may read; with ``…`` at its end one stands for all that begin so."""
    needed: ClassVar[tuple[str, ...]] = ()
    placeholders: ClassVar[tuple[str, ...] | None] = ()
    """All that may stand in braces in ``run``; None: the words of its change."""

    run: Line
    optional: bool = False
    """It may be refused, and what it shows all the same counts."""
    pattern: Expressions = ()
    json_paths: Mapping[str, JsonPath] = {}
    example: str = ""
    expected: Mapping[str, str | int | float] = {}

    @property
    def named(self) -> frozenset[str]:
        """Return the names of the values that it reads."""
        groups = {name for text in self.pattern for name in compiled(text).groupindex}
        return frozenset(groups | set(self.json_paths))

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with its keys."""
        if bool(self.pattern) == bool(self.json_paths):
            yield (), "expected one of 'pattern' and 'json_paths'"
            return
        key = "pattern" if self.pattern else "json_paths"
        places = {name: (key, str(at)) for at, text in enumerate(self.pattern) for name in compiled(text).groupindex}
        places |= {name: (key, name) for name in self.json_paths}
        begins, known = (tuple(name[:-1] for name in self.groups if name.endswith("…")), self.groups)
        strange = [name for name in sorted(places) if name not in known and not name.startswith(begins)]
        for name in strange:
            yield places[name], f"names '{shortened(name)}'; {instead_of(name, self.groups)}"
        # one that is needed may be misspelt
        for name in () if strange else self.needed:
            if name not in self.named:
                yield (key,), f"names no '{name}'; expected a group (?P<{name}>…), or its path in 'json_paths'"
        if self.placeholders is not None:
            yield from unknown_words(self.run, self.placeholders, ("run",))

    def blocks(self, output: str, interface: str = "") -> Iterator[tuple[str, str]]:
        """Yield *interface*, and all of *output*, which is about it."""
        yield interface, output

    def _given(self, output: str, interface: str) -> Mapping[Location, Mapping[str, str | None] | None]:
        """Return what each expression and path gives of *interface*, by its place; None: it finds nothing.

        Raises TestbedError.
        """
        check_length(output)
        blocks = [*self.blocks(output, interface)]
        text = next((text for name, text in blocks if name == interface), None)
        if text is None:
            known = ", ".join(shortened(name, 40) for name, _ in blocks[:20]) or "none"
            raise TestbedError(f"the router has no interface '{interface}'; it has {known}")
        if self.json_paths:
            data = json_in(text)
            shown = {name: value_at(data, path, interface) for name, path in self.json_paths.items()}
            return {("json_paths", name): {name: value} if value is not None else None for name, value in shown.items()}
        whole_name = {"interface": rf"(?<!\w){re.escape(interface)}(?!\w|[./-]\d)"}
        matches = {pattern: compiled(filled(pattern, whole_name)).search(text) for pattern in self.pattern}
        if not any(match for text, match in matches.items() if INTERFACE in text) and INTERFACE in "".join(matches):
            raise TestbedError(f"it does not name '{interface}': '{first_line(output) or 'no output'}'")
        return {("pattern", str(at)): match and match.groupdict() for at, match in enumerate(matches.values())}

    def untried(self, example: str, interface: str) -> Iterator[Problem]:
        """Yield each expression and path that finds nothing in *example*. Raises TestbedError."""
        for place, values in self._given(example, interface).items():
            if values is None:
                yield place, "finds nothing in the example; expected one that shows what it is for"

    def read(self, output: str, interface: str = "") -> Values:
        """Return the groups of ``pattern`` that took part, or values at ``json_paths``. Raises TestbedError."""
        pairs = [pair for values in self._given(output, interface).values() for pair in (values or {}).items()]
        if there := {name: value for name, value in pairs if value is not None}:
            return there
        searched = "' or '".join(shortened(text, 60) for text in (*self.pattern, *self.json_paths.values())[:2])
        raise TestbedError(f"'{searched}' is not found in '{first_line(output) or 'no output'}'")

    def results(self, output: str, interface: str = "") -> Mapping[str, str | float]:
        """Return the values that :meth:`read` finds, each in one line, by the names that ``expected`` may use."""
        return {name: " ".join(text.split()) for name, text in self.read(output, interface).items()}


class VersionQuery(Query):
    """``version``: text that identifies the software; ``software``, ``hardware``: likewise."""

    groups = ("version", "software", "hardware")
    needed = ("version",)


class FactQuery(Query):
    """Shows a ``value`` that is evidence beside the version. It may fail: then it is left out."""

    groups = ("value",)
    needed = ("value",)


class FigureQuery(Query):
    """Shows one figure, as the sum of numbers in its groups; those that are missing are 0."""

    figure: ClassVar[str]
    units: ClassVar[Mapping[str, float]]

    def results(self, output: str, interface: str = "") -> Mapping[str, str | float]:
        """Return the figure, in the unit of those of its groups that count once, and what other groups show."""
        parts = self.read(output, interface)
        figure = sum(unit * number(name, parts[name]) for name, unit in self.units.items() if name in parts)
        return {self.figure: figure, **{name: text for name, text in parts.items() if name not in self.units}}


class UptimeQuery(FigureQuery):
    """The time since the start. ``step``: s by which it advances, as 60 for a router that shows minutes."""

    figure, units, groups = "uptime", UPTIME_UNITS, tuple(UPTIME_UNITS)

    step: Annotated[float, Field(gt=0, le=3600)] = 1.0


class LoadQuery(Query):
    """The load of the processors: ``percent``, or ``idle`` in per cent."""

    groups = ("percent", "idle")

    def results(self, output: str, interface: str = "") -> Mapping[str, str | float]:
        """Return ``percent``."""
        (name, text), *_ = sorted(self.read(output).items(), reverse=True)
        return {"percent": number(name, text) if name == "percent" else 100 - number(name, text)}


class TemperatureQuery(FigureQuery):
    """``celsius``."""

    figure, units, groups = "celsius", {"celsius": 1.0}, ("celsius",)


class InterfaceQuery(Query):
    """Shows an interface: ``run`` names it, or ``block`` finds where it begins in an output about all."""

    placeholders: ClassVar[tuple[str, ...] | None] = ("interface",)
    is_of_one: ClassVar[bool] = True
    """It shows the interface that was asked for."""

    block: Expression | None = None

    @property
    def names_interface(self) -> bool:
        """Return whether the answer has to name the interface that was asked for."""
        return self.block is not None or any(INTERFACE in text for text in (*self.pattern, *self.json_paths.values()))

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with its keys."""
        yield from super().problems()
        each = (*self.pattern, *self.json_paths.values())
        is_one = self.block is not None or INTERFACE in self.run or all(INTERFACE in text for text in each)
        if self.is_of_one and not is_one:
            yield ("run",), "is for all interfaces; expected {interface} there or in each expression, or 'block'"
        if self.block is not None and "interface" not in compiled(self.block).groupindex:
            yield ("block",), "finds the first line of each interface; expected a group (?P<interface>…)"

    def blocks(self, output: str, interface: str = "") -> Iterator[tuple[str, str]]:
        """Yield each interface and the part of *output* about it; *interface* and all of it without ``block``."""
        begins = [*compiled(self.block).finditer(output)] if self.block is not None else ()
        if self.block is None:
            yield from super().blocks(output, interface)
        for begin, end in zip(begins, [*(later.start() for later in begins[1:]), len(output)], strict=False):
            yield visible(begin["interface"]), output[begin.start() : end]


class LinkQuery(InterfaceQuery, FigureQuery):
    """The ``speed`` of an interface's link in bit/s, its ``mac`` and state.

    ``up`` or ``down``: administratively, and ``carrier`` or ``no_carrier``: groups of which one takes part.
    """

    figure, units = "speed", SPEED_UNITS
    groups = (*SPEED_UNITS, "mac", "up", "down", "carrier", "no_carrier")


class NeighboursQuery(Query):
    """``address`` and ``mac`` of each neighbour: the expression is searched as often as it is found.

    ``learned``: what the router shows of an entry that will age, and not of one that was set. ``none``: is in a line of
    no entry, as the head of the table or one without an address.
    """

    groups = ("address", "mac", "interface", "learned")
    needed = ("address", "mac")

    pattern: OneExpression
    none: Expression = "(?!)"

    def entries(self, output: str, peers: Collection[str] = ()) -> Sequence[Values]:
        """Return the groups of each entry. Raises TestbedError for a line that may be one, and is not read.

        Without any entry that is each line, else one that names one of *peers* which has none.
        """
        entries = [match.groupdict("") for match in compiled(self.pattern[0]).finditer(output)]
        missing = {*peers} - {entry["address"] for entry in entries}
        for line in filter(str.strip, output.splitlines()):
            may_be_one = not entries or missing & {*re.split(r"[^\w.:]+", line)}
            if may_be_one and not compiled(self.none).search(line):
                raise TestbedError(f"'{self.run}' was not understood: '{shortened(line.strip())}'")
        return entries

    def results(self, output: str, interface: str = "") -> Mapping[str, str | float]:
        """Return the groups of the first entry. Raises TestbedError unless all other lines are of ``none``."""
        lines = compiled(self.pattern[0]).sub("\0", output).splitlines()
        others = [line for line in lines if line.strip() and "\0" not in line]
        for line in others:
            if not compiled(self.none).search(line):
                raise TestbedError(f"'{shortened(line.strip())}' is no entry; expected 'none' to find it, or 'pattern'")
        if not others and self.none != "(?!)":
            raise TestbedError("'none' finds nothing in it; expected a line of no entry, or no 'none'")
        return super().results(output, interface)


class TableQuery(InterfaceQuery):
    """A command that shows counters of each ``block`` of its output, of one interface, or of none.

    ``pattern``: expressions that are found as often as there are rows. A row has a ``name`` and a ``count``, which is
    hexadecimal with ``base: 16``, or a group for each counter; also an ``interface``, whose number may be its ``unit``,
    and the ``reason`` that is part of a name. ``head`` stands above rows, and nothing else below it. ``json_paths``:
    counters; with ``each`` of each member of a list, whose name has that key. ``absent_is_zero``: not shown while 0.

    ``causes``: expressions for names, with stage, role and meaning of lost frames, and another name to show; ``title``
    stands before it. ``packets``: the names of the frames that an interface received and sent.
    ``queues``: expressions for a receive queue's ``packets`` and ``drops``, with its number. With them it is a card's
    own table, which a router may lack, and has its pauses, too.
    """

    groups: ClassVar[tuple[str, ...]] = ("…",)
    placeholders: ClassVar[tuple[str, ...] | None] = ("interface", "trees")
    is_of_one: ClassVar[bool] = False

    each: str = ""
    head: Expression | None = None
    base: Literal[10, 16] = 10
    absent_is_zero: tuple[str, ...] = ()
    title: str = ""
    causes: Mapping[Expression, CauseRule] = {}
    packets: tuple[str, str] | None = None
    queues: Mapping[OfQueue, Expression] = {}

    def counts(self, output: str, interface: str = "") -> dict[str, dict[str, int]]:
        """Return the counters of each interface by name. Raises TestbedError, and others for what is no count."""
        check_length(output)
        if self.optional and not output:
            return {}
        zeros, counted = dict.fromkeys(self.absent_is_zero, 0), dict[str, dict[str, int]]()
        if self.json_paths:
            for one in json_in(output) if self.each else [json_in(output)]:
                values = {name: value_at(one, path, "") or zeros.get(name) for name, path in self.json_paths.items()}
                name = visible(one[self.each]) if self.each else interface
                counted[name] = {name: counter_value(str(value)) for name, value in values.items()}
            return counted
        for name, text in self.blocks(self._below_head(output), interface):
            if not any("interface" in compiled(pattern).groupindex for pattern in self.pattern):
                counted[name] = dict(zeros) if any(compiled(pattern).search(text) for pattern in self.pattern) else {}
            for row in (row for pattern in self.pattern for row in compiled(pattern).finditer(text)):
                groups = {key: value.strip() for key, value in row.groupdict().items() if value is not None}
                place = visible(groups.pop("interface", name) + groups.pop("unit", ""))
                if "count" in groups:
                    key = ": ".join(groups[part] for part in ("name", "reason") if part in groups)
                    groups = {key: groups["count"]}
                own = counted.setdefault(place, dict(zeros)) if groups else {}
                for key, text_of_count in groups.items():
                    own[key] = own.get(key, 0) + counter_value(text_of_count, self.base)
        return counted

    def _below_head(self, output: str) -> str:
        """Return the rows of *output*. Raises TestbedError where it has no ``head``, or other text below it."""
        if self.head is None:
            return output
        head = compiled(self.head).search(output)
        output = output[head.end() :] if head else output
        rest = functools.reduce(lambda text, pattern: compiled(pattern).sub("", text), self.pattern, output)
        if head is None or rest.strip():
            raise TestbedError(f"no row of it is '{first_line(rest) or 'no output'}'")
        return output

    def untried(self, example: str, interface: str) -> Iterator[Problem]:
        """Yield each expression that finds nothing in *example*."""
        yield from () if self.each else super().untried(example, interface)

    def causes_in(self, counts: Counts, interface: str) -> Iterator[Cause]:
        """Yield what *counts* of *interface* mean, each by the first of ``causes`` that finds its name."""
        for name, frames in counts.items():
            matches = ((compiled(text).fullmatch(name), rule) for text, rule in self.causes.items())
            if first := next(((match, rule) for match, rule in matches if match), None):
                match, (stage, role, meaning, shown) = first
                called = self.title + (match.expand(shown) or name)
                yield Cause(Stage[stage.upper()], called, interface, frames, Role[role.upper()], meaning)

    def packets_in(self, counts: Counts) -> InterfaceCounters:
        """Return the ``packets`` of an interface with *counts*."""
        return InterfaceCounters(*(counts.get(name, 0) for name in self.packets or ()))

    def labelled(self, counts: Counts, interface: str) -> Counts:
        """Return those of *counts* of *interface* that are causes, by their labels."""
        return {cause.label: cause.count for cause in self.causes_in(counts, interface)}

    def of_queues(self, what: OfQueue, values: Mapping[str, V]) -> dict[int, V]:
        """Return those of *values* by name that are *what* of a receive queue, by its number."""
        matches = ((compiled(self.queues.get(what, "(?!)")).fullmatch(name), value) for name, value in values.items())
        return {int(next(filter(None, match.groups()))): value for match, value in matches if match}

    def queue_loads(
        self, interface: str, before: Counts, after: Counts, seconds: float | None, servers: Mapping[int, str]
    ) -> list[QueueLoad]:
        """Return the load of those receive queues that are counted, or served by one of *servers*."""
        risen = rates(before, after, seconds)
        packets, drops = self.of_queues("packets", risen), self.of_queues("drops", risen)
        queues = sorted({*self.of_queues("packets", after), *servers})
        return [
            QueueLoad(interface, queue, servers.get(queue, ""), packets.get(queue), drops.get(queue))
            for queue in queues
        ]

    def results(self, output: str, interface: str = "") -> Counts:
        """Return the counters of *interface*."""
        return self.counts(output, interface).get(interface, {})


class CountersQuery(TableQuery):
    """Counters of an interface since the router's start, by the names of COUNTERS.

    Each other group ``arriving_…``, ``passing_…``, ``leaving_…`` counts lost frames at that stage. Errors may count
    what the drops count, too. ``absent_is_zero``: counters that the router leaves out while they are 0.
    """

    groups = (*COUNTERS, "arriving_…", "passing_…", "leaving_…")
    needed = ("rx_packets", "tx_packets")
    placeholders, is_of_one = ("interface",), True

    packets: tuple[str, str] = ("rx_packets", "tx_packets")
    causes: Mapping[Expression, CauseRule] = {
        r"rx_drops|arriving_(\w+)": ("arriving", "loss", "", r"\1"),
        "rx_errors": ("arriving", "overlapping", "", ""),
        r"passing_(\w+)": ("passing", "loss", "", r"\1"),
        r"tx_drops|leaving_(\w+)": ("leaving", "loss", "", r"\1"),
        "tx_errors": ("leaving", "overlapping", "", ""),
    }

    def counts(self, output: str, interface: str = "") -> dict[str, dict[str, int]]:
        """Return each counter. Raises TestbedError for one that is missing and not in ``absent_is_zero``."""
        values = self.read(output, interface)
        for name in sorted(self.named - set(values) - set(self.absent_is_zero)):
            shown = first_line(output) or "no output"
            raise TestbedError(f"no '{name}' was found for interface '{interface}' in '{shown}'")
        return {interface: {name: count(name, values.get(name, "0")) for name in sorted(self.named)}}


class Commands(Config):
    """The questions to a router. A key that is missing is not read."""

    version: VersionQuery | None = None
    facts: Mapping[str, FactQuery] = {}
    uptime: UptimeQuery | None = None
    counters: CountersQuery | None = None
    load: LoadQuery | None = None
    temperature: TemperatureQuery | None = None
    neighbours: NeighboursQuery | None = None
    neighbours6: NeighboursQuery | None = None
    link: LinkQuery | None = None
    tables: Mapping[str, TableQuery] = {}


class LookQuery(Query):
    """Shows a ``value``: somebody else's where it is none of ``ours``; without them none is ours.

    By default the output is numbers, and these are the value. ``none``: is in an output that shows that there is no
    value, unless it is blank; any other one without a value is an error. ``at_least``: a greater number than ``ours``
    will do. Other groups of ``pattern`` belong to it, and are words of the change's ``back``. Words in braces may
    stand in ``run``, ``pattern``, ``none`` and ``ours``; those of the example are in ``expected``. ``without``: its
    output where the value of the example is not there.
    """

    groups, needed, placeholders = ("…",), ("value",), None

    pattern: OneExpression = ()
    none: Expression = ""
    ours: Lines = ()
    at_least: bool = False
    without: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _numbers(cls, data: Any) -> Any:
        lacks = isinstance(data, dict) and not data.get("pattern") and not data.get("json_paths")
        return {**data, "pattern": (r"\A\s*(?P<value>-?\d+(?:\s+-?\d+)*)\s*\Z",)} if lacks else data

    def untried(self, example: str, interface: str) -> Iterator[Problem]:
        """Yield what is missing to try the examples, and where ``ours`` is another value than they show."""
        read = {*WORD_IN_BRACES.findall(f"{self.pattern} {self.json_paths} {self.none} {self.ours}")}
        if lacking := sorted(read - {*self.expected}):
            yield ("expected",), f"has no '{lacking[0]}', which stands in braces; expected its value in the example"
            return
        if self.without is None:
            yield (), "has no 'without'; expected its output where that value is not there, '' if it shows nothing then"
        look = self.look(self._example_words)
        for key, output, is_ours in (
            ("example", example, self.ours),
            ("without", self.without or "", not self.ours),
        ):
            try:
                groups = look.values(output)[0]
            except TestbedError as error:
                hint = "; or let 'none' find it there" if key == "without" and not self.none else ""
                yield (key,), f"{error}{hint}"
                continue
            shown = groups["value"]
            if key == "example" and shown == NONE:
                yield (key,), f"shows no value: '{shortened(look.path or look.pattern)}' is not found in it"
            elif look.is_ours(groups) is not bool(is_ours):
                ours = "' or '".join(look.ours)
                expected = f"{'' if is_ours else 'not '}'{ours}' ('ours')" if self.ours else "nothing"
                yield (key,), f"shows '{shortened(shown, 60)}'; expected {expected}"

    @property
    def _example_words(self) -> Values:
        return {name: str(value) for name, value in self.expected.items() if name not in self.named}

    def look(self, words: Mapping[str, str], is_posix: bool = False) -> Look:
        """Return the command and what is read of its output, with *words* in place of the names in braces."""
        escaped = {name: re.escape(value) for name, value in words.items()}
        pattern = filled(self.pattern[0], escaped) if self.pattern else ""
        path, none = filled(self.json_paths.get("value", ""), words), filled(self.none, escaped)
        ours = tuple(filled(text, words) for text in self.ours) or (NONE,)
        return Look(command_line(self.run, words, is_posix), pattern, path, none, ours)

    def results(self, output: str, interface: str = "") -> Mapping[str, str | float]:
        """Return ``value`` and other groups; the words of the example are those of ``expected``."""
        return {**self._example_words, **self.look(self._example_words).values(output)[0]}
