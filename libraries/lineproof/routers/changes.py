"""A change of a router: the command that makes it, the one that undoes it, and whether what it set is still there.

An undo that names all it removes (``ip addr del 100.65.1.1/24 dev eth1``) needs no look: it finds it, or nothing. Nor
does one that sets one of two states (``down``): who has changed it since has set the same. One that sets a value, or
removes whatever is there, would take somebody's own. What the run set is in its change's command, which the journal
has; here is how a router shows it.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..platforms import VARIABLE, VARIABLE_VALUE
from .command_file import CommandFile, LookQuery
from .queries import WORD_IN_BRACES, filled, plain_mac
from .shell_output import counter_value, parser
from .vpp_output import parse_neighbours


@dataclass(frozen=True, slots=True)
class Change:
    """A command as words, and its opposite. *silent*: any output means that it failed.

    *lines*: each is a list of whole commands instead, for a command line that is no POSIX shell. *whole*: the opposite
    restores a saved configuration, so that no refusal means that the change is gone already.
    """

    do: tuple[str, ...]
    undo: tuple[str, ...]
    silent: bool = False
    lines: bool = False
    whole: bool = False

    @property
    def do_text(self) -> str:
        """Return what makes it, in one line for a person."""
        return _in_one_line(self.do, self.lines)

    @property
    def undo_text(self) -> str:
        """Return what undoes it, in one line for a person."""
        return _in_one_line(self.undo, self.lines)

    def __str__(self) -> str:
        return f"{self.do_text}    (undone by: {self.undo_text})"

    def look(self, file: CommandFile | None = None) -> Look | None:
        """Return how to see whether it is still there, before it is undone; None: its undo can undo nothing else.

        *file*: that describes the router.
        """
        if self.lines and file is not None:
            return described_look(self.undo, self.do, file)
        return None if self.lines else look_before(self.undo, self.do)


def _in_one_line(words: tuple[str, ...], lines: bool) -> str:
    return " / ".join(words) if lines else shlex.join(words)


NONE = "none"
"""In place of a value: there is nothing."""


@dataclass(frozen=True, slots=True)
class Look:
    """*argv* shows a value, which *read* finds in its output. *ours*: what a run has set; *former*: what was before."""

    argv: tuple[str, ...]
    read: Callable[[str], str]
    ours: str
    former: str


Words = Sequence[str]
LookFor = Callable[["re.Match[str]", str], Look]
"""``look(undo, do)``: *undo* as its expression found it, *do* the command that it undoes."""


def look_before(undo: Sequence[str], do: Sequence[str]) -> Look | None:
    """Return how to see whether what *do* has set is still there; None: *undo* removes that, or finds nothing."""
    line = " ".join(undo)
    for pattern, look in _LOOKS:
        if found := re.fullmatch(pattern, line):
            with contextlib.suppress(ValueError):  # a study's change, undone by a command of another kind
                return look(found, " ".join(do))
    return None


def described_look(undo: Sequence[str], do: Sequence[str], file: CommandFile) -> Look | None:
    """Return the same for a router that *file* describes; None: the file has no look for it.

    A value that is not found is no one else's: what the file's author expected is not there, and its undo finds ours
    or nothing.
    """
    if file.restore and tuple(undo) == file.restore:
        return _described(file.look, {})
    made = "\n".join((*undo, "", *do))
    for change in file.configure:
        described = "\n".join((*change.undo, "", *change.do))
        if change.look and (found := _expression(described).fullmatch(made)):
            return _described(change.look, found.groupdict())
    return None


def _described(query: LookQuery | None, words: Mapping[str, str]) -> Look | None:
    if query is None:
        return None
    mac = query.ours is not None and "{peer_mac" in query.ours
    ours = NONE if query.ours is None else filled(query.ours, words)

    def read(text: str) -> str:
        value = query.read(text).get("value", ours)
        return ours if mac and plain_mac(value) == plain_mac(ours) else value

    return Look((filled(query.run, words),), read, ours, "")


def _expression(text: str) -> re.Pattern[str]:
    parts = WORD_IN_BRACES.split(text)
    seen: set[str] = set()
    found = re.escape(parts[0])
    for word, after in zip(parts[1::2], parts[2::2], strict=True):
        # a word has one value in all lines of a change
        found += (rf"(?P={word})" if word in seen else rf"(?P<{word}>\S+)") + re.escape(after)
        seen.add(word)
    return re.compile(found)


def _found(pattern: str, do: str) -> re.Match[str]:
    found = re.fullmatch(pattern, do)
    if found is None:
        raise ValueError(f"'{do}' is not what it undoes")
    return found


def variable(undo: re.Match[str], do: str) -> Look:
    """``sysctl``."""
    ours = _found(rf"sysctl (?:-w )?{re.escape(undo['name'])}=(?P<value>{VARIABLE_VALUE})", do)["value"]
    return Look(("sysctl", "-n", undo["name"]), lambda text: " ".join(text.split()), ours, undo["value"])


# -- Linux -------------------------------------------------------------------------------------------------------------


def neighbour(undo: re.Match[str], do: str) -> Look:
    """``ip neigh replace PEER lladdr MAC nud permanent dev X``; any other kind of entry is the kernel's own."""
    peer, name = undo["peer"], undo["name"]
    pattern = rf"ip neigh replace {re.escape(peer)} lladdr (?P<mac>\S+) nud permanent dev {re.escape(name)}"

    def read(text: str) -> str:
        words = text.split()
        permanent = words[-1:] == ["PERMANENT"] and "lladdr" in words[:-2]
        return words[words.index("lladdr") + 1] if permanent else NONE

    former = undo.groupdict().get("mac") or NONE
    return Look(("ip", "neigh", "show", peer, "dev", name), read, _found(pattern, do)["mac"], former)


