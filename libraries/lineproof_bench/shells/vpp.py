"""``vppctl`` of a simulated VPP router. Like the real one it prints errors to standard output and exits with 0.

Commands are taken as they are written out in full. IPv6, sub-interfaces with tags, their tables, and MPLS labels are
kept here and by no model: which such frames are forwarded is the testbed's ``set_up``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from lineproof.simulation.habits import BY_A_MODEL

from . import vpp_render as render
from .iproute import interface_towards
from .linux import linux_commands, linux_files
from .machine import CommandLine, CommandOutput, Commands

Words = Mapping[str, str]
"""The words of a command by their names; "" for one that may be left out, and was."""

_HEADS = ("show", "set", "clear", "enable", "disable", "create", "delete", "ip", "ip6", "mpls")


class VppError(Exception):
    """VPP's message for a command that it refuses."""


def software() -> Commands:
    """A Linux machine whose interfaces under test belong to VPP."""
    return {**linux_commands(linux_files(own=False), own=False), "vppctl": VppConsole().run}


class VppConsole:
    """VPP's command line, and the settings that no model keeps: each a row of its kind and its words."""

    def __init__(self) -> None:
        self._rows: set[tuple[str, ...]] = set()

    def run(self, arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        """Run one command."""
        text = " ".join(" ".join(arguments).split())
        if not text:
            words = "vppctl: give a command, as in 'vppctl show runtime'; the prompt needs a terminal\n"
            return CommandOutput("", words, 1)
        try:
            answer = self._answer(text, line)
        except VppError as complaint:
            answer = f"{complaint}\n"
        return CommandOutput(answer.replace("\n", "\r\n"))

    def _answer(self, text: str, line: CommandLine) -> str:
        for pattern, handler in _COMMANDS:
            if found := pattern.fullmatch(text):
                words = found.groupdict("")
                own = {*_names(line), *(row[1] for row in self._kept("sub"))}
                if unknown := [words[key] for key in ("name", "link") if words.get(key) and words[key] not in own]:
                    raise VppError(f"{text.partition(f' {unknown[0]}')[0]}: unknown interface `{unknown[0]}'")
                return handler(self, words, line)
        head, _, rest = text.partition(" ")
        raise VppError(f"{head}: unknown input `{rest}'" if rest and head in _HEADS else f"unknown input `{text}'")

    def _kept(self, *begin: str) -> list[tuple[str, ...]]:
        return sorted(row for row in self._rows if row[: len(begin)] == begin)

    def _keep(self, row: tuple[str, ...], words: Words) -> str:
        (self._rows.discard if words["off"] else self._rows.add)(row)
        return ""

    # -- what it shows

    def addresses(self, words: Words, line: CommandLine) -> str:
        """``show interface address``."""
        configuration = line.state.configuration
        up = {*configuration.up, *(row[1] for row in self._kept("up"))}
        addresses = [*configuration.addresses, *(row[1:] for row in self._kept("address"))]
        names = [*sorted([*_names(line), "local0"]), *(row[1] for row in self._kept("sub"))]
        return "".join(
            f"{name} ({'up' if name in up else 'dn'}):\n"
            + "".join(f"  L3 {address}\n" for owner, address in addresses if owner == name)
            for name in names
        )

    def neighbours(self, words: Words, line: CommandLine) -> str:
        """``show ip neighbors``."""
        configuration = line.state.configuration
        rows = [(*row, "D" if configuration.is_learned(*row[:2]) else "S") for row in configuration.neighbours]
        rows += [(name, address, mac, "S") for _, name, address, mac in self._kept("neighbour")]
        return render.neighbours(line.state.uptime, rows)

    def fib(self, words: Words, line: CommandLine) -> str:
        """``show ip fib PREFIX``, and of IPv6."""
        key, family, configuration = _route_key(words), words["family"], line.state.configuration
        found = [row[4:] for row in self._kept("route", *key)]
        if key[:2] == ("ip", "0"):
            hops = [hop for prefix, hop in configuration.routes if prefix == words["prefix"]]
            found = [(hop, interface_towards(configuration, hop) or "unresolved") for hop in hops]
        return render.fib(4 if family == "ip" else 6, key[1], words["prefix"], found)

    def tables(self, words: Words, line: CommandLine) -> str:
        """``show ip table``, and of IPv6."""
        version = 6 if words["family"] == "ip6" else 4
        numbers = ["0", *(row[2] for row in self._kept("table", words["family"]))]
        return "".join(f"[{at}] table_id:{number} ipv{version}-VRF:{number}\n" for at, number in enumerate(numbers))

    def ip6(self, words: Words, line: CommandLine) -> str:
        """``show ip6 interface``."""
        return f"{words['name']} is admin up\n" if self._kept("ip6", words["name"]) else "IP6 disabled\n"

    def labels(self, words: Words, line: CommandLine) -> str:
        """``show mpls fib LABEL``."""
        if not self._kept("labels"):
            return ""
        return "MPLS-VRF:0, fib_index:0 locks:[CLI:1, ]\n" + "".join(
            f"{label}:{'eos' if bottom == 'eos' else 'neos'}/21 fib:0 index:25 locks:2\n    {hop} {name}\n"
            f"      Extensions:\n       path:30  labels:[[{label} pipe ttl:0 exp:0]]\n"
            for _, bottom, label, hop, name in self._kept("label")
            if label == words["label"]
        )

    # -- what is set

    def clear(self, words: Words, line: CommandLine) -> str:
        """``clear runtime``."""
        line.clear()
        return ""

    def state(self, words: Words, line: CommandLine) -> str:
        """``set interface state``."""
        name = words["name"]
        if name not in _names(line):
            return self._keep(("up", name), words)
        up = tuple(other for other in line.state.configuration.up if other != name)
        return _change(line, up=up if words["off"] else (*up, name))

    def address(self, words: Words, line: CommandLine) -> str:
        """``set interface ip address``."""
        name, address = row = words["name"], words["address"]
        own, there = name in _names(line), line.state.configuration.addresses
        if words["off"] and row not in (*there, *(kept[1:] for kept in self._kept("address"))):
            raise VppError(f"set interface ip address: Address not found on interface {name}: {address}")
        if not own:
            return self._keep(("address", *row), words)
        if words["off"]:
            return _change(line, addresses=tuple(other for other in there if other != row))
        network = ipaddress.ip_interface(address).network
        for owner, other in there:
            if ipaddress.ip_interface(other).network.overlaps(network):
                against = f"failed to add {address} on {name} which conflicts with {other} for interface {owner}"
                raise VppError(f"set interface ip address: {against}")
        return _change(line, addresses=(*there, row))

    def neighbour(self, words: Words, line: CommandLine) -> str:
        """``set ip neighbor``; what is not 'static' is as if it were learned."""
        row = words["name"], words["address"], words["mac"].lower()
        if row[0] not in _names(line) or ":" in row[1]:
            self._rows.difference_update(self._kept("neighbour", *row[:2]))
            return self._keep(("neighbour", *row), words)
        before = line.state.configuration
        learned = not words["static"]
        line.change(before.without_neighbour(*row[:2]) if words["off"] else before.with_neighbour(row, learned))
        return ""

    def route(self, words: Words, line: CommandLine) -> str:
        """``ip route``."""
        key, row = _route_key(words), (words["prefix"], words["hop"])
        kept, there = ("route", *key, words["hop"], words["name"]), line.state.configuration.routes
        is_own = key[:2] == ("ip", "0")
        if words["off"] and (row not in there if is_own else kept not in self._rows):
            raise VppError("ip route: no such route")
        if not is_own:
            return self._keep(kept, words)
        others = tuple(other for other in there if other != row)
        return _change(line, routes=others if words["off"] else (*others, row))

    def create(self, words: Words, line: CommandLine) -> str:
        """``create sub-interfaces``; prints the new name."""
        name, tags = f"{words['link']}.{words['number']}", f"{words['link']} {words['tags']}"
        if any(name == row[1] or tags == row[2] for row in self._kept("sub")):
            raise VppError("create sub-interfaces: sub-interface already exists")
        self._rows.add(("sub", name, tags))
        return f"{name}\n"

    def delete(self, words: Words, line: CommandLine) -> str:
        """``delete sub-interface``, with what is set there."""
        if not self._kept("sub", words["name"]):
            raise VppError(f"delete sub-interface: {words['name']} is no sub-interface")
        self._rows = {row for row in self._rows if words["name"] not in row}
        return ""

    def bind(self, words: Words, line: CommandLine) -> str:
        """``set interface ip table``, which no frame here depends on."""
        if words["table"] != "0" and not self._kept("table", words["family"], words["table"]):
            raise VppError(f"set interface {words['family']} table: no such table {words['table']}")
        return ""

    def label(self, words: Words, line: CommandLine) -> str:
        """``mpls local-label``."""
        if not self._kept("labels"):
            raise VppError("mpls local-label: no such table 0")
        return self._keep(("label", words["bottom"], words["label"], words["hop"], words["name"]), words)


def _names(line: CommandLine) -> list[str]:
    return [interface.name for interface in line.state.interfaces]


def _change(line: CommandLine, **parts: object) -> str:
    line.change(replace(line.state.configuration, **parts))  # type: ignore[arg-type]  # by name, each of its own type
    return ""


def _route_key(words: Words) -> tuple[str, str, str]:
    """Return family, table and prefix of a route."""
    return "ip6" if ":" in words["prefix"] else "ip", words["table"] or "0", words["prefix"]


def _settings(kind: str, *names: str) -> Handler:
    """Return a handler that keeps a row of *kind* with the words *names*."""
    return lambda vpp, words, line: vpp._keep((kind, *(words[name] for name in names)), words)


Handler = Callable[[VppConsole, Words, CommandLine], str]
_NAME, _HOP = r"(?P<name>\S+)", r"(?P<hop>[0-9a-f.:]+)"
_TABLE, _PREFIX = r"(?: table (?P<table>\d+))?", r"(?P<prefix>[0-9a-f.:]+/\d+)"
_COMMANDS: tuple[tuple[re.Pattern[str], Handler], ...] = tuple(
    (re.compile(pattern), handler)
    for pattern, handler in (
        (
            "show version",
            lambda vpp, words, line: (
                f"vpp v{line.state.version.removeprefix('v')} built by SIMULATED on {line.state.hostname}"
                " at 1970-01-01T00:00:00\n"
            ),
        ),
        ("show runtime", lambda vpp, words, line: render.runtime(line.state)),
        ("show interface", lambda vpp, words, line: render.interfaces(line.state)),
        ("show interface rx-placement", lambda vpp, words, line: render.placement(line.state)),
        ("show hardware-interfaces", lambda vpp, words, line: render.hardware(line.state)),
        ("show errors", lambda vpp, words, line: render.errors(line.state)),
        ("show threads", lambda vpp, words, line: render.threads(line.state)),
        ("show clock", lambda vpp, words, line: f"Time now {line.state.uptime:.6f}, SIMULATED\n"),
        (
            "show cpu",
            lambda vpp, words, line: (
                f"Model name:               {BY_A_MODEL}\n"
                f"Base frequency:           {line.state.clock_hz / 1e9:.4f} GHz\n"
            ),
        ),
        ("show interface address", VppConsole.addresses),
        ("show ip neighbors", VppConsole.neighbours),
        (rf"show (?P<family>ip6?) fib{_TABLE} {_PREFIX}", VppConsole.fib),
        (r"show (?P<family>ip6?) table", VppConsole.tables),
        (rf"show ip6 interface {_NAME}", VppConsole.ip6),
        (
            "show mpls interface",
            lambda vpp, words, line: "".join(f"{name}\n  MPLS enabled\n" for _, name in vpp._kept("mpls")),
        ),
        (r"show mpls fib (?P<label>\d+)", VppConsole.labels),
        ("clear runtime", VppConsole.clear),
        (rf"set interface state {_NAME} (?:up|(?P<off>down))", VppConsole.state),
        (rf"set interface ip address (?P<off>del )?{_NAME} (?P<address>\d+(?:\.\d+){{3}}/\d+)", VppConsole.address),
        (
            rf"set ip neighbor (?P<off>del )?{_NAME} (?P<address>[0-9a-f.:]+) (?P<mac>[0-9a-fA-F:]{{17}})"
            r"(?P<static> static)?",
            VppConsole.neighbour,
        ),
        (
            rf"ip route (?:add|(?P<off>del)) {_PREFIX}{_TABLE} via {_HOP}(?: {_NAME})?",
            VppConsole.route,
        ),
        (
            r"create sub-interfaces (?P<link>\S+) (?P<number>\d+) (?P<tags>dot1(?:q|ad) \d+(?: inner-dot1q \d+)?)"
            r" exact-match",
            VppConsole.create,
        ),
        (rf"delete sub-interface {_NAME}", VppConsole.delete),
        (rf"set interface (?P<family>ip6?) table {_NAME} (?P<table>\d+)", VppConsole.bind),
        (rf"(?:enable|(?P<off>disable)) ip6 interface {_NAME}", _settings("ip6", "name")),
        (rf"ip6 nd {_NAME} (?P<off>no )?ra-suppress", _settings("quiet", "name")),
        (r"(?P<family>ip6?) table (?:add|(?P<off>del)) (?P<table>\d+)", _settings("table", "family", "table")),
        (r"mpls table (?:add|(?P<off>del)) 0", _settings("labels")),
        (rf"set interface mpls {_NAME} (?:enable|(?P<off>disable))", _settings("mpls", "name")),
        (
            rf"mpls local-label (?:add|(?P<off>del)) (?P<bottom>(?:non-)?eos) (?P<label>\d+) via {_HOP} {_NAME}"
            r" out-labels (?P=label)",
            VppConsole.label,
        ),
    )
)
