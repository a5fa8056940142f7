"""A router as a description says, behind a shell: read, configured, and left as it was."""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from ..command_values import INTERFACE, command_line, compiled, filled, plain_mac
from ..core.counter_names import received_pauses
from ..core.router_facts import RouterFacts, RouterSetUp
from ..core.telemetry import Cause, InterfaceCounters, LinkState, NeighbourEntry, Side, Telemetry
from ..core.traffic.frame_kinds import FrameKind, FrameKinds, NotForwarded, ipv6_address, ipv6_network
from ..core.under_load import UnderLoad, output_by_moment, per_second
from ..errors import BREAKDOWN_ERRORS, TestbedError, in_words
from ..platforms import CommandPair, Tuning
from ..routers.changes import Changes, looked_up
from ..system.command_line import CommandRefused, ShellCommands
from ..system.ssh_shell import RouterUnreachable, Shell
from ..visible import shortened
from .description import DescribedChange, RouterDescription, side_words
from .journal import NONE, Change, Look, MadeChanges
from .queries import Counts, LinkQuery, NeighboursQuery, Query

V = TypeVar("V")
Words = Mapping[str, str]
"""The values of words in braces."""

FIRST_TABLE = 29700
"""Number of the routing table of the first stack of tags, and of the first tag's interface; each has the next one."""

TUNING_ADVICE = "look at what its card supports, and fix or remove it in the platform's 'tuning'"
NO_VALUES: Mapping[str, Any] = {}
_OF_TAGS = re.compile(r"^lr\d+\.|\.297\d\d$")
"""Interfaces that are made for tagged frames, with the same peers."""

_PROTOCOLS = {0x8100: ("802.1Q", ""), 0x88A8: ("802.1ad", "s")}


