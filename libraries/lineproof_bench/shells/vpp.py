"""``vppctl`` of a simulated VPP router. Like the real one it prints errors to standard output and exits with 0.

Commands are taken as they are written out in full. IPv6, sub-interfaces with tags, their tables, and MPLS labels are
kept here and by no model: which such frames are forwarded is the testbed's ``set_up``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from lineproof.simulation import BY_A_MODEL

from ..state import InterfaceState, NodeState, RouterState, ThreadState
from . import linux
from .machine import CommandLine, CommandOutput, Commands

Words = Mapping[str, str]
"""The words of a command by their names; "" for one that may be left out, and was."""

_HEADS = ("show", "set", "clear", "enable", "disable", "create", "delete", "ip", "ip6", "mpls")


class VppError(Exception):
    """VPP's message for a command that it refuses."""


def software() -> Commands:
    """A Linux machine whose interfaces under test belong to VPP."""
    return {**linux.software(own=False), "vppctl": _Console().run}


class _Console:
    """VPP's command line, and the settings that no model keeps: each a row of its kind and its words."""

    def __init__(self) -> None:
        self._rows: set[tuple[str, ...]] = set()

    def run(self, arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        """Run one command."""
        text = " ".join(" ".join(arguments).split())
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
        (self._rows.discard if words.get("off") else self._rows.add)(row)
        return ""

    # -- what it shows

    def addresses(self, words: Words, line: CommandLine) -> str:
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
        configuration = line.state.configuration
        rows = [(*row, "D" if configuration.is_learned(*row[:2]) else "S") for row in configuration.neighbours]
        rows += [(name, address, mac, "S") for _, name, address, mac in self._kept("neighbour")]
        return neighbour_table(line.state.uptime, rows)

    def fib(self, words: Words, line: CommandLine) -> str:
        key, family, configuration = _route_key(words), words["family"], line.state.configuration
        found = [row[4:] for row in self._kept("route", *key)]
        if key[:2] == ("ip", "0"):
            hops = [hop for prefix, hop in configuration.routes if prefix == words["prefix"]]
            found = [(hop, configuration.interface_towards(hop) or "unresolved") for hop in hops]
        return fib_entry(4 if family == "ip" else 6, key[1], words["prefix"], found)

    def tables(self, words: Words, line: CommandLine) -> str:
        version = 6 if words["family"] == "ip6" else 4
        numbers = ["0", *(row[2] for row in self._kept("table", words["family"]))]
        return "".join(f"[{at}] table_id:{number} ipv{version}-VRF:{number}\n" for at, number in enumerate(numbers))

    def ip6(self, words: Words, line: CommandLine) -> str:
        return f"{words['name']} is admin up\n" if self._kept("ip6", words["name"]) else "IP6 disabled\n"

    def labels(self, words: Words, line: CommandLine) -> str:
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
        line.clear()
        return ""

    def state(self, words: Words, line: CommandLine) -> str:
        name = words["name"]
        if name not in _names(line):
            return self._keep(("up", name), words)
        up = tuple(other for other in line.state.configuration.up if other != name)
        return _change(line, up=up if words["off"] else (*up, name))

    def address(self, words: Words, line: CommandLine) -> str:
        name, _ = row = words["name"], words["address"]
        there = line.state.configuration.addresses
        if name not in _names(line):
            return self._keep(("address", *row), words)
        if words["off"]:
            return _change(line, addresses=tuple(other for other in there if other != row))
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
        key, row = _route_key(words), (words["prefix"], words["hop"])
        kept, there = ("route", *key, words["hop"], words["name"]), line.state.configuration.routes
        if key[:2] != ("ip", "0"):
            return self._keep(kept, words)
        others = tuple(other for other in there if other != row)
        return _change(line, routes=others if words["off"] else (*others, row))

    def create(self, words: Words, line: CommandLine) -> str:
        name, tags = f"{words['link']}.{words['number']}", f"{words['link']} {words['tags']}"
        self._rows.add(("sub", name, tags))
        return f"{name}\n"

    def delete(self, words: Words, line: CommandLine) -> str:
        self._rows = {row for row in self._rows if words["name"] not in row}
        return ""


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


Handler = Callable[[_Console, Words, CommandLine], str]
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
        ("show runtime", lambda vpp, words, line: runtime(line.state)),
        ("show interface", lambda vpp, words, line: interfaces(line.state)),
        ("show interface rx-placement", lambda vpp, words, line: placement(line.state)),
        ("show hardware-interfaces", lambda vpp, words, line: hardware(line.state)),
        ("show errors", lambda vpp, words, line: errors(line.state)),
        ("show threads", lambda vpp, words, line: threads(line.state)),
        ("show clock", lambda vpp, words, line: f"Time now {line.state.uptime:.6f}, SIMULATED\n"),
        (
            "show cpu",
            lambda vpp, words, line: (
                f"Model name:               {BY_A_MODEL}\n"
                f"Base frequency:           {line.state.clock_hz / 1e9:.4f} GHz\n"
            ),
        ),
        ("show interface address", _Console.addresses),
        ("show ip neighbors", _Console.neighbours),
        (rf"show (?P<family>ip6?) fib{_TABLE} {_PREFIX}", _Console.fib),
        (r"show (?P<family>ip6?) table", _Console.tables),
        (rf"show ip6 interface {_NAME}", _Console.ip6),
        (
            "show mpls interface",
            lambda vpp, words, line: "".join(f"{name}\n  MPLS enabled\n" for _, name in vpp._kept("mpls")),
        ),
        (r"show mpls fib (?P<label>\d+)", _Console.labels),
        ("clear runtime", _Console.clear),
        (rf"set interface state {_NAME} (?:up|(?P<off>down))", _Console.state),
        (rf"set interface ip address (?P<off>del )?{_NAME} (?P<address>\d+(?:\.\d+){{3}}/\d+)", _Console.address),
        (
            rf"set ip neighbor (?P<off>del )?{_NAME} (?P<address>[0-9a-f.:]+) (?P<mac>[0-9a-fA-F:]{{17}})"
            r"(?P<static> static)?",
            _Console.neighbour,
        ),
        (rf"ip route (?:add|(?P<off>del)) {_PREFIX}{_TABLE} via {_HOP}(?: {_NAME})?", _Console.route),
        (
            r"create sub-interfaces (?P<link>\S+) (?P<number>\d+) (?P<tags>dot1(?:q|ad) \d+(?: inner-dot1q \d+)?)"
            r" exact-match",
            _Console.create,
        ),
        (rf"delete sub-interface {_NAME}", _Console.delete),
        (rf"set interface (?P<family>ip6?) table {_NAME} (?P<table>\d+)", _settings("table of", "name", "table")),
        (rf"(?:enable|(?P<off>disable)) ip6 interface {_NAME}", _settings("ip6", "name")),
        (rf"ip6 nd {_NAME} (?P<off>no )?ra-suppress", _settings("quiet", "name")),
        (r"(?P<family>ip6?) table (?:add|(?P<off>del)) (?P<table>\d+)", _settings("table", "family", "table")),
        (r"mpls table (?:add|(?P<off>del)) 0", _settings("labels")),
        (rf"set interface mpls {_NAME} (?:enable|(?P<off>disable))", _settings("mpls", "name")),
        (
            rf"mpls local-label (?:add|(?P<off>del)) (?P<bottom>(?:non-)?eos) (?P<label>\d+) via {_HOP} {_NAME}"
            r" out-labels (?P=label)",
            _settings("label", "bottom", "label", "hop", "name"),
        ),
    )
)


