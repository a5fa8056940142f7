"""Why frames were lost, by what the machine is: buses of cards, hyper-threads, buffers, a clock that is lowered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from lineproof.core.causes import Stage
from lineproof.core.explanation import Confidence, Explanation
from lineproof.core.ledger import DirectionAccount, Drop, Ledger
from lineproof.core.router_facts import NicFacts, Placement
from lineproof.core.under_load import CpuLoad, UnderLoad
from lineproof.routers.explain import explain
from lineproof.routers.vpp_losses import vpp_causes
from support.why_evidence import OFFERED, SPREAD, TRIED, facts, ledger, load, nic

# -- buses

PCIE = {"model": "X", "pcie_width": 4, "pcie_speed": 8.0, "pcie_width_max": 8, "pcie_speed_max": 8.0}
"""31.5 Gbit/s each way: three quarters of it are 1.9 Mpps of large frames, which the test offers both ways."""

LARGE = replace(TRIED, frame_bytes=1518, intended_pps=3e6, offered_pps=3e6, forwarded_pps=2.1e6)


def lost_at(addresses: Mapping[str, str | None], entering: str = "ab", **more: object) -> Explanation:
    """Frames of 1518 bytes lost on arrival, while workers are idle, by cards at *addresses*; 2.1 Mpps came back."""
    names = list(addresses)
    rows = []
    for port, name in enumerate(entering):
        own, back = 3_000_000 // len(entering), 2_100_000 // len(entering)
        out = names[(names.index(name) + 1) % len(names)]
        drops = (Drop(Stage.ARRIVING, "drop", name, own - back),)
        rows.append(DirectionAccount(port, 9, name, out, own, back, back, back, drops))
    cards = tuple(NicFacts(name, pci_address=address, **PCIE) for name, address in addresses.items())  # type: ignore[arg-type]
    seen = load(0.2, 0.2, asked=3e6, forwarded_pps=2.1e6)
    return explain(replace(LARGE, **more), Ledger(1, 1, tuple(rows)), facts(nics=cards), seen)[0]  # type: ignore[arg-type]


ONE_CARD = {"a": "0000:03:00.0", "b": "0000:03:00.1"}
TWO_CARDS = {"a": "0000:03:00.0", "b": "0000:04:00.0"}


@pytest.mark.parametrize(
    ("addresses", "entering", "rule", "share"),
    [
        (ONE_CARD, "ab", "bus", 0.90),
        # the same model twice has a bus each
        (TWO_CARDS, "ab", "card or bus", 0.45),
        ({"a": "0000:03:00.0", "b": "0001:03:00.0"}, "ab", "card or bus", 0.45),
        # one direction: up one bus and down the other, or up and down the same
        (TWO_CARDS, "a", "bus", 0.90),
        (ONE_CARD, "a", "bus", 0.90),
        # two cards of two ports: pairs of ports on a card, and across
        ({**ONE_CARD, "c": "0000:04:00.0", "d": "0000:04:00.1"}, "abcd", "card or bus", 0.45),
        ({"a": "0000:03:00.0", "b": "0000:04:00.0", "c": "0000:03:00.1", "d": "0000:04:00.1"}, "ac", "bus", 0.90),
    ],
)
def test_ports_share_a_bus_that_are_on_one_card(
    addresses: Mapping[str, str], entering: str, rule: str, share: float
) -> None:
    found = lost_at(addresses, entering)
    assert found.rule == rule and found.figures["bus_share"] == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("unknown", [{"a": None, "b": None}, {"a": "0000:03:00.0", "b": None}])
def test_of_cards_whose_address_was_not_read_the_bus_is_not_known(unknown: Mapping[str, str | None]) -> None:
    found = lost_at(unknown)
    assert found.rule == "card or bus" and "was not read" in found.words and "bus_share" not in found.figures
    # where all frames enter by one port, its own bus carries all of them
    assert lost_at(unknown, "a").rule == "bus"


def test_the_bus_of_a_card_that_lost_nothing_is_no_reason() -> None:
    dropped = (Drop(Stage.ARRIVING, "drop", "b", 900_000),)
    rows = (
        DirectionAccount(0, 1, "a", "b", 2_000_000, 2_000_000, 2_000_000, 2_000_000),
        DirectionAccount(1, 0, "b", "a", 1_000_000, 100_000, 100_000, 100_000, dropped),
    )
    wide = {**PCIE, "pcie_width": 16, "pcie_width_max": 16}
    cards = (
        NicFacts("a", pci_address="0000:03:00.0", **PCIE),  # type: ignore[arg-type]
        NicFacts("b", pci_address="0000:04:00.0", **wide),  # type: ignore[arg-type]
    )
    seen = load(0.2, 0.2, asked=3e6, forwarded_pps=2.1e6)
    (found,) = explain(LARGE, Ledger(1, 1, rows), facts(nics=cards), seen)
    assert found.rule == "card" and "PCIe x16" in found.words


# -- hyper-threads

ON_CPUS = tuple(Placement("a", queue, f"CPU {queue}") for queue in range(4))


def busy_of(busy: int, of: int) -> UnderLoad:
    cpus = tuple(CpuLoad(cpu, float(cpu < busy), float(cpu < busy), 1e6 * (cpu < busy)) for cpu in range(of))
    return UnderLoad(OFFERED, OFFERED, TRIED.forwarded_pps, cpus=cpus)


@pytest.mark.parametrize(
    ("queues", "processors", "each", "sure"),
    [
        # every core has a busy thread: idle ones may share these
        (4, 8, 2, Confidence.LIKELY),
        (3, 4, 2, Confidence.LIKELY),
        (2, 16, 8, Confidence.LIKELY),
        (4, 8, None, Confidence.LIKELY),
        # a core is idle, whichever threads share one
        (3, 8, 2, Confidence.CERTAIN),
        (4, 8, 1, Confidence.CERTAIN),
    ],
)
def test_idle_hyper_threads_are_no_idle_cores(queues: int, processors: int, each: int | None, sure: Confidence) -> None:
    few = facts(ON_CPUS[:queues], threads_per_core=each)
    found = explain(TRIED, ledger(), few, busy_of(queues, processors))[0]
    assert (found.rule, found.confidence) == ("few queues", sure)


@pytest.mark.parametrize(
    ("rule", "more"),
    [
        ("one processor", {"placement": tuple(Placement("a", queue, "CPU 0") for queue in range(4))}),
        ("one processor", {"placement": ON_CPUS[:1], "nics": (nic(steered_to={0: "0"}),)}),
    ],
)
def test_no_rule_is_certain_that_the_other_thread_of_a_core_would_help(rule: str, more: dict[str, object]) -> None:
    for each, sure in ((2, Confidence.LIKELY), (1, Confidence.CERTAIN)):
        found = explain(TRIED, ledger(), facts(threads_per_core=each, **more), busy_of(1, 2))[0]  # type: ignore[arg-type]
        assert (found.rule, found.confidence) == (rule, sure)


# -- buffers of VPP

ALLOCATIONS = [
    "rx-no-buf",
    # of input nodes of rdma, vmxnet3, ena, iavf; avf; memif; vhost-user; as others may say it
    "rdma-input: buffer alloc error",
    "avf-input: buffer alloc failed",
    "memif-input: buffer allocation failed",
    "vhost-user-input: no available buffer",
    "dpdk-input: no buffers",
    "virtio-input: buffer pool exhausted",
]


def failing(name: str, times: int, stage: Stage | None = Stage.ARRIVING) -> Ledger:
    """Lost on arrival, and so many failed allocations: as VPP's counters give them, reasons only."""
    rows, errors = ({"a": {name: times}}, {}) if name == "rx-no-buf" else ({}, {name: times})
    found = [cause for cause in vpp_causes(rows, errors) if cause.count]
    reasons = tuple(Drop(row.stage, row.name, row.interface, row.count, row.meaning) for row in found)
    assert [row.stage for row in found] == [Stage.ARRIVING]
    return replace(ledger(stage), reasons=reasons)


