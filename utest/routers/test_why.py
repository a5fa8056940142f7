"""Rules that say why frames were lost fit their figures, beside those of the golden messages, and none fits without."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.ledger import DirectionAccount, Drop, Ledger
from lineproof.core.router_facts import NicFacts, Placement
from lineproof.core.telemetry import Stage
from lineproof.core.under_load import CpuLoad, QueueLoad, TriedLoad, UnderLoad, WorkerLoad
from lineproof.routers import described
from lineproof.routers.linux import FILTER_DROPS, discipline_of, parse_qdiscs
from lineproof.routers.why import KERNEL_IDENT, explanation
from support.why_evidence import (
    LOST,
    OFFERED,
    SPREAD,
    TRIED,
    cpus,
    dropped,
    facts,
    ledger,
    load,
    nic,
    on,
    qdisc,
)

RX, BOTH, ONE_FLOW = ledger(), ledger(both=True), replace(TRIED, flows=1)
FULL, TIME = load(1.0, 1.0, 1.0), load(0.2, 0.2)
PACKETS, IDLE = (1.0, 1.0, 0.0, 6e6), (0.1, 0.1, 0.0, 0.0)
BLIND = (nic(driver="rdma"),)
SHARED = facts((Placement("a", 0, "w0"), Placement("b", 0, "w0"), Placement("b", 1, "w1")))
LARGE = replace(TRIED, frame_bytes=1518, intended_pps=3e6, offered_pps=3e6, forwarded_pps=2.1e6)
LARGE_TIME = load(0.2, 0.2, asked=3e6, forwarded_pps=2.1e6)


def unlike(name: str, frames: int) -> Ledger:
    """Return frames lost on arrival, and so many failed allocations of VPP's counter *name*."""
    causes = (
        described("vpp").commands.tables["links" if name == "rx-no-buf" else "errors"].causes_in({name: frames}, "")
    )
    return replace(RX, reasons=tuple(Drop(row.stage, row.name, "", row.count, row.meaning) for row in causes))


IGB, SEVERAL = (nic(interface="b", driver="igb"),), (nic(steered_to={0: "0,1"}),)
ON_ONE, EIGHT = on("CPU 0"), load(*[1.0] * 8)
VECTORS = replace(FULL, workers=(WorkerLoad("vpp_main", 0.1), WorkerLoad("vpp_wk_0", None, 5e6, 256.0)))
MAIN = replace(FULL, workers=(WorkerLoad("vpp_main", 1.0, 6e6), WorkerLoad("w0", 0.01)))
KERNEL = {"intr{irq285: t5nex0:0a1}": 0.9, "kernel{if_io_tqg_0}": 0.1}


FREEBSD = replace(TIME, workers=(), cpus=(CpuLoad(0, 1.0, threads=KERNEL),))


def free_buffers(free: str) -> UnderLoad:
    return replace(TIME, condition={"free buffers of numa-0": free})


WIDE = replace(TRIED, intended_pps=29.6e6, offered_pps=29.6e6, forwarded_pps=22.6e6)
WHOLE = DirectionAccount(0, 1, "a", "b", 14_800_000, 14_800_000, 14_800_000, 14_800_000)
TX_ERROR = (Drop(Stage.LEAVING, "tx-error", "a", 7_000_000),)
LOSSY = DirectionAccount(1, 0, "b", "a", 14_800_000, 7_800_000, 14_800_000, 7_800_000, TX_ERROR)
"""Both directions of WIDE: the first fills its line."""