PROCESS_STATES = frozenset({"any wait", "event wait", "time wait", "suspended", "running", "done"})
"""States of process nodes, which VPP prints in quotes."""


def centred(text: str, width: int) -> str:
    """*text* centred, the odd blank on the left, cut at *width*."""
    text = text[:width]
    left = (width - len(text) + 1) // 2
    return " " * left + text + " " * (width - len(text) - left)


def titles(*columns: tuple[str, int]) -> str:
    """A line with the title of each column, centred in its width."""
    return "".join(centred(title, width) for title, width in columns) + "\n"


def scientific(value: float, digits: int) -> str:
    """``1.0989e5``: an exponent without sign and zeros."""
    mantissa, exponent = f"{value:.{digits}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def threads_of(state: RouterState) -> tuple[ThreadState, ...]:
    """The threads, with the main one that every VPP has where the model lists workers only."""
    if state.threads and state.threads[0].name.startswith("vpp_wk"):
        return (ThreadState("vpp_main", 0), *state.threads)
    return state.threads


def runtime(state: RouterState) -> str:
    """``show runtime``. ``Clocks`` became ``Packet-Clocks`` in v26.02."""
    threads, blocks = threads_of(state), []
    release = re.search(r"(\d+)\.(\d+)", state.version)
    clocks = "Packet-Clocks" if release and (int(release[1]), int(release[2])) >= (26, 2) else "Clocks"
    columns = ("Calls", "Vectors", "Suspends", clocks, "Vectors/Call")
    for index, thread in enumerate(threads):
        text = f"Thread {index} {thread.name} (lcore {thread.lcore})\n" if len(threads) > 1 else ""
        text += _rates(thread, max(state.since_clear, 1e-9))
        text += titles(("Name", 30), ("State", 12), *((column, 16) for column in columns))
        shown = (node for node in thread.nodes if node.calls or node.vectors or node.suspends)
        blocks.append(text + "".join(_node(node) for node in sorted(shown, key=lambda node: node.name)))
    return "---------------\n".join(blocks)


