"""What a system drops itself is named as that: queueing disciplines, filters, backlogs, and programs.

What a Linux router shows of itself is made here, as the kernel prints it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from lineproof.core.causes import Stage
from lineproof.core.explanation import Confidence, Explanation
from lineproof.core.ledger import DirectionAccount, Drop, Ledger, make_ledger
from lineproof.core.router_facts import NicFacts, Placement, RouterFacts
from lineproof.core.telemetry import InterfaceCounters, Telemetry
from lineproof.core.under_load import CpuLoad, UnderLoad
from lineproof.routers.explain import explain
from lineproof.routers.explain_evidence import TriedLoad
from lineproof.routers.linux_facts import steered
from lineproof.routers.linux_load import cpu_loads
from lineproof.routers.linux_losses import BACKLOG_FULL, linux_causes, parse_qdiscs
from support.ceilings import failed
from support.why_evidence import OFFERED, SPREAD, TRIED, facts, ledger, load

SENT = 100_000
NAMES = {0: "eth0", 1: "eth1"}
NOTHING = dict.fromkeys(("rx_missed", "rx_errors", "rx_dropped", "tx_dropped", "tx_errors"), 0)
SENT_LINE = " Sent 9000 bytes 90 pkt (dropped {drops}, overlimits 0 requeues 0)\n backlog 0b 0p requeues 0\n"
CARDS = tuple(NicFacts(name, driver="igb", rx_queues=1) for name in NAMES.values())
VETH = tuple(NicFacts(name, driver="veth", rx_queues=1) for name in NAMES.values())


def qdisc(words: str, drops: int) -> str:
    return f"qdisc {words}\n{SENT_LINE.format(drops=drops)}"


def linux_ledger(
    lost: int,
    taken: int | None = None,
    qdiscs: Callable[[int], str] = lambda drops: "",
    backlog: int = 0,
    **counters: int,
) -> Ledger:
    """Of SENT frames *lost* ones; *qdiscs*: what ``tc`` prints of so many drops; *counters* as ``rx_dropped``."""
    forwarded = SENT - lost

    def reading(scale: int) -> Telemetry:
        mine: dict[str, dict[str, int]] = {"eth0": {}, "eth1": {}}
        for key, count in counters.items():
            mine["eth0" if key.startswith("rx") else "eth1"][key] = count * scale
        links = {name: NOTHING | row for name, row in mine.items()}
        causes = linux_causes(links, {}, backlog * scale, parse_qdiscs(qdiscs(lost * scale)), {})
        received = SENT if taken is None else taken
        interfaces = {
            "eth0": InterfaceCounters(rx_packets=received * scale),
            "eth1": InterfaceCounters(tx_packets=forwarded * scale),
        }
        return Telemetry(float(scale), interfaces, {}, (), {}, causes=causes)

    trial = failed("64b unidirectional ≥ 100 kpps", SENT).trials[0]
    (row,) = trial.outcome.directions[:1]
    row = replace(row, offered=SENT, forwarded=forwarded)
    return make_ledger(
        [replace(trial, outcome=replace(trial.outcome, directions=(row,)))], reading(0), reading(1), NAMES
    )


def explained(
    ledger: Ledger, nics: tuple[NicFacts, ...] = CARDS, load: UnderLoad | None = None, flows: int = 251, **facts: object
) -> tuple[Explanation, ...]:
    tried = TriedLoad(64, flows, 10e9, SENT, SENT, SENT - ledger.lost)
    return explain(tried, ledger, replace(RouterFacts(nics=nics), **facts), load)  # type: ignore[arg-type]


def as_shown(rows: Sequence[tuple[int, int, int, int, int, float]]) -> tuple[CpuLoad, ...]:
    """Of 100 ticks those in programs, the system, hardware and software interrupts, and steal; frames/s."""
    before = "".join(f"cpu{cpu} 0 0 0 0 0 0 0 0 0 0\n" for cpu, _ in enumerate(rows))
    after = "".join(
        f"cpu{cpu} {user} 0 {system} {100 - user - system - irq - softirq - steal} 0 {irq} {softirq} {steal} 0 0\n"
        for cpu, (user, system, irq, softirq, steal, _) in enumerate(rows)
    )
    return cpu_loads(before, after, {cpu: row[5] for cpu, row in enumerate(rows)})


def processors(*shares: tuple[int, int, int, float], **more: object) -> UnderLoad:
    """By processor: ticks of 100 in programs, in the system and in software interrupts, and frames/s."""
    cpus = as_shown([(user, system, 0, softirq, 0, frames) for user, system, softirq, frames in shares])
    return replace(UnderLoad(SENT, SENT, SENT / 2, cpus=cpus), **more)  # type: ignore[arg-type]


DISCIPLINES: Mapping[str, tuple[str, Confidence, str]] = {
    "htb 1: dev eth1 root refcnt 3 r2q 10 default 0x1": ("shaper", Confidence.CERTAIN, "eth1, htb,"),
    "cake 8003: dev eth1 root refcnt 2 bandwidth 4Mbit diffserv3": ("shaper", Confidence.CERTAIN, "bandwidth 4Mbit"),
    "fq 8003: dev eth1 root refcnt 2 limit 10000p maxrate 4Mbit": ("shaper", Confidence.CERTAIN, "maxrate 4Mbit"),
    "netem 8003: dev eth1 root refcnt 2 limit 10 delay 10ms": ("shaper", Confidence.CERTAIN, "netem limit 10 delay"),
    "red 8003: dev eth1 root refcnt 2 limit 60Kb min 3Kb max 9Kb": ("short queue", Confidence.LIKELY, "eth1, red"),
    # those that a system sets by itself are full because the card below is slow
    "pfifo_fast 0: dev eth1 root refcnt 2 bands 3 priomap 1 2": ("tx slots", Confidence.LIKELY, "sending ring"),
    "fq_codel 0: dev eth1 root refcnt 2 limit 10240p flows 1024": ("tx slots", Confidence.LIKELY, "sending ring"),
    "cake 8003: dev eth1 root refcnt 2 bandwidth unlimited": ("tx slots", Confidence.LIKELY, "sending ring"),
}


@pytest.mark.parametrize("words", DISCIPLINES)
def test_a_queueing_discipline_is_named_by_its_kind_and_settings(words: str) -> None:
    rule, confidence, expected = DISCIPLINES[words]
    (found,) = explained(linux_ledger(40_000, qdiscs=lambda drops: qdisc(words, drops)))
    assert (found.rule, found.confidence) == (rule, confidence)
    assert expected in str(found)
    assert rule == "tx slots" or not any(word in str(found) for word in ("card", "sending ring", "firmware"))


def test_the_discipline_below_the_root_that_has_a_rate_is_named() -> None:
    def shown(drops: int) -> str:
        return (
            qdisc("mq 0: dev eth1 root", drops)
            + qdisc("fq_codel 0: dev eth1 parent :2 limit 10240p", drops // 4)
            + qdisc("tbf 5: dev eth1 parent :1 rate 4Mbit burst 10Kb lat 20ms", drops - drops // 4)
        )

    (found,) = explained(linux_ledger(40_000, qdiscs=shown))
    assert found.rule == "shaper" and "tbf rate 4Mbit" in found.words and "40,000 of 40,000" in found.words


def test_a_shaper_that_loses_little_is_named_where_most_is_lost_there() -> None:
    tbf = "tbf 5: dev eth1 root rate 90Mbit burst 10Kb lat 20ms"
    assert explained(linux_ledger(50, qdiscs=lambda drops: qdisc(tbf, drops)))[0].rule == "shaper"


def test_what_is_in_no_counter_is_the_firewalls_where_one_is_on() -> None:
    lost = linux_ledger(40_000)
    (found,) = explained(lost, firewall="on: nftables (forward)")
    assert (found.rule, found.confidence) == ("filter", Confidence.LIKELY) and "nftables (forward)" in found.words
    for state in ("off", None):
        assert explained(lost, firewall=state) == ()
    # not received at all
    assert explained(linux_ledger(40_000, taken=60_000), firewall="on: nftables (forward)") == ()


INGRESS, TBF = "ingress ffff: dev eth0 parent ffff:fff1 ---", "tbf 5: dev eth1 root rate 90Mbit burst 10Kb lat 20ms"
HTB, RED = "htb 1: dev eth1 root refcnt 3 r2q 10", "red 8003: dev eth1 root refcnt 2 limit 60Kb"
FIFO = "pfifo_fast 0: dev eth1 root refcnt 2 bands 3"


@pytest.mark.parametrize(
    ("words", "rule"), [(INGRESS, "filter"), (TBF, "shaper"), (HTB, "shaper"), (RED, "short queue"), (FIFO, "tx slots")]
)
@pytest.mark.parametrize(
    ("missed", "dropped", "said"),
    [
        # other counters have all of the loss: what is dropped here are frames of others
        (10_000, 60_000, None),
        (10_000, 6_000, None),
        (9_990, 60_000, None),
        # both are as many as were lost, or some of these are
        (10_000, 10_000, Confidence.LIKELY),
        (4_000, 60_000, Confidence.LIKELY),
        (0, 60_000, Confidence.LIKELY),
        (0, 10_050, Confidence.CERTAIN),
        (0, 10_000, Confidence.CERTAIN),
        (2_000, 8_000, Confidence.CERTAIN),
    ],
)
def test_what_a_router_drops_of_others_is_no_reason(
    words: str, rule: str, missed: int, dropped: int, said: Confidence | None
) -> None:
    shown = linux_ledger(
        10_000, taken=SENT - missed, qdiscs=lambda drops: qdisc(words, dropped if drops else 0), rx_missed=missed
    )
    found = [(item.rule, item.confidence) for item in explained(shown)]
    sure = Confidence.LIKELY if rule in ("short queue", "tx slots") and said else said
    assert found == ([(rule, sure)] if sure else []), found


def test_a_backlog_and_a_firewall_are_no_reason_of_what_other_counters_have() -> None:
    alone = processors((1, 2, 3, 0.0), (0, 1, 99, 60_000.0), counters=FULL)

    def found(missed: int, full: int) -> list[tuple[str, Confidence]]:
        shown = linux_ledger(10_000, taken=SENT - missed, backlog=full, rx_missed=missed, rx_dropped=full)
        tried = [item for item in explained(shown, ONE, alone, threads_per_core=1) if item.rule == "backlog"]
        return [(item.rule, item.confidence) for item in tried]

    assert found(10_000, 60_000) == []
    assert found(0, 60_000) == [("backlog", Confidence.LIKELY)]
    assert found(0, 10_000) == [("backlog", Confidence.CERTAIN)]
    on = "on: nftables (forward)"
    # frames for the router itself are received and sent nowhere
    assert explained(linux_ledger(10_000, taken=SENT + 60_000, rx_missed=10_000), firewall=on) == ()
    (own,) = explained(linux_ledger(10_000, taken=SENT + 60_000), firewall=on)
    assert own.confidence is Confidence.LIKELY and "received 70,000 frames (lost were 10,000)" in own.words


def waiting(nics: tuple[NicFacts, ...] = CARDS, load: UnderLoad | None = None) -> Explanation:
    """Frames that found a backlog full: of cards in ``rx_dropped``."""
    return explained(linux_ledger(40_000, backlog=40_000, rx_dropped=40_000), nics, load)[0]


ONE = tuple(replace(nic, steered_to={0: "1"}) for nic in CARDS)
FULL = {"softnet backlog full CPU 1": 40_000.0}


def test_a_full_backlog_is_named_with_the_steering_or_the_flow_behind_it() -> None:
    alone = processors((1, 2, 3, 0.0), (0, 1, 99, 60_000.0), counters=FULL)
    found = explained(linux_ledger(40_000, backlog=40_000, rx_dropped=40_000), ONE, alone, threads_per_core=1)[0]
    assert (found.rule, found.confidence) == ("backlog", Confidence.CERTAIN)
    assert "all packets are steered to CPU 1 (RPS)" in found.words
    flow = explained(linux_ledger(40_000, backlog=40_000, rx_dropped=40_000), ONE, alone, flows=1)[0]
    assert "one flow enters by one receive queue" in flow.words
    # only processors that handle packets count
    beside = waiting(ONE, processors((70, 30, 0, 0.0), (0, 1, 40, 60_000.0), counters=FULL))
    assert beside.confidence is Confidence.LIKELY and "the busiest is 41% busy: it is too short" in beside.words


def test_a_backlog_is_not_too_short_where_the_time_on_packets_is_not_known() -> None:
    unknown = processors((90, 5, 5, 0.0), (81, 10, 9, 60_000.0), counters=FULL)
    unknown = replace(unknown, cpus=tuple(replace(cpu, softirq=None) for cpu in unknown.cpus))
    assert "too short" not in waiting(ONE, unknown).words


@pytest.mark.parametrize("shares", [(60, 20, 20, 6e4), (0, 55, 45, 6e4), (16, 0, 84, 6e4)])
def test_a_processor_that_programs_use_is_no_limit_that_is_certain(shares: tuple[int, int, int, float]) -> None:
    found = waiting(ONE, processors((1, 2, 3, 0.0), shares, counters=FULL))
    assert (found.rule, found.confidence) == ("backlog", Confidence.POSSIBLE) and "programs" in found.words
    missed = linux_ledger(40_000, taken=60_000, rx_missed=40_000)
    for others in ((1, 2, 3, 0.0), (50, 40, 10, 0.0), (0, 0, 100, 0.0)):
        (other,) = explained(missed, ONE, processors(others, shares))
        assert (other.rule, other.confidence) == ("other work", Confidence.POSSIBLE) or others[2] == 100
        assert "CPU 1" in other.words


@pytest.mark.parametrize(("flows", "words"), [(1, "one flow enters"), (251, "all packets are steered to CPU 1 (RPS)")])
@pytest.mark.parametrize("sending", [60, 51])
def test_a_full_processor_beside_one_that_a_sender_fills_is_likely_the_limit(
    flows: int, words: str, sending: int
) -> None:
    """As on a machine that is generator and router in one, whether that leaves a little time or none."""
    load = processors((40, sending, 0, 700.0), (0, 2, 98, 60_000.0), counters=FULL)
    found = explained(linux_ledger(40_000, backlog=40_000, rx_dropped=40_000), ONE, load, flows, irqbalance=True)
    assert (found[0].rule, found[0].confidence) == ("backlog", Confidence.LIKELY) and words in found[0].words
    assert [other.rule for other in found[1:]] == ["irqbalance"]
    # two that handle packets, one with programs: nothing is said of flows
    both = processors((40, 20, 40, 30_000.0), (0, 2, 98, 60_000.0), counters=FULL)
    assert words not in str(explained(linux_ledger(40_000, backlog=40_000, rx_dropped=40_000), ONE, both, flows)[0])


def test_what_a_card_of_none_sends_waits_for_a_processor_at_its_other_end() -> None:
    ledger = linux_ledger(40_000, backlog=40_000, tx_dropped=40_000)
    assert explained(ledger, VETH)[0].rule == "backlog"
    # of a card the two have nothing to do with each other
    assert explained(ledger, CARDS)[0].rule == "tx slots"
    (found,) = explained(linux_ledger(40_000, tx_dropped=40_000), VETH)
    assert found.rule == "tx slots" and "other end of eth1" in found.words and "sending ring" not in str(found)


def test_steering_to_several_processors_is_no_lack_of_queues() -> None:
    many = tuple(replace(nic, steered_to={0: "0,1"}) for nic in CARDS)
    missed = linux_ledger(40_000, taken=60_000, rx_missed=40_000)
    load = processors((0, 0, 100, 6e4), (0, 0, 10, 1e4))
    assert explained(missed, many, load)[0].rule == "uneven workers"
    assert explained(missed, CARDS, load)[0].rule == "few queues"
    assert explained(missed, ONE, processors((0, 0, 5, 0.0), (0, 0, 100, 6e4)))[0].rule == "one processor"


def test_the_mask_of_steering_is_read_and_zero_is_none() -> None:
    text = "".join(
        f"/sys/class/net/eth0/queues/rx-{queue}/rps_cpus:{mask}\n"
        for queue, mask in enumerate(("00000000,00000006", "0", "zz", "1,00000000"))
    )
    assert steered(text) == {0: "1,2", 3: "32"}
    assert steered("") == {}


ON_CPUS = tuple(Placement("a", queue, f"CPU {queue}") for queue in range(2))

Processor = tuple[int, int, int, int, float]
"""Per cent of its time in programs, hardware interrupts, software interrupts and steal; frames/s."""


def why(*rows: Processor, lost: float = 0.4, backlog: bool = False, **more: object) -> tuple[Explanation, ...]:
    """Of *lost* frames on arrival, while each processor's time goes as /proc/stat shows it."""
    forwarded = round(OFFERED * (1 - lost))
    cpus = as_shown([(user, 0, irq, softirq, steal, frames) for user, irq, softirq, steal, frames in rows])
    seen = UnderLoad(OFFERED, OFFERED, forwarded, cpus=cpus)
    counted = ledger(forwarded=forwarded)
    if backlog:
        missed = OFFERED - forwarded
        drops = (Drop(Stage.ARRIVING, "rx_dropped", "a", missed),)
        row = DirectionAccount(0, 1, "a", "b", OFFERED, forwarded, OFFERED, forwarded, drops)
        counted = Ledger(1, 1, (row,), reasons=(Drop(Stage.ARRIVING, BACKLOG_FULL, "", missed),))
    known = facts(ON_CPUS[: len(rows)], threads_per_core=1, **more)
    return explain(replace(TRIED, forwarded_pps=float(forwarded)), counted, known, seen)


