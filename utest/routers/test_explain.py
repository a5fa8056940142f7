"""Each rule that says why frames were lost speaks by its figures, and none without them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.causes import Stage
from lineproof.core.explanation import Confidence
from lineproof.core.ledger import DirectionAccount, Drop, Ledger
from lineproof.core.router_facts import NicFacts, Placement
from lineproof.core.under_load import CpuLoad, QueueLoad, UnderLoad, WorkerLoad
from lineproof.routers.explain import explain
from lineproof.routers.explain_evidence import TriedLoad
from lineproof.routers.explain_workers import IDENT
from lineproof.routers.linux_load import THROTTLED
from lineproof.routers.linux_losses import BACKLOG_FULL, QDISC_DROPS
from support.ceilings import CATALOGUE
from support.why_evidence import FORWARDED, OFFERED, TRIED, facts, ledger, load, nic

EACH_ITS_OWN = (Placement("a", 0, "w0"), Placement("b", 0, "w1"))


def one_loses() -> Ledger:
    """Return what enters by a is lost on arrival, what enters by b is not."""
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


@pytest.mark.parametrize(
    ("system", "kernel", "rule", "confidence"),
    [
        ("pfSense 2.4.5 (FreeBSD 11.3-STABLE)", {}, "locks", Confidence.POSSIBLE),
        ("FreeBSD 12.0-RELEASE", {IDENT: "GENERIC"}, "all workers", Confidence.CERTAIN),
        # with patches
        ("FreeBSD 11.1-RELEASE", {IDENT: "MINE"}, "all workers", Confidence.CERTAIN),
    ],
)
def test_locks_are_those_of_known_kernels(
    system: str, kernel: dict[str, str], rule: str, confidence: Confidence
) -> None:
    first = explain(TRIED, ledger(), facts(os=system, other=kernel), load(*[1.0] * 8))[0]
    assert (first.rule, first.confidence) == (rule, confidence), first


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


maybe = st.none() | st.floats(0, 1)


def several(rows: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(rows, max_size=4).map(tuple)


@given(
    several(st.builds(WorkerLoad, st.sampled_from(["w0", "w1", "CPU 0"]), maybe, maybe)),
    several(st.builds(QueueLoad, st.sampled_from("ab"), st.integers(0, 3), st.sampled_from(["", "w0", "CPU 1"]))),
    several(st.builds(CpuLoad, st.integers(0, 3), maybe)),
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
    st.tuples(st.sampled_from([None, 1, 251]), st.sampled_from([0.0, 1.0, 10e9]), st.sampled_from([0.0, 1.0, OFFERED])),
)
def test_whatever_was_read_nothing_breaks_and_a_cause_has_its_figures(
    workers: Any, queues: Any, cpus: Any, card: NicFacts, stage: Stage | None, forwarded: int, both: bool, terms: Any
) -> None:
    flows, link_bps, offered = terms
    tried = TriedLoad(64, flows, link_bps, OFFERED, offered, float(forwarded))
    seen = UnderLoad(OFFERED, offered, forwarded, workers, queues, cpus)
    for found in explain(tried, ledger(stage, forwarded=forwarded, both=both), facts((), nics=(card,)), seen):
        assert found.words and found.figures and found.remedy


@pytest.mark.parametrize(
    ("rate", "rule", "confidence"),
    [
        (0.0, "shared worker", Confidence.LIKELY),
        (3.0, "shared worker", Confidence.LIKELY),
        (72e3, "shared worker", Confidence.LIKELY),
        # each flow has a worker
        (4e6, "one flow", Confidence.CERTAIN),
        # whether the flow enters by the other queue is not known
        (None, "one flow", Confidence.LIKELY),
    ],
)
def test_a_few_packets_on_another_worker_do_not_hide_that_one_is_shared(
    rate: float | None, rule: str, confidence: Confidence
) -> None:
    placed = facts((*(Placement(name, 0, "w0") for name in "ab"), Placement("a", 1, "w1")))
    seen = replace(load(), workers=(WorkerLoad("w0", 1.0, 6e6), WorkerLoad("w1", 0.01, rate)))
    found = explain(replace(TRIED, flows=1), ledger(both=True), placed, seen)[0]
    assert (found.rule, found.confidence) == (rule, confidence)


@pytest.mark.parametrize("rate", [None, 72e3, 4e6])
@pytest.mark.parametrize("system", ["FreeBSD 14.1-RELEASE", "Debian GNU/Linux 12"])
def test_two_flows_whose_only_queues_are_on_one_processor_share_it(system: str, rate: float | None) -> None:
    """FreeBSD does not say how many packets each processor handles; a count of Linux may have begun again."""
    busy = (1.0, 0.02, 0.01, 0.0)
    cpus = tuple(CpuLoad(number, share, share, rate if number else 6e6) for number, share in enumerate(busy))
    seen = UnderLoad(OFFERED, OFFERED, FORWARDED, cpus=cpus)
    alone = tuple(Placement(name, 0, "CPU 0") for name in "ab")
    tried, lost = replace(TRIED, flows=1), ledger(both=True)

    def found(placed: tuple[Placement, ...], *nics: NicFacts) -> tuple[str, Confidence]:
        first = explain(tried, lost, facts(placed, os=system, threads_per_core=1, nics=nics), seen)[0]
        return first.rule, first.confidence

    assert found(alone) == ("shared worker", Confidence.CERTAIN)
    assert found((alone[0], Placement("b", 0, "CPU 1"))) == ("one flow", Confidence.CERTAIN)
    # the flow of b may enter by a queue whose place was not read
    if rate is None:
        assert found(alone, nic(interface="b", rx_queues=2)) == ("one flow", Confidence.LIKELY)
        assert found(alone, nic(rx_queues=1, steered_to={0: "0,1"})) == ("one flow", Confidence.LIKELY)


BY_ADDRESSES = nic(rx_queues=3, rss_fields=("IP SA", "IP DA"))


def test_a_hash_of_addresses_is_no_cause_where_the_ports_stay() -> None:
    # ports that all flows share permute the queues, and spread nothing
    tried = replace(TRIED, ports_vary=False)
    assert explain(tried, ledger(), facts(nics=(BY_ADDRESSES,)), load(1.0, 0.2, 0.2))[0].rule == "uneven workers"


@pytest.mark.parametrize("vary", [False, True, None])
def test_a_hash_of_addresses_does_not_hide_that_one_processor_serves_all_queues(vary: bool | None) -> None:
    cpus = tuple(CpuLoad(number, share, share, 6e6 * share) for number, share in enumerate((1.0, 0.1, 0.0)))
    seen = UnderLoad(OFFERED, OFFERED, FORWARDED, cpus=cpus)
    served = tuple(Placement("a", queue, "CPU 0") for queue in range(3))
    tried = replace(TRIED, ports_vary=vary)
    assert explain(tried, ledger(), facts(served, nics=(BY_ADDRESSES,)), seen)[0].rule == "one processor"


def test_the_flows_of_the_catalogue_have_the_same_ports() -> None:
    for words in ("64b", "64b 1-flow", "64b 2000-flows", "64b 256-networks", "imix", "datagram-1500"):
        assert CATALOGUE.profile(words.split()).flows.ports_vary is False


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
    drops = {name: (Drop(Stage.ARRIVING, "drop", name, offered - forwarded),) for name in entering}
    rows = tuple(
        DirectionAccount(port, 9, name, out[name], offered, forwarded, forwarded, forwarded, drops[name])
        for port, name in enumerate(entering)
    )
    cards = tuple(NicFacts(name, numa_node=node) for name, node in nodes.items())
    found = explain(TRIED, Ledger(1, 1, rows), facts(PLACED, nics=cards), processors(1.0, 1.0, 1.0, 1.0))
    assert [item.rule for item in found] == ["all workers", "numa"][: 1 + bool(words)]
    assert words in found[-1].words


@pytest.mark.parametrize(
    ("busy", "said"),
    [((0.2, 0.2), True), ((0.9, 0.2), True), ((1.0, 1.0), False), ((0.9, 0.9), False), ((0.2,), False)],
)
def test_irqbalance_is_said_of_a_backlog_only_where_another_processor_has_time(
    busy: tuple[float, ...], said: bool
) -> None:
    found = explain(TRIED, BACKLOG, facts(PLACED[: len(busy)], irqbalance=True), processors(*busy))
    assert found[0].rule == "backlog" and ("irqbalance" in [item.rule for item in found]) is said