def _rates(thread: ThreadState, time: float) -> str:
    def total(nodes: Iterable[NodeState]) -> str:
        return scientific(sum(node.vectors for node in nodes) / time, 4)

    inputs = [node for node in thread.nodes if node.state.startswith(("polling", "interrupt"))]
    active = [node for node in thread.nodes if node.state == "active" and node.calls]
    per_call = max((node.vectors / node.calls for node in active), default=0.0)
    loops = max((node.calls for node in inputs), default=0) / time
    return (
        f"Time {time:.1f}, 10 sec internal node vector rate {per_call:.2f} loops/sec {loops:.2f}\n"
        f"  vector rates in {total(inputs)}, out {total(n for n in thread.nodes if n.name.endswith('-tx'))},"
        f" drop {total(n for n in thread.nodes if n.name == 'error-drop')}, punt 0.0000e0\n"
    )


def _node(node: NodeState) -> str:
    state = f'"{node.state}"' if node.state in PROCESS_STATES else node.state
    clocks = node.clocks / (node.vectors or node.calls or node.suspends or 1)
    # without the zero before the point
    per_call = f"{node.vectors / node.calls:.2f}".removeprefix("0") if node.vectors and node.calls else "0.00"
    return (
        f"{node.name[:30]:30}{centred(state, 12)}{node.calls:16d}{node.vectors:16d}{node.suspends:16d}"
        f"{scientific(clocks, 2):>16}{per_call:>16}\n"
    )


def interfaces(state: RouterState) -> str:
    """``show interface``."""
    text = titles(
        ("Name", 32), ("Idx", 5), ("State", 10), ("MTU (L3/IP4/IP6/MPLS)", 21), ("Counter", 16), ("Count", 16)
    )
    rows = [(interface.name, at, "9000/0/0/0", _counts(interface)) for at, interface in enumerate(state.interfaces, 1)]
    for name, index, mtu, counts in sorted([*rows, ("local0", 0, "0/0/0/0", [""])]):
        up = "up" if name in state.configuration.up else "down"
        start = f"{name[:32]:32}{centred(str(index), 5)}{centred(up, 10)}{centred(mtu, 21)}"
        text += start + f"\n{'':{len(start)}}".join(counts) + "\n"
    return text


def _counts(interface: InterfaceState) -> list[str]:
    counts = [
        ("rx packets", interface.rx_packets),
        ("rx bytes", interface.rx_bytes),
        ("tx packets", interface.handed),  # before the sending node, which drops what finds no room
        ("tx bytes", interface.tx_bytes),
        ("drops", interface.no_route),
        ("ip4", interface.rx_packets),
        ("rx-miss", interface.rx_missed),
        ("rx-error", interface.rx_damaged),
        ("tx-error", interface.tx_dropped),
    ]
    return [f"{title:16}{count:16d}" for title, count in counts if count] or [""]


def errors(state: RouterState) -> str:
    """``show errors``."""
    unrouted = sum(interface.no_route for interface in state.interfaces)
    # VPP's own RDMA driver and DPDK have different names for a full sending ring
    rdma = any(node.name == "rdma-input" for thread in state.threads for node in thread.nodes)
    full = "no free tx slots" if rdma else "Tx packet drops (dpdk tx failure)"
    rows = [(unrouted, "null-node", "blackholed packets")]
    rows += [(interface.tx_dropped, f"{interface.name}-tx", full) for interface in state.interfaces]
    return titles(("Count", 10), ("Node", 35), ("Reason", 35), ("Severity", 10)) + "".join(
        f"{count:10d}{titles((node, 35), (reason, 35), ('error', 10))}" for count, node, reason in rows if count
    )


