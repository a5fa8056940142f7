"""Two readings of the router show what the testbed did: damaged frames, pauses, addresses that were lost."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import accumulate
from itertools import count as counting
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.deciding import OPEN, shown_by
from lineproof.core.doubts import OwnPart
from lineproof.core.ledger import DirectionAccount, Ledger
from lineproof.core.rule import Ruling
from lineproof.core.telemetry import Cause, Role, Side, Stage, Telemetry
from lineproof.core.trial import DirectionCount, Fault, Load, Outcome, Problem, Tolerance, Trial, read_trial
from lineproof.errors import TestbedError
from lineproof.project import Project
from lineproof.session.judging import (
    damaged_frames,
    lost_after_router,
    with_shared,
)
from lineproof.session.links import ipv6_sides
from lineproof.session.plan import Plan
from lineproof.session.session import Session
from lineproof.simulation import parse_fault
from lineproof.studies.cpu_time import why_unusable
from support.paths import ROOT
from support.simulated_session import judged, opened

PLAN = Plan.read(Project(ROOT), "netgate6100", "vpp", "simulated", "quick")
NAMES = {0: "in0", 1: "in1"}


def trials(*lost: int) -> tuple[Trial, ...]:
    """Eleven trials with so many of 100 000 frames lost: from port 0, and from port 1 if there is a second one."""
    rows = tuple(DirectionCount(at, 1 - at, 100_000, 100_000, 100_000 - count) for at, count in enumerate(lost))
    outcome = Outcome(Load(100_000), 1.0, 1.0, 0.0, rows)
    return tuple(read_trial(number, outcome, Tolerance(), 20) for number in range(1, 12))


def reading(**counts: int) -> Telemetry:
    causes = [Cause(Stage.ARRIVING, name, "in0", count, Role.REASON) for name, count in counts.items()]
    return Telemetry(1.0, {}, causes=(*causes, Cause(Stage.ARRIVING, "rx_missed", "in0", 99)))


@pytest.mark.parametrize(
    "name", ["rx_crc_errors", "ethtool rx_crc_errors_phy", "sysctl mac_stats.crc_errs", "arriving_fcs"]
)
def test_frames_that_arrived_damaged_are_known_by_every_systems_name(name: str) -> None:
    # the last one began anew, so nobody knows
    for before, after, frames in ((0, 5, [5]), (5, 5, []), (5, 3, [None])):
        found = damaged_frames(trials(9, 0), reading(**{name: before}), reading(**{name: after}), NAMES)
        assert [problem.frames for problem in found] == frames


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shares", "ruling"),
    [
        ({"damaged cable": 0.01}, Ruling.INCONCLUSIVE),
        ({"router": 0.01}, Ruling.FAIL),
        # of each trial's lost frames the cable cost so many, and not those of all trials
        ({"router": 0.003, "damaged cable": 0.002}, Ruling.FAIL),
    ],
)
def test_a_cable_that_damages_frames_explains_these(
    tmp_path: Path, shares: Mapping[str, float], ruling: Ruling
) -> None:
    with opened(tmp_path) as session:
        session.traffic.check_reachability()
        for of, share in shares.items():
            session.cause_fault(parse_fault("one-way loss", start=0, port=0, share=share, of=of))
        found = judged(session, "64b 1-flow unidirectional ≥ 1 Mpps")
    assert found.ruling is ruling, found.message
    faults = {problem.fault for trial in found.trials for problem in trial.problems}
    assert (Fault.DAMAGED in faults) is ("damaged cable" in shares)


LOST = st.lists(st.integers(0, 2000), min_size=1, max_size=6)


@given(LOST, st.integers(0, 9000), st.sampled_from([Fault.DAMAGED, Fault.COPIES]), st.sampled_from([0.5, 0.9]))
def test_what_was_counted_once_for_several_trials_is_charged_once(
    lost: list[int], count: int, fault: Fault, limit: float
) -> None:
    requirement = PLAN.requirement(f"64b unidirectional loses ≤ {limit}% at 100 kpps")
    promise = requirement.promise(PLAN.goal, Load(100_000), 10e9)
    rows = [DirectionCount(0, 1, 100_000, 100_000, 100_000 - frames) for frames in lost]
    outcomes = [Outcome(Load(100_000), 1.0, 1.0, 0.0, (row,)) for row in rows]
    made = [read_trial(at, outcome, Tolerance(), 20) for at, outcome in enumerate(outcomes, 1)]
    charged = with_shared(made, range(1, 99), Problem(fault, "", count, ((0, 1),)), promise)
    parts = [sum(problem.most_frames for problem in trial.problems) for trial in charged]
    room = [row.offered if fault.may_cost else row.came_back for row in rows]
    assert sum(parts) == min(count, sum(room)) and all(part <= most for part, most in zip(parts, room, strict=True))
    # as many trials as can be move over the limit
    most = int(1000 * limit)
    needs = sorted(
        frames - most if fault.may_cost else most + 1 - frames for frames in lost if (frames > most) is fault.may_cost
    )
    moved = [shown_by(trial, promise) == OPEN for trial in charged]
    assert sum(moved) == sum(total <= count for total in accumulate(needs))


@pytest.mark.slow
@pytest.mark.parametrize(
    "sentence", ["64b 1-flow unidirectional ≥ 1 Mpps", "66b ipv6 unidirectional loses ≤ 0.5% at 1 Mpps for 9 s"]
)
@pytest.mark.parametrize(("speed", "hold"), [(10, 3.5), (50, 4.0)])
def test_frames_that_come_after_the_drain_are_lost_at_any_clock_speed(
    tmp_path: Path, sentence: str, speed: float, hold: float
) -> None:
    with opened(tmp_path, clock_speed=speed) as session:
        session.traffic.put_for(session.plan.requirement(sentence))
        session.cause_fault(parse_fault("changed frames", what="late", share=0.01, hold=hold, start=0))
        verdict = judged(session, sentence)
    assert verdict.ruling is Ruling.FAIL and "came more than 2 s after" in verdict.message, verdict.message


def test_the_ipv6_address_of_a_peer_is_that_of_the_traffic_words() -> None:
    (side,) = ipv6_sides((Side("in1", "100.65.2.1/24", "100.65.2.2", "", "48.0.0.0/8"),), PLAN.catalogue)
    assert side.peer == "2001:2::6441:202"


@pytest.mark.parametrize(
    ("router_rx", "router_tx", "frames"),
    [
        (1_000_000, 950_000, 50_000),
        (1_000_000, 900_000, None),
        # a control of as many frames passes between the same readings
        (2_000_000, 1_900_000, None),
        # more than arrived were sent: such counts prove nothing, as none would
        (1_000_000, 9_000_000, None),
    ],
)
def test_only_missing_frames_of_the_trials_can_be_lost_after_the_router(
    router_rx: int, router_tx: int, frames: int | None
) -> None:
    row = DirectionAccount(0, 1, "eth0", "eth1", 1_000_000, 900_000, router_rx, router_tx)
    doubts = list(lost_after_router([Ledger(1, 1, (row,))], OwnPart(), 0.05))
    assert [problem.frames for _, problem in doubts] == ([] if frames is None else [frames])


# -- what a packet costs: cycles and CPU time through the whole chain, and which trials say something of it


@pytest.mark.slow
@pytest.mark.parametrize("command", ["clear", "read_runtime"])
def test_traffic_stops_when_a_command_of_the_router_fails(
    session: Session, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rehearsed, calls = getattr(session.router.driver, command), counting()

    def failing(*arguments: object) -> object:
        if next(calls):
            raise TestbedError("the SSH link to the router broke")
        # so the trials leave two seconds of real time and more for the commands
        time.sleep(1.0)
        return rehearsed(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(session.router.driver, command, failing)
        verdict = judged(session, "64b 1-flow unidirectional costs ≤ 1 cycles/packet at 1 kpps")
    assert verdict.ruling is Ruling.INCONCLUSIVE and "the SSH link to the router broke" in str(verdict.reason)
    assert verdict.trials == ()

    def received() -> int:
        return sum(item.rx_packets for item in session.router.watch.read().interfaces.values())

    first = received()
    time.sleep(0.1)  # 5 s of the testbed's clock
    assert received() == first
    # the generator did not fail, so it is not connected again
    assert judged(session, "64b 1-flow unidirectional ≥ 1 Mpps").ruling is Ruling.PASS
    assert session.traffic.reconnected == ""


def outcome(offered: int, lost: int = 0, problems: tuple[Problem, ...] = ()) -> Outcome:
    counts = (DirectionCount(0, 1, 100_000, offered, offered - lost),)
    return Outcome(Load(100_000.0), 1.0, 1.0, 0.0, counts, problems=problems)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (outcome(100_000), ""),
        (outcome(40_000), ""),  # the machine could not send more: what it sent has its price
        (outcome(100_000, lost=900), ""),
        (outcome(100_000, lost=1100), "1100 of 100000 frames lost"),
        (outcome(100_000, problems=(Problem(Fault.LINK_DOWN, "port 1"),)), "a link was down"),
        (outcome(100_000, lost=-1), ""),  # a bridge says that it is there
        (outcome(100_000, lost=-1100), "more frames came back"),
        (outcome(100_000, problems=(Problem(Fault.CPU_BOUND, "99 %"),)), ""),
    ],
)
def test_only_what_was_sent_and_came_back_has_a_price(found: Outcome, reason: str) -> None:
    said = "; ".join(why_unusable(read_trial(1, found, Tolerance())))
    assert said.startswith(reason) and bool(said) == bool(reason)