class Router:
    """A router as *description* has it, behind *shell*. *sudo*: for what needs root.

    *interfaces*: those under test, which must exist. A subclass gives what no file can: words
    that depend on what the router shows (:meth:`contexts`), and tables that no pattern reads. Every method raises
    TestbedError when it does not understand the router's output.
    """

    client = ""
    """The program that talks to the router, where its shell is another system's."""

    has_runtime = False
    """It counts cycles and calls of each graph node: :attr:`.Telemetry.runtime`."""

    def __init__(
        self,
        shell: Shell,
        description: RouterDescription,
        interfaces: tuple[str, ...] = (),
        sudo: bool = False,
    ) -> None:
        self.interfaces, self.description = interfaces, description
        self._commands = ShellCommands(shell, sudo, description, self.client)
        self._changes = Changes(self._commands)
        self._name = f"variables/shells/{description.shell}.yaml"
        self._notes: dict[str, str] = {}
        """Notes, each with the commands that it is about."""
        self._there: list[str] = []
        self._understood = set[str]()
        self.not_forwarded: NotForwarded = {}
        """Frames that :meth:`configure_frames` could not configure, and why."""
        self._before_applied: int | None = None

    # -- changes -------------------------------------------------------------------------------------------------------

    @property
    def notes(self) -> tuple[str, ...]:
        """Changes of forwarding, packet filter and the like, in words: evidence."""
        return tuple(self._notes)

    @property
    def changes(self) -> tuple[Change, ...]:
        """Return what :meth:`restore` would undo, oldest first."""
        return self._changes.made.pending

    def settings(self) -> RouterSetUp:
        """Return what the run has set, without the sides, and how the router shows it. Raises TestbedError."""
        ignored = self._changes.taken_back()
        made = {change.do_text: change.look for change in self.changes}
        return RouterSetUp(
            seen=tuple(text for text, look in made.items() if look is not None and text not in ignored),
            unchecked=tuple(text for text, look in made.items() if look is None),
            ignored=tuple(ignored.values()),
            there=tuple(dict.fromkeys(self._there)),
            notes=tuple(note for note, text in self._notes.items() if text not in ignored),
        )

    def refusal_in(self, command: str, output: str) -> str:
        """Return a sentence where *output* of a user's *command*, which had status 0, is a refusal; "" if not."""
        return f"the router refused '{command}': {why}" if (why := self.description.refusal_in(output)) else ""

    def keep_journal(self, journal: MadeChanges) -> None:
        """Have each change in *journal* before it is made."""
        self._changes.made = journal

    def configure(self, sides: tuple[Side, ...]) -> None:
        """Make the changes of the description. With ``restore`` that undoes them all, else their own ``undo``.

        What was changed before is undone first where the router may keep it over a restart: it is not to save it as its
        own.
        """
        description = self.description
        if not description.changes:
            raise TestbedError(f"'{description.shell}' does not say how to configure it; expected 'prepare: none'")
        if not self.description.is_posix and not self._changes.rehearsing:
            self._changes.restore()
        if not description.restore:
            self._make(description.changes, sides, FrameKinds())
            return
        if not self._changes.rehearsing:
            # no part of the change: what an earlier run saved is not to be restored where this one could not save
            for line in description.save:
                self._commands.change(line)
            self._commands.leave_mode()
        steps = [step for entry in description.changes for step, _ in self._steps(entry, sides, FrameKinds(), {})]
        do = tuple(line for step in steps for line in step.do)
        look = description.look.look({}) if description.look else None
        self._changes.make(Change(do, description.restore, whole=True, look=look))

    def tune(self, tuning: Tuning) -> None:
        """Before :meth:`configure`: set what a platform's file has under ``tuning``, and read it back."""
        for key, value in tuning.model_dump(exclude_none=True).items():
            for name, own in value.items() if isinstance(value, Mapping) else ((key, value),):
                self._make(self.description.tuning[key], (), FrameKinds(), {"key": name, "value": str(own)})

    def configure_frames(self, sides: tuple[Side, ...], frames: FrameKinds) -> None:
        """Let it forward *frames*, too, after :meth:`configure`; :attr:`not_forwarded` has those it cannot."""
        lacking, asked = dict[frozenset[FrameKind], str](), (frames.prefixes, frames.tags, frames.labels)
        wanted = [kind for kind, needed in zip(self.description.groups, asked, strict=True) if needed]
        for kind in wanted:
            if reason := self._why_not(kind, frames) or self._set_up(kind, sides, frames):
                lacking[frozenset({kind})] = reason
                frames = replace(frames, **{"prefixes": ()} if kind == "ipv6" else {})
        for kinds, reason in self.description.unforwardable.items():
            if len(kinds) > 1 and kinds <= set(wanted) and not any(one <= kinds for one in lacking):
                lacking[kinds] = reason
        self.not_forwarded = lacking
        for kinds, reason in lacking.items():
            named = " with ".join(kind for kind in self.description.groups if kind in kinds)
            self._notes[f"not set up for {named}: {reason}"] = ""

    def _why_not(self, kind: FrameKind, frames: FrameKinds) -> str:
        """Return why the router cannot forward *frames* of *kind*, whatever is set up; "": it can."""
        return self.description.unforwardable.get(frozenset({kind}), "")

    def _set_up(self, kind: FrameKind, sides: Sequence[Side], frames: FrameKinds) -> str:
        """Set the router up for *frames* of *kind*; return why that cannot be, "" if it is done."""
        if (group := self.description.groups[kind]) is None:
            raise TestbedError(
                f"'set_up' has '{kind}', which {self._name} does not describe; set the router up by hand and remove it"
            )
        if group.needs is not None and not self._commands.shown(group.needs).strip():
            if group.load is None or self._changes.rehearsing:
                return group.missing
            self._commands.shown(group.load)
            if not self._commands.shown(group.needs).strip():
                return group.missing
            self._notes[f"'{group.load}' was run, and is not undone"] = ""
        try:
            self._make(group.changes, sides, frames)
            if kind == "vlan":
                ipv6 = self.description.ipv6.changes if self.description.ipv6 and frames.prefixes else ()
                for entry in (entry for entry in (*self.description.changes, *ipv6) if entry.tagged):
                    scope = entry.for_.replace("prefix", "stack prefix").replace("side", "stack")
                    self._make([entry.model_copy(update={"for_": scope})], sides, frames)
        except CommandRefused as error:
            if group.lacking is None or not compiled(group.lacking).search(error.why):
                raise
            return f"{group.missing} ({error.why})"
        return ""

    def _make(
        self, entries: Sequence[DescribedChange], sides: Sequence[Side], frames: FrameKinds, given: Words | None = None
    ) -> None:
        """Make the changes of *entries*, each for all that it is for. Raises TestbedError."""
        for entry in entries:
            for step, words in self._steps(entry, sides, frames, given or {}):
                advice = TUNING_ADVICE if given else filled(entry.check, words)
                try:
                    self._changes.make(step, advice)
                except CommandRefused as error:
                    if advice:
                        raise TestbedError(f"the router did not take '{step.do[0]}' ({error.why}); {advice}") from None
                    if not entry.may_fail:
                        raise
                    continue
                if entry.note:
                    self._notes[filled(entry.note, words)] = step.do_text

    def _steps(
        self, entry: DescribedChange, sides: Sequence[Side], frames: FrameKinds, given: Words
    ) -> Iterator[tuple[Change, Words]]:
        """Yield what *entry* changes on the router as it is now, each once, with the words of its commands."""
        posix, contexts = self.description.is_posix, list(self.contexts(entry.for_, sides, frames, given))
        looks = [entry.look.look(context, posix) if entry.look else None for context in contexts]
        is_read, show = posix or not self._changes.rehearsing, functools.cache(self._commands.show)
        shown = [looked_up(self._commands, look, show) if look and is_read else () for look in looks]
        done = set[tuple[str, ...]]()
        for context, look, values in zip(contexts, looks, shown, strict=True):
            do, undo = entry.do, entry.undo or entry.back
            if look is not None and values:
                groups = self._before(entry, look, values)
                if groups is None:
                    self._there.append(f"'{look.command}' showed {shortened(values[0]['value'])}")
                    continue
                look = replace(look, former=groups["value"])
                context = {**groups, **context, "former": look.former}
                if look.former != NONE or not entry.undo:
                    do, undo = entry.over or do, entry.back
            do, undo = (tuple(command_line(line, context, posix) for line in lines) for lines in (do, undo))
            if do not in done:
                done.add(do)
                yield Change(do, undo, look=look), context

    def _before(self, entry: DescribedChange, look: Look, values: Sequence[Words]) -> Words | None:
        """Return the groups of the value that *look* shows before the change; None: it is ours already.

        Raises TestbedError for a value that could not be set again, or where one is lacking that is always there.
        """
        groups = values[0]
        now, wanted = groups["value"], f"'{look.command}'"
        if len(values) > 1 or (now != NONE and not look.is_ours(groups) and not entry.back):
            there = ", ".join(shortened(other["value"]) for other in values)
            raise TestbedError(
                f"{wanted} shows {there}, beside which the router would not use {shortened(look.ours[0])} alone; remove"
                " it for the test"
            )
        enough = entry.look is not None and entry.look.at_least and now.isdigit() and int(now) >= int(look.ours[0])
        if enough or look.is_ours(groups):
            return None
        if now == NONE and not entry.undo:
            raise TestbedError(f"{wanted} does not show what is to be set")
        return groups

    def contexts(self, scope: str, sides: Sequence[Side], frames: FrameKinds, given: Words) -> Iterator[Words]:
        """Yield the words in braces for each object of *scope*. *given*: those of a platform's setting."""
        if scope == "router":
            labels = [label for labels in frames.exits(len(sides)) for label in labels]
            counts = {"tables": 1 + len(frames.tags), "labels": 1 + max(labels, default=0)}
            yield {**given, **{name: str(count) for name, count in counts.items()}}
        elif scope == "interface":
            yield from ({**given, "interface": name} for name in self.interfaces)
        elif scope in ("side", "prefix"):
            for side in sides:
                own = {**side_words(side), "within": ""}
                yield from _with_prefixes(own, side, frames if scope == "prefix" else None)
        elif scope == "label":
            for side, exits in zip(sides, frames.exits(len(sides)), strict=True):
                yield from ({**side_words(side), "label": str(label)} for label in exits)
        elif scope in ("tag", "stack", "stack prefix"):
            for side, words, is_last in self._tags(sides, frames):
                if is_last or scope == "tag":
                    words["interface"] = words["tag_interface"]
                    yield from _with_prefixes(words, side, frames if scope == "stack prefix" else None)

    def _tags(self, sides: Sequence[Side], frames: FrameKinds) -> Iterator[tuple[Side, dict[str, str], bool]]:
        """Yield each tag of each stack on each side, outermost first, and whether it is the innermost."""
        unit = FIRST_TABLE
        for at, stack in enumerate(frames.tags):
            for place, side in enumerate(sides):
                table = str(FIRST_TABLE + at)
                context = {**side_words(side), "port": side.interface, "within": f"table {table}", "table": table}
                context |= {"side": str(place), "fib": str(at + 1)}
                link, tags = side.interface, list[str]()
                for kind, vlan in stack:
                    protocol, letter = _PROTOCOLS[kind]
                    tags.append(f"{letter}{vlan}")
                    own = {"link": link, "vlan": str(vlan), "protocol": protocol, "tags": ".".join(tags)}
                    context = {**context, **own, "unit": str(unit)}
                    context["tag_interface"] = link = filled(self.description.tag_interface, context)
                    unit += 1
                    yield side, context, len(tags) == len(stack)

    def apply(self, pairs: Sequence[CommandPair]) -> None:
        """Run each pair's first command; :meth:`withdraw` or :meth:`restore` runs the second. Raises TestbedError."""
        if self._before_applied is None:
            self._before_applied = len(self.changes)
        for pair in pairs:
            do, undo = ((command_line(line, {}, self.description.is_posix),) for line in (pair.do, pair.undo))
            self._changes.make(Change(do, undo, stdin=pair.stdin))

    def withdraw(self) -> str:
        """Undo what :meth:`apply` did, last first. Returns and raises as :meth:`restore`."""
        keep, self._before_applied = self._before_applied, None
        return "" if keep is None else self._changes.restore(keep)

    @contextmanager
    def rehearsal(self) -> Iterator[MadeChanges]:
        """Collect the changes of the block, as they would be made, instead of making them."""
        before = self._changes, {**self._notes}, [*self._there], self.not_forwarded
        self._changes = rehearsed = Changes(self._commands, rehearsing=True)
        try:
            yield rehearsed.made
        finally:
            self._changes, self._notes, self._there, self.not_forwarded = before

    def taken_back(self) -> list[str]:
        """Return what the run has set and the router does not show any more, in words. Raises TestbedError."""
        return [*self._changes.taken_back().values()]

    def restore(self, over: bool = False) -> str:
        """Undo all changes, last first, within RESTORE_LIMIT. May be repeated, also after an interrupt.

        *over*: a configuration that was saved before may be loaded over what others have changed since. Raises
        TestbedError that names failed ones. Returns a sentence about what others have set since.
        """
        kept = self._changes.restore(over=over)
        self._notes.clear()
        self._there.clear()
        self.not_forwarded = {}
        return kept

    def _require_interfaces(self, existing: Collection[str]) -> None:
        owner = self.description.title if self.client else "the router"
        for name in self.interfaces:
            if name not in existing:
                raise TestbedError(
                    f"{owner} has no interface '{name}'; it has {', '.join(sorted(existing))}; fix 'interfaces' of the"
                    " platform's file"
                )

    # -- reading -------------------------------------------------------------------------------------------------------

    def identify(self) -> Mapping[str, str]:
        """Return version and facts, if the file describes how to read them."""
        command = self.description.commands.version
        if command is None:
            return {"version": f"not asked: no 'version' is described of {self.description.title}"}
        raw: dict[str, str] = {}
        try:
            values = self._results("version", command, raw)
        except TestbedError as error:
            if raw or self.description.terminal or isinstance(error, RouterUnreachable):
                raise
            hint = f"if it takes no single commands, expected the key 'terminal' in {self._name}"
            raise TestbedError(f"{error}; {hint}") from None
        facts = {name: str(value) for name, value in values.items()}
        for name, fact in self.description.commands.facts.items():
            shown = if_readable(functools.partial(self._results, name, fact, raw), NO_VALUES)
            facts.update((name, str(value)) for value in shown.values())
        return facts

    def _condition(self, unread: dict[str, str]) -> Mapping[str, str]:
        """Return load and temperature, as far as they are described; *unread* gets why one cannot be read."""
        commands, condition = self.description.commands, dict[str, str]()
        for name, command, unit in (("load", commands.load, "%"), ("temperature", commands.temperature, "°C")):
            if command is not None:
                values = read_or_note(name, functools.partial(self._results, name, command, {}), unread, NO_VALUES)
                condition.update((name, f"{value:g} {unit}") for value in values.values())
        return condition

    def facts(self) -> RouterFacts:
        """Return its machine, system and cards, as far as they are described. Reads only, and never raises."""
        unread, commands = dict[str, str](), self.description.commands
        versions = read_or_note("version", self.identify, unread, NO_VALUES) if commands.version else NO_VALUES
        other = {key: value for key, value in versions.items() if key not in ("software", "version")}
        other |= self._condition(unread)
        if query := commands.neighbours:
            known = read_or_note("neighbours", lambda: [*self._neighbours(query)], unread, list[NeighbourEntry]())
            shown = sorted({entry.address: entry.mac for entry in known}.items())
            other |= {"neighbours": ", ".join(f"{address} {mac}" for address, mac in shown)} if shown else {}
        system, version = versions.get("software"), versions.get("version")
        return RouterFacts(os=system, version=version, other=other, unread=unread)

    def under_load(self, wait: Callable[[], None]) -> UnderLoad:
        """Return rates of lost frames during *wait*, and load and temperature after it.

        What fails is not read, so that it raises only what *wait* raises.
        """
        unread, started = dict[str, str](), time.monotonic()
        before = read_or_note("counters before", self.read, unread, Telemetry(None, {}))
        wait()
        after = read_or_note("counters after", self.read, unread, Telemetry(None, {}))
        seconds = time.monotonic() - started
        return UnderLoad(
            raw=output_by_moment(before.raw, after.raw),
            seconds=seconds,
            counters=self.rising(before, after, seconds),
            condition=self._condition(unread),
            unread=unread,
        )

    def rising(self, before: Telemetry, after: Telemetry, seconds: float) -> dict[str, float]:
        """Return the rates of the counters of lost frames by label; one may be shown only while it is not 0."""
        places = {"", *self.interfaces}
        old, new = (
            {cause.label: cause.count for cause in reading.causes if cause.interface in places}
            for reading in (before, after)
        )
        return per_second({**dict.fromkeys(new, 0), **old} if old else {}, new, seconds)

    def neighbours(self, sides: tuple[Side, ...]) -> tuple[NeighbourEntry, ...]:
        """Return the sides' neighbours, if they can be read: no verdict needs them. Raises RouterUnreachable."""
        ipv4, ipv6 = self.description.commands.neighbours, self.description.commands.neighbours6
        asked = [(ipv6 or ipv4) if ":" in side.peer else ipv4 for side in sides]
        queries = [query for at, query in enumerate(asked) if query and query not in asked[:at]]
        peers = [side.peer for side in sides]
        shown = if_readable(lambda: [entry for query in queries for entry in self._neighbours(query, peers)], None)
        if shown is None or not queries:
            return ()
        return tuple(self._neighbour(side, [entry for entry in shown if entry.address == side.peer]) for side in sides)

    def link_states(self) -> tuple[LinkState, ...]:
        """Return state and speed of each link, if they can be read: no verdict needs them."""
        if (query := self.description.commands.link) is None:
            return tuple(map(LinkState, self.interfaces))
        read = functools.partial(self._link_state, query, {})
        return tuple(if_readable(functools.partial(read, name), LinkState(name)) for name in self.interfaces)

    def _link_state(self, query: LinkQuery, raw: dict[str, str], interface: str) -> LinkState:
        link = self._results("link", query, raw, interface)
        speed = float(link["speed"]) or None
        up = "up" in link if {"up", "down"} & link.keys() else None
        carrier = "carrier" in link if up is not False and {"carrier", "no_carrier"} & link.keys() else None
        command = filled(query.run, {"interface": interface}) if speed else ""
        return LinkState(interface, plain_mac(str(link.get("mac", ""))), up, carrier, speed, command)

    def _neighbours(self, query: NeighboursQuery, peers: Collection[str] = ()) -> Iterator[NeighbourEntry]:
        """Yield each neighbour's entry. Raises TestbedError, also if that of one of *peers* is not understood."""
        for groups in query.entries(self._commands.show(query.run), peers):
            lasts = not groups["learned"] if "learned" in groups else None
            interface = groups.get("interface", "")
            yield NeighbourEntry(interface, groups["address"], "", plain_mac(groups["mac"]), lasts, interface)

    def _neighbour(self, side: Side, entries: Sequence[NeighbourEntry]) -> NeighbourEntry:
        """Return the entry of the side's interface, or else of another that leads there, such as a bridge."""
        own = [entry for entry in entries if entry.found_at == side.interface]
        own += [entry for entry in entries if entry not in own and not _OF_TAGS.search(entry.found_at)]
        entry = own[0] if own else NeighbourEntry(side.interface, side.peer, "")
        others = [f"{other.mac} on {other.found_at}".removesuffix(" on ") for other in own if other.mac != entry.mac]
        at = entry.found_at if self.description.is_posix else ""
        fix = self._neighbour_fix(replace(side, interface=at or side.interface))
        known = replace(entry, interface=side.interface, expected=side.peer_mac.lower(), fix=fix)
        return replace(known, others=" and ".join(others) or None)

    def _neighbour_fix(self, side: Side) -> str:
        """Return the file's own lines that set the neighbour of *side*; "": it has none, or no MAC is known."""
        if not side.peer_mac:
            return ""
        if ":" in side.peer:
            described = self.description.ipv6.changes if self.description.ipv6 else ()
            context: Words = {"interface": side.interface, "peer6": side.peer, "peer_mac": side.peer_mac.lower()}
        else:
            described, context = self.description.changes, side_words(side)
        lines = [change.do for change in described if any("{peer_mac" in line for line in change.do)]
        return "; ".join(filled(line, context) for line in lines[0]) if lines else ""

    def clear(self) -> None:
        """Before a trial: reset the counters that can be reset (VPP ``clear runtime``)."""

    def read_runtime(self) -> Telemetry:
        """Read the runtime since :meth:`clear`, and nothing else. Only of a router that :attr:`has_runtime`."""
        return Telemetry(None, {})

    def work(self) -> Mapping[str, float]:
        """Return the work of each worker until now: seconds spent on packets, or frames taken; {}: not known.

        The names are those of a trial's readings. Resets nothing.
        """
        return {}

    def read(self) -> Telemetry:
        """Read counters, and the runtime of a router that has one, now, as far as they are described."""
        commands, raw = self.description.commands, dict[str, str]()
        uptime = float(self._results("uptime", commands.uptime, raw)["uptime"]) if commands.uptime else None
        interfaces, causes, pauses = dict[str, InterfaceCounters](), list[Cause](), dict[str, int]()
        for name, counters in ((name, query) for name in self.interfaces if (query := commands.counters)):
            counts = {key: int(value) for key, value in self._results("counters", counters, raw, name).items()}
            interfaces[name] = counters.packets_in(counts)
            causes += counters.causes_in(counts, name)
            command = filled(counters.run, {"interface": name})
            if not counters.names_interface and any(counts.values()) and [*raw.values()].count(raw[command]) > 1:
                raise TestbedError(
                    f"'{command}' shows the same as of another interface; let 'pattern' of 'commands.counters' in"
                    f" {self._name} name it, by {{interface}}"
                )
        for key, table in commands.tables.items():
            for interface in self.interfaces if INTERFACE in table.run else ("",):
                counted = self.counts(key, raw, interface)
                if table.packets:
                    self._require_interfaces(counted)
                    interfaces |= {name: table.packets_in(own) for name, own in counted.items()}
                causes += (cause for name, own in counted.items() for cause in table.causes_in(own, name))
                if table.queues:
                    pauses |= {name: received_pauses(own) for name, own in counted.items()}
        return Telemetry(uptime, interfaces, raw=raw, causes=tuple(causes), pauses=pauses)

    @property
    def words(self) -> Words:
        """Words in braces of a table's command, beside ``interface``."""
        return {}

    def counts(self, key: str, raw: dict[str, str], interface: str = "") -> Mapping[str, Counts]:
        """Return the counters of the table *key* by interface; *raw*: outputs by command, in which it is put."""
        table = self.description.commands.tables[key]
        return self._read(key, table, table.counts, raw, interface)

    def _results(self, key: str, query: Query, raw: dict[str, str], interface: str = "") -> Mapping[str, str | float]:
        return self._read(key, query, query.results, raw, interface)

    def _read(
        self, key: str, query: Query, read: Callable[[str, str], V], raw: dict[str, str], interface: str = ""
    ) -> V:
        command = filled(query.run, {**self.words, "interface": interface})
        if command not in raw:
            raw[command] = self._commands.show(command, partial=query.optional, ends=not query.json_paths)
        try:
            result = read(raw[command], interface)
        except BREAKDOWN_ERRORS as error:
            hint = f"; unless it was busy, fix 'commands.{key}' in {self._name}" if query.expected else ""
            hint = "; it was understood before" if key in self._understood else hint
            raise TestbedError(f"'{command}' was not understood: {in_words(error)}{hint}") from None
        self._understood.add(key)
        return result


def if_readable(read: Callable[[], V], otherwise: V) -> V:
    """Return what *read* finds; *otherwise* where it cannot be read. Raises RouterUnreachable."""
    try:
        return read()
    except RouterUnreachable:
        raise
    except TestbedError:
        return otherwise


def read_or_note(name: str, read: Callable[[], V], unread: dict[str, str], otherwise: V) -> V:
    """Return what *read* finds; *otherwise* where it cannot be read, and why is in *unread*."""
    try:
        return read()
    except TestbedError as error:
        unread[name] = str(error)
        return otherwise


def _with_prefixes(words: Words, side: Side, frames: FrameKinds | None) -> Iterator[Words]:
    """Yield *words* with those of each IPv6 prefix of *frames*; as they are where *frames* is None."""
    if frames is None:
        yield words
        return
    own, length = side.address.split("/")
    for prefix in frames.prefixes:
        address = ipv6_address(prefix, own)
        yield {
            **words,
            "network6": ipv6_network(prefix, side.network),
            "peer6": ipv6_address(prefix, side.peer),
            "ip6": address,
            "length6": str(96 + int(length)),
            "address6": f"{address}/{96 + int(length)}",
        }
