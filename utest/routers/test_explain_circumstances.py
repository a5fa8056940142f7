"""What makes a limit lower is said only where it touches that limit: its processors, its queues, its frames."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lineproof.counts.causes import Stage
from lineproof.counts.explanation import Confidence
from lineproof.counts.ledger import DirectionAccount, Drop, Ledger
from lineproof.counts.router_facts import NicFacts, Placement
from lineproof.counts.under_load import CpuLoad, UnderLoad
from lineproof.routers.explain import explain
from lineproof.routers.linux_load import THROTTLED
from lineproof.routers.linux_losses import BACKLOG_FULL, QDISC_DROPS
from support.why_evidence import FORWARDED, OFFERED, TRIED, facts, ledger, load, nic

LOST = OFFERED - FORWARDED
PLACED = tuple(Placement("a", queue, f"CPU {queue}") for queue in range(4))
HOT = {f"{THROTTLED}core_throttle_count CPU 3": 0.5, f"{THROTTLED}core_power_limit_count CPU 3": 0.1}


def processors(*busy: float, **more: object) -> UnderLoad:
    """Each with that share of its time on packets."""
    cpus = tuple(CpuLoad(cpu, share, share, 1e6 * share, steal=0.0) for cpu, share in enumerate(busy))
    return replace(UnderLoad(OFFERED, OFFERED, FORWARDED, cpus=cpus), **more)  # type: ignore[arg-type]


def dropped(name: str, stage: Stage, meaning: str = "") -> Ledger:
    """All lost frames, dropped under *name*: with a backlog's reason where it is one."""
    place, taken = ("b", OFFERED) if stage is Stage.LEAVING else ("a", FORWARDED)
    drops = (Drop(stage, name, place, LOST, meaning),)
    row = DirectionAccount(0, 1, "a", "b", OFFERED, FORWARDED, taken, FORWARDED, drops)
    reasons = (Drop(Stage.ARRIVING, BACKLOG_FULL, "", LOST),) if name == "rx_dropped" else ()
    return Ledger(1, 1, (row,), reasons=reasons)


SHAPER = dropped(QDISC_DROPS, Stage.LEAVING, "its queueing discipline tbf rate 2Gbit burst 5Kb")
BACKLOG = dropped("rx_dropped", Stage.ARRIVING)


@pytest.mark.parametrize(
    ("busy", "counted", "rules"),
    [
        # packets fill the processor that is hot
        ((1.0, 1.0, 1.0, 1.0), ledger(), ["all workers", "throttling"]),
        ((0.1, 0.1, 0.1, 1.0), ledger(), ["uneven workers", "throttling"]),
        ((0.1, 0.1, 0.1, 1.0), BACKLOG, ["backlog", "throttling"]),
        # another one is hot, or it has time left
        ((1.0, 0.1, 0.1, 0.0), ledger(), ["uneven workers"]),
        ((1.0, 0.1, 0.1, 0.8), ledger(), ["uneven workers"]),
        ((0.2, 0.2, 0.2, 0.2), ledger(), ["card or bus"]),
        ((0.2, 0.2, 0.2, 0.2), BACKLOG, ["backlog"]),
        # what limits has nothing to do with processors
        ((0.2, 0.2, 0.2, 0.0), SHAPER, ["shaper"]),
        ((1.0, 1.0, 1.0, 1.0), SHAPER, ["shaper"]),
    ],
)
def test_a_hot_processor_is_said_only_where_packets_fill_it_and_its_time_is_the_limit(
    busy: tuple[float, ...], counted: Ledger, rules: list[str]
) -> None:
    found = explain(TRIED, counted, facts(PLACED), processors(*busy, counters=HOT))
    assert [item.rule for item in found] == rules, found
    assert all(item.confidence is Confidence.LIKELY for item in found if item.rule == "throttling")


def test_of_workers_whose_processors_were_not_read_a_hot_one_is_possible() -> None:
    found = explain(TRIED, ledger(), facts(), load(1.0, 1.0, 1.0, counters=HOT))
    assert [(item.rule, item.confidence) for item in found][1:] == [("throttling", Confidence.POSSIBLE)]


@pytest.mark.parametrize("counted", [SHAPER, dropped("tx_errors", Stage.LEAVING), ledger(Stage.PASSING)])
def test_nothing_of_processors_is_said_beside_a_limit_that_is_none(counted: Ledger) -> None:
    cards = (nic(numa_node=0), nic(interface="b", numa_node=1))
    known = facts(PLACED, nics=cards, firewall="on: pf", irqbalance=True)
    for busy in ((1.0, 1.0, 1.0, 1.0), (1.0, 0.0, 0.0, 0.0), (0.2, 0.2, 0.2, 0.2)):
        found = explain(TRIED, counted, known, processors(*busy, counters=HOT))
        assert {item.rule for item in found} <= {"shaper", "tx slots", "filter"}, found


@pytest.mark.parametrize(
    ("nodes", "entering", "words"),
    [
        ({"a": 0, "b": 1}, "ab", "each frame crosses"),
        ({"a": 0, "b": 0, "c": 1, "d": 1}, "abcd", ""),
        # the sentence does not use the other cards
        ({"a": 0, "b": 0, "c": 1, "d": 1}, "a", ""),
        ({"a": 0, "b": 0, "c": 0, "d": 1}, "abc", "what enters by c crosses"),
        ({"a": 0, "b": -1}, "ab", ""),
        ({"a": 0, "b": None}, "ab", ""),
    ],
)
def test_nodes_are_said_only_where_frames_cross_between_them(
    nodes: dict[str, int | None], entering: str, words: str
) -> None:
    out = {"a": "b", "b": "a", "c": "d", "d": "c"}
    offered, forwarded = OFFERED // len(entering), FORWARDED // len(entering)
    rows = tuple(
        DirectionAccount(
            port,
            9,
            name,
            out[name],
            offered,
            forwarded,
            forwarded,
            forwarded,
            (Drop(Stage.ARRIVING, "drop", name, offered - forwarded),),
        )
        for port, name in enumerate(entering)
    )
    cards = tuple(NicFacts(name, numa_node=node) for name, node in nodes.items())
    found = explain(TRIED, Ledger(1, 1, rows), facts(PLACED, nics=cards), processors(1.0, 1.0, 1.0, 1.0))
    assert [item.rule for item in found] == ["all workers", "numa"][: 1 + bool(words)]
    assert words in found[-1].words


@pytest.mark.parametrize(
    ("busy", "said"),
    [
        ((1.0, 0.0), True),
        ((0.2, 0.2), True),
        ((0.9, 0.2), True),
        ((1.0, 1.0), False),
        ((0.9, 0.9), False),
        ((0.2,), False),
    ],
)
def test_irqbalance_is_said_of_a_backlog_only_where_another_processor_has_time(
    busy: tuple[float, ...], said: bool
) -> None:
    found = explain(TRIED, BACKLOG, facts(PLACED[: len(busy)], irqbalance=True), processors(*busy))
    assert found[0].rule == "backlog" and ("irqbalance" in [item.rule for item in found]) is said
