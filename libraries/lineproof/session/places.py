"""Whether the generator's processors and cards are well placed: cores for each pair of ports, and NUMA nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..generators.base import GeneratorPort
from ..units import counted

FAST = 10e9
"""Link speed in bit/s from which one core is not enough: a port of 10 Gbit/s has 14.88 M frames/s of 64 bytes."""

PROPOSED, PROPOSED_ABOVE = 4, 8
"""Cores for a pair of ports of 10 Gbit/s, and of faster ones."""


def place_text(ports: Sequence[GeneratorPort]) -> str:
    """The cores and nodes of each pair of *ports*, in words."""
    return "; ".join(
        f"ports {first.index} and {second.index}: {_cores_text(first)}, {_nodes_text(first, second)}"
        for first, second in _pairs(ports)
    )


def place_findings(ports: Sequence[GeneratorPort], link_bps: float = 0.0) -> Iterator[str]:
    """What is badly placed as the server reports it, a sentence each with what to do. *ports* in pairs.

    *link_bps*: line rate in bit/s, of ports whose driver does not report their speed.
    """
    for first, second in _pairs(ports):
        names = f"ports {first.index} and {second.index}"
        speed = max(first.speed_bps or link_bps, second.speed_bps or link_bps)
        if len(first.cores) == 1 and speed >= FAST:
            cores = PROPOSED if speed <= FAST else PROPOSED_ABOVE
            yield f"one core sends for {names}, which run at {speed / 1e9:g} Gbit/s; start TRex with -c {cores}"
        if None not in (first.numa, second.numa) and first.numa != second.numa:
            yield (
                f"{names} are cards on the NUMA nodes {first.numa} and {second.numa}, so that frames of one of them"
                " cross from node to node; put both cards into slots of one node, or pair ports of one card"
            )


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
