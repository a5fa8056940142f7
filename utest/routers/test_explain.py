"""Why frames were lost: each rule by figures made for it, and silence where they are not there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.counts.causes import Stage
from lineproof.counts.explanation import Confidence, Explanation, Why
from lineproof.counts.ledger import DirectionAccount, Drop, Ledger
from lineproof.counts.router_facts import NicFacts, Placement
from lineproof.counts.under_load import CpuLoad, QueueLoad, UnderLoad, WorkerLoad
from lineproof.routers.explain import explain
from lineproof.routers.explain_evidence import TriedLoad
from lineproof.routers.explain_workers import BRIDGE, IDENT
from support.why_evidence import FORWARDED, OFFERED, SPREAD, TRIED, facts, ledger, load, nic

EACH_ITS_OWN = (Placement("a", 0, "w0"), Placement("b", 0, "w1"))


def one_loses() -> Ledger:
    """What enters by a is lost on arrival, what enters by b is not."""
    dropped = (Drop(Stage.ARRIVING, "drop", "a", OFFERED - FORWARDED),)
    half = OFFERED // 2
    left = half - dropped[0].frames
    rows = (
        DirectionAccount(0, 1, "a", "b", half, left, left, left, dropped),
        DirectionAccount(1, 0, "b", "a", half, half, half, half),
    )
    return Ledger(1, 1, rows)


def crossed(there: tuple[int, int], back: tuple[int, int]) -> Ledger:
    """Offered and forwarded of each direction, of which the router counts nothing."""
    return Ledger(1, 1, (DirectionAccount(0, 1, "a", "b", *there), DirectionAccount(1, 0, "b", "a", *back)))


X4 = nic(pcie_width=4, pcie_speed=8.0, pcie_width_max=8, pcie_speed_max=8.0)
VARIED, BY_ADDRESSES = replace(TRIED, ports_vary=True), nic(rss_fields=("IP SA", "IP DA"))
BIG = replace(TRIED, frame_bytes=1518, offered_pps=3e6, intended_pps=3e6, forwarded_pps=2.1e6)
BIG_LOAD = load(0.2, 0.2, 0.2, asked=3e6, forwarded_pps=2.1e6)
FREEBSD_11 = facts(os="FreeBSD 11.1-RELEASE", other={IDENT: "GENERIC"})

CASES: Mapping[str, tuple[str, Confidence, tuple[object, ...]]] = {
    "the generator": (
        "generator",
        Confidence.CERTAIN,
        (replace(TRIED, intended_pps=14e6, forwarded_pps=1e7), ledger(forwarded=OFFERED)),
    ),
    "a full line": (
        "line",
        Confidence.CERTAIN,
        (replace(TRIED, offered_pps=2e7, intended_pps=2e7), ledger(Stage.LEAVING, 20_000_000, 14_880_952)),
    ),
    "a slow sending ring": ("tx slots", Confidence.LIKELY, (TRIED, ledger(Stage.LEAVING))),
    "locks": ("locks", Confidence.LIKELY, (TRIED, ledger(), FREEBSD_11, load(*[1.0] * 8))),
    "locks of a kernel of which no more is known": (
        "locks",
        Confidence.POSSIBLE,
        (TRIED, ledger(), facts(os="pfSense 2.4.5 (FreeBSD 11.3-STABLE)"), load(*[1.0] * 8)),
    ),
    "a bridge": (
        "locks",
        Confidence.LIKELY,
        (TRIED, ledger(), facts(os="FreeBSD 12.4-RELEASE", other={BRIDGE: "bridge0"}), load(1.0, 1.0)),
    ),
    "no lock in FreeBSD 12": (
        "all workers",
        Confidence.CERTAIN,
        (TRIED, ledger(), facts(os="FreeBSD 12.0-RELEASE", other={IDENT: "GENERIC"}), load(*[1.0] * 8)),
    ),
    "no lock with patches": (
        "all workers",
        Confidence.CERTAIN,
        (TRIED, ledger(), facts(os="FreeBSD 11.1-RELEASE", other={IDENT: "MINE"}), load(*[1.0] * 8)),
    ),
    "slow cores": ("all workers", Confidence.CERTAIN, (TRIED, ledger(), facts(), load(1.0, 0.99, 1.0))),
    "one flow": ("one flow", Confidence.CERTAIN, (replace(TRIED, flows=1), ledger(), facts(), load(1.0, 0.0, 0.0))),
    "two flows on one worker": (
        "shared worker",
        Confidence.CERTAIN,
        (
            replace(TRIED, flows=1),
            ledger(both=True),
            facts((Placement("a", 0, "w0"), Placement("b", 0, "w0"), Placement("b", 1, "w1"))),
            load(1.0, 0.0, 0.0),
        ),
    ),
    "queues dealt unevenly": (
        "shared worker",
        Confidence.LIKELY,
        (
            TRIED,
            ledger(both=True),
            facts((Placement("a", 0, "w0"), Placement("b", 0, "w0"), Placement("a", 1, "w1"), Placement("b", 1, "w2"))),
            load(1.0, 0.6, 0.6),
        ),
    ),
    "few queues": ("few queues", Confidence.CERTAIN, (TRIED, ledger(), facts(SPREAD[:1]), load(1.0, 0.0, 0.0))),
    "addresses only": (
        "address hash",
        Confidence.LIKELY,
        (VARIED, ledger(), facts(nics=(BY_ADDRESSES,)), load(1.0, 0.1, 0.1)),
    ),
    "all interrupts on one processor": (
        "one processor",
        Confidence.CERTAIN,
        (
            TRIED,
            ledger(),
            facts(tuple(Placement("a", queue, "CPU 0") for queue in range(4))),
            UnderLoad(OFFERED, OFFERED, FORWARDED, cpus=(CpuLoad(0, 1.0, 1.0), CpuLoad(1, 0.1), CpuLoad(2, 0.0))),
        ),
    ),
    "uneven": ("uneven workers", Confidence.POSSIBLE, (TRIED, ledger(), facts(), load(1.0, 0.7, 0.5))),
    "the bus": ("bus", Confidence.LIKELY, (BIG, ledger(), facts(nics=(X4,)), BIG_LOAD)),
    "card or bus": (
        "card or bus",
        Confidence.POSSIBLE,
        (BIG, ledger(), facts(nics=(replace(X4, pcie_width=7),)), BIG_LOAD),
    ),
    "a bus that was not read": ("card or bus", Confidence.LIKELY, (TRIED, ledger(), facts(), load(0.2, 0.2, 0.2))),
    "the card": (
        "card",
        Confidence.LIKELY,
        (TRIED, ledger(), facts(nics=(nic(pcie_width=8, pcie_speed=8.0, pcie_width_max=8),)), load(0.2, 0.2, 0.2)),
    ),
    "a worker that sleeps": (
        "late worker",
        Confidence.POSSIBLE,
        (replace(TRIED, forwarded_pps=9_990_000.0), ledger(forwarded=9_990_000), facts(), load(0.3, 0.3, 0.3)),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_rule_speaks_where_its_figures_fit(case: str) -> None:
    rule, confidence, inputs = CASES[case]
    first = explain(*inputs)[0]  # type: ignore[arg-type]
    assert (first.rule, first.confidence) == (rule, confidence), first
    assert first.figures and first.remedy


@pytest.mark.parametrize(
    "inputs",
    [
        (TRIED,),
        (TRIED, ledger()),
        (TRIED, ledger(), facts()),
        (TRIED, replace(ledger(), missing="no login"), None, None),
        # what nobody counts may have been lost on the cable
        (TRIED, ledger(None), facts(), load(1.0, 0.0)),
        (TRIED, ledger(None), facts(), load(0.1, 0.1)),
        (TRIED, ledger(Stage.PASSING), facts(), load(1.0, 1.0)),
        # nothing was lost
        (TRIED, ledger(forwarded=OFFERED), facts(), load(1.0, 1.0)),
        # read at another load
        (TRIED, ledger(), facts(), load(1.0, 1.0, asked=OFFERED / 2)),
        (TRIED, ledger(), facts(), load(1.0, 1.0, asked=OFFERED * 2, forwarded_pps=1.2e7)),
        (TRIED, ledger(), facts(), load(0.1, 0.1, asked=math.nan)),
        # the generator did not send it then, or nothing was lost of it
        (TRIED, ledger(), facts(), load(0.1, 0.1, offered_pps=1e5, forwarded_pps=6e4)),
        (TRIED, ledger(), facts(), load(0.1, 0.1, forwarded_pps=OFFERED)),
        (TRIED, ledger(), facts(), load(1.0, 1.0, forwarded_pps=OFFERED)),
        # the generator sent less, and what it sent was lost
        (replace(TRIED, intended_pps=2e7),),
        (replace(TRIED, intended_pps=2e7, forwarded_pps=1e7), crossed((OFFERED, FORWARDED), (OFFERED, 14_000_000))),
        # the busy worker serves the other direction, which lost nothing, or no queue at all
        (replace(TRIED, flows=1), one_loses(), facts(EACH_ITS_OWN), load(0.3, 1.0)),
        (TRIED, one_loses(), facts(EACH_ITS_OWN), load(0.3, 1.0)),
        (TRIED, ledger(), facts((Placement("a", 0, "w0"), Placement("a", 1, "w0"))), load(0.3, 0.2, 1.0)),
        # no shares
        *((TRIED, ledger(), facts(), load(odd, odd, 1.0)) for odd in (math.nan, math.inf, -math.inf, -0.5, 1e9)),
        # neither busy nor idle
        (TRIED, ledger(), facts(), load(0.9, 0.9)),
        # a worker of which nothing is known
        (TRIED, ledger(), facts(), replace(load(1.0), workers=(WorkerLoad("w0", 1.0), WorkerLoad("w1")))),
        # processors that poll for VPP are always busy
        (TRIED, ledger(), facts(), UnderLoad(OFFERED, OFFERED, FORWARDED, cpus=(CpuLoad(0, 1.0), CpuLoad(1, 1.0)))),
    ],
)
def test_no_rule_speaks_without_figures(inputs: tuple[object, ...]) -> None:
    assert explain(*inputs) == ()  # type: ignore[arg-type]


def test_a_driver_that_does_not_count_what_its_card_lost_is_judged_by_what_did_not_arrive() -> None:
    blind = facts(nics=(nic(driver="rdma"),))
    assert explain(TRIED, ledger(None), blind, load(1.0, 1.0, 1.0))[0].rule == "all workers"


def test_queues_are_too_few_only_if_their_own_workers_are_busy() -> None:
    two = facts((Placement("a", 0, "w0"), Placement("a", 1, "w1")))
    assert explain(TRIED, ledger(), two, load(1.0, 1.0, 0.1, 0.1))[0].rule == "few queues"
    assert explain(TRIED, ledger(), two, load(1.0, 0.1, 0.1, 1.0))[0].confidence is Confidence.POSSIBLE


def test_the_main_thread_of_vpp_is_a_worker_where_it_serves_a_queue() -> None:
    placed = facts((Placement("a", 0, "vpp_main"), Placement("b", 0, "vpp_wk_0")))
    both = replace(load(), workers=(WorkerLoad("vpp_main", 1.0, 6e6), WorkerLoad("vpp_wk_0", 0.01, 1.0)))
    found = explain(TRIED, ledger(), placed, both)[0]
    assert found.rule == "few queues" or "vpp_main is 100% busy" in found.words, found


@pytest.mark.parametrize(
    ("system", "packets", "threads", "rule"),
    [
        ("Debian GNU/Linux 12", 3e6, {}, "other work"),
        # softnet_stat was not read, or its count began again
        ("Debian GNU/Linux 12", None, {}, "other work"),
        ("FreeBSD 14.1-RELEASE", None, {"openssl": 0.9, "kernel{if_io_tqg_0}": 0.1}, "other work"),
        ("FreeBSD 14.1-RELEASE", None, {"top": 0.02, "kernel{if_io_tqg_0}": 0.9}, "all workers"),
        ("FreeBSD 14.1-RELEASE", None, {"intr{irq285: t5nex0:0a1}": 0.95}, "all workers"),
    ],
)
def test_a_processor_that_programs_fill_is_no_proof_of_a_limit(
    system: str, packets: float | None, threads: dict[str, float], rule: str
) -> None:
    cpus = tuple(CpuLoad(number, 1.0, 0.05, packets, threads) for number in range(2))
    seen = UnderLoad(OFFERED, OFFERED, FORWARDED, cpus=cpus)
    placed = tuple(Placement("a", number, f"CPU {number}") for number in range(2))
    found = explain(TRIED, ledger(), facts(placed, os=system), seen)[0]
    assert found.rule == rule, found


@pytest.mark.parametrize("name", ["rx_errors", "rx-error"])
@pytest.mark.parametrize("share", [0.2, 1.0])
def test_damaged_frames_are_no_limit_of_card_or_workers(name: str, share: float) -> None:
    found = ledger()
    dropped = (replace(found.drops[0], name=name),)
    bad = replace(found, directions=(replace(found.directions[0], drops=dropped),))
    assert explain(TRIED, bad, facts(), load(share, share, share)) == ()


def test_a_line_that_is_full_without_a_drop_is_not_the_limit_of_another() -> None:
    dropped = (Drop(Stage.LEAVING, "tx-error", "a", 7_000_000),)
    rows = (
        DirectionAccount(0, 1, "a", "b", 14_800_000, 14_800_000, 14_800_000, 14_800_000),
        DirectionAccount(1, 0, "b", "a", 14_800_000, 7_800_000, 14_800_000, 7_800_000, dropped),
    )
    tried = replace(TRIED, intended_pps=29.6e6, offered_pps=29.6e6, forwarded_pps=22.6e6)
    assert [item.rule for item in explain(tried, Ledger(1, 1, rows))] == ["tx slots"]


@pytest.mark.parametrize(
    ("handed", "sent", "grown", "rule"),
    [
        # less than the line carries arrives for it
        (0.9998, 0.975, 0, "tx slots"),
        (0.9998, 0.985, 0, "tx slots"),
        # clocks alone
        (1.0002, 0.985, 0, "tx slots"),
        (1.02, 0.9999, 0, "line"),
        (0.9998, 84 / 88, 4, "line"),
        (0.9998, 0.92, 4, "tx slots"),
        (0.94, 0.92, 4, "tx slots"),
    ],
)
def test_a_line_is_the_limit_only_where_more_arrives_than_it_carries(
    handed: float, sent: float, grown: int, rule: str
) -> None:
    line = 10e9 / (84 * 8)
    offered, forwarded = int(handed * line), int(sent * line)
    tried = TriedLoad(64, None, 10e9, offered, offered, forwarded, {1: 64.0 + grown} if grown else {})
    counted = ledger(Stage.LEAVING, offered, forwarded)
    (found,) = explain(tried, counted)
    assert found.rule == rule, found
    assert ("if frames grow" in found.remedy) == (rule == "tx slots" and sent > 0.97), found
    # what the router drops of others fills no line by itself
    (row,) = counted.directions
    more = replace(row, drops=(replace(row.drops[0], frames=2 * row.lost),))
    assert explain(tried, replace(counted, directions=(more,)))[0].rule == rule


def test_full_vectors_say_that_a_worker_without_busy_time_is_busy() -> None:
    full = replace(load(), workers=(WorkerLoad("vpp_main", 0.1), WorkerLoad("vpp_wk_0", None, 5e6, 256.0)))
    found = explain(TRIED, ledger(), facts((Placement("a", 0, "vpp_wk_0"),)), full)
    assert found[0].rule == "all workers" and "vpp_wk_0" in found[0].words


@pytest.mark.parametrize(
    ("rule", "more", "counters"),
    [
        ("firewall", {"firewall": "on: pf"}, {}),
        ("irqbalance", {"irqbalance": True}, {}),
        ("numa", {"nics": (nic(numa_node=0), nic(interface="b", numa_node=1))}, {}),
        ("throttling", {}, {"processor throttled: package_throttle_count CPU 0": 3.0}),
    ],
)
def test_a_circumstance_is_said_beside_the_limit(
    rule: str, more: dict[str, object], counters: dict[str, float]
) -> None:
    found = explain(TRIED, ledger(), facts(**more), load(1.0, 0.7, 0.5, counters=counters))  # type: ignore[arg-type]
    assert [item.rule for item in found] == ["uneven workers", rule]
    assert found[1].confidence in (Confidence.POSSIBLE, Confidence.LIKELY)
    quiet = {"firewall": "off", "irqbalance": False, "nics": (nic(numa_node=0), nic(interface="b", numa_node=0))}
    found = explain(TRIED, ledger(), facts(**quiet), load(1.0, 0.7, 0.5))  # type: ignore[arg-type]
    assert [item.rule for item in found] == ["uneven workers"]


def test_the_words_have_the_figures_and_the_message_the_best_two() -> None:
    (found,) = explain(replace(TRIED, flows=1), ledger(), facts(), load(1.0, 0.0, 0.0))
    assert found.words == (
        "w0 is 100% busy, 2 of 3 workers are idle: one flow enters by one receive queue, which one worker serves"
    )
    assert str(found).startswith(f"{found.words} (certain); ")
    rows = tuple(Explanation(name, name) for name in ("first", "second", "third"))
    assert str(Why(rows)) == "why: first (likely). Also: second (likely)"
    assert str(Why()) == ""


maybe = st.none() | st.floats(0, 1)


@given(
    st.lists(st.builds(WorkerLoad, st.sampled_from(["w0", "w1", "CPU 0"]), maybe, maybe), max_size=4),
    st.lists(st.builds(CpuLoad, st.integers(0, 3), maybe), max_size=4),
    st.lists(st.builds(QueueLoad, st.sampled_from("ab"), st.integers(0, 3), st.sampled_from(["", "w0", "CPU 1"]))),
    st.builds(
        NicFacts,
        st.sampled_from("ab"),
        pcie_width=st.none() | st.integers(0, 16),
        pcie_speed=st.none() | st.sampled_from([0.0, 2.5, 8.0]),
        numa_node=st.none() | st.integers(-1, 1),
        rx_queues=st.none() | st.integers(0, 4),
        ring_rx=st.none() | st.integers(0, 4096),
        rss_fields=st.none() | st.just(()) | st.just(("IP SA",)),
    ),
    st.sampled_from([None, *Stage]),
    st.integers(0, OFFERED + 5),
    st.booleans(),
    st.sampled_from([None, 1, 251]),
    st.sampled_from([0.0, 1.0, OFFERED]),
    st.sampled_from([0.0, 1.0, 10e9]),
)
def test_whatever_was_read_nothing_breaks_and_a_cause_has_its_figures(
    workers: list[WorkerLoad],
    cpus: list[CpuLoad],
    queues: list[QueueLoad],
    card: NicFacts,
    stage: Stage | None,
    forwarded: int,
    both: bool,
    flows: int | None,
    offered: float,
    link_bps: float,
) -> None:
    tried = TriedLoad(64, flows, link_bps, OFFERED, offered, float(forwarded))
    seen = UnderLoad(OFFERED, offered, forwarded, tuple(workers), tuple(queues), tuple(cpus))
    for found in explain(tried, ledger(stage, forwarded=forwarded, both=both), facts((), nics=(card,)), seen):
        assert found.words and found.figures and found.remedy
