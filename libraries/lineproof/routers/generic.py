"""A router whose command line is described in a file: what the file does not describe is not read."""

from __future__ import annotations

import functools
import ipaddress
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ..command_values import compiled
from ..core.causes import Cause, Role, Stage
from ..core.neighbours import NeighbourEntry
from ..core.router_facts import RouterFacts
from ..core.telemetry import InterfaceCounters, Telemetry
from ..core.under_load import UnderLoad, per_second
from ..errors import BREAKDOWN_ERRORS, TestbedError, in_words
from ..platforms import CommandPair
from .base import RouterUnreachable, Shell, Side, validated_side
from .changes import NONE, Change, Look
from .command_file import CommandFile, LookQuery
from .link_state import LinkState
from .neighbours import neighbour_of
from .queries import LOSS_GROUP, Query, filled, plain_mac
from .shell_router import ShellRouter

V = TypeVar("V")

_STAGES = {stage.name.lower(): stage for stage in Stage}


class Generic(ShellRouter):
    """A :class:`~lineproof.routers.base.Router` as *file* describes it, behind a :class:`.CommandLineShell`."""

    def __init__(self, shell: Shell, file: CommandFile, interfaces: tuple[str, ...] = ()) -> None:
        super().__init__(shell, file.limit, interfaces)
        self._file = file
        self._name = f"variables/shells/{file.shell}.yaml"

    def identify(self) -> Mapping[str, str]:
        """The version, if the file describes how to read it."""
        command = self._file.commands.version
        facts = {"software": self._file.description or self._file.shell}
        if command is None:
            return {**facts, "version": f"not asked: {self._name} has no 'version'"}
        raw: dict[str, str] = {}
        try:
            values = self._results("version", command, raw)
        except RouterUnreachable:
            raise
        except TestbedError as error:
            if raw or self._file.channel == "terminal":
                raise
            hint = f"if it takes no single commands, expected 'channel: terminal' in {self._name}"
            raise TestbedError(f"{error}; {hint}") from None
        return facts | {name: str(value) for name, value in values.items()}

    def _change_of(self, pair: CommandPair) -> Change:
        return Change((pair.do,), (pair.undo,), lines=True)

    def _condition(self, unread: dict[str, str]) -> Mapping[str, str]:
        """Load and temperature, as far as they are described; why one cannot be read is in *unread*."""
        units, found = {"percent": "%", "celsius": "°C"}, dict[str, str]()
        for name, command in (("load", self._file.commands.load), ("temperature", self._file.commands.temperature)):
            if command is not None:
                values = _read_or_note(name, functools.partial(self._results, name, command, {}), unread)
                for key, value in values.items():
                    found[name] = f"{value:g} {units[key]}"
        return found

    def facts(self) -> RouterFacts:
        """Version, load, temperature and neighbours, as far as they are described."""
        unread: dict[str, str] = {}
        versions = _read_or_note("version", self.identify, unread) if self._file.commands.version else {}
        condition = self._condition(unread)
        neighbours = _read_or_note("neighbours", self._known_neighbours, unread)
        other = {key: value for key, value in versions.items() if key not in ("software", "version")}
        other |= condition
        other |= (
            {"neighbours": ", ".join(f"{ip} {mac}" for ip, mac in sorted(neighbours.items()))} if neighbours else {}
        )
        software = self._file.description or self._file.shell
        return RouterFacts(os=software, version=versions.get("version"), other=other, unread=unread)

    def under_load(self, wait: Callable[[], None]) -> UnderLoad:
        """The counters of lost frames around *wait*, and load and temperature after it."""
        unread: dict[str, str] = {}
        texts: list[Mapping[str, str]] = []
        started, counts = time.monotonic(), list[Mapping[str, int]]()
        for moment in ("before", "after"):
            try:
                found = self.read()
            except TestbedError as error:
                unread[f"counters {moment}"] = str(error)
            else:
                counts.append(found.drops)
                texts.append({f"{command} {moment}": text for command, text in found.raw.items()})
            if moment == "before":
                wait()
        seconds = time.monotonic() - started
        return UnderLoad(
            raw={name: text for each in texts for name, text in each.items()},
            seconds=seconds,
            counters=per_second(counts[0], counts[1], seconds) if len(counts) > 1 else {},
            condition=self._condition(unread),
            unread=unread,
        )

    def neighbours(self, sides: tuple[Side, ...]) -> tuple[NeighbourEntry, ...]:
        """Return them as far as they are described and can be read: no verdict needs them. Raises RouterUnreachable."""
        if self._file.commands.neighbours is None:
            return ()
        try:
            rows = self._neighbour_rows()
        except RouterUnreachable:
            raise
        except TestbedError:
            return ()
        return tuple(
            neighbour_of(
                side,
                [(row["interface"], row["mac"], row["lasting"]) for row in rows if row["address"] == side.peer],
                self._neighbour_fix(side),
            )
            for side in sides
        )

    def link_states(self) -> tuple[LinkState, ...]:
        """The speed of each link, where it is described and can be read: no verdict needs it."""
        return tuple(map(self._link_state, self.interfaces))

    def _link_state(self, interface: str) -> LinkState:
        if (query := self._file.commands.link_speed) is None:
            return LinkState(interface)
        command = filled(query.run, {"interface": interface})
        try:
            speed = query.results(self._commands.run_quoted(command), interface).get("speed")
        except RouterUnreachable:
            raise
        except TestbedError:
            return LinkState(interface)
        return LinkState(interface, speed_bps=float(speed), speed_from=command) if speed else LinkState(interface)

    def _neighbour_rows(self) -> list[dict[str, Any]]:
        """``address``, ``mac`` (lower case, colons), ``interface`` ("": not shown), ``lasting`` (None: not shown)."""
        command = self._file.commands.neighbours
        if command is None:
            return []
        found = [
            each.groupdict() for each in compiled(command.pattern[0]).finditer(self._commands.run_quoted(command.run))
        ]
        return [
            {
                "address": row["address"],
                "mac": plain_mac(row["mac"]),
                "interface": row.get("interface") or "",
                "lasting": not row["learned"] if "learned" in row else None,
            }
            for row in found
        ]

    def _known_neighbours(self) -> dict[str, str]:
        return {row["address"]: row["mac"] for row in self._neighbour_rows()}

    def _neighbour_fix(self, side: Side) -> tuple[str, ...]:
        """The file's own lines that set the IPv4 neighbour of *side*; none where it has none, or no MAC is known."""
        if not side.peer_mac or ":" in side.peer:
            return ()  # they are for IPv4 addresses
        words = side_words(validated_side(side))
        changes = [change.do for change in self._file.configure if any("{peer_mac" in line for line in change.do)]
        return ("; ".join(_filled(changes[0], words)),) if changes else ()

    def configure(self, sides: tuple[Side, ...]) -> None:
        """The changes of the file. With ``restore`` that undoes them all, else their own ``undo``.

        What was changed before is undone first: a router may keep it over a restart, and is not to save it as its own.
        """
        file = self._file
        if not file.configure:
            raise TestbedError(f"'{file.shell}' does not say how to configure it; expected 'prepare: none'")
        if not self._commands.rehearsing:
            self._commands.restore()
        validated = [validated_side(side) for side in sides]
        steps = [
            Change(_filled(change.do, words), _filled(change.undo, words), lines=True, look=look_of(change.look, words))
            for change in file.configure
            for words in (map(side_words, validated) if change.for_each_side else [{}])
        ]
        if file.restore:
            # no part of the change: what an earlier run saved is not to be restored where this one could not save
            if not self._commands.rehearsing:
                self._commands.run_quoted("\n".join(file.save))
            do = tuple(line for step in steps for line in step.do)
            steps = [Change(do, file.restore, lines=True, whole=True, look=look_of(file.look, {}))]
        for step in steps:
            self._commands.make(step)

    def forget_changes(self) -> None:
        """Nothing: a router may keep its changes over a restart, so that they are undone in any case."""

    def read(self) -> Telemetry:
        """Read uptime and counters now, as far as they are described."""
        commands, raw = self._file.commands, dict[str, str]()
        uptime = None
        if commands.uptime is not None:
            uptime = float(self._results("uptime", commands.uptime, raw)["uptime"])
        interfaces: dict[str, InterfaceCounters] = {}
        causes: list[Cause] = []
        if (counters := commands.counters) is not None:
            for name in self.interfaces:
                counts = {key: int(value) for key, value in self._results("counters", counters, raw, name).items()}
                known = {key: counts.get(key) for key in InterfaceCounters.__dataclass_fields__}
                packets = {key: counts[key] for key in ("rx_packets", "tx_packets")}
                interfaces[name] = InterfaceCounters(**{**known, **packets})  # type: ignore[arg-type]  # not None
                causes.extend(causes_of(name, counts, _STAGES[counters.drops]))
        drops = {cause.label: cause.count for cause in causes}
        return Telemetry(uptime, interfaces, drops, raw=raw, causes=tuple(causes))

    def _results(self, key: str, command: Query, raw: dict[str, str], interface: str = "") -> Mapping[str, str | float]:
        text = filled(command.run, {"interface": interface})
        if text not in raw:
            run = self._commands.run_unchecked if command.json_paths else self._commands.run_quoted
            raw[text] = run(text)
        try:
            return command.results(raw[text], interface)
        except BREAKDOWN_ERRORS as error:
            raise TestbedError(
                f"'{text}' was not understood: {in_words(error)}; fix 'commands.{key}' in {self._name}"
            ) from None


