"""Searches and characterisations in a suite: they change no verdict, and everything they leave is marked."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from lineproof.evidence.records import CharacterisationRecord, MarginRecord
from lineproof.evidence.run import read_run
from lineproof.evidence.run_files import check_integrity
from support import robot_run

pytestmark = pytest.mark.slow


TESTS = """\
Ahead
    64b 1-flow unidirectional ≥ 4.7 Mpps
Broken
    Cause Fault    lost reply    start=9    at=0.3
    64b 1-flow unidirectional ≥ 4.7 Mpps
Goes On
    64b 1-flow unidirectional ≥ 1 Mpps
A Ramp
    Ramp    64b 1-flow unidirectional    steps=5
Sent
    ${sent} =    Send Traffic    64b 1-flow bidirectional    1 Mpps each way    2 s    Run On Router    uname -s
    Should Be Equal As Integers    ${sent.offered}    ${{ $sent.counters['0.opackets'] + $sent.counters['1.opackets'] }}
    Should Be Equal    ${sent.lost}    ${0}
Failing Meanwhile
    Run Keyword And Expect Error    *oops    Send Traffic    64b 1-flow unidirectional    1 Mpps    1 s    Fail    oops
    Run Keyword And Expect Error    'duration': *more than 0*    Send Traffic    64b 1-flow    1 Mpps    0 s
    Run Keyword And Expect Error    'deadline': *more than 0*    Send Traffic    64b 1-flow    1 Mpps    deadline=-1
    Run Keyword And Expect Error    'Nowhere' cannot be called*    Send Traffic    64b 1-flow    1 Mpps    1    Nowhere
    Run Keyword And Expect Error    'Nowhere' cannot be called*    Search Throughput Of    64b    1    set_up=Nowhere
    VAR    @{sent}    Send Traffic    64b 1-flow unidirectional    1 Mpps    1 s
    Run Keyword And Expect Error    *under way*    @{sent}    @{sent}
    Run Keyword And Expect Error    '64b 1-flow at 1 Mpps for 3 s': *    Send Traffic    64b 1-flow    1 Mpps for 3 s
    Run Keyword And Expect Error    '64b 1-flow at 1 inch': *    Send Traffic    64b 1-flow    1 inch
No Width
    Run Keyword And Expect Error    'relative_width': *below 1*    Search Throughput Of    64b    relative_width=${2}
    Run Keyword And Expect Error    INCONCLUSIVE:*nothing was measured    Back To Back Of    64b    ${{[]}}
Copies Above
    Cause Fault    changed frames    what=cached    above=3000000
    64b 1-flow unidirectional ≥ 2 Mpps
Changed Frames
    Cause Fault    changed frames    what=ttl    share=0.1
    VAR    @{search}    Search Throughput Of    64b 1-flow unidirectional    deadline=30 s
    Run Keyword And Expect Error    INCONCLUSIVE:*time to live*    @{search}
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> robot_run.RobotRun:
    folder = tmp_path_factory.mktemp("margins")
    settings = "Open Testbed For    netgate6100    software=vpp    goal=quick\nLibrary    lineproof.robot.Faults"
    suite = robot_run.write_tests(folder, TESTS, settings)
    return robot_run.run(folder, suite, "-v", "MARGIN:20 s")


@pytest.fixture(scope="module")
def left(done: robot_run.RobotRun) -> Path:
    (folder,) = (done.folder / "results").iterdir()
    return folder


@pytest.fixture(scope="module")
def margins(left: Path) -> dict[str, MarginRecord]:
    return {item.test: item for item in read_run(left).margins.values()}


def test_a_search_that_breaks_down_changes_no_verdict(
    done: robot_run.RobotRun, margins: dict[str, MarginRecord]
) -> None:
    assert list(margins) == ["Ahead", "Broken", "Goes On", "Copies Above"]
    assert all(record.simulated and record.seconds <= 20 for record in margins.values())
    assert "margin after each PASS of 4 rates, at most 20 s" in done.console and "(+" in done.tests["Ahead"][1]
    assert "no longer answers" in margins["Broken"].reason
    assert done.tests["Broken"][0] == "PASS" and "the search is unfinished: " in done.tests["Broken"][1]
    assert margins["Goes On"].finished
    # copies in the place of lost frames are no margin
    assert 2e6 * margins["Copies Above"].low <= 3e6


def test_its_trials_are_kept_and_judge_nothing(margins: dict[str, MarginRecord], left: Path) -> None:
    run = read_run(left)
    judged = {record.number for record in run.requirements}
    mine = [item for item in run.trials if item.requirement not in judged and item.test == "Ahead"]
    assert sum(item.trial.outcome.duration for item in mine) == pytest.approx(margins["Ahead"].seconds)
    assert all(not item.evidence for item in mine)
    assert min(item.trial.outcome.load.pps for item in mine) > 4.7e6
    assert check_integrity(left).altered == ()


def test_results_and_pictures_are_marked_and_name_their_trials(left: Path) -> None:
    kept = [json.loads(line) for line in (left / "results.jsonl").read_text().splitlines()]
    # the last of traffic was ended before its trial was over, and bursts of no size have none
    results = {item["method"]: item for item in reversed(kept) if item.get("method") in ("ramp", "traffic")}
    trials = read_run(left).trials
    assert len(results) == 2
    for item in results.values():
        jsonschema.validate(item, CharacterisationRecord.json_schema())
        mine = [record for record in trials if item["number"] <= record.requirement <= item["last"]]
        assert item["simulated"] and mine and {record.test for record in mine} == {item["test"]}
    pictures = [path.read_text() for path in (left / "allure").glob("*-attachment.svg")]
    assert len(pictures) >= len(results) and all("SIMULATED" in text for text in pictures)
    page = (left / "summary.html").read_text()
    # the test of each, and of traffic its load, its time and the keyword that failed meanwhile
    for words in (
        "Failing Meanwhile: traffic of 64b",
        "2 s at 1 Mpps each way",
        "`Fail oops` ran meanwhile",
        "`Run On Router uname -s` ran meanwhile",
    ):
        assert words in page
    assert results["ramp"]["loadtest"]["vars"]["simulated"] is True
