"""Time of a processor that is neither packets' nor programs': what a hypervisor withheld, and hardware interrupts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lineproof.counts.causes import Stage
from lineproof.counts.explanation import Confidence, Explanation
from lineproof.counts.ledger import DirectionAccount, Drop, Ledger
from lineproof.counts.router_facts import Placement
from lineproof.counts.under_load import CpuLoad, UnderLoad
from lineproof.routers.explain import explain
from lineproof.routers.linux_load import cpu_loads
from lineproof.routers.linux_losses import BACKLOG_FULL
from support.why_evidence import OFFERED, SPREAD, TRIED, facts, ledger, load, nic

ON_CPUS = tuple(Placement("a", queue, f"CPU {queue}") for queue in range(2))

Processor = tuple[int, int, int, int, float]
"""Per cent of its time in programs, hardware interrupts, software interrupts and steal; frames/s."""


def why(*rows: Processor, lost: float = 0.4, backlog: bool = False, **more: object) -> tuple[Explanation, ...]:
    """Of *lost* frames on arrival, while each processor's time goes as /proc/stat shows it."""
    before = "".join(f"cpu{cpu} 0 0 0 0 0 0 0 0 0 0\n" for cpu, _ in enumerate(rows))
    after = "".join(
        f"cpu{cpu} {user} 0 0 {100 - user - irq - softirq - steal} 0 {irq} {softirq} {steal} 0 0\n"
        for cpu, (user, irq, softirq, steal, _) in enumerate(rows)
    )
    forwarded = round(OFFERED * (1 - lost))
    cpus = cpu_loads(before, after, {cpu: row[4] for cpu, row in enumerate(rows)})
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


def test_a_backlog_is_not_too_short_where_a_hypervisor_withheld_the_time() -> None:
    (found,) = why((0, 0, 9, 91, 1e6), backlog=True)
    assert (found.rule, found.confidence) == ("backlog", Confidence.LIKELY)
    assert "(steal)" in found.words and "too short" not in found.words and "program" not in found.words


def test_what_was_withheld_of_a_processor_without_packets_is_no_reason() -> None:
    busy = (0, 0, 100, 0, 1e6)
    for steal in (0, 60, 90):
        assert said(busy, (10, 0, 0, steal, 0.0)) == [("uneven workers", Confidence.POSSIBLE)]


def test_programs_that_take_more_than_the_hypervisor_are_named_with_it() -> None:
    (found, *_) = why((50, 0, 30, 20, 1e6))
    assert found.rule == "other work" and "50% of it outside" in found.words and "withheld 20%" in found.words
    # each alone is little, both are much
    assert said((5, 0, 83, 12, 1e6))[0] == STEAL
    (found, *_) = why((12, 0, 83, 5, 1e6))
    assert found.rule == "other work" and "12% of it outside" in found.words
    (found, *_) = why((20, 0, 30, 50, 1e6))
    assert (found.rule, found.confidence) == SOME and "programs took 20%" in found.words


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


def test_programs_of_freebsd_are_known_without_its_list_of_threads() -> None:
    """Its ticks tell programs from the kernel, also where top was not read, or shows another second."""
    for threads in ({}, {"kernel{if_io_tqg_0}": 0.5}):
        cpus = tuple(CpuLoad(number, 1.0, 0.4, None, threads, user=0.6) for number in range(2))
        seen = UnderLoad(OFFERED, OFFERED, TRIED.forwarded_pps, cpus=cpus)
        found = explain(TRIED, ledger(), facts(ON_CPUS, os="FreeBSD 14.1-RELEASE", nics=(nic(),)), seen)[0]
        assert (found.rule, found.confidence) == ("other work", Confidence.POSSIBLE)
        assert "60% of it on programs" in found.words
