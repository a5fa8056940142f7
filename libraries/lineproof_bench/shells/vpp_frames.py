"""IPv6, sub-interfaces with tags, their tables, and MPLS labels as a simulated VPP takes and shows them.

It is kept here and by no model: which such frames are forwarded is the testbed's ``set_up``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field


class FrameError(Exception):
    """VPP's message for a command that it refuses."""


@dataclass
class VppFrames:
    """``tables``, ``routes``: by family (``ip``, ``ip6``). *known*: the names of the router's own interfaces."""

    ip6: set[str] = field(default_factory=set)
    tables: set[tuple[str, str]] = field(default_factory=set)
    subs: dict[str, str] = field(default_factory=dict)
    up: set[str] = field(default_factory=set)
    addresses: set[tuple[str, str]] = field(default_factory=set)
    neighbours: dict[tuple[str, str], str] = field(default_factory=dict)
    routes: set[tuple[str, str, str, str, str]] = field(default_factory=set)
    mpls_table: bool = False
    mpls: set[str] = field(default_factory=set)
    labels: set[tuple[str, str, str, str]] = field(default_factory=set)

    def run(self, text: str, known: frozenset[str]) -> str | None:
        """Return what it prints for the command *text*; None: it is none of these. Raises FrameError."""
        for pattern, handler in _COMMANDS:
            if found := pattern.fullmatch(text):
                names = {"name", "link"} & set(found.groupdict())
                mine = known | set(self.subs)
                if bad := [found[name] for name in names if found[name] not in mine]:
                    raise FrameError(f"unknown interface `{bad[0]}'")
                answer = handler(self, found)
                if answer is not None:
                    return answer
        return None

    def shown_addresses(self) -> str:
        """Return its rows of ``show interface address``."""
        return "".join(
            f"{name} ({'up' if name in self.up else 'dn'}):\n"
            + "".join(f"  L3 {address}\n" for owner, address in sorted(self.addresses) if owner == name)
            for name in sorted(self.subs)
        )

    def shown_neighbours(self, uptime: float) -> str:
        """Return its rows of ``show ip neighbors``."""
        return "".join(
            f"{uptime:12.4f}{address:>39}{'S':>5}{mac:>21} {name}\n"
            for (name, address), mac in sorted(self.neighbours.items())
        )

    def _turn(self, rows: set[str], name: str, on: bool) -> str:
        (rows.add if on else rows.discard)(name)
        return ""

    def _enable(self, found: re.Match[str]) -> str:
        return self._turn(self.ip6, found["name"], found["how"] == "enable")

    def _shown_ip6(self, found: re.Match[str]) -> str:
        return f"{found['name']} is admin up\n" if found["name"] in self.ip6 else "IP6 disabled\n"

    def _shown_tables(self, found: re.Match[str]) -> str:
        numbers = ["0", *sorted(number for family, number in self.tables if family == found["family"])]
        version = 6 if found["family"] == "ip6" else 4
        return "".join(f"[{at}] table_id:{number} ipv{version}-VRF:{number}\n" for at, number in enumerate(numbers))

    def _table(self, found: re.Match[str]) -> str:
        row = (found["family"], found["table"])
        (self.tables.add if found["how"] == "add" else self.tables.discard)(row)
        return ""

    def _create(self, found: re.Match[str]) -> str:
        name, tags = f"{found['link']}.{found['number']}", f"{found['link']} {found['tags']}"
        if name in self.subs or tags in self.subs.values():
            raise FrameError("create sub-interfaces: sub-interface already exists")
        self.subs[name] = tags
        return f"{name}\n"

    def _delete(self, found: re.Match[str]) -> str:
        name = found["name"]
        if name not in self.subs:
            raise FrameError(f"delete sub-interface: {name} is no sub-interface")
        del self.subs[name]
        self.up.discard(name)
        self.ip6.discard(name)
        self.addresses = {row for row in self.addresses if row[0] != name}
        self.neighbours = {key: mac for key, mac in self.neighbours.items() if key[0] != name}
        self.routes = {row for row in self.routes if row[4] != name}
        return ""

    def _bind(self, found: re.Match[str]) -> str:
        if found["table"] != "0" and (found["family"], found["table"]) not in self.tables:
            raise FrameError(f"set interface {found['family']} table: no such table {found['table']}")
        return ""

    def _state(self, found: re.Match[str]) -> str | None:
        return self._turn(self.up, found["name"], found["how"] == "up") if found["name"] in self.subs else None

    def _address(self, found: re.Match[str]) -> str | None:
        if found["name"] not in self.subs:
            return None
        row = (found["name"], found["address"])
        if found["del"] and row not in self.addresses:
            raise FrameError(f"set interface ip address: Address not found on interface {row[0]}: {row[1]}")
        (self.addresses.discard if found["del"] else self.addresses.add)(row)
        return ""

    def _neighbour(self, found: re.Match[str]) -> str | None:
        key = (found["name"], found["address"])
        if found["name"] not in self.subs and ":" not in found["address"]:
            return None
        if found["del"]:
            self.neighbours.pop(key, None)
        else:
            self.neighbours[key] = found["mac"].lower()
        return ""

    def _route(self, found: re.Match[str]) -> str | None:
        family = "ip6" if ":" in found["prefix"] else "ip"
        if not found["table"] and family == "ip":
            return None
        row = (family, found["table"] or "0", found["prefix"], found["hop"], found["name"])
        if found["how"] == "del" and row not in self.routes:
            raise FrameError("ip route: no such route")
        (self.routes.add if found["how"] == "add" else self.routes.discard)(row)
        return ""

    def _shown_routes(self, found: re.Match[str]) -> str | None:
        family, table = found["family"], found["table"] or "0"
        if family == "ip" and table == "0":
            return None
        wanted = [row for row in sorted(self.routes) if row[:3] == (family, table, found["prefix"])]
        return "".join(f"{row[2]} fib:1 index:20 locks:2\n    {row[3]} {row[4]}\n" for row in wanted) or "no route\n"

    def _mpls_table(self, found: re.Match[str]) -> str:
        self.mpls_table = found["how"] == "add"
        return ""

    def _mpls_interface(self, found: re.Match[str]) -> str:
        return self._turn(self.mpls, found["name"], found["how"] == "enable")

    def _label(self, found: re.Match[str]) -> str:
        if not self.mpls_table:
            raise FrameError("mpls local-label: no such table 0")
        row = (found["bottom"], found["label"], found["hop"], found["name"])
        (self.labels.add if found["how"] == "add" else self.labels.discard)(row)
        return ""

    def _shown_labels(self, found: re.Match[str]) -> str:
        head = "MPLS-VRF:0, fib_index:0 locks:[CLI:1, ]\n" if self.mpls_table else ""
        return head + "".join(
            f"{label}:{'eos' if bottom == 'eos' else 'neos'}/21 fib:0 index:25 locks:2\n    {hop} {name}\n"
            f"      Extensions:\n       path:30  labels:[[{label} pipe ttl:0 exp:0]]\n"
            for bottom, label, hop, name in sorted(self.labels)
            if label == found["label"]
        )


