"""Margins and capacities as a user asks for them: what is said after each verdict, and what is kept."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from lineproof.evidence.integrity import check_integrity
from lineproof.evidence.records import MarginRecord
from lineproof.evidence.rejudging import rejudge
from lineproof.evidence.run import read_margins, read_run
from lineproof.evidence.sentence_rows import sentence_rows
from support import robot_run
from support.patience import wait_until

pytestmark = pytest.mark.slow

TESTS = """\
Ahead
    64b 1-flow unidirectional ≥ 4.7 Mpps
In Total
    64b 1-flow bidirectional ≥ 29% line rate in total
Fills The Line
    1514b unidirectional ≥ 97% line rate
Forwards
    64b 1-flow unidirectional forwards ≥ 4.8 Mpps
Forwards In Total
    64b 1-flow bidirectional forwards ≥ 25% line rate in total
Missed
    64b 1-flow unidirectional ≥ 6 Mpps
Another Quantity
    64b 1-flow unidirectional loses ≤ 1% at 1 Mpps
Costs
    64b 1-flow unidirectional costs ≤ 1 cycles/packet
Both Ways
    imix bidirectional latency mean ≤ 1 ms at 20% line rate each way
Broken
    Cause Fault    lost reply    start=9    at=0.3
    64b 1-flow unidirectional ≥ 4.7 Mpps
Goes On
    64b 1-flow unidirectional ≥ 1 Mpps
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> robot_run.RobotRun:
    folder = tmp_path_factory.mktemp("margins")
    suite = robot_run.write_tests(folder, TESTS, "Open Testbed For    netgate6100    software=vpp    goal=quick")
    searches = ("-v", "MARGIN:on", "-v", "MARGIN_DEADLINE:20 s", "-v", "CHARACTERISE:on failure")
    return robot_run.run(folder, suite, *searches)


@pytest.fixture(scope="module")
def left(done: robot_run.RobotRun) -> Path:
    (folder,) = (done.folder / "results").iterdir()
    return folder


@pytest.fixture(scope="module")
def margins(left: Path) -> dict[str, MarginRecord]:
    return {item.test: item for item in read_margins(left)}


def test_each_pass_of_a_rate_ends_with_its_margin(done: robot_run.RobotRun, margins: dict[str, MarginRecord]) -> None:
    assert list(margins) == [
        "Ahead",
        "In Total",
        "Fills The Line",
        "Forwards",
        "Forwards In Total",
        "Broken",
        "Goes On",
    ]
    for test, record in margins.items():
        status, message = done.tests[test]
        assert status == "PASS" and message.endswith(f"\n  {record}"), message
        assert record.simulated and record.seconds <= 20
    assert "carries" not in done.tests["Another Quantity"][1]
    assert "margin after each PASS of 6 rates, at most 20 s" in done.console


def test_a_line_that_is_filled_needs_no_search(margins: dict[str, MarginRecord], left: Path) -> None:
    found = margins["Fills The Line"]
    assert (found.low, found.high, found.finished, found.seconds) == (1.0, None, True, 0.0)
    assert "all that the ports can send" in str(found)


def test_forwarding_needs_no_search_either(margins: dict[str, MarginRecord], left: Path) -> None:
    assert margins["Forwards"].low == pytest.approx(5.02e6 / 4.8e6, rel=0.01)
    # the two directions together, as the sentence counts
    assert margins["Forwards In Total"].low == pytest.approx(5.0e6 / (0.25 * 14.88e6), rel=0.04)
    rows = {row.record.test: row for row in sentence_rows(read_run(left), read_margins(left))}
    for test in ("Forwards", "Forwards In Total"):
        assert margins[test].seconds == 0
        assert rows[test].measured is not None
        mean = rows[test].measured.estimate / rows[test].record.demand.number
        assert margins[test].low == pytest.approx(mean, rel=1e-3)


def test_a_search_that_breaks_down_changes_no_verdict(
    done: robot_run.RobotRun, margins: dict[str, MarginRecord]
) -> None:
    broken = margins["Broken"]
    assert not broken.finished and "no longer answers" in broken.reason
    assert done.tests["Broken"][0] == "PASS" and "the search is unfinished: " in done.tests["Broken"][1]
    assert margins["Goes On"].finished


def test_its_trials_are_kept_and_judge_nothing(margins: dict[str, MarginRecord], left: Path) -> None:
    run = read_run(left)
    judged = {record.number for record in run.requirements}
    mine = [item for item in run.trials if item.requirement not in judged and item.test == "Ahead"]
    assert sum(item.trial.outcome.duration for item in mine) == pytest.approx(margins["Ahead"].seconds)
    assert all(not item.evidence for item in mine)
    assert min(item.trial.outcome.load.pps for item in mine) > 4.7e6
    assert check_integrity(left).altered == ()
    assert all(item.same for item in rejudge(left).sentences)


def test_a_rate_that_is_missed_is_followed_by_the_capacity(done: robot_run.RobotRun) -> None:
    assert "capacity: NDR (without loss): " in done.tests["Missed"][1]
    assert done.tests["Costs"][0] == "FAIL" and "capacity" not in done.tests["Costs"][1]


def test_each_trial_keeps_the_latency_of_both_directions(left: Path) -> None:
    trials = [item.trial for item in read_run(left).trials if item.test == "Both Ways" and item.trial.number]
    for latency in (trial.outcome.latency for trial in trials):
        assert [(count.tx_port, count.rx_port) for count in latency] == [(0, 1), (1, 0)]
        for count in latency:
            # bucket 0 may be of an earlier trial, as TRex's
            assert 0 <= sum(count.histogram.values()) - count.received <= count.histogram.get(0, 0)
    assert trials


def test_an_interrupt_in_a_search_leaves_the_verdict(tmp_path: Path) -> None:
    suite = robot_run.write_suite(tmp_path, "64b 1-flow unidirectional ≥ 2 Mpps")
    run = robot_run.start(tmp_path, suite, "-v", "MARGIN:on", "-v", "GOAL:standard")
    try:
        trials = (tmp_path / "results").glob
        # the search comes after the sentence
        wait_until(lambda: any(b'"requirement": 2' in path.read_bytes() for path in trials("*/trials.jsonl")))
        run.send_signal(signal.SIGTERM)
    finally:
        run.wait(60)
    (folder,) = (tmp_path / "results").iterdir()
    (record,) = read_run(folder).requirements
    assert record.verdict == "PASS"
    assert read_margins(folder) == ()
    assert all(item.same for item in rejudge(folder).sentences)
