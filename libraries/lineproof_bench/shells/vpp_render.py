"""The output of VPP's command line, from the model's state. Column widths as in VPP v26.10-rc0."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from lineproof.simulation.habits import BY_A_MODEL

from ..state import InterfaceState, NodeState, RouterState, ThreadState

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


def neighbours(uptime: float, rows: Iterable[tuple[str, str, str, str]]) -> str:
    """``show ip neighbors``; *rows*: interface, address, MAC, flag."""
    return titles(("Age", 12), ("IP", 40), ("Flags", 6), ("Ethernet", 20), ("Interface", 24)) + "".join(
        f"{uptime:12.4f}{centred(address, 40)}{centred(flag, 6)}{centred(mac, 20)}{name}\n"
        for name, address, mac, flag in rows
    )


def fib(version: int, table: str, prefix: str, ways: Sequence[tuple[str, ...]]) -> str:
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
