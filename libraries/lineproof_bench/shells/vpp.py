"""``vppctl`` of a simulated VPP router. Like the real one it prints errors to standard output and exits with 0.

Commands are taken as they are written out in full. Nothing sets the router up for IPv6, tags and labels here: which
such frames are forwarded is the testbed's ``set_up``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeVar

from lineproof.simulation import BY_A_MODEL

from ..state import InterfaceState, NodeState, RouterState, ThreadState
from . import linux
from .machine import CommandLine, CommandOutput, Commands, Patterns, UnknownInterface, Words, answer

T = TypeVar("T")


def software() -> Commands:
    """Return the commands of a Linux machine whose interfaces under test belong to VPP."""
    return {**linux.software(own=False), "vppctl": _run}


def _run(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
    """Run one command."""
    text = " ".join(" ".join(arguments).split())
    head, _, rest = text.partition(" ")
    try:
        output = answer(_COMMANDS, text, line)
    except UnknownInterface as name:
        output = f"{text.partition(f' {name}')[0]}: unknown interface `{name}'\n"
    if output is None:
        is_known = rest and head in ("show", "set", "clear", "ip")
        output = f"{head}: unknown input `{rest}'\n" if is_known else f"unknown input `{text}'\n"
    return CommandOutput(output.replace("\n", "\r\n"))


def _addresses(words: Words, line: CommandLine) -> str:
    configuration = line.configuration
    return "".join(
        f"{name} ({'up' if name in configuration.up else 'dn'}):\n"
        + "".join(f"  L3 {address}\n" for owner, address in configuration.addresses if owner == name)
        for name in sorted([*(one.name for one in line.state.interfaces), "local0"])
    )


def _neighbours(words: Words, line: CommandLine) -> str:
    configuration, uptime = line.configuration, line.state.uptime
    text = titles(("Age", 12), ("IP", 40), ("Flags", 6), ("Ethernet", 20), ("Interface", 24))
    for name, address, mac in configuration.neighbours:
        flag = "D" if configuration.is_learned(name, address) else "S"
        text += f"{uptime:12.4f}{centred(address, 40)}{centred(flag, 6)}{centred(mac, 20)}{name}\n"
    return text


def _fib(words: Words, line: CommandLine) -> str:
    """``show ip fib PREFIX``; without a way of its own the default route, which drops."""
    configuration, prefix = line.configuration, words["prefix"]
    text = (
        "ipv4-VRF:0, fib_index:0, flow hash:[src dst sport dport proto flowlabel ] epoch:0 flags:none"
        " locks:[adjacency:1, default-route:1, ]\n"
    )
    hops = [hop for own, hop in configuration.routes if own == prefix]
    text += f"{prefix} fib:0 index:18 locks:2\n" if hops else "0.0.0.0/0 fib:0 index:0 locks:2\n"
    text += "" if hops else "  default-route refs:1\n  [@0]: dpo-drop ip4\n"
    return text + "".join(
        f"      path:[{28 + at}] pl-index:24 ip4 weight=1 pref=0 attached-nexthop:  oper-flags:resolved,\n"
        f"        {hop} {configuration.interface_towards(hop) or 'unresolved'}\n"
        for at, hop in enumerate(hops)
    )


def _clear(words: Words, line: CommandLine) -> str:
    line.clear()
    return ""


def _changed(rows: tuple[T, ...], row: T, words: Words) -> tuple[T, ...]:
    """Return *rows* without *row*, or with it as the last one, as *words* say."""
    others = tuple(other for other in rows if other != row)
    return others if words["off"] else (*others, row)


def _link(words: Words, line: CommandLine) -> str:
    line.change(up=_changed(line.configuration.up, words["name"], words))
    return ""


def _address(words: Words, line: CommandLine) -> str:
    line.change(addresses=_changed(line.configuration.addresses, (words["name"], words["address"]), words))
    return ""


def _neighbour(words: Words, line: CommandLine) -> str:
    """``set ip neighbor``; what is not 'static' is as if it were learned."""
    row, before = (words["name"], words["address"], words["mac"].lower()), line.configuration
    without = before.without_neighbour(*row[:2])
    line.configure(without if words["off"] else before.with_neighbour(row, learned=not words["static"]))
    return ""


def _route(words: Words, line: CommandLine) -> str:
    line.change(routes=_changed(line.configuration.routes, (words["prefix"], words["hop"]), words))
    return ""


_NAME, _HOP, _PREFIX = r"(?P<name>\S+)", r"(?P<hop>[\d.]+)", r"(?P<prefix>[\d.]+/\d+)"
_ENTRY = r"(?P<address>[0-9a-f.:]+) (?P<mac>[0-9a-fA-F:]{17})(?P<static> static)?"
_COMMANDS: Patterns = {
    "show version": lambda words, line: (
        f"vpp v{line.state.version.removeprefix('v')} built by SIMULATED on {line.state.hostname}"
        " at 1970-01-01T00:00:00\n"
    ),
    "show runtime": lambda words, line: runtime(line.state),
    "show interface": lambda words, line: interfaces(line.state),
    "show interface rx-placement": lambda words, line: _placement(line.state),
    "show hardware-interfaces": lambda words, line: _hardware(line.state),
    "show errors": lambda words, line: errors(line.state),
    "show threads": lambda words, line: _threads(line.state),
    "show clock": lambda words, line: f"Time now {line.state.uptime:.6f}, SIMULATED\n",
    "show cpu": lambda words, line: (
        f"Model name:               {BY_A_MODEL}\nBase frequency:           {line.state.clock_hz / 1e9:.4f} GHz\n"
    ),
    "show interface address": _addresses,
    "show ip neighbors": _neighbours,
    rf"show ip fib {_PREFIX}": _fib,
    "clear runtime": _clear,
    rf"set interface state {_NAME} (?:up|(?P<off>down))": _link,
    rf"set interface ip address (?P<off>del )?{_NAME} (?P<address>\d+(?:\.\d+){{3}}/\d+)": _address,
    rf"set ip neighbor (?P<off>del )?{_NAME} {_ENTRY}": _neighbour,
    rf"ip route (?:add|(?P<off>del)) {_PREFIX} via {_HOP}(?: {_NAME})?": _route,
}


def centred(text: str, width: int) -> str:
    """Return *text* centred, the odd blank on the left, cut at *width*."""
    text = text[:width]
    left = (width - len(text) + 1) // 2
    return " " * left + text + " " * (width - len(text) - left)


def titles(*columns: tuple[str, int]) -> str:
    """Return a line with the title of each column, centred in its width."""
    return "".join(centred(title, width) for title, width in columns) + "\n"


def scientific(value: float, digits: int) -> str:
    """Return *value* as ``1.0989e5``: an exponent without sign and zeros."""
    mantissa, exponent = f"{value:.{digits}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def _threads_of(state: RouterState) -> tuple[ThreadState, ...]:
    """Return the threads, with the main one that every VPP has where the model lists workers only."""
    if state.threads and state.threads[0].name.startswith("vpp_wk"):
        return (ThreadState("vpp_main", 0), *state.threads)
    return state.threads


def runtime(state: RouterState) -> str:
    """``show runtime``. ``Clocks`` became ``Packet-Clocks`` in v26.02."""
    threads, blocks = _threads_of(state), []
    release = re.search(r"(\d+)\.(\d+)", state.version)
    clocks = "Packet-Clocks" if release and (int(release[1]), int(release[2])) >= (26, 2) else "Clocks"
    columns = ("Calls", "Vectors", "Suspends", clocks, "Vectors/Call")
    for index, thread in enumerate(threads):
        text = f"Thread {index} {thread.name} (lcore {thread.lcore})\n" if len(threads) > 1 else ""
        text += _rates(thread, max(state.since_clear, 1e-9))
        text += titles(("Name", 30), ("State", 12), *((column, 16) for column in columns))
        shown = (node for node in thread.nodes if node.calls or node.vectors)
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
    clocks = node.clocks / (node.vectors or node.calls or 1)
    # without the zero before the point
    per_call = f"{node.vectors / node.calls:.2f}".removeprefix("0") if node.vectors and node.calls else "0.00"
    return (
        f"{node.name[:30]:30}{centred(node.state, 12)}{node.calls:16d}{node.vectors:16d}{0:16d}"
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


def _placement(state: RouterState) -> str:
    """``show interface rx-placement``."""
    text = ""
    for index, thread in enumerate(_threads_of(state)):
        if not thread.queues:
            continue
        node = next((node for node in thread.nodes if node.state.startswith(("polling", "interrupt"))), None)
        text += f"Thread {index} ({thread.name}):\n node {node.name if node else 'dpdk-input'}:\n"
        text += "".join(f"    {interface} queue {queue} (polling)\n" for interface, queue in thread.queues)
    return text


def _threads(state: RouterState) -> str:
    """``show threads``."""
    text = f"{'ID':7}{'Name':20}{'Type':12}{'LWP':8}{'Sched Policy (Priority)':25}{'lcore':7}\n"
    for index, thread in enumerate(_threads_of(state)):
        kind = "workers" if thread.name.startswith("vpp_wk") else ""
        text += f"{index:<7}{thread.name:20}{kind:12}{index + 1:<8}{'other (0)':25}{thread.lcore:<7}\n"
    return text


def _hardware(state: RouterState) -> str:
    """``show hardware-interfaces``, in short."""
    text = titles(("Name", 32), ("Idx", 5), ("Link", 8), ("  Hardware", 10))
    for number, interface in enumerate(state.interfaces, 1):
        link = "up" if interface.link_up else "down"
        text += f"{interface.name[:32]:32}{centred(str(number), 5)}{centred(link, 8)}  {interface.name}\n"
        text += f"  Link speed: {interface.speed_bps / 1e9:g} Gbps\n  RX Queues:\n    queue thread         mode      \n"
        for index, thread in enumerate(_threads_of(state)):
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