GIVEN_THEN: Mapping[str, tuple[Any, ...]] = {
    "shaper that loses little": (TRIED, qdisc("tbf rate 9Gbit", 5000, lost=5000), "shaper certain"),
    "below a system's discipline": (TRIED, qdisc("fq_codel limit 10240p flows 1024"), "tx slots likely"),
    "a card, and a backlog": (TRIED, dropped("tx_dropped", Stage.LEAVING), on(nics=IGB), "tx slots likely"),
    "no firewall": (TRIED, dropped("x", Stage.PASSING, frames=0), facts(firewall="off"), ""),
    "locks, kernel not read": (TRIED, RX, facts(os="pfSense 2.4.5 (FreeBSD 11.3-STABLE)"), EIGHT, "locks possible"),
    "locks, patched": (TRIED, RX, facts(os="FreeBSD 11.1", other={KERNEL_IDENT: "MINE"}), EIGHT, "all workers certain"),
    "no locks any more": (TRIED, RX, facts(os="FreeBSD 12.0-RELEASE"), EIGHT, "all workers certain"),
    "full vectors": (TRIED, RX, on("vpp_wk_0"), VECTORS, "all workers certain"),
    "a driver that counts no loss": (TRIED, ledger(None), facts(nics=BLIND), FULL, "all workers certain"),
    "main thread that serves a queue": (TRIED, RX, on("vpp_main", "w0"), MAIN, "uneven workers possible"),
    "each flow on a worker": (ONE_FLOW, BOTH, SHARED, load(1.0, 0.6, 0.6), "one flow likely"),
    "others than the queues' are busy": (
        TRIED,
        RX,
        facts(SPREAD[:2]),
        load(1.0, 0.1, 0.1, 1.0),
        "uneven workers possible",
    ),
    "steered to several": (TRIED, RX, on("CPU 0", nics=SEVERAL), cpus(PACKETS, IDLE), "uneven workers possible"),
    "other work, rates not read": (TRIED, RX, ON_ONE, cpus((1.0, 0.3, 0.0, None)), "other work possible"),
    "threads of its kernel": (TRIED, RX, on("CPU 0", os="FreeBSD 14.1"), FREEBSD, "all workers certain"),
    "empty pool": (TRIED, RX, facts(), free_buffers("0 of 16383, 0 more in threads' caches"), "no buffers likely"),
    "a pool with buffers": (TRIED, RX, facts(), free_buffers("10 of 16383"), "card or bus likely"),
    "a few failed allocations": (TRIED, unlike("rx-no-buf", 100), facts(), TIME, "card or bus likely"),
    **{
        f"no failed allocation: {name}": (TRIED, unlike(name, 40_000), facts(), TIME, "card or bus likely")
        for name in ("esp4-encrypt: no buffers", "arp-reply: ARP replies sent", "error-drop: none")
    },
    "late in a busy worker": (TRIED, ledger(forwarded=OFFERED), facts(), load(1.0, 0.2), "late frames likely"),
    "late beside other work": (
        TRIED,
        ledger(forwarded=OFFERED),
        ON_ONE,
        cpus((1.0, 0.3, 0.0, None)),
        "late frames possible",
    ),
    "a line that is full without a drop": (WIDE, Ledger(1, 1, (WHOLE, LOSSY)), "tx slots likely"),
    **{
        f"port of {link_bps} bit/s": (replace(TRIED, link_bps=link_bps), ledger(Stage.LEAVING), "tx slots likely")
        for link_bps in (0.0, -0.0, math.nan)
    },
}


def named(*given: Any) -> str:
    """Return the rule that fits and how sure it is; "": none fits."""
    found = explanation(*given)
    return f"{found.rule} {found.confidence.value}" if found else ""


def one_loses() -> Ledger:
    """Frames that enter by a are lost on arrival, those that enter by b are not."""
    half, lost = OFFERED // 2, (Drop(Stage.ARRIVING, "drop", "a", LOST),)
    losing = DirectionAccount(0, 1, "a", "b", half, half - LOST, half - LOST, half - LOST, lost)
    return Ledger(1, 1, (losing, DirectionAccount(1, 0, "b", "a", half, half, half, half)))


OWN_WORKERS = facts((Placement("a", 0, "w0"), Placement("b", 0, "w1")))
SILENT: Mapping[str, tuple[Any, ...]] = {
    "nothing read": (TRIED,),
    "no load read": (TRIED, RX, facts()),
    "no login": (TRIED, replace(RX, missing="no login")),
    "perhaps lost on the cable": (TRIED, ledger(None), facts(), FULL),
    "lost inside, uncounted": (TRIED, ledger(Stage.PASSING), facts(), FULL),
    "nothing lost, and workers with time left": (TRIED, ledger(forwarded=OFFERED), facts(), TIME),
    "read at half the load": (TRIED, RX, facts(), load(1.0, asked=OFFERED / 2)),
    "read at twice the load": (TRIED, RX, facts(), load(1.0, asked=OFFERED * 2, forwarded_pps=1.2e7)),
    "read at no load": (TRIED, RX, facts(), load(0.1, asked=math.nan)),
    "not sent again": (TRIED, RX, facts(), load(0.1, offered_pps=1e5, forwarded_pps=6e4)),
    "not lost again": (TRIED, RX, facts(), load(1.0, forwarded_pps=OFFERED)),
    "less was sent, and lost": (replace(TRIED, intended_pps=2e7),),
    "the busy worker serves what was not lost": (ONE_FLOW, one_loses(), OWN_WORKERS, load(0.3, 1.0)),
    "the busy worker serves no queue": (TRIED, RX, on("w0", "w0"), load(0.3, 0.2, 1.0)),
    "no shares": (TRIED, RX, facts(), load(math.nan, -0.5, 1e9)),
    "neither busy nor idle": (TRIED, RX, facts(), load(0.9, 0.9)),
    "one worker not read": (TRIED, RX, facts(), replace(FULL, workers=(WorkerLoad("w0", 1.0), WorkerLoad("w1")))),
    "processors that poll": (TRIED, RX, facts(), replace(TIME, workers=(), cpus=(CpuLoad(0, 1.0), CpuLoad(1, 1.0)))),
    "damaged frames": (TRIED, dropped("rx_errors", Stage.ARRIVING), facts(), FULL),
    "damaged frames of VPP": (TRIED, dropped("rx-error", Stage.ARRIVING), facts(), TIME),
    "no buffers for what was lost inside": (
        TRIED,
        replace(unlike("rx-no-buf", 40_000), directions=ledger(Stage.PASSING).directions),
        facts(),
        TIME,
    ),
}