_NAME, _HOP = r"(?P<name>\S+)", r"(?P<hop>[0-9a-f.:]+)"
_COMMANDS: tuple[tuple[re.Pattern[str], Callable[[VppFrames, re.Match[str]], str | None]], ...] = tuple(
    (re.compile(pattern), handler)
    for pattern, handler in (
        (rf"(?P<how>enable|disable) ip6 interface {_NAME}", VppFrames._enable),
        (rf"show ip6 interface {_NAME}", VppFrames._shown_ip6),
        (rf"ip6 nd {_NAME} (?:no )?ra-suppress", lambda frames, found: ""),
        (r"show (?P<family>ip6?) table", VppFrames._shown_tables),
        (r"(?P<family>ip6?) table (?P<how>add|del) (?P<table>\d+)", VppFrames._table),
        (
            r"create sub-interfaces (?P<link>\S+) (?P<number>\d+) (?P<tags>dot1(?:q|ad) \d+(?: inner-dot1q \d+)?)"
            r" exact-match",
            VppFrames._create,
        ),
        (rf"delete sub-interface {_NAME}", VppFrames._delete),
        (rf"set interface (?P<family>ip6?) table {_NAME} (?P<table>\d+)", VppFrames._bind),
        (rf"set interface state {_NAME} (?P<how>up|down)", VppFrames._state),
        (rf"set interface ip address (?P<del>del )?{_NAME} (?P<address>\S+)", VppFrames._address),
        (
            rf"set ip neighbor (?P<del>del )?{_NAME} (?P<address>[0-9a-f.:]+) (?P<mac>[0-9a-fA-F:]{{17}})(?: static)?",
            VppFrames._neighbour,
        ),
        (
            rf"ip route (?P<how>add|del) (?P<prefix>\S+)(?: table (?P<table>\d+))? via {_HOP} {_NAME}",
            VppFrames._route,
        ),
        (r"show (?P<family>ip6?) fib(?: table (?P<table>\d+))? (?P<prefix>[0-9a-f.:]+/\d+)", VppFrames._shown_routes),
        (r"mpls table (?P<how>add|del) 0", VppFrames._mpls_table),
        (r"show mpls interface", lambda frames, found: "".join(f"{name}\n" for name in sorted(frames.mpls))),
        (rf"set interface mpls {_NAME} (?P<how>enable|disable)", VppFrames._mpls_interface),
        (r"show mpls fib (?P<label>\d+)", VppFrames._shown_labels),
        (
            rf"mpls local-label (?P<how>add|del) (?P<bottom>(?:non-)?eos) (?P<label>\d+) via {_HOP} {_NAME}"
            r" out-labels (?P=label)",
            VppFrames._label,
        ),
    )
)