def said(*rows: Processor, lost: float = 0.4, **more: object) -> list[tuple[str, Confidence]]:
    return [(found.rule, found.confidence) for found in why(*rows, lost=lost, **more)]  # type: ignore[arg-type]


STEAL, SOME = ("steal", Confidence.LIKELY), ("steal", Confidence.POSSIBLE)


@pytest.mark.parametrize(
    ("softirq", "steal", "lost", "rules"),
    [
        (38, 62, 0.4, [STEAL]),
        (80, 20, 0.4, [STEAL]),
        # too little to explain the loss: the processor is slow as well
        (86, 14, 0.4, [("all workers", Confidence.LIKELY), SOME]),
        (98, 2, 0.4, [("all workers", Confidence.LIKELY), SOME]),
        # as much as was lost
        (86, 14, 0.1, [STEAL]),
        (100, 0, 0.4, [("all workers", Confidence.CERTAIN)]),
        # it has time left, but came late
        (40, 30, 0.2, [SOME]),
        (30, 5, 0.002, [SOME]),
        (30, 0, 0.002, [("late worker", Confidence.POSSIBLE)]),
    ],
)
def test_what_a_hypervisor_withheld_is_neither_work_nor_programs(
    softirq: int, steal: int, lost: float, rules: list[tuple[str, Confidence]]
) -> None:
    assert said((0, 0, softirq, steal, 1e6), lost=lost) == rules
    for found in why((0, 0, softirq, steal, 1e6), lost=lost):
        assert "program" not in f"{found.words} {found.remedy}"
        assert found.rule != "steal" or "host's cores" in found.remedy


