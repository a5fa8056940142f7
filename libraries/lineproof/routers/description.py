"""A router as a YAML file: its commands, the values in their output, and its changes with their opposites.

Values are found by regular expressions, or by paths where the router prints JSON. A file has no conditions.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from ..command_values import Expression, JsonPath, compiled, value_at
from ..config import Config, Location, read_yaml, validate_config
from ..core.causes import Cause, Stage
from ..core.traffic.frame_kinds import FrameKind
from ..errors import ConfigError, TestbedError
from ..platforms import named_file
from ..project import Folder
from ..system.ssh_terminal import Dialogue
from ..visible import shortened
from .journal import NONE, Look
from .shell_output import check_length, first_line, json_in
from .tables import Counts, TableQuery, causes_by

Values = Mapping[str, str]


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
"""bit/s of each group of ``link``."""

LOSS_GROUP = re.compile(rf"(?P<stage>{'|'.join(stage.name.lower() for stage in Stage)})_(?P<name>\w+)")
"""A counter of lost frames of its own: ``passing_no_route``."""

INTERFACE = "{interface}"
WORD_IN_BRACES = re.compile(r"\{([a-z_][a-z0-9_]*)\}")


def _one_or_more(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _checked_line(value: str) -> str:
    if not value.strip() or "\n" in value:
        raise ValueError("expected one command, in one line")
    return value


Line = Annotated[str, AfterValidator(_checked_line)]
Lines = Annotated[tuple[Line, ...], BeforeValidator(_one_or_more)]


def filled(command: str, words: Mapping[str, str]) -> str:
    """*command* with the values of *words* in place of ``{word}``; other braces stay."""
    return WORD_IN_BRACES.sub(lambda found: words.get(found[1], found[0]), command)


def check_words(command: str, known: tuple[str, ...]) -> None:
    """Raise ValueError where a word in braces of *command* is none of *known*."""
    for word in WORD_IN_BRACES.findall(command):
        if word not in known:
            expected = ", ".join(f"{{{each}}}" for each in known) or "no word in braces"
            raise ValueError(f"'{{{word}}}' is not known in '{shortened(command)}'; expected {expected}")


OneExpression = Annotated[tuple[Expression, ...], BeforeValidator(_one_or_more), Field(max_length=1)]


class Query(Config):
    """A command that shows something. ``pattern``: expressions, each searched once; their named groups are the values.

    One of those with ``{interface}`` must be found: a router may answer ``te1`` with the counters of ``te10``.
    ``json_paths``: value -> path, where the router prints JSON. ``example``: its output, in which ``expected`` must be
    found, see :meth:`RouterDescription.problems`; ``source``: where the example is from.
    """

    groups: ClassVar[tuple[str, ...]] = ()
    other_groups: ClassVar[re.Pattern[str]] = re.compile(r"(?!)")
    needed: ClassVar[tuple[str, ...]] = ()
    words: ClassVar[tuple[str, ...] | None] = ()
    """All that may stand in braces in ``run``; None: the words of its change."""

    run: Line
    partial: bool = False
    """It may show a part, and end as if it was refused."""
    pattern: Annotated[tuple[Expression, ...], BeforeValidator(_one_or_more)] = ()
    json_paths: Mapping[str, JsonPath] = {}
    example: str = ""
    expected: Mapping[str, str | int | float] = {}
    source: str = ""

    @field_validator("run")
    @classmethod
    def _check_run(cls, value: str) -> str:
        if cls.words is not None:
            check_words(value, cls.words)
        return value

    @property
    def named(self) -> frozenset[str]:
        """The values that it reads."""
        found = {name for text in self.pattern for name in compiled(text).groupindex}
        return frozenset(found | set(self.json_paths))

    @property
    def names_interface(self) -> bool:
        """Return whether the answer has to name the interface that was asked for."""
        texts = (*self.pattern, *self.json_paths.values())
        return getattr(self, "block", None) is not None or any(INTERFACE in text for text in texts)

    @model_validator(mode="after")
    def _check_values(self) -> Query:
        if bool(self.pattern) == bool(self.json_paths):
            raise ValueError("expected one of 'pattern' and 'json_paths'")
        for name in sorted(self.named):
            if name not in self.groups and not self.other_groups.fullmatch(name):
                key = "pattern" if self.pattern else "json_paths"
                raise ValueError(f"{key} names '{shortened(name)}'; expected of {', '.join(self.groups)}")
        if self.words and INTERFACE not in self.run and not self.names_interface:
            raise ValueError(
                "'run' is for all interfaces; expected {interface} there, in 'pattern' or 'json_paths', or 'block'"
            )
        if lacking := [name for name in self.needed if name not in self.named]:
            raise ValueError(
                f"names no '{lacking[0]}'; expected a group (?P<{lacking[0]}>…), or its path in 'json_paths'"
            )
        return self

    def read(self, output: str, interface: str = "") -> Values:
        """Return the groups of ``pattern`` that took part, or what ``json_paths`` lead to. Raises TestbedError."""
        check_length(output)
        values: dict[str, str | None] = {}
        if self.json_paths:
            data = json_in(output)
            values = {name: value_at(data, path, interface) for name, path in self.json_paths.items()}
        whole_name = {"interface": rf"(?<!\w){re.escape(interface)}(?!\w|[./-]\d)"}
        matches = {text: compiled(filled(text, whole_name)).search(output) for text in self.pattern}
        if not any(match for text, match in matches.items() if INTERFACE in text) and INTERFACE in "".join(matches):
            raise TestbedError(f"it does not name '{interface}': '{first_line(output) or 'no output'}'")
        for match in filter(None, matches.values()):
            values |= {name: value for name, value in match.groupdict().items() if value is not None}
        if there := {name: value for name, value in values.items() if value is not None}:
            return there
        raise TestbedError(f"nothing that is searched is in '{first_line(output) or 'no output'}'")

    def results(self, output: str, interface: str = "") -> Mapping[str, str | float]:
        """Return what is made of :meth:`read`, by the names that ``expected`` may use."""
        return dict(self.read(output, interface))


class VersionQuery(Query):
    """``version``: text that identifies the software; ``software``, ``hardware``: likewise."""

    groups = ("version", "software", "hardware")
    needed = ("version",)


class FactQuery(Query):
    """Shows a ``value`` that is evidence beside the version. It may fail: then it is left out."""

    groups = ("value",)
    needed = ("value",)

    def results(self, output: str, interface: str = "") -> Mapping[str, str | float]:
        """Return the ``value`` in one line."""
        return {"value": " ".join(self.read(output)["value"].split())}


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
        parts = {name: number(name, value) for name, value in self.read(output).items()}
        return {"percent": parts["percent"] if "percent" in parts else 100 - parts["idle"]}


class TemperatureQuery(FigureQuery):
    """``celsius``."""

    figure, units, groups = "celsius", {"celsius": 1.0}, ("celsius",)


class InterfaceQuery(Query):
    """Shows an interface: ``run`` names it, or ``block`` finds where it begins in an output about all."""

    words = ("interface",)

    block: Expression | None = None

    @model_validator(mode="after")
    def _check_block(self) -> InterfaceQuery:
        if self.block is not None and "interface" not in compiled(self.block).groupindex:
            raise ValueError("'block' finds the first line of each interface; expected a group (?P<interface>…)")
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

    def read(self, output: str, interface: str = "") -> Values:
        """The values of *interface* in *output*. Raises TestbedError that says what was not found."""
        return super().read(self.block_of(output, interface), interface)


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
        """Return the groups of each entry. Raises TestbedError for a line, not of ``none``, that could be another one.

        Without any entry that is each line, else one that names one of *peers* which has none.
        """
        found = [match.groupdict("") for match in compiled(self.pattern[0]).finditer(output)]
        missing = {*peers} - {entry["address"] for entry in found}
        for line in filter(str.strip, output.splitlines()):
            may_be_one = not found or missing & {*re.split(r"[^\w.:]+", line)}
            if may_be_one and not compiled(self.none).search(line):
                raise TestbedError(f"'{self.run}' was not understood: '{shortened(line.strip())}'")
        return found


class CountersQuery(InterfaceQuery):
    """Counters of an interface since the router's start.

    Beside those of COUNTERS each group ``arriving_…``, ``passing_…``, ``leaving_…`` counts lost frames at that stage.
    ``absent_is_zero``: counters that the router leaves out while they are 0. ``drops``: the stage of ``rx_drops``.
    """

    groups, other_groups = COUNTERS, LOSS_GROUP
    needed = ("rx_packets", "tx_packets")

    absent_is_zero: tuple[str, ...] = ()
    drops: Literal["arriving", "passing"] = "arriving"

    def results(self, output: str, interface: str = "") -> Mapping[str, str | float]:
        """Each counter, an int. Raises TestbedError for one that is missing and not in ``absent_is_zero``."""
        found = self.read(output, interface)
        for name in sorted(self.named - set(found) - set(self.absent_is_zero)):
            shown = first_line(output) or "no output"
            raise TestbedError(f"no '{name}' was found for interface '{interface}' in '{shown}'")
        return {name: count(name, found.get(name, "0")) for name in sorted(self.named)}

    def causes_in(self, counts: Counts, interface: str) -> Iterator[Cause]:
        """Yield those of *counts* that are lost frames. Errors may count what the drops count too."""
        rules = {
            "rx_drops": (self.drops, "loss", "", ""),
            "rx_errors": ("arriving", "overlapping", "", ""),
            "tx_drops": ("leaving", "loss", "", ""),
            "tx_errors": ("leaving", "overlapping", "", ""),
            **{rf"{stage}_(\w+)": (stage, "loss", "", r"\1") for stage in ("arriving", "passing", "leaving")},
        }
        return causes_by(rules, counts, interface)


_GROUPED = re.compile(r"-?[1-9][0-9]{0,2}([ ,'])[0-9]{3}(?:\1[0-9]{3})*(?![0-9]|\1)")
"""Digits in groups of three. A comma that does not group them so is a decimal one."""


def count(name: str, text: str) -> int:
    """Return a count that a router printed. Raises TestbedError."""
    return int(_digits(name, text, "[0-9]{1,20}", "a count"))


def number(name: str, text: str) -> float:
    """Return a number that a router printed: ``2,5`` is 2.5, ``1,000`` is 1000. Raises TestbedError."""
    return float(_digits(name, text, r"-?[0-9]{1,20}(\.[0-9]{1,20})?", "a number"))


def _digits(name: str, text: str, pattern: str, expected: str) -> str:
    """Return *text* without what groups its digits; *pattern*: what it then is. Raises TestbedError."""
    whole = _GROUPED.match(plain := text.strip())
    plain = (re.sub("[ ,']", "", whole[0]) + plain[whole.end() :] if whole else plain).replace(",", ".")
    if not re.fullmatch(pattern, plain):
        raise TestbedError(f"'{name}' is '{shortened(text)}'; expected {expected}")
    return plain


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


SIDE_WORDS = (
    *("interface", "address", "ip", "length", "mask", "mask_hex"),
    *("peer", "peer_mac", "peer_mac_dotted", "peer_mac_dashed"),
    *("network", "network_ip", "network_length", "network_mask"),
)
"""The words of a side that may stand in braces; see :func:`.described.side_words`."""
_PREFIX_WORDS = ("network6", "peer6", "address6", "ip6", "length6")
_STACK_WORDS = (*SIDE_WORDS, "within", "port", "side", "tags", "tag_interface", "table", "fib")
SCOPES: Mapping[str, tuple[str, ...]] = {
    "router": ("tables", "labels"),
    "interface": ("interface",),
    "side": (*SIDE_WORDS, "within"),
    "prefix": (*SIDE_WORDS, "within", *_PREFIX_WORDS),
    "tag": (*_STACK_WORDS, "link", "vlan", "protocol", "unit"),
    "stack": _STACK_WORDS,
    "stack prefix": (*_STACK_WORDS, *_PREFIX_WORDS),
    "label": (*SIDE_WORDS, "label"),
}
"""Whatever a change may be ``for``, each of it, and the words that may stand in its braces."""

NUMBERS = r"\A\s*(?P<value>-?\d+(?:\s+-?\d+)*)\s*\Z"


class LookQuery(Query):
    """Shows a ``value``: somebody else's where it is none of ``ours``; without them none is ours.

    By default the output is numbers, and these are the value. ``none``: is in an output that shows that there is no
    value, unless it is blank; any other one without a value is an error. ``at_least``: a greater number than ``ours``
    will do. Other groups of ``pattern`` belong to it, and are words of the change's ``back``. Words in braces may
    stand in ``run``, ``pattern``, ``none`` and ``ours``; those of the example are in ``expected``.
    """

    needed, other_groups, words = ("value",), re.compile(".+"), None

    pattern: OneExpression = ()
    none: Expression = ""
    ours: Lines = ()
    at_least: bool = False

    @model_validator(mode="before")
    @classmethod
    def _numbers(cls, data: Any) -> Any:
        lacks = isinstance(data, dict) and not data.get("pattern") and not data.get("json_paths")
        return {**data, "pattern": (NUMBERS,)} if lacks else data

    @property
    def texts(self) -> tuple[str, ...]:
        """All in which words may stand in braces."""
        return (self.run, *self.pattern, *self.json_paths.values(), self.none, *self.ours)

    def look(self, words: Mapping[str, str], is_posix: bool = False) -> Look:
        """Return what is run, and read of it, with *words* in place of those in braces."""
        escaped = {name: re.escape(value) for name, value in words.items()}
        pattern = filled(self.pattern[0], escaped) if self.pattern else ""
        path, none = filled(self.json_paths.get("value", ""), words), filled(self.none, escaped)
        ours = tuple(filled(text, words) for text in self.ours) or (NONE,)
        return Look(command_line(self.run, words, is_posix), pattern, path, none, ours)

    def results(self, output: str, interface: str = "") -> Mapping[str, str | float]:
        """``value`` and other groups; the words of the example are those of ``expected``."""
        words = {name: str(value) for name, value in self.expected.items() if name not in self.named}
        return {**words, **self.look(words).values(output)[0]}


def command_line(line: str, words: Mapping[str, str], is_posix: bool) -> str:
    """Return *line* with *words* in place of those in braces.

    For a POSIX shell each part is quoted; a part that is one word in braces alone may become several parts, or none.
    Raises TestbedError where the router itself has shown what another command line may take for a command.
    """
    if not is_posix:
        if bad := next((value for value in words.values() if not re.fullmatch(r"[\w ./:@-]*", value)), ""):
            raise TestbedError(f"'{shortened(bad)}' is no word for a command; expected letters, digits, _ . / : @ -")
        return filled(line, words)
    parts: list[str] = []
    for part in shlex.split(line):
        alone = WORD_IN_BRACES.fullmatch(part)
        parts += words[alone[1]].split() if alone and alone[1] in words else [filled(part, words)]
    return shlex.join(parts)


class DescribedChange(Config):
    """Commands that change the configuration, with {words} of what they are ``for``, and their opposites.

    ``look``: the value before. Is it ours, nothing is done. Is there none, ``undo`` undoes it; another one is set again
    by ``back`` with ``{former}``, and without ``back`` ends the configuration. ``over``: in place of ``do`` then.
    ``note``: said to a person. ``check``: the value is read back, and this is advice where it is not ours.
    ``tagged``: made again for each stack of tags. ``may_fail``: a refusal is no error. ``moves_link``: a link may be
    negotiated anew. ``like``: another change, whose keys hold where this one has none. ``with``: text in place of
    words in braces, here and in ``like``.
    """

    for_: Annotated[str, Field(alias="for")] = "side"
    tagged: bool = False
    do: Annotated[Lines, Field(min_length=1)]
    over: Lines = ()
    undo: Lines = ()
    back: Lines = ()
    look: LookQuery | None = None
    note: str = ""
    check: str = ""
    may_fail: bool = False
    moves_link: bool = False

    @model_validator(mode="before")
    @classmethod
    def _as_if_written_out(cls, data: Any) -> Any:
        keys = _merged(data)
        if not isinstance(texts := keys.pop("with", {}), dict):
            raise ValueError("'with' has text for words in braces; expected for example {peer: '{peer6}'}")
        return _replaced(keys, {word: str(text) for word, text in texts.items()})

    @property
    def is_undone(self) -> bool:
        """Return whether it has an opposite of its own, whatever was there before."""
        return bool(self.undo or (self.back and self.look))

    def check_words(self, known: tuple[str, ...]) -> None:
        """Raise ValueError where a word in braces is none of *known*."""
        more = ("former", *self.look.named) if self.look else ()
        for line in (*self.do, *self.over, *self.undo, self.check, *(self.look.texts if self.look else ())):
            check_words(line, known)
        for line in (*self.back, self.note):
            check_words(line, (*known, *more))


def _merged(change: Any) -> dict[str, Any]:
    """Return the keys of *change* and of those that it is like; its own come first, and so do words of its ``with``."""
    if not isinstance(change, dict):
        raise ValueError("expected a change, with 'do'")
    like = _merged(change["like"]) if "like" in change else {}
    texts = [keys["with"] for keys in (like, change) if "with" in keys]
    merged = {**like, **{key: value for key, value in change.items() if key != "like"}}
    return {**merged, "with": {**texts[0], **texts[1]}} if len(texts) > 1 else merged


def _replaced(data: Any, texts: Mapping[str, str], is_expected: bool = False) -> Any:
    """Return *data* with *texts* in place of words in braces; a word for another one is also one of an example."""
    if isinstance(data, str):
        return filled(data, texts)
    if isinstance(data, dict):
        names = {key: WORD_IN_BRACES.fullmatch(texts.get(key, "")) if is_expected else None for key in data}
        return {
            (name[1] if (name := names[key]) else key): _replaced(value, texts, key == "expected")
            for key, value in data.items()
        }
    return [_replaced(value, texts) for value in data] if isinstance(data, list | tuple) else data


class FrameGroup(Config):
    """Changes for a kind of frames. ``needs``: a command that is refused where the router cannot forward them.

    ``load``: run before that is tried again. ``missing``: why they are not forwarded then, or where a change is refused
    with words that ``lacking`` finds.
    """

    needs: Line | None = None
    load: Line | None = None
    missing: str = ""
    lacking: Expression | None = None
    changes: Annotated[tuple[DescribedChange, ...], Field(min_length=1)]


class RouterDescription(Config):
    """A router's commands and changes.

    ``channel``: ``posix`` is a shell of POSIX; ``exec`` a command line that takes single commands; at a ``terminal``
    they are typed at a prompt.

    ``refused``: expressions that are found in the output of a command that was refused; ``prints``: all that a command
    of a change may print where none is; ``gone``: in that of a line of an ``undo`` that has nothing to undo;
    ``ignore``: is no part of what it shows. ``save``, ``restore``: how the router keeps its configuration and goes back
    to it. ``look``: what others have changed meanwhile, over which it is not to go. ``changes``: those for a test, then
    those for kinds of frames; ``cannot``: kinds that it cannot forward, and why. ``tag_interface``: the name of the
    interface of a tag. ``words``: by what a change is for, words that Python in its folder gives.
    """

    shell: str
    description: str = ""
    channel: Literal["posix", "exec", "terminal"] = "exec"
    terminal: Dialogue | None = None
    refused: tuple[Expression, ...] = ()
    prints: Expression | None = None
    gone: tuple[Expression, ...] = ()
    ignore: Expression | None = None
    limit: Annotated[float, Field(ge=1, le=120)] = 10.0
    """Seconds that a command may take."""
    commands: Commands = Commands()
    save: tuple[Line, ...] = ()
    restore: tuple[Line, ...] = ()
    look: LookQuery | None = None
    words: Mapping[str, tuple[str, ...]] = {}
    changes: tuple[DescribedChange, ...] = ()
    tag_interface: str = ""
    ipv6: FrameGroup | None = None
    vlan: FrameGroup | None = None
    mpls: FrameGroup | None = None
    cannot: Mapping[str, str] = {}
    tuning: Mapping[str, tuple[DescribedChange, ...]] = {}

    @property
    def groups(self) -> Mapping[FrameKind, FrameGroup | None]:
        """The changes for kinds of frames; None: not described."""
        return {"ipv6": self.ipv6, "vlan": self.vlan, "mpls": self.mpls}

    @property
    def unforwardable(self) -> Mapping[frozenset[FrameKind], str]:
        """Kinds of frames that it cannot forward together, and why."""
        return {frozenset(kind for kind in self.groups if kind in key.split()): why for key, why in self.cannot.items()}

    def all_changes(self) -> Iterator[tuple[Location, DescribedChange, tuple[str, ...]]]:
        """Yield each described change, where it stands, and what beside its scope's words may stand in its braces."""
        places: dict[Location, tuple[DescribedChange, ...]] = {("changes",): self.changes}
        places |= {(kind, "changes"): group.changes for kind, group in self.groups.items() if group}
        places |= {("tuning", key): changes for key, changes in self.tuning.items()}
        for place, changes in places.items():
            for at, change in enumerate(changes):
                yield (*place, str(at)), change, ("key", "value") if place[0] == "tuning" else ()

    @model_validator(mode="after")
    def _check(self) -> RouterDescription:
        if (self.channel == "terminal") != (self.terminal is not None):
            raise ValueError("'channel: terminal' and the key 'terminal' go together; expected both or none of them")
        if bool(self.save) != bool(self.restore):
            raise ValueError("'save' and 'restore' go together; expected both or none of them")
        for line in (*self.save, *self.restore, *(self.look.texts if self.look else ())):
            check_words(line, ())
        scopes = {name: (*SCOPES.get(name, ()), *self.words.get(name, ())) for name in (*SCOPES, *self.words)}
        for place, change, more in self.all_changes():
            where = f"'{'.'.join(place)}'"
            if change.for_ not in scopes:
                raise ValueError(f"{where} is for '{shortened(change.for_)}'; expected of {', '.join(scopes)}")
            change.check_words((*scopes[change.for_], *more))
            if not (change.is_undone or self.restore):
                raise ValueError(
                    f"{where} has no 'undo', nor 'back' with a 'look', and there is no 'restore'; expected one"
                )
        return self

    @property
    def uptime_step(self) -> float:
        """Seconds by which the uptime that is read advances; 0 where none is read."""
        return self.commands.uptime.step if self.commands.uptime else 0.0

    def refusal_in(self, output: str) -> str:
        """The line of *output* that says that the command was refused; "": it was not."""
        for text in self.refused:
            if found := compiled(text).search(output):
                start = output.rfind("\n", 0, found.start()) + 1
                return output[start : found.end()].strip() + output[found.end() :].partition("\n")[0].rstrip()
        return ""

    @property
    def is_posix(self) -> bool:
        """Return whether it has a shell of POSIX, and no command line of its own."""
        return self.channel == "posix"

    @property
    def title(self) -> str:
        """The name of the router for a person."""
        return self.description or self.shell

    def _queries(self) -> Iterator[tuple[Location, Query | TableQuery]]:
        """All that are run and read, by where they stand."""
        for name, command in self.commands:
            if isinstance(command, Query):
                yield ("commands", name), command
        for name, fact in self.commands.facts.items():
            yield ("commands", "facts", name), fact
        for name, table in self.commands.tables.items():
            yield ("commands", "tables", name), table
        for place, change, _ in self.all_changes():
            if change.look is not None:
                yield (*place, "look"), change.look
        if self.look is not None:
            yield ("look",), self.look

    def problems(self) -> Iterator[tuple[Location, str]]:
        """Place and problem of each command whose example is missing or gives something else; a look needs none."""
        for name, command in self._queries():
            if not command.expected:
                if not isinstance(command, LookQuery):
                    yield name, "is not tried; expected an 'example' of its output, and what is 'expected' in it"
                continue
            expected = dict(command.expected)
            interface = str(expected.pop("interface", "")) if isinstance(command, InterfaceQuery | TableQuery) else ""
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
                    shown = ", ".join(f"{each} {_word(own)}" for each, own in found.items())
                    yield name, f"'expected' names '{shortened(key)}'; its example gives {shown}"
                elif not _equal(found[key], value):
                    text = isinstance(found[key], str) and not isinstance(value, str)
                    quotes = " (a text: write it in quotes)" if text else ""
                    yield name, f"its example gives {key} {_word(found[key])}; expected {shortened(value)}{quotes}"


def _equal(found: str | float, expected: str | float) -> bool:
    if isinstance(found, str):
        return found == str(expected)
    return not isinstance(expected, str) and abs(found - expected) <= 1e-9 * max(1.0, abs(expected))


def _word(value: str | float) -> str:
    return shortened(value if isinstance(value, str) else f"{value:.15g}", 40)


def read_description(folder: Folder, name: str) -> RouterDescription:
    """The router *name* of *folder*, with its examples tried. Raises ConfigError."""
    path = named_file(folder, name, "shell")
    description, lines = load_description(path)
    if description.shell != name:
        raise ConfigError(
            f"says 'shell: {shortened(description.shell)}'; in a file of this name expected '{name}'", path
        )
    for place, problem in description.problems():
        raise ConfigError(f"'{'.'.join(map(str, place))}': {problem}", path, lines.get(place))
    return description


def load_description(path: Path) -> tuple[RouterDescription, Mapping[Location, int]]:
    """Return the description in *path*, and the line of each key. Raises ConfigError."""
    data, lines = read_yaml(path)
    return validate_config(data, RouterDescription, path, lines), lines