def route(undo: re.Match[str], do: str) -> Look:
    """``ip route replace``: the route to the same destination that has no metric."""
    family = undo["family"] or ""
    words = _found(rf"ip {re.escape(family)}route replace (?P<words>.+)", do)["words"].split()
    ends = [words.index(option) for option in ("onlink", "table") if option in words]
    wanted = words[: min(ends, default=len(words))]
    table = tuple(words[words.index("table") :]) if "table" in words else ()
    former = undo["words"].split()
    if table:
        former = former[: former.index("table")] if "table" in former else former
    options = family.split() or ["-4"]

    def read(text: str) -> str:
        rows = replaced_rows(route_rows(text), "-6" in options)
        if any(_same_route(row, wanted) for row in rows):
            return " ".join(wanted)
        return " ".join(rows[0]) if rows else NONE

    argv = ("ip", *options, "route", "show", wanted[0], *table)
    return Look(argv, read, " ".join(wanted), NONE if undo["verb"] == "del" else " ".join(former))


def _same_route(row: Words, wanted: Words) -> bool:
    """Whether *row* of ``ip route show`` begins with *wanted*; a single host is shown without its prefix length."""
    return _destination(row[0]) == _destination(wanted[0]) and list(row[1 : len(wanted)]) == list(wanted[1:])


def _destination(word: str) -> str:
    try:
        return str(ipaddress.ip_network("0.0.0.0/0" if word == "default" else word))
    except ValueError:
        return word  # a label


def card_numbers(undo: re.Match[str], do: str) -> Look:
    """``ethtool -L`` and ``-G``."""
    option, name = undo["option"], undo["name"]
    ours = _found(rf"ethtool {option} {re.escape(name)} (?P<words>.+)", do)["words"]
    keys = ours.split()[::2]

    def read(text: str) -> str:
        current = parse_current(text)
        return " ".join(f"{key} {current.get(key, NONE)}" for key in keys)

    return Look(("ethtool", option.lower(), name), read, ours, undo["words"])


def linux_offload(undo: re.Match[str], do: str) -> Look:
    """``ethtool -K``."""
    name = undo["name"]
    found = _found(rf"ethtool -K {re.escape(name)} (?P<offload>lro|gro|gso|tso) (?P<value>on|off)", do)
    offload, ours = found["offload"], found["value"]
    return Look(("ethtool", "-k", name), lambda text: parse_linux_offload(text, offload), ours, _other(ours))


# -- FreeBSD -----------------------------------------------------------------------------------------------------------


