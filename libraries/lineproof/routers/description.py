"""A router as a YAML file: what it is asked, and its changes with their opposites. A file has no conditions."""

from __future__ import annotations

import ipaddress
import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from ..command_values import Expression, Line, Lines, Problem, compiled, filled, instead_of, unknown_words
from ..config import Config, Location, located, read_yaml, validate_config
from ..core.telemetry import Side
from ..core.traffic.frame_kinds import FrameKind
from ..errors import ConfigError, TestbedError
from ..platforms import named_file
from ..project import PACKAGED_ROUTERS, Folder
from ..system.command_line import CommandChannel
from ..visible import shortened
from .queries import Commands, InterfaceQuery, LookQuery, Query


def side_words(side: Side) -> Mapping[str, str]:
    """Return the words in braces of *side*. Raises TestbedError if a generator reports no MAC address."""
    if not re.fullmatch(r"[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}", side.peer_mac):
        raise TestbedError(f"{side.peer_mac!r} is not a MAC address; expected for example '02:00:00:00:01:02'")
    address, network = ipaddress.IPv4Interface(side.address), ipaddress.IPv4Network(side.network)
    mac, digits = side.peer_mac.lower(), side.peer_mac.lower().replace(":", "")
    groups = [digits[at : at + 4] for at in (0, 4, 8)]
    return {
        "interface": side.interface,
        "address": side.address,
        "ip": str(address.ip),
        "length": str(address.network.prefixlen),
        "mask": str(address.netmask),
        "mask_hex": f"{int(address.netmask):#010x}",
        "peer": side.peer,
        "peer_mac": mac,
        "peer_mac_dotted": ".".join(groups),
        "peer_mac_dashed": "-".join(groups),
        "network": side.network,
        "network_ip": str(network.network_address),
        "network_length": str(network.prefixlen),
        "network_mask": str(network.netmask),
    }


SIDE_WORDS = tuple(side_words(Side("", "192.0.2.1/24", "", "02:00:00:00:00:01", "192.0.2.0/24")))
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


_PAIR = re.compile(r"\{([\w-]+)/([\w-]+)\}")

NO_COMMANDS = {"example", "expected", "without"}
"""The keys of a look in which no words stand in braces."""


