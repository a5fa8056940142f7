"""Cores and NUMA nodes of the generator: what is badly placed, as the server reports it."""

from __future__ import annotations

from lineproof.commands.host_checks import place_findings, place_text
from lineproof.generators.base import GeneratorPort


def ports(*numa: int | None, cores: int = 4, speed: float = 10e9) -> tuple[GeneratorPort, ...]:
    pairs = [tuple(range(index // 2 * cores, index // 2 * cores + cores)) for index in range(len(numa))]
    return tuple(
        GeneratorPort(index, f"02:00:00:00:00:{index:02x}", speed, True, "net_i40e", numa=node, cores=pairs[index])
        for index, node in enumerate(numa)
    )


def test_ports_and_cores_on_one_node_are_fit() -> None:
    assert list(place_findings(ports(0, 0))) == []
    assert place_text(ports(0, 0)) == "ports 0 and 1: 4 cores for both, NUMA node 0"
    assert place_text(ports(None, None, cores=0)) == "ports 0 and 1: cores not reported, no NUMA node reported"


def test_one_core_at_10g_is_named_with_the_argument_that_adds_cores() -> None:
    (words,) = place_findings(ports(0, 0, cores=1))
    assert words == "one core sends for ports 0 and 1, which run at 10 Gbit/s; start TRex with -c 4"
    assert list(place_findings(ports(0, 0, cores=1, speed=1e9))) == []
    (unreported,) = place_findings(ports(0, 0, cores=1, speed=0), 25e9)
    assert unreported.endswith("which run at 25 Gbit/s; start TRex with -c 8")


def test_a_pair_across_nodes_is_named() -> None:
    (words,) = place_findings(ports(0, 1, 1, 1))
    assert words.startswith("ports 0 and 1 are cards on the NUMA nodes 0 and 1")
    assert list(place_findings(ports(0, None))) == []
