"""Cores and NUMA nodes of the generator: what is badly placed, and how to start TRex instead."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import yaml

from lineproof.counts.host_state import Cpu, HostState
from lineproof.generators.base import GeneratorPort
from lineproof.routers.host_reading import read_host_state
from lineproof.session.places import place_findings, place_text
from lineproof.testbed.trex.config_file import threads_problem
from lineproof.testbed.trex.settings import StartSettings
from support.trex_host import shell_of

CARDS = ("0000:03:00.0", "0000:03:00.1")


def ports(*numa: int | None, cores: int = 4, speed: float = 10e9) -> tuple[GeneratorPort, ...]:
    pairs = [tuple(range(index // 2 * cores, index // 2 * cores + cores)) for index in range(len(numa))]
    return tuple(
        GeneratorPort(index, f"02:00:00:00:00:{index:02x}", speed, True, "net_i40e", numa=node, cores=pairs[index])
        for index, node in enumerate(numa)
    )


def started(**keys: object) -> StartSettings:
    return StartSettings.model_validate({"interfaces": CARDS, **keys})


def found(given: tuple[GeneratorPort, ...], *habits: str, start: StartSettings | None = None) -> list[str]:
    return list(place_findings(given, read_host_state(shell_of(*habits)), start))


def test_ports_and_cores_on_one_node_are_fit() -> None:
    assert found(ports(0, 0)) == []
    assert found(ports(0, 0), start=started(cores=4)) == []
    assert place_text(ports(0, 0)) == "ports 0 and 1: 4 cores for both, NUMA node 0"
    assert place_text(ports(None, None, cores=0)) == "ports 0 and 1: cores not reported, no NUMA node reported"


def test_one_core_at_10g_is_named_with_a_start_that_works() -> None:
    (words,) = found(ports(0, 0, cores=1))
    assert words == (
        "one core sends for ports 0 and 1, which run at 10 Gbit/s; start it with: ./t-rex-64 -i -c 4, and in its"
        " trex_cfg.yaml platform: {master_thread_id: 0, latency_thread_id: 1, dual_if: [{socket: 0, threads: [2, 3,"
        " 4, 5]}]}"
    )
    assert found(ports(0, 0, cores=1, speed=1e9)) == []
    (unreported,) = place_findings(ports(0, 0, cores=1, speed=0), None, None, 25e9)
    (unread,) = place_findings(ports(0, 0, cores=1, speed=25e9), None, None)
    assert unreported == unread
    assert unread.endswith("which run at 25 Gbit/s; start it with: ./t-rex-64 -i -c 8")


def test_the_threads_that_are_proposed_can_be_started() -> None:
    (words,) = found(ports(1, 1, cores=1), start=started())[:1]
    keys = re.search(r"cores: (\d+), threads: (\{.*\})$", words)
    assert keys is not None
    again = started(cores=int(keys[1]), threads=yaml.safe_load(keys[2]))
    assert again.threads is not None
    made = again.threads.threads()
    assert threads_problem(made, 2) == "" and made.pairs[0][0] == 1
    # one thread of each physical core of node 1
    assert {made.master, made.latency, *made.pairs[0][1]} == {6, 7, 8, 9, 10, 11}
    assert found(ports(1, 1), start=again) == []


def test_pairs_on_two_nodes_get_processors_of_their_own() -> None:
    words = found(ports(0, 0, 1, 1, cores=1))
    assert len(words) == 2 and all("dual_if: [{socket: 0" in each and "{socket: 1" in each for each in words)


def test_a_pair_across_nodes_is_named() -> None:
    (words,) = found(ports(0, 1))
    assert words.startswith("ports 0 and 1 are cards on the NUMA nodes 0 and 1")


def test_a_pair_across_nodes_gets_processors_of_both_in_turn() -> None:
    words = found(ports(0, 1, cores=1), start=started())
    (across,) = (each for each in words if "NUMA nodes 0 and 1" in each)
    assert "'core_mask: pin'" in across
    keys = re.search(r"cores: (\d+), threads: (\{.*\})$", across)
    assert keys is not None
    again = started(cores=int(keys[1]), threads=yaml.safe_load(keys[2]))
    assert again.threads is not None
    ((_, sending),) = again.threads.threads().pairs
    node = {cpu.number: cpu.node for cpu in read_host_state(shell_of()).cpus}
    # TRex's pinned mask: even cores send for the first port of a pair, odd ones for the second
    assert [node[cpu] for cpu in sending] == [0, 1, 0, 1]
    assert threads_problem(again.threads.threads(), 2) == ""
    # no sentence is left but that the cards are apart
    assert len(found(ports(0, 1), start=again)) == 1


def test_pairs_across_and_within_nodes_share_no_processor() -> None:
    words = found(ports(0, 1, 1, 1, cores=1), start=started())
    keys = re.search(r"threads: (\{.*\})$", words[0])
    assert keys is not None
    made = yaml.safe_load(keys[1])
    sending = [cpu for pair in made["pairs"] for cpu in pair["threads"]]
    assert len({made["master"], made["latency"], *sending}) == len(sending) + 2


def test_the_node_that_linux_shows_counts_where_trex_reports_none() -> None:
    given = tuple(
        replace(port, pci=pci) for port, pci in zip(ports(None, None), ("0000:03:00.0", "0000:81:00.0"), strict=True)
    )
    (words,) = found(given, "two nodes")
    assert "NUMA nodes 0 and 1" in words


@pytest.mark.parametrize("threads", [None, {"master": 0, "latency": 1, "pairs": [{"threads": [2, 3]}]}])
def test_processors_far_from_the_card_are_named(threads: object) -> None:
    (words,) = found(ports(1, 1, cores=2), start=started(threads=threads))
    cpus = "2, 3" if threads else "1, 2"
    assert f"on the NUMA node 1, and the CPUs {cpus}, which send for them, are not; in 'start': cores: 4" in words


def test_a_machine_with_two_processors_is_not_told_to_use_more() -> None:
    small = HostState(cpus=(Cpu(0, 0, 0), Cpu(1, 1, 0)))
    (words,) = place_findings(ports(None, None, cores=1), small, None)
    assert words.endswith("its 2 CPUs are too few for more; expected a host with 6")