@pytest.mark.parametrize("name", [*GIVEN_THEN, *SILENT])
def test_the_rule_is_named_whose_figures_are_there_and_none_without(name: str) -> None:
    *given, then = GIVEN_THEN.get(name) or (*SILENT[name], "")
    assert named(*given) == then


@pytest.mark.parametrize(
    ("lost_elsewhere", "frames", "sure"),
    [
        # other counters have all of the loss: these are frames of others
        (LOST, 6 * LOST, ""),
        (LOST, LOST * 6 // 10, ""),
        (LOST - 4000, 6 * LOST, ""),
        # both are as many as were lost, or some of these are
        (LOST, LOST, "likely"),
        (LOST * 4 // 10, 6 * LOST, "likely"),
        (0, LOST + LOST // 200, "certain"),
        (LOST // 5, LOST * 8 // 10, "certain"),
    ],
)
def test_what_a_router_drops_of_others_is_no_reason(lost_elsewhere: int, frames: int, sure: str) -> None:
    for counted in (
        qdisc("tbf rate 9Mbit", frames, missed=lost_elsewhere),
        dropped(FILTER_DROPS, Stage.PASSING, "x", frames, missed=lost_elsewhere),
    ):
        assert named(TRIED, counted).rpartition(" ")[2] == sure


@pytest.mark.parametrize(
    ("shown", "rule"),
    [
        # iproute2 6.1
        ('"htb", "options": {"r2q": 10, "default": "0x1", "direct_packets_stat": 0, "direct_qlen": 1000}', "shaper"),
        ('"tbf", "options": {"rate": 500000, "burst": 10240, "lat": 20480}', "shaper"),
        # not recorded: the keys of tc/q_cake.c, q_fq.c, q_netem.c, q_red.c
        ('"cake", "options": {"bandwidth": 500000, "diffserv": "diffserv3"}', "shaper"),
        ('"fq", "options": {"limit": 10000, "maxrate": 500000}', "shaper"),
        ('"netem", "options": {"limit": 1000, "rate": {"rate": 500000, "packetoverhead": 0}}', "shaper"),
        ('"red", "options": {"limit": 61440, "min": 3072, "max": 9216}', "short queue"),
        # those that a system sets by itself are full because the card below is slow; recorded, too
        ('"pfifo_fast", "options": {"bands": 3, "priomap": [1, 2], "multiqueue": false}', "tx slots"),
        ('"cake", "options": {"bandwidth": "unlimited"}', "tx slots"),
    ],
)
def test_a_queueing_discipline_is_named_by_its_kind_and_settings(shown: str, rule: str) -> None:
    (cause,) = parse_qdiscs(f'[{{"kind": {shown}, "dev": "b", "root": true, "drops": 4}}]', ("b",))
    assert rule in named(TRIED, qdisc(discipline_of(cause.meaning)))
    assert ("500000" in shown) is ("4Mbit" in cause.meaning)


@pytest.mark.parametrize(
    ("handed", "sent", "rule"),
    # less than the line carries arrives for it, or clocks differ
    [(0.9998, 0.975, "tx slots"), (1.0002, 0.985, "tx slots"), (1.02, 0.9999, "line")],
)
def test_a_line_is_the_limit_only_where_more_arrives_than_it_carries(handed: float, sent: float, rule: str) -> None:
    offered, forwarded = (int(share * 10e9 / (84 * 8)) for share in (handed, sent))
    tried = TriedLoad(64, None, 10e9, offered, offered, forwarded)
    counted = ledger(Stage.LEAVING, offered, forwarded)
    assert rule in named(tried, counted)
    # what the router drops of others fills no line by itself
    (row,) = counted.directions
    more = replace(row, drops=(replace(row.drops[0], frames=2 * row.lost),))
    assert rule in named(tried, replace(counted, directions=(more,)))


ONE_CARD = {"a": "0000:03:00.0", "b": "0000:03:00.1"}
TWO_CARDS = {"a": "0000:03:00.0", "b": "0000:04:00.0"}


@pytest.mark.parametrize(
    ("addresses", "entering", "rule"),
    [
        (ONE_CARD, "ab", "bus"),
        # the same model twice has a bus each
        (TWO_CARDS, "ab", "card or bus"),
        ({"a": "0000:03:00.0", "b": "0001:03:00.0"}, "ab", "card or bus"),
        # one direction: up one bus and down the other, or up and down the same
        (TWO_CARDS, "a", "bus"),
        (ONE_CARD, "a", "bus"),
        # two cards of two ports: pairs of ports on a card, and across
        ({**ONE_CARD, "c": "0000:04:00.0", "d": "0000:04:00.1"}, "abcd", "card or bus"),
        ({"a": "0000:03:00.0", "b": "0000:04:00.0", "c": "0000:03:00.1", "d": "0000:04:00.1"}, "ac", "bus"),
        # of cards whose address was not read the bus is not known
        ({"a": None, "b": None}, "ab", "card or bus"),
    ],
)
def test_ports_share_a_bus_that_are_on_one_card(addresses: Mapping[str, str], entering: str, rule: str) -> None:
    """Four lanes carry 31.5 Gbit/s each way: three quarters of it are 1.9 Mpps of large frames."""
    names, rows = list(addresses), []
    for port, name in enumerate(entering):
        own, back = 3_000_000 // len(entering), 2_100_000 // len(entering)
        out = names[(names.index(name) + 1) % len(names)]
        drops = (Drop(Stage.ARRIVING, "drop", name, own - back),)
        rows.append(DirectionAccount(port, 9, name, out, own, back, back, back, drops))
    link = NicFacts("", pcie_width=4, pcie_speed=8.0, pcie_width_max=8, pcie_speed_max=8.0)
    cards = tuple(replace(link, interface=name, pci_address=address) for name, address in addresses.items())
    assert named(LARGE, Ledger(1, 1, tuple(rows)), facts(nics=cards), LARGE_TIME) == f"{rule} likely"


@pytest.mark.parametrize(
    "name",
    [
        "rx-no-buf",
        # of input nodes of rdma, vmxnet3, ena, iavf; avf; memif; vhost-user; as others may say it
        "rdma-input: buffer alloc error",
        "avf-input: buffer alloc failed",
        "memif-input: buffer allocation failed",
        "vhost-user-input: no available buffer",
        "dpdk-input: no buffers",
        "virtio-input: buffer pool exhausted",
    ],
)
def test_a_router_without_free_buffers_is_neither_a_slow_card_nor_a_full_bus(name: str) -> None:
    counted = unlike(name, 40_000)
    for directions in (RX.directions, ledger(None).directions):
        for seen in (TIME, None):
            assert named(TRIED, replace(counted, directions=directions), facts(), seen) == "no buffers likely"


def several(*values: Any) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(st.builds(*values), max_size=4).map(tuple)


SHARES, CPUS = st.none() | st.floats(0, 1), st.sampled_from(["w0", "w1", "CPU 0"])
SPEEDS = st.sampled_from([0.0, 1.0, 10e9])
LOADS = st.builds(
    partial(UnderLoad, OFFERED),
    SPEEDS,
    st.floats(0, OFFERED),
    several(WorkerLoad, CPUS, SHARES, SHARES),
    several(QueueLoad, st.sampled_from("ab"), st.integers(0, 3), CPUS | st.just("")),
    several(CpuLoad, st.integers(0, 1), SHARES, SHARES, SHARES, st.just({}), SHARES, SHARES, SHARES),
)
WIDTHS, ADDRESSES = st.none() | st.integers(0, 16), st.none() | st.just("0000:03:00.0")
CARDS = st.builds(NicFacts, st.sampled_from("ab"), pci_address=ADDRESSES, pcie_width=WIDTHS, pcie_speed=SPEEDS)
LEDGERS = st.builds(ledger, st.sampled_from([None, *Stage]), forwarded=st.integers(0, OFFERED + 5), both=st.booleans())


@given(LOADS, CARDS, LEDGERS, st.sampled_from([None, 1, 251]), SPEEDS, st.floats(0, OFFERED + 5.0))
def test_whatever_was_read_nothing_breaks_and_a_cause_has_its_figures(
    seen: UnderLoad, card: NicFacts, counted: Ledger, flows: int | None, link_bps: float, forwarded: float
) -> None:
    tried = TriedLoad(64, flows, link_bps, OFFERED, seen.offered_pps, forwarded)
    found = explanation(tried, counted, facts((), nics=(card,)), seen)
    assert found is None or (found.words and found.remedy)
