"""Whether the generator's processors and cards are well placed: cores for each pair of ports, and NUMA nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import yaml

from ..counts.host_state import Cpu, HostState
from ..generators.base import GeneratorPort
from ..testbed.trex.config_file import Threads
from ..testbed.trex.settings import StartSettings, ThreadSettings
from ..testbed.trex.start_findings import THREADS_BESIDE
from ..units import counted

FAST = 10e9
"""Link speed in bit/s from which one core is not enough: a port of 10 Gbit/s has 14.88 M frames/s of 64 bytes."""

PROPOSED, PROPOSED_ABOVE = 4, 8
"""Cores for a pair of ports of 10 Gbit/s, and of faster ones, if the machine has them."""


def place_text(ports: Sequence[GeneratorPort]) -> str:
    """The cores and nodes of each pair of *ports*, in words."""
    return "; ".join(
        f"ports {first.index} and {second.index}: {_cores_text(first)}, {_nodes_text(first, second)}"
        for first, second in _pairs(ports)
    )


def place_findings(
    ports: Sequence[GeneratorPort], host: HostState | None, start: StartSettings | None, link_bps: float = 0.0
) -> Iterator[str]:
    """What is badly placed, a sentence each with what to do. *ports* in pairs; *host*: as far as it was read.

    *link_bps*: line rate in bit/s, of ports whose driver does not report their speed.
    """
    ports = [replace(port, speed_bps=port.speed_bps or link_bps) for port in ports]
    proposal = _proposal(ports, host, start)
    for first, second in _pairs(ports):
        names = f"ports {first.index} and {second.index}"
        speed = max(first.speed_bps, second.speed_bps)
        if len(first.cores) == 1 and speed >= FAST:
            yield f"one core sends for {names}, which run at {speed / 1e9:g} Gbit/s; {proposal}"
        nodes = [_node(port, host) for port in (first, second)]
        if None not in nodes and nodes[0] != nodes[1]:
            yield (
                f"{names} are cards on the NUMA nodes {nodes[0]} and {nodes[1]}, so that frames of one of them cross"
                " from node to node; put both cards into slots of one node, or pair ports of one card; until then"
                f" 'core_mask: pin', which gives each port cores of its own where these alternate, and {proposal}"
            )
    yield from _far_threads(ports, host, start, proposal)


def _far_threads(
    ports: Sequence[GeneratorPort], host: HostState | None, start: StartSettings | None, proposal: str
) -> Iterator[str]:
    """CPUs of the testbed file, or those that TRex takes by itself, on another node than the card."""
    if host is None or not host.cpus or start is None or start.is_low_end:
        return
    nodes = {cpu.number: cpu.node for cpu in host.cpus}
    for place, (first, second) in enumerate(_pairs(ports)):
        sending = _sending(start, place, first)
        wanted = {node for node in (_node(first, host), _node(second, host)) if node is not None}
        far = [number for number in sending if number in nodes and nodes[number] not in wanted]
        if wanted and far:
            listed = ", ".join(map(str, far))
            yield (
                f"ports {first.index} and {second.index} are on the NUMA node {min(wanted)}, and the CPUs {listed},"
                f" which send for them, are not; {proposal}"
            )


def _sending(start: StartSettings, place: int, port: GeneratorPort) -> Sequence[int]:
    """The CPUs that send for the pair at *place*. Without ``threads`` TRex takes 1, 2, … in turn for each pair."""
    if start.threads is not None:
        # the pairs of 'threads' are those of TRex's own ports
        pair = port.index // 2
        return start.threads.pairs[pair].threads if pair < len(start.threads.pairs) else ()
    return [core + 1 for core in port.cores] if start.interfaces else ()


def _proposal(ports: Sequence[GeneratorPort], host: HostState | None, start: StartSettings | None) -> str:
    """How to start TRex instead."""
    speed = max((port.speed_bps for port in ports), default=0.0)
    most = PROPOSED if speed <= FAST else PROPOSED_ABOVE
    threads = _threads(ports, host, most)
    if threads is None and host is not None and host.cpus:
        pairs = max(port.index for port in ports) // 2 + 1
        return f"its {len(host.cpus)} CPUs are too few for more; expected a host with {THREADS_BESIDE + pairs * most}"
    if threads is None:
        place = f"'cores: {most}' in 'start'" if start else f"start it with: ./t-rex-64 -i -c {most}"
        return place
    size = len(threads.pairs[0][1])
    if start is not None:
        data: dict[str, object] = {
            "master": threads.master,
            "latency": threads.latency,
            "pairs": [{"socket": socket, "threads": list(cpus)} for socket, cpus in threads.pairs],
        }
        ThreadSettings.model_validate(data)
        return f"in 'start': cores: {size}, threads: {_flow(data)}"
    return f"start it with: ./t-rex-64 -i -c {size}, and in its trex_cfg.yaml platform: {_flow(threads.data())}"


def _flow(data: dict[str, object]) -> str:
    return yaml.safe_dump(data, default_flow_style=True, sort_keys=False, width=10_000).strip()


def _threads(ports: Sequence[GeneratorPort], host: HostState | None, most: int) -> Threads | None:
    """CPUs for each pair on the nodes of its cards: one thread of a physical core each; None where they are unknown.

    All pairs of TRex's own ports need some, whether they are used or not. Those of a pair across two nodes alternate:
    with ``core_mask: pin`` the even ones send for its first port.
    """
    if host is None or not host.cpus:
        return None
    count = max(port.index for port in ports) // 2 + 1
    by_index = {port.index: port for port in ports}
    nodes = [_nodes_of_pair(by_index, pair, host) for pair in range(count)]
    free = {node: _first_threads(host.cpus, node) for node in {cpu.node for cpu in host.cpus}}
    first = nodes[0][0]
    if any(node not in free for pair in nodes for node in pair) or len(free[first]) < THREADS_BESIDE:
        return None
    master, latency, *free[first] = free[first]
    halves = [node for pair in nodes for node in pair]
    size = min(most, *(2 * len(free[node]) // halves.count(node) for node in halves))
    if any(one != other for one, other in nodes):
        size -= size % 2
    if size < 1:
        return None
    pairs = []
    for pair in nodes:
        own = []
        for place in range(size):
            own.append(free[pair[place % 2]].pop(0))
        pairs.append((pair[0], tuple(own)))
    return Threads(master, latency, tuple(pairs))


def _nodes_of_pair(ports: dict[int, GeneratorPort], pair: int, host: HostState) -> tuple[int, int]:
    """Those of its two cards; one that is not known is the other's, or 0."""
    found = [_node(ports[index], host) if index in ports else None for index in (2 * pair, 2 * pair + 1)]
    known = [node for node in found if node is not None] or [0]
    first, second = (known[0] if node is None else node for node in found)
    return first, second