def placement(state: RouterState) -> str:
    """``show interface rx-placement``."""
    text = ""
    for index, thread in enumerate(threads_of(state)):
        if not thread.queues:
            continue
        node = next((node for node in thread.nodes if node.state.startswith(("polling", "interrupt"))), None)
        text += f"Thread {index} ({thread.name}):\n node {node.name if node else 'dpdk-input'}:\n"
        text += "".join(f"    {interface} queue {queue} (polling)\n" for interface, queue in thread.queues)
    return text


def threads(state: RouterState) -> str:
    """``show threads``."""
    text = f"{'ID':7}{'Name':20}{'Type':12}{'LWP':8}{'Sched Policy (Priority)':25}{'lcore':7}\n"
    for index, thread in enumerate(threads_of(state)):
        kind = "workers" if thread.name.startswith("vpp_wk") else ""
        text += f"{index:<7}{thread.name:20}{kind:12}{index + 1:<8}{'other (0)':25}{thread.lcore:<7}\n"
    return text


def neighbour_table(uptime: float, rows: Iterable[tuple[str, str, str, str]]) -> str:
    """``show ip neighbors``; *rows*: interface, address, MAC, flag."""
    return titles(("Age", 12), ("IP", 40), ("Flags", 6), ("Ethernet", 20), ("Interface", 24)) + "".join(
        f"{uptime:12.4f}{centred(address, 40)}{centred(flag, 6)}{centred(mac, 20)}{name}\n"
        for name, address, mac, flag in rows
    )


def fib_entry(version: int, table: str, prefix: str, ways: Sequence[tuple[str, ...]]) -> str:
    """``show ip fib PREFIX`` in *table*; *ways*: next hop and interface. Without any the default route, which drops."""
    text = (
        f"ipv{version}-VRF:{table}, fib_index:0, flow hash:[src dst sport dport proto flowlabel ] epoch:0 flags:none"
        " locks:[adjacency:1, default-route:1, ]\n"
    )
    text += f"{prefix} fib:0 index:18 locks:2\n" if ways else "0.0.0.0/0 fib:0 index:0 locks:2\n"
    text += "" if ways else "  default-route refs:1\n  [@0]: dpo-drop ip4\n"
    return text + "".join(
        f"      path:[{28 + at}] pl-index:24 ip{version} weight=1 pref=0 attached-nexthop:  oper-flags:resolved,\n"
        f"        {hop} {interface}\n"
        for at, (hop, interface) in enumerate(ways)
    )


def hardware(state: RouterState) -> str:
    """``show hardware-interfaces``, in short."""
    text = titles(("Name", 32), ("Idx", 5), ("Link", 8), ("  Hardware", 10))
    for number, interface in enumerate(state.interfaces, 1):
        link = "up" if interface.link_up else "down"
        text += f"{interface.name[:32]:32}{centred(str(number), 5)}{centred(link, 8)}  {interface.name}\n"
        text += f"  Link speed: {interface.speed_bps / 1e9:g} Gbps\n  RX Queues:\n    queue thread         mode      \n"
        for index, thread in enumerate(threads_of(state)):
            text += "".join(
                f"    {queue:<5} {f'{thread.name} ({index})':14} polling   \n"
                for name, queue in thread.queues
                if name == interface.name
            )
        text += f"  Ethernet address {interface.mac}\n  {BY_A_MODEL} (simulated)\n"
        # as of DPDK's cards: those extended counters that are not 0
        counts = {"rx_xoff_packets": interface.pauses_received, "tx_xoff_packets": interface.pauses_sent}
        counts |= {"rx_crc_errors": interface.rx_damaged}
        if any(counts.values()):
            text += "    extended stats:\n"
            text += "".join(f"      {name:<34}{count:>15}\n" for name, count in counts.items() if count)
    return f"{text}{'local0':32}{centred('0', 5)}{centred('down', 8)}  local0\n  Link speed: unknown\n  local\n"