def _read_or_note(name: str, read: Callable[[], Mapping[str, V]], unread: dict[str, str]) -> Mapping[str, V]:
    """Return what *read* finds; nothing where it cannot be read, and why is in *unread*."""
    try:
        return read()
    except TestbedError as error:
        unread[name] = str(error)
        return {}


def _filled(lines: tuple[str, ...], words: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(filled(line, words) for line in lines)


def look_of(query: LookQuery | None, words: Mapping[str, str]) -> Look | None:
    """Return the look of *query*. A value that is not found is no one else's: its undo finds ours, or nothing."""
    if query is None:
        return None
    ours = NONE if query.ours is None else filled(query.ours, words)
    return Look((filled(query.run, words),), query.pattern[0], ours, absent=ours)


def causes_of(interface: str, counts: Mapping[str, int], drops: Stage) -> tuple[Cause, ...]:
    """The counters of lost frames among *counts*; *drops*: where ``rx_drops`` are lost.

    ``rx_errors`` and ``tx_errors`` may count what the drops count too: only the excess is added.
    """
    places = {
        "rx_drops": (drops, Role.LOSS),
        "rx_errors": (Stage.ARRIVING, Role.OVERLAPPING),
        "tx_drops": (Stage.LEAVING, Role.LOSS),
        "tx_errors": (Stage.LEAVING, Role.OVERLAPPING),
    }
    found = [
        Cause(*place[:1], name, interface, counts[name], place[1]) for name, place in places.items() if name in counts
    ]
    for name, value in counts.items():
        if own := LOSS_GROUP.fullmatch(name):
            found.append(Cause(_STAGES[own["stage"]], own["name"], interface, value))
    return tuple(found)


def side_words(side: Side) -> Mapping[str, str]:
    """Return what a command may name of *side*, which is validated."""
    address, network = ipaddress.IPv4Interface(side.address), ipaddress.IPv4Network(side.network)
    digits = side.peer_mac.replace(":", "")
    groups = [digits[at : at + 4] for at in (0, 4, 8)]
    return {
        "interface": side.interface,
        "address": side.address,
        "ip": str(address.ip),
        "length": str(address.network.prefixlen),
        "mask": str(address.netmask),
        "peer": side.peer,
        "peer_mac": side.peer_mac,
        "peer_mac_dotted": ".".join(groups),
        "peer_mac_dashed": "-".join(groups),
        "network": side.network,
        "network_ip": str(network.network_address),
        "network_length": str(network.prefixlen),
        "network_mask": str(network.netmask),
    }