def _first_threads(cpus: Sequence[Cpu], node: int) -> list[int]:
    """One thread of each physical core of *node*: two would share what sends."""
    found: dict[int, int] = {}
    for cpu in cpus:
        if cpu.node == node:
            found.setdefault(cpu.core, cpu.number)
    return list(found.values())


def _node(port: GeneratorPort, host: HostState | None) -> int | None:
    """The node of the port's card, as TRex reports it, or else Linux."""
    if port.numa is not None:
        return port.numa
    card = host.cards.get(port.pci.lower()) if host else None
    return card.nic.numa_node if card else None


def _pairs(ports: Sequence[GeneratorPort]) -> list[tuple[GeneratorPort, GeneratorPort]]:
    return list(zip(ports[::2], ports[1::2], strict=False))


def _cores_text(port: GeneratorPort) -> str:
    return f"{counted(len(port.cores), 'core')} for both" if port.cores else "cores not reported"


def _nodes_text(first: GeneratorPort, second: GeneratorPort) -> str:
    nodes = {port.numa for port in (first, second)}
    if nodes == {None}:
        return "no NUMA node reported"
    shown = " and ".join("none" if port.numa is None else f"{port.numa}" for port in (first, second))
    return f"NUMA node {shown}" if len(nodes) > 1 else f"NUMA node {first.numa}"
