"""Cycles per packet: polling before and after the frames is no cost of a packet."""

from __future__ import annotations

from dataclasses import replace

import pytest

from linerate.counts.trial import DirectionCount, Fault, Load, Outcome, Problem
from linerate.methods.cost import cost
from linerate.methods.sequential import TrialConditions
from linerate.routers.efficiency import cycles_per_packet, mean_cost
from linerate.routers.vpp import Vpp
from linerate.routers.vpp_output import parse_runtime
from linerate.sla.goals import read_goal
from linerate.sla.sentence import parse
from linerate.sla.verdict import Ruling, Verdict
from linerate.traffic.catalogue import Catalogue
from support.fake_router import sample, shell_of, simulated
from support.paths import VARIABLES

SENTENCE = "64b 1-flow unidirectional costs ≤ 300 cycles/packet"


@pytest.mark.parametrize(("path", "seconds"), [("w1_polling_50k", 253364 / 5.0156e4), ("w0_polling_max", 5.0674)])
def test_time_of_show_runtime_is_exact_to_more_than_a_decimal(path: str, seconds: float) -> None:
    block = parse_runtime(sample(f"vpp/{path}/show_runtime.txt"))[-1]
    assert block.seconds == pytest.approx(seconds, rel=1e-4)
    assert replace(block, rate_in=1.0).seconds == block.time


def test_polling_outside_the_traffic_is_no_cost() -> None:
    machine, _ = simulated("vpp")
    reading = Vpp(shell_of(machine)).read()
    assert reading.since_clear == pytest.approx(10.0, rel=1e-3)
    whole, half, no_less = (mean_cost(cycles_per_packet(reading, seconds)) for seconds in (None, 9.0, 1.0))
    assert whole is not None and half is not None and no_less is not None
    assert half.total == pytest.approx(whole.total * 0.9, rel=1e-3)
    assert half.work == whole.work
    # the graph's own work is never taken for idling
    assert no_less.total == whole.work


def test_thread_that_waits_for_interrupts_has_no_idle_polling() -> None:
    machine, _ = simulated("vpp")
    reading = Vpp(shell_of(machine)).read()
    nodes = tuple(replace(node, state=node.state.replace("polling", "interrupt wait")) for node in reading.runtime)
    asleep = replace(reading, runtime=nodes)
    assert cycles_per_packet(asleep, 5.0) == cycles_per_packet(asleep)


def judged(cycles: float, *faults: Fault) -> tuple[Verdict, list[float]]:
    asked_seconds: list[float] = []

    def measure(load: Load, duration: float) -> Outcome:
        sent = round(load.pps * duration)
        problems = tuple(Problem(fault, "for a test") for fault in faults)
        return Outcome(load, duration, duration, 0.0, (DirectionCount(0, 1, sent, sent, sent // 2),), problems)

    def read(traffic: float) -> float:
        asked_seconds.append(traffic)
        return cycles

    requirement = parse(SENTENCE, Catalogue.read(VARIABLES / "profiles"))
    goal = read_goal(VARIABLES / "goals", "quick")
    return cost(requirement, Load(1e6), goal, measure, lambda: None, read, 10e9, TrialConditions()), asked_seconds


def test_cost_does_not_depend_on_loss() -> None:
    verdict, asked_seconds = judged(299.0)
    assert verdict.ruling is Ruling.PASS
    assert set(asked_seconds) == {1.0}
    assert "299 cycles per packet" in verdict.message
    assert "500 kpps forwarded, 1 Mpps offered" in verdict.message
    assert judged(301.0)[0].ruling is Ruling.FAIL


def test_cost_of_a_stretched_trial_is_inconclusive() -> None:
    assert judged(299.0, Fault.STRETCHED)[0].ruling is Ruling.INCONCLUSIVE
    assert judged(301.0, Fault.STRETCHED)[0].ruling is Ruling.INCONCLUSIVE


def test_each_trial_has_its_cycles_as_a_reading() -> None:
    verdict, _ = judged(250.0)
    assert {trial.outcome.readings["cycles_per_packet"] for trial in verdict.trials} == {250.0}