class DescribedChange(Config):
    """Commands that change the configuration, with {words} of what they are ``for``, and their opposites.

    ``{add/del}`` in ``do``: the opposite differs in this word alone.
    ``look``: the value before. Is it ours, nothing is done. Is there none, ``undo`` undoes it; another one is set again
    by ``back`` with ``{former}``, and without ``back`` ends the configuration. ``over``: in place of ``do`` then.
    ``note``: said to a person. ``check``: the value is read back, and this is advice where it is not ours.
    ``tagged``: made again for each stack of tags. ``may_fail``: a refusal is no error. ``like``: another change, whose
    keys hold where this one has none. ``with``: text in place of words in braces, here and in ``like``.
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

    @model_validator(mode="before")
    @classmethod
    def _as_if_written_out(cls, data: Any) -> Any:
        keys = _merged(data)
        if not isinstance(texts := keys.pop("with", {}), dict):
            raise ValueError("'with' has text for words in braces; expected for example {peer: '{peer6}'}")
        if _PAIR.search(do := json.dumps(keys.get("do"))):
            keys = {"undo": json.loads(_PAIR.sub(r"\2", do)), **keys, "do": json.loads(_PAIR.sub(r"\1", do))}
        return json.loads(filled(json.dumps(keys), {word: json.dumps(f"{text}")[1:-1] for word, text in texts.items()}))

    def unknown_words(self, known: Collection[str]) -> Iterator[Problem]:
        """Yield each word in braces that is none of *known*."""
        more = ("former", *self.look.named) if self.look else ()
        data = self.model_dump(exclude={"look": NO_COMMANDS})
        for key, value in data.items():
            yield from unknown_words(value, (*known, *more) if key in ("back", "note") else known, (key,))


def _merged(change: Any) -> dict[str, Any]:
    """Return the keys of *change*, and those of changes that it is ``like`` where it has none."""
    if not isinstance(change, dict):
        raise ValueError("expected a change, with 'do'")
    like = _merged(change["like"]) if "like" in change else {}
    texts = [keys["with"] for keys in (like, change) if "with" in keys]
    merged = {**like, **{key: value for key, value in change.items() if key != "like"}}
    return {**merged, "with": {**texts[0], **texts[1]}} if len(texts) > 1 else merged


class FrameGroup(Config):
    """Changes for a kind of frames. ``needs``: a command that a router without this kind refuses.

    ``load``: run before that is tried again. ``missing``: why they are not forwarded then, or where a change is refused
    with words that ``lacking`` finds.
    """

    needs: Line | None = None
    load: Line | None = None
    missing: str = ""
    lacking: Expression | None = None
    changes: Annotated[tuple[DescribedChange, ...], Field(min_length=1)]


class RouterDescription(CommandChannel):
    """A router's commands and changes. ``shell``: its file's name. ``like``: one that comes with Lineproof.

    ``save``, ``restore``: how the router keeps its configuration and goes back to it. ``look``: what others have
    changed meanwhile, over which it is not to go. ``changes``: those for a test, then those for kinds of frames;
    ``cannot``: kinds that it cannot forward, and why. ``tag_interface``: the name of the interface of a tag.
    """

    shell: str
    like: str = ""
    description: str = ""
    commands: Annotated[Commands, Field(default_factory=Commands)]
    save: tuple[Line, ...] = ()
    restore: tuple[Line, ...] = ()
    look: LookQuery | None = None
    changes: tuple[DescribedChange, ...] = ()
    tag_interface: str = ""
    ipv6: FrameGroup | None = None
    vlan: FrameGroup | None = None
    mpls: FrameGroup | None = None
    cannot: Mapping[str, str] = {}
    tuning: Mapping[str, tuple[DescribedChange, ...]] = {}

    @property
    def groups(self) -> Mapping[FrameKind, FrameGroup | None]:
        """Return the changes for each kind of frames; None: not described."""
        return {"ipv6": self.ipv6, "vlan": self.vlan, "mpls": self.mpls}

    @property
    def unforwardable(self) -> Mapping[frozenset[FrameKind], str]:
        """Kinds of frames that it cannot forward together, and why."""
        return {frozenset(kind for kind in self.groups if kind in key.split()): why for key, why in self.cannot.items()}

    def all_changes(self) -> Iterator[tuple[Location, DescribedChange, tuple[str, ...]]]:
        """Yield each change, its place, and the words that it may name beside those of its scope."""
        places: dict[Location, tuple[DescribedChange, ...]] = {("changes",): self.changes}
        places |= {(kind, "changes"): group.changes for kind, group in self.groups.items() if group}
        places |= {("tuning", key): changes for key, changes in self.tuning.items()}
        for place, changes in places.items():
            for at, change in enumerate(changes):
                yield (*place, str(at)), change, ("key", "value") if place[0] == "tuning" else ()

    @property
    def title(self) -> str:
        """Return the name of the router for a person."""
        return self.description or self.shell

    def _queries(self) -> list[tuple[Location, Query]]:
        """Return all that are run and read, by where they stand."""
        facts, tables = self.commands.facts.items(), self.commands.tables.items()
        queries = [
            *((("commands", name), query) for name, query in self.commands),
            *((("commands", "facts", name), query) for name, query in facts),
            *((("commands", "tables", name), query) for name, query in tables),
            *(((*place, "look"), change.look) for place, change, _ in self.all_changes()),
            (("look",), self.look),
        ]
        return [(place, query) for place, query in queries if isinstance(query, Query)]

    def warnings(self) -> Iterator[str]:
        """Yield what frames need on each side and no change sets, and what a run's end may take from others."""
        needed = {"address": "{(ip|address)}", "neighbour entry": r"{peer_mac\w*}", "route": r"{network\w*}"}
        for what, word in needed.items() if self.changes else ():
            setting = [change for change in self.changes if re.search(word, "".join(change.do))]
            if not setting:
                yield f"no change sets a side's {what}; with 'prepare: configure' the router must have it already"
            elif not self.restore and not all(change.look for change in setting):
                yield f"the change that sets a side's {what} has no 'look'; its 'undo' may remove somebody else's"
        if not (self.is_posix or self.refused):
            yield "there is no 'refused'; a command that the router refuses with words alone passes for a taken one"
        if self.restore and not self.look:
            yield "'restore' has no 'look' of the file; it may go over what somebody else has configured since"

    def problems(self) -> Iterator[Problem]:
        """Yield all that is wrong with it, each with its place; examples are tried.

        A change may be for more, and name more, where Python in the router's folder gives these words.
        """
        if self.channel != "exec" and (self.channel == "terminal") != (self.terminal is not None):
            yield ("channel",), f"is '{self.channel}'; expected 'terminal', or none, with the key 'terminal' alone"
        for text in self.terminal.problems() if self.terminal else ():
            yield ("terminal",), text
        if bool(self.save) != bool(self.restore):
            yield ("save" if self.save else "restore",), "'save' and 'restore' go together; expected both or none"
        proven: dict[Location, str | None] = {("refused", str(at)): text for at, text in enumerate(self.refused)}
        proven |= {("gone", str(at)): text for at, text in enumerate(self.gone)}
        proven |= {(kind, "lacking"): group.lacking for kind, group in self.groups.items() if group}
        for where, expression in proven.items():
            if expression and not any(map(compiled(expression).search, self.refusals)):
                yield where, "finds none of 'refusals'; expected an example there, as the router shows it"
        if self.ignore and not any(compiled(self.ignore).search(query.example) for _, query in self._queries()):
            yield ("ignore",), "finds nothing in any 'example'; expected one that has it"
        without_sides = self.model_dump(include={"save", "restore", "look"}, exclude={"look": NO_COMMANDS})
        yield from unknown_words(without_sides, ())
        for place, change, more in self.all_changes():
            if change.for_ not in SCOPES:
                yield (*place, "for"), f"is for '{shortened(change.for_)}'; {instead_of(change.for_, SCOPES)}"
                continue
            for key, text in change.unknown_words((*SCOPES[change.for_], *more)):
                yield (*place, *key), text
            if change.back and not change.look:
                yield (*place, "back"), "sets what was there before; expected a 'look' that shows it"
            elif not (change.undo or self.restore):
                if not change.back:
                    yield place, "has no 'undo', nor 'back' with a 'look', and there is no 'restore'; expected one"
                elif (look := change.look) and look.ours and (look.none or look.without is not None):
                    yield place, "may find no value before ('none' or 'without'), and has no 'undo'; expected one"
        for place, query in self._queries():
            for key, text in list(query.problems()) or self._tried(query):
                yield (*place, *key), text

    def _tried(self, query: Query) -> Iterator[Problem]:
        """Yield what is wrong with the examples of *query*: they are missing, or give something else."""
        if not query.expected:
            yield (), "is not tried; expected an 'example' of its output, and what is 'expected' in it"
            return
        same = (other.example for _, other in self._queries() if other.run == query.run)
        example = compiled(self.ignore or "(?!)").sub("", query.example or next(filter(None, same), ""))
        expected = dict(query.expected)
        interface = str(expected.pop("interface", "")) if isinstance(query, InterfaceQuery) else ""
        if refusal := self.refusal_in(example):
            yield ("example",), f"is taken for a refusal, by '{shortened(refusal)}'; expected other 'refused'"
        for line in example.splitlines() if self.terminal else ():
            for what in ("prompt", "pager"):
                if compiled(getattr(self.terminal, what) or "(?!)").fullmatch(line.rstrip()):
                    yield ("example",), f"its line '{shortened(line)}' is taken for a {what}"
        try:
            untried = list(query.untried(example, interface))
            results = {} if untried else query.results(example, interface)
        except TestbedError as error:
            yield ("example",), f"{error}"
            return
        if untried:
            yield from untried
            return
        for key, value in expected.items():
            if key not in results:
                shown = ", ".join(f"{name} {_word(own)}" for name, own in results.items())
                yield ("expected", key), f"is no value of the example, which gives {shown}"
                continue
            given, is_number = results[key], not isinstance(value, str)
            if isinstance(given, str):
                is_equal = given == str(value)
            else:
                is_equal = is_number and math.isclose(given, float(value), rel_tol=1e-9, abs_tol=1e-9)
            if not is_equal:
                quotes = " (a text: write it in quotes)" if is_number and isinstance(given, str) else ""
                yield ("expected", key), f"the example gives {_word(given)}, not {shortened(value)}{quotes}"