def freebsd_offload(undo: re.Match[str], do: str) -> Look:
    """``ifconfig X -tso``."""
    name = undo["name"]
    found = _found(rf"ifconfig {re.escape(name)} (?P<off>-?)(?P<offload>lro|tso)", do)
    offload, ours = found["offload"], "off" if found["off"] else "on"

    def read(text: str) -> str:
        return "on" if parse_freebsd_offloads(text)[offload] else "off"

    return Look(("ifconfig", name), read, ours, _other(ours))


def alias(undo: re.Match[str], do: str) -> Look:
    """``ifconfig X inet ADDRESS alias``, which gives an address that is there another prefix."""
    name = undo["name"]
    ours = _found(rf"ifconfig {re.escape(name)} inet (?P<address>[0-9./]+) alias", do)["address"]
    ip = ours.partition("/")[0]

    def read(text: str) -> str:
        return next((f"{each}/{length}" for each, length in parse_inet(text) if each == ip), NONE)

    return Look(("ifconfig", name), read, ours, undo["address"] if undo["verb"] == "alias" else NONE)


def arp(undo: re.Match[str], do: str) -> Look:
    """``arp -S PEER MAC``."""
    peer = undo["peer"]
    ours = _found(rf"arp -S {re.escape(peer)} (?P<mac>\S+)", do)["mac"]

    def read(text: str) -> str:
        entry = re.search(rf"\({re.escape(peer)}\) at (\S+) on \S+ permanent", text)
        return entry[1].lower() if entry else NONE

    return Look(("arp", "-an"), read, ours, (undo.groupdict().get("mac") or NONE).lower())


def freebsd_route(undo: re.Match[str], do: str) -> Look:
    """``route add`` and ``route change``."""
    network = undo["network"]
    ours = _found(rf"route (?:add|change) -net {re.escape(network)} (?P<gateway>\S+)", do)["gateway"]

    def read(text: str) -> str:
        rows = (row.split() for row in text.splitlines())
        return next((row[1] for row in rows if len(row) > 1 and _destination(row[0]) == _destination(network)), NONE)

    return Look(("netstat", "-rnW", "-f", "inet"), read, ours, NONE if undo["verb"] == "delete" else undo["gateway"])


# -- VPP ---------------------------------------------------------------------------------------------------------------


def vpp_neighbour(undo: re.Match[str], do: str) -> Look:
    """``set ip neighbor X PEER MAC static``."""
    name, peer = undo["name"], undo["peer"]
    pattern = rf"vppctl set ip neighbor {re.escape(name)} {re.escape(peer)} (?P<mac>\S+) static"

    def read(text: str) -> str:
        there = {(owner, ip): mac for owner, ip, mac, static in parse_neighbours(text) if static}
        return there.get((name, peer), NONE)

    former = NONE if undo["verb"] else undo["mac"]
    return Look(("vppctl", "show", "ip", "neighbors"), read, _found(pattern, do)["mac"], former)


def _other(value: str) -> str:
    return "off" if value == "on" else "on"


_NAME, _PEER, _MAC = r"(?P<name>\S+)", r"(?P<peer>[0-9A-Fa-f.:]+)", r"(?P<mac>[0-9A-Fa-f:]{17})"
_VARIABLE = rf"(?P<name>{VARIABLE})=(?P<value>{VARIABLE_VALUE})"
_LOOKS: tuple[tuple[str, LookFor], ...] = (
    (rf"ip neigh del {_PEER} dev {_NAME}", neighbour),
    (rf"ip neigh replace {_PEER} lladdr {_MAC} nud permanent dev {_NAME}", neighbour),
    (r"ip (?P<family>-[46] |-f mpls )?route (?P<verb>del|replace) (?P<words>.+)", route),
    (rf"sysctl (?:-w )?{_VARIABLE}(?: {VARIABLE}={VARIABLE_VALUE})*", variable),
    (rf"ethtool (?P<option>-[LG]) {_NAME} (?P<words>.+)", card_numbers),
    (rf"ethtool -K {_NAME} .+", linux_offload),
    (rf"ifconfig {_NAME}(?: -?(?:lro|tso[46]?))+", freebsd_offload),
    (rf"ifconfig {_NAME} inet (?P<address>\S+) (?P<verb>-?alias)", alias),
    (rf"arp -d {_PEER}", arp),
    (rf"arp -S {_PEER} {_MAC}", arp),
    (r"route (?P<verb>delete|change) -net (?P<network>\S+) (?P<gateway>\S+)", freebsd_route),
    (rf"vppctl set ip neighbor (?P<verb>del ){_NAME} {_PEER} {_MAC}", vpp_neighbour),
    (rf"vppctl set ip neighbor (?P<verb>){_NAME} {_PEER} {_MAC} static", vpp_neighbour),
)
"""Undo commands that need a look first, with how to look."""


