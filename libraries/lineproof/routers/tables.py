"""Counters of a router by its own names, and what each means: commands, expressions and examples of a description."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, TypeVar

from pydantic import BeforeValidator

from ..command_values import Expression, JsonPath, compiled, value_at
from ..config import Config
from ..core.causes import Cause, Role, Stage
from ..core.telemetry import InterfaceCounters
from ..core.under_load import QueueLoad, rates
from ..errors import TestbedError
from ..visible import visible
from .shell_output import check_length, counter_value, first_line, json_in

V = TypeVar("V")
Counts = Mapping[str, int]
OfQueue = Literal["packets", "drops"]

CauseRule = Annotated[
    tuple[Literal["arriving", "passing", "leaving"], Literal["loss", "overlapping", "reason"], str, str],
    BeforeValidator(lambda rule: (*rule, "")[:4]),
]


class TableQuery(Config):
    """A command that shows counters: of each ``block`` of its output, of the interface that ``run`` names, or of none.

    ``pattern``: expressions that are found as often as there are rows. A row has a ``name`` and a ``count``, which is
    hexadecimal with ``base: 16``, or a group for each counter; also an ``interface``, whose number may be its ``unit``,
    and the ``reason`` that is part of a name. ``head`` stands above rows, and nothing else below it. ``json_paths``:
    counters of each member of a list, whose name has the key ``each``. ``absent_is_zero``: not shown while they are 0.

    ``causes``: expressions for names, with stage, role and meaning of lost frames, and another name to show; ``title``
    stands before it. ``fields``: of :class:`.InterfaceCounters`, the sum of the counters that each expression finds.
    ``queues``: expressions for a receive queue's ``packets`` and ``drops``, with its number. ``pauses``: those of a
    card are among the counters. ``optional``: the router may refuse the command. ``example``, ``expected``,
    ``source``: as of any query.
    """

    run: str
    pattern: tuple[Expression, ...] = ()
    json_paths: Mapping[str, JsonPath] = {}
    each: str = ""
    block: Expression | None = None
    head: Expression | None = None
    base: Literal[10, 16] = 10
    absent_is_zero: tuple[str, ...] = ()
    title: str = ""
    causes: Mapping[Expression, CauseRule] = {}
    fields: Mapping[str, Expression] = {}
    queues: Mapping[OfQueue, Expression] = {}
    pauses: bool = False
    optional: bool = False
    example: str = ""
    expected: Mapping[str, str | int] = {}
    source: str = ""

    def counts(self, output: str, interface: str = "") -> dict[str, dict[str, int]]:
        """Return the counters of each interface by name. Raises TestbedError, and others for what is no count."""
        check_length(output)
        zeros, found = dict.fromkeys(self.absent_is_zero, 0), dict[str, dict[str, int]]()
        if self.each:
            for one in json_in(output):
                values = {name: value_at(one, path, "") for name, path in self.json_paths.items()}
                found[visible(one[self.each])] = {name: counter_value(str(value)) for name, value in values.items()}
            return found
        for name, text in self.parts(output, interface):
            if not any("interface" in compiled(pattern).groupindex for pattern in self.pattern):
                found[name] = dict(zeros) if any(compiled(pattern).search(text) for pattern in self.pattern) else {}
            for row in (row for pattern in self.pattern for row in compiled(pattern).finditer(text)):
                groups = {key: value.strip() for key, value in row.groupdict().items() if value is not None}
                place = visible(groups.pop("interface", name) + groups.pop("unit", ""))
                if "count" in groups:
                    key = ": ".join(groups[part] for part in ("name", "reason") if part in groups)
                    groups = {key: groups["count"]}
                own = found.setdefault(place, dict(zeros)) if groups else {}
                for key, count in groups.items():
                    own[key] = own.get(key, 0) + counter_value(count, self.base)
        return found

    def parts(self, output: str, interface: str = "") -> Iterator[tuple[str, str]]:
        """Yield the name of an interface and the part of *output* about it. Raises TestbedError for other text."""
        if self.head is not None:
            head = compiled(self.head).search(output)
            output = output[head.end() :] if head else output
            rest = functools.reduce(lambda text, pattern: compiled(pattern).sub("", text), self.pattern, output)
            if head is None or rest.strip():
                raise TestbedError(f"no row of it is '{first_line(rest) or 'no output'}'")
        if self.block is None:
            yield interface, output
            return
        begins = [*compiled(self.block).finditer(output)]
        for begin, end in zip(begins, [*(later.start() for later in begins[1:]), len(output)], strict=False):
            yield visible(begin["interface"]), output[begin.start() : end]

    def causes_in(self, counts: Counts, interface: str) -> Iterator[Cause]:
        """Yield what *counts* of *interface* mean."""
        return causes_by(self.causes, counts, interface, self.title)

    def counters_in(self, counts: Counts) -> InterfaceCounters:
        """Return the ``fields`` of an interface with *counts*."""
        names = {field: compiled(text).fullmatch for field, text in self.fields.items()}
        return InterfaceCounters(
            **{field: sum(count for name, count in counts.items() if is_one(name)) for field, is_one in names.items()}
        )

    def labelled(self, counts: Counts, interface: str) -> Counts:
        """Return those of *counts* of *interface* that are causes, by their labels."""
        return {cause.label: cause.count for cause in self.causes_in(counts, interface)}

    def of_queues(self, what: OfQueue, values: Mapping[str, V]) -> dict[int, V]:
        """Return those of *values* by name that are *what* of a receive queue, by its number."""
        found = ((compiled(self.queues.get(what, "(?!)")).fullmatch(name), value) for name, value in values.items())
        return {int(next(filter(None, match.groups()))): value for match, value in found if match}

    def queue_loads(
        self, interface: str, before: Counts, after: Counts, seconds: float | None, servers: Mapping[int, str]
    ) -> list[QueueLoad]:
        """Return the load of the receive queues of *interface* that are counted, or served by one of *servers*."""
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


def causes_by(
    rules: Mapping[str, tuple[str, str, str, str]], counts: Counts, interface: str, title: str = ""
) -> Iterator[Cause]:
    """Yield what *counts* of *interface* mean by the first of *rules* that finds their name."""
    for name, count in counts.items():
        matches = ((compiled(text).fullmatch(name), rule) for text, rule in rules.items())
        if found := next(((match, rule) for match, rule in matches if match), None):
            match, (stage, role, meaning, shown) = found
            called = title + (match.expand(shown) or name)
            yield Cause(Stage[stage.upper()], called, interface, count, Role[role.upper()], meaning)