@pytest.mark.parametrize("steal", [1, 5, 14, 15, 40, 62, 95])
@pytest.mark.parametrize("idle", [0, 100])
@pytest.mark.parametrize("backlog", [False, True])
def test_nothing_is_certain_of_a_processor_whose_time_was_withheld(steal: int, idle: int, backlog: bool) -> None:
    for others in ([], [(0, 0, 100 - idle, 0, 1e6 * (1 - idle / 100))]):
        found = why((0, 0, 100 - steal, steal, 1e6), *others, backlog=backlog)
        assert Confidence.CERTAIN not in [item.confidence for item in found], found
        assert "steal" in str(found)


def test_what_was_withheld_of_a_processor_without_packets_is_no_reason() -> None:
    busy = (0, 0, 100, 0, 1e6)
    for steal in (0, 60, 90):
        assert said(busy, (10, 0, 0, steal, 0.0)) == [("uneven workers", Confidence.POSSIBLE)]


@pytest.mark.parametrize(("irq", "softirq"), [(40, 60), (100, 0), (0, 100), (90, 10)])
def test_hardware_interrupts_are_work_on_packets(irq: int, softirq: int) -> None:
    assert said((0, irq, softirq, 0, 1e6)) == [("all workers", Confidence.CERTAIN)]
    # not too short for moments: packets have all of the time
    found = why((0, irq, softirq, 0, 1e6), backlog=True)[0]
    assert found.rule == "backlog" and "too slow" in found.words


def test_steal_that_cannot_be_read_in_a_virtual_machine_makes_nothing_certain() -> None:
    """FreeBSD counts none, and of VPP's workers the processor is not read."""
    freebsd = UnderLoad(OFFERED, OFFERED, TRIED.forwarded_pps, cpus=(CpuLoad(0, 1.0, 1.0), CpuLoad(1, 1.0, 1.0)))
    for placed, seen in ((ON_CPUS, freebsd), (SPREAD, load(1.0, 1.0, 1.0))):
        for machine, sure in ((None, Confidence.CERTAIN), ("bhyve", Confidence.LIKELY)):
            other = {"hypervisor": machine} if machine else {}
            found = explain(TRIED, ledger(), facts(placed, os="FreeBSD 14.1-RELEASE", other=other), seen)[0]
            assert (found.rule, found.confidence) == ("all workers", sure)