def _word(value: str | float) -> str:
    return shortened(value if isinstance(value, str) else f"{value:.15g}", 40)


def read_description(folder: Folder, name: str) -> RouterDescription:
    """Return the router *name* of *folder*; a project's own is tried by its examples. Raises ConfigError for all."""
    path = named_file(folder, name, "shell")
    description, lines = load_description(path)
    if path.parent != getattr(folder, "own", folder):
        return description
    if (PACKAGED_ROUTERS / name / "__init__.py").exists():
        expected = f"expected another name, with 'like: {name}'"
        raise ConfigError(f"'{name}' has Python of its own, beside its description; {expected}", path)
    problems = [
        located(path, lines, place, text)
        for place, text in description.problems()
        if not description.like or place[: 1 + (place[0] == "commands")] in lines
    ]
    if problems:
        raise ConfigError.first_of(problems)
    return description


def load_description(path: Path) -> tuple[RouterDescription, Mapping[Location, int]]:
    """Return the description in *path* and each of its own keys' line. Raises ConfigError.

    Where it has no key, that of the router that it is ``like`` holds, also of ``commands``; its name is the file's.
    """
    data, lines = _read(path)
    return validate_config(data, RouterDescription, path, lines, "shell"), lines


def _read(path: Path) -> tuple[Any, Mapping[Location, int]]:
    data, lines = read_yaml(path)
    if not isinstance(data, dict):
        return data, lines
    data = {"shell": path.stem, **data}
    if not isinstance(like := data.get("like"), str):
        return data, lines
    if like not in (known := sorted({file.parent.name for file in PACKAGED_ROUTERS.glob("*/*.yaml")})):
        raise located(path, lines, ("like",), f"is '{shortened(like)}'; {instead_of(like, known)}")
    base, _ = _read(PACKAGED_ROUTERS / like / f"{like}.yaml")
    merged = {**base, **data, "like": base.get("like", like)}
    if isinstance(own := data.get("commands", {}), dict):
        merged["commands"] = {**base.get("commands", {}), **own}
    return merged, lines
