"""The output of VPP's command line, from the model's state. Column widths as in VPP v26.10-rc0."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from lineproof.simulation.habits import BY_A_MODEL

from ..state import InterfaceState, NodeState, RouterState, ThreadState

PROCESS_STATES = frozenset({"any wait", "event wait", "time wait", "suspended", "running", "done"})
"""States of process nodes, which VPP prints in quotes."""

PACKET_CLOCKS_SINCE = (26, 2)
"""The first version with the title ``Packet-Clocks`` instead of ``Clocks``."""


def centred(text: str, width: int) -> str:
    """*text* centred, the odd blank on the left, cut at *width*."""
    text = text[:width]
    left = (width - len(text) + 1) // 2
    return " " * left + text + " " * (width - len(text) - left)


def scientific(value: float, digits: int) -> str:
    """``1.0989e5``: an exponent without sign and zeros."""
    mantissa, exponent = f"{value:.{digits}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def fixed(value: float) -> str:
    """``102.70``, ``.34``, ``0.00``."""
    text = f"{value:.2f}"
    return text[1:] if value > 0 and text.startswith("0.") else text


def packet_clocks(version: str) -> bool:
    """Return whether *version* (``22.02``, ``v26.10-rc0``) has the title Packet-Clocks."""
    found = re.search(r"(\d+)\.(\d+)", version)
    return bool(found) and (int(found[1]), int(found[2])) >= PACKET_CLOCKS_SINCE if found else False


def threads_of(state: RouterState) -> tuple[ThreadState, ...]:
    """The threads, with the main one that every VPP has where the model lists workers only."""
    if state.threads and state.threads[0].name.startswith("vpp_wk"):
        return (ThreadState("vpp_main", 0), *state.threads)
    return state.threads


def runtime(state: RouterState) -> str:
    """``show runtime``."""
    threads = threads_of(state)
    blocks = []
    for index, thread in enumerate(threads):
        rows = [f"Thread {index} {thread.name} (lcore {thread.lcore})"] if len(threads) > 1 else []
        rows += _rates(thread, max(state.since_clear, 1e-9))
        clocks = "Packet-Clocks" if packet_clocks(state.version) else "Clocks"
        titles = ("Calls", "Vectors", "Suspends", clocks, "Vectors/Call")
        rows.append(centred("Name", 30) + centred("State", 12) + "".join(centred(title, 16) for title in titles))
        shown = (node for node in thread.nodes if node.calls or node.vectors or node.suspends)
        rows += [_node(node) for node in sorted(shown, key=lambda node: node.name)]
        blocks.append("".join(f"{row}\n" for row in rows))
    return "---------------\n".join(blocks)


def _rates(thread: ThreadState, time: float) -> list[str]:
    def total(nodes: Iterable[NodeState]) -> str:
        return scientific(sum(node.vectors for node in nodes) / time, 4)

    inputs = [node for node in thread.nodes if node.state.startswith(("polling", "interrupt"))]
    active = [node for node in thread.nodes if node.state == "active" and node.calls]
    per_call = max((node.vectors / node.calls for node in active), default=0.0)
    loops = max((node.calls for node in inputs), default=0) / time
    return [
        f"Time {time:.1f}, 10 sec internal node vector rate {per_call:.2f} loops/sec {loops:.2f}",
        f"  vector rates in {total(inputs)}, out {total(n for n in thread.nodes if n.name.endswith('-tx'))},"
        f" drop {total(n for n in thread.nodes if n.name == 'error-drop')}, punt 0.0000e0",
    ]


def _node(node: NodeState) -> str:
    state = f'"{node.state}"' if node.state in PROCESS_STATES else node.state
    clocks = node.clocks / (node.vectors or node.calls or node.suspends or 1)
    per_call = node.vectors / node.calls if node.calls else 0.0
    return (
        f"{node.name[:30]:30}{centred(state, 12)}{node.calls:16d}{node.vectors:16d}{node.suspends:16d}"
        f"{scientific(clocks, 2):>16}{fixed(per_call):>16}"
    )


def interfaces(state: RouterState) -> str:
    """``show interface``."""
    head = "".join(
        centred(title, width)
        for title, width in (
            ("Name", 32),
            ("Idx", 5),
            ("State", 10),
            ("MTU (L3/IP4/IP6/MPLS)", 21),
            ("Counter", 16),
            ("Count", 16),
        )
    )
    rows = [head]
    up = set(state.configuration.up)
    numbered = [(interface.name, index + 1, interface) for index, interface in enumerate(state.interfaces)]
    for name, index, interface in sorted([*numbered, ("local0", 0, None)], key=lambda row: row[0]):
        word, mtu = ("up" if name in up else "down"), ("9000/0/0/0" if interface else "0/0/0/0")
        start = f"{name[:32]:32}{centred(str(index), 5)}{centred(word, 10)}{centred(mtu, 21)}"
        counts = _counts(interface) if interface else []
        rows += [
            (start if at == 0 else " " * len(start)) + f"{title:16}{count:16d}"
            for at, (title, count) in enumerate(counts)
        ] or [start]
    return "".join(f"{row}\n" for row in rows)


def _counts(interface: InterfaceState) -> list[tuple[str, int]]:
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
    return [(title, count) for title, count in counts if count]


def errors(state: RouterState) -> str:
    """``show errors``."""
    rows = ["".join((centred("Count", 10), centred("Node", 35), centred("Reason", 35), centred("Severity", 10)))]
    found = []
    unrouted = sum(interface.no_route for interface in state.interfaces)
    if unrouted:
        found.append((unrouted, "null-node", "blackholed packets"))
    # VPP's own RDMA driver and DPDK have different names for a full sending ring
    rdma = any(node.name == "rdma-input" for thread in state.threads for node in thread.nodes)
    why = "no free tx slots" if rdma else "Tx packet drops (dpdk tx failure)"
    for interface in state.interfaces:
        if interface.tx_dropped:
            found.append((interface.tx_dropped, f"{interface.name}-tx", why))
    rows += [f"{count:10d}{centred(node, 35)}{centred(why, 35)}{centred('error', 10)}" for count, node, why in found]
    return "".join(f"{row}\n" for row in rows)


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
    titles = (("Age", 12), ("IP", 40), ("Flags", 6), ("Ethernet", 20), ("Interface", 24))
    return (
        "".join(centred(title, width) for title, width in titles)
        + "".join(
            f"\n{uptime:12.4f}{centred(address, 40)}{centred(flag, 6)}{centred(mac, 20)}{name}"
            for name, address, mac, flag in rows
        )
        + "\n"
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
    text = f"{centred('Name', 32)}{centred('Idx', 5)}{centred('Link', 8)}  Hardware\n"
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
