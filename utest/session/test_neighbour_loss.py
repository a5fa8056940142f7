"""A FAIL while the router had lost the address of the generator's port: which one stands, which one proves nothing."""

from __future__ import annotations

import pytest

from linerate.counts.neighbours import NeighbourEntry
from linerate.counts.telemetry import Telemetry
from linerate.counts.trial import DirectionCount, Load, Outcome, assess_trial
from linerate.project import Project
from linerate.session.neighbour_loss import why_unaddressed
from linerate.session.plan import Plan
from linerate.sla.verdict import Ruling, Verdict
from support.paths import ROOT

PLAN = Plan.read(Project(ROOT), "netgate6100", "vpp", "simulated", "quick")
NAMES = {0: "in0", 1: "in1"}
GONE = NeighbourEntry("in1", "100.65.2.2", "02:00:00:00:00:02", fix="SET IT")
THERE = NeighbourEntry("in0", "100.65.1.2", "02:00:00:00:00:01", "02:00:00:00:00:01", True)


def verdict(sentence: str, *lost: int, ruling: Ruling = Ruling.FAIL) -> Verdict:
    """Trials with so many of 100 000 frames *lost*: from port 0, and from port 1 if there is a second one."""
    requirement = PLAN.requirement(sentence)
    goal = PLAN.goal_for(requirement)
    counts = tuple(DirectionCount(at, 1 - at, 100_000, 100_000, 100_000 - count) for at, count in enumerate(lost))
    seconds = goal.final_trial_duration
    outcome = Outcome(Load(100_000 / seconds), seconds, seconds, 0.0, counts)
    trials = tuple(assess_trial(number, outcome, PLAN.testbed.tolerances(), 20) for number in range(1, 12))
    return Verdict(requirement, goal, ruling, "lost", trials, 10e9, {})


def reason(found: Verdict, *neighbours: NeighbourEntry) -> str:
    return why_unaddressed(found, Telemetry(1.0, {}, neighbours=neighbours), NAMES)


def test_what_could_not_be_addressed_is_not_the_routers_loss() -> None:
    found = reason(verdict("64b unidirectional ≥ 100 kpps", 100_000), THERE, GONE)
    assert "no neighbour entry for 100.65.2.2 on in1" in found and "'SET IT' on the router sets it" in found


@pytest.mark.parametrize(
    ("sentence", "lost"),
    [
        # the entry of the side that frames come from does not matter
        ("64b unidirectional ≥ 100 kpps", None),
        # what the other direction loses is clear loss
        ("64b bidirectional ≥ 100 kpps each way", (100_000, 50_000)),
        ("64b bidirectional loses ≤ 1% at 100 kpps each way", (100_000, 50_000)),
        ("64b bidirectional forwards ≥ 100 kpps each way", (100_000, 50_000)),
    ],
)
def test_a_fail_that_has_another_cause_stands(sentence: str, lost: tuple[int, int] | None) -> None:
    if lost is None:
        gone = NeighbourEntry("in0", "100.65.1.2", "02:00:00:00:00:01")
        assert reason(verdict(sentence, 100_000), gone) == ""
    else:
        assert reason(verdict(sentence, *lost), GONE) == ""


@pytest.mark.parametrize("quantity", ["≥ 100 kpps", "loses ≤ 1% at 100 kpps", "forwards ≥ 100 kpps"])
def test_a_fail_of_the_spared_direction_alone_proves_nothing(quantity: str) -> None:
    assert reason(verdict(f"64b bidirectional {quantity} each way", 100_000, 0), GONE)


def test_nothing_that_was_read_right_or_not_read_changes_a_verdict() -> None:
    failed = verdict("64b unidirectional ≥ 100 kpps", 100_000)
    assert reason(failed) == reason(failed, THERE) == ""
    learned = NeighbourEntry("in1", "100.65.2.2", "02:00:00:00:00:02", "02:00:00:00:00:02", False)
    assert reason(failed, learned) == ""
    assert reason(verdict("64b unidirectional ≥ 100 kpps", 0, ruling=Ruling.PASS), GONE) == ""


def test_an_entry_with_another_address_is_as_good_as_none() -> None:
    other = NeighbourEntry("in1", "100.65.2.2", "02:00:00:00:00:02", "02:00:00:00:00:99", True)
    assert "has 02:00:00:00:00:99" in reason(verdict("64b unidirectional ≥ 100 kpps", 100_000), other)