_LINUX_OFFLOADS = {
    "lro": "large-receive-offload",
    "gro": "generic-receive-offload",
    "gso": "generic-segmentation-offload",
    "tso": "tcp-segmentation-offload",
}
_NOT_ACCEPTED = frozenset({"dead", "linkdown", "offload", "rt_offload", "trap", "rt_trap", "pervasive"})
"""Words that ``ip route show`` prints and ``ip route replace`` does not take."""


def route_rows(text: str) -> list[list[str]]:
    """The words of each route of ``ip route show`` that ``ip route replace`` takes."""
    # the next hops of a route that has several are lines of their own, indented
    lines = re.sub(r"\n\s+", " ", text.strip()).splitlines()
    return [[word for word in line.split() if word not in _NOT_ACCEPTED] for line in lines]


def replaced_rows(rows: Iterable[Sequence[str]], ipv6: bool) -> list[Sequence[str]]:
    """Return those of *rows*, to one destination, whose place ``ip route replace`` without a metric takes."""
    return [row for row in rows if _is_replaced(row, ipv6)]


def _is_replaced(row: Sequence[str], ipv6: bool) -> bool:
    metric = next(iter(row[row.index("metric") + 1 :]), "") if "metric" in row else "0"
    return bool(row) and metric == ("1024" if ipv6 else "0") and "tos" not in row


@parser("'ethtool -l' or '-g'")
def parse_current(text: str) -> dict[str, int]:
    """The second half of it: queues or frames by their name in lower case."""
    _, found, current = text.partition("Current hardware settings:")
    if not found:
        raise ValueError("without current settings")
    rows = re.findall(r"^(\w+):\s+([0-9]+)\s*$", current, re.MULTILINE)
    return {key.lower(): counter_value(count) for key, count in rows}


@parser("'ethtool -k'")
def parse_linux_offload(text: str, offload: str) -> str:
    """Return whether *offload* is ``on`` or ``off``."""
    found = re.search(rf"^{_LINUX_OFFLOADS[offload]}: (on|off)\b", text, re.MULTILINE)
    if not found:
        raise ValueError(f"without {_LINUX_OFFLOADS[offload]}")
    return found[1]


@parser("'ifconfig'")
def parse_freebsd_offloads(text: str) -> dict[str, tuple[str, ...]]:
    """The words of ``ifconfig`` for those that are on: ``options=…<…,LRO,TSO4>``; it prints none where none is."""
    if not re.match(r"\S+: flags=", text):
        raise ValueError("without flags")
    found = re.search(r"^\s+options=[0-9a-f]+<([^>]*)>", text, re.MULTILINE)
    on = set(found[1].split(",")) if found else set()
    words = {"lro": ("lro",), "tso": ("tso4", "tso6")}
    return {offload: tuple(word for word in parts if word.upper() in on) for offload, parts in words.items()}


@parser("'ifconfig'")
def parse_inet(text: str) -> frozenset[tuple[str, int]]:
    """IPv4 (address, prefix length) pairs of ``ifconfig``; the netmask is hexadecimal, dotted or CIDR."""
    found = set()
    for row in re.finditer(r"\binet (\d+\.\d+\.\d+\.\d+)(?:/(\d+)|.*? netmask (\S+))", text):
        address, length, mask = row.groups()
        if not length:
            length = (int(mask, 16) if mask.startswith("0x") else int(ipaddress.IPv4Address(mask))).bit_count()
        found.add((address, int(length)))
    return frozenset(found)