@pytest.mark.parametrize("name", ALLOCATIONS)
@pytest.mark.parametrize("stage", [Stage.ARRIVING, None], ids=["counted", "by a driver that counts no loss"])
def test_a_router_without_free_buffers_is_neither_a_slow_card_nor_a_full_bus(name: str, stage: Stage | None) -> None:
    for seen in (load(0.2, 0.2, 0.2), None):
        (found,) = explain(TRIED, failing(name, 40_000, stage), facts(), seen)
        assert (found.rule, found.confidence) == ("no buffers", Confidence.LIKELY)
        assert "40,000 times" in found.words and "buffers-per-numa" in found.remedy


@pytest.mark.parametrize("name", ["esp4-encrypt: no buffers", "arp-reply: ARP replies sent", "error-drop: none"])
def test_other_counters_are_no_failed_allocations(name: str) -> None:
    reasons = (Drop(Stage.PASSING, name, "", 40_000),)
    assert explain(TRIED, replace(ledger(), reasons=reasons), facts(), load(0.2, 0.2))[0].rule == "card or bus"


def test_a_few_failed_allocations_explain_no_large_loss() -> None:
    assert explain(TRIED, failing("rx-no-buf", 100), facts(), load(0.2, 0.2))[0].rule == "card or bus"
    lost_inside = replace(failing("rx-no-buf", 40_000), directions=ledger(Stage.PASSING).directions)
    assert explain(TRIED, lost_inside, facts(), load(0.2, 0.2)) == ()


@pytest.mark.parametrize(("free", "rule"), [("0", "no buffers"), ("10", "card or bus")])
def test_a_pool_lacks_buffers_only_where_none_is_free(free: str, rule: str) -> None:
    seen = load(0.2, 0.2, condition={"free buffers of default-numa-0": f"{free} of 16383, 0 more in threads' caches"})
    assert [row.rule for row in explain(TRIED, ledger(), facts(), seen)] == [rule]


# -- the clock of a processor

NO_THROTTLE = [
    # VPP's and cards' own words: of frames, not of the processor
    "ip4-glean: ARP requests throttled",
    "ip6-glean: neighbor solicitations throttled",
    "ip4-icmp-error: unreachable messages throttled",
    "ethtool rx_throttle at eth0",
    "ethtool tx_pause_storm_throttled at eth1",
    "irq20: power_limit0",
]


@pytest.mark.parametrize("name", NO_THROTTLE)
def test_a_counter_of_frames_that_were_throttled_is_no_hot_processor(name: str) -> None:
    found = explain(TRIED, ledger(), facts(SPREAD), load(1.0, 0.7, 0.5, counters={name: 9.0}))
    assert "throttling" not in [row.rule for row in found]


# -- a port without a rate


@pytest.mark.parametrize("link_bps", [0.0, -0.0, float("nan")])
@pytest.mark.parametrize("stage", [*Stage, None])
def test_a_port_whose_rate_is_not_known_has_no_full_line(link_bps: float, stage: Stage | None) -> None:
    for seen in (None, load(0.2, 0.2), load(1.0, 0.1)):
        found = explain(replace(TRIED, link_bps=link_bps), ledger(stage), facts(), seen)
        assert "line" not in [row.rule for row in found]
