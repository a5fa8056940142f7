"""Resuming an interrupted run: its verdicts are carried over, unless something has changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lineproof.ceilings.calibration import Calibration
from lineproof.errors import ConfigError, TestbedError
from lineproof.evidence.records import EnvironmentRecord
from lineproof.evidence.resume import FINGERPRINTS, Resumption, fingerprints
from lineproof.evidence.run import RunFolder, read_run
from lineproof.project import Project
from lineproof.session.plan import Plan
from support import robot_run
from support.evidence_builders import requirement_record, trial_record

RUN, SUITE = "20260101T000000Z-abcdef", "Some Suite"
FILES = {"platform file": "aa", "testbed file": "bb"}


def environment(**changes: Any) -> EnvironmentRecord:
    base = EnvironmentRecord(RUN, True, "simulated", "netgate6100", "vpp", 50.0, 0.0)
    extra = {"suite": SUITE, FINGERPRINTS: FILES, **goal("quick")}
    return replace(base, **{"extra": extra, "versions": {"router.vpp": "24.10"}, **changes})


def goal(name: str) -> dict[str, object]:
    return {"goal": {"goal": name}}


def written(results: Path, *verdicts: tuple[str, Any], torn: bool = False) -> Path:
    """A run whose sentences (by name) came to *verdicts*, each with two trials; never closed."""
    folder = RunFolder.create(results, RUN)
    folder.write_environment(environment())
    for number, (sentence, verdict) in enumerate(verdicts, 1):
        for trial in (1, 2):
            one = trial_record()
            one = replace(one, run=RUN, requirement=number, sentence=sentence, test="T")
            folder.add_trial(replace(one, trial=replace(one.trial, number=trial)))
        record = replace(requirement_record(), run=RUN, number=number, sentence=sentence, test="T", verdict=verdict)
        folder.add_requirement(record)
    if torn:
        with (folder.path / "requirements.jsonl").open("ab") as file:
            file.write(b'{"schema": "lineproof.requ')
    return folder.path


def test_each_verdict_is_carried_over_once_and_in_order(tmp_path: Path):
    written(tmp_path, ("a", "PASS"), ("b", "INCONCLUSIVE"), ("a", "FAIL"), torn=True)
    resumption = Resumption.find(tmp_path, RUN, SUITE)
    assert resumption.decided == 2
    assert resumption.take("T", "b") is None, "what proved nothing is judged again"
    first, second, third = (resumption.take("T", "a") for _ in range(3))
    assert first is not None and second is not None and third is None
    assert (first.record.verdict, second.record.verdict) == ("PASS", "FAIL")
    assert [trial.requirement for trial in second.trials] == [3, 3]
    assert resumption.take("another test", "a") is None


def test_a_carried_verdict_is_copied_and_names_the_old_run(tmp_path: Path):
    written(tmp_path, ("a", "PASS"))
    carried = Resumption.find(tmp_path, RUN, SUITE).take("T", "a")
    assert carried is not None
    new = RunFolder.create(tmp_path, "20260202T000000Z-abcdef")
    new.write_environment(environment(run=new.run_id))
    mine = carried.copy_to(new.run_id, 1)
    for trial in mine.trials:
        new.add_trial(trial)
    new.add_requirement(mine.record)
    again = Resumption.find(tmp_path, new.run_id, SUITE).take("T", "a")
    assert again is not None
    assert {trial.run for trial in read_run(new.path).trials} == {new.run_id}
    assert again.copy_to("20260303T000000Z-abcdef", 1).record.extra["carried_from"] == RUN


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"platform": "other", "software": "linux"},
            "the run had platform 'netgate6100', this one has 'other'; the run had software 'vpp', this one has"
            " 'linux'; expected platform 'netgate6100' and software 'vpp' in 'Open Testbed For'",
        ),
        (
            # what follows from another testbed is not named
            {"testbed": "lab", "simulated": False, "clock_speed": 1.0, "extra": {"suite": SUITE, **goal("standard")}},
            "cannot be resumed: the run had testbed 'simulated', this one has 'lab'; the run had goal 'quick', this one"
            " has 'standard'; go on with -v TESTBED:simulated -v GOAL:quick",
        ),
        ({"simulated": False}, "simulated was 'True' and is 'False'"),
        ({"versions": {"router.vpp": "25.02"}}, "router.vpp was '24.10' and is '25.02'"),
        ({"extra": {"suite": SUITE, FINGERPRINTS: {**FILES, "testbed file": "cc"}}}, "the testbed file has changed"),
    ],
)
def test_changes_are_named_and_nothing_is_carried_over(tmp_path: Path, changes: dict[str, object], says: str):
    written(tmp_path, ("a", "PASS"))
    resumption = Resumption.find(tmp_path, RUN, SUITE)
    resumption.check(environment())
    with pytest.raises(TestbedError, match="cannot be resumed") as caught:
        resumption.check(environment(**changes))
    assert says in str(caught.value)


def test_whether_it_is_simulated_is_compared_once_generator_and_router_have_said_it(tmp_path: Path):
    written(tmp_path, ("a", "PASS"))
    resumption = Resumption.find(tmp_path, RUN, SUITE)
    resumption.check(environment(simulated=False, versions={}))
    with pytest.raises(TestbedError, match="simulated was 'True' and is 'False'"):
        resumption.check(environment(simulated=False))


def test_calibration_and_card_files_are_compared(tmp_path: Path):
    plan = Plan.read(Project.find(robot_run.ROOT), "netgate6100", None, "simulated", "quick")
    content: Any = SimpleNamespace()
    calibration = Calibration(content, tmp_path / "some.yaml", "aa")
    written(tmp_path, ("a", "FAIL"))
    for before, now, says in (
        (plan, replace(plan, calibration=calibration), "the calibration file has changed"),
        (replace(plan, calibration=calibration), plan, "the calibration file has changed"),
        (plan, replace(plan, cards=plan.cards[1:]), "the set of generator card files has changed"),
        (plan, replace(plan, cards=()), "the set of generator card files has changed"),
    ):
        resumption = Resumption.find(tmp_path, RUN, SUITE)
        resumption._environment = environment(extra={"suite": SUITE, FINGERPRINTS: fingerprints(before)})
        resumption.check(environment(extra={"suite": SUITE, FINGERPRINTS: fingerprints(before)}))
        with pytest.raises(TestbedError, match="cannot be resumed: .*" + says):
            resumption.check(environment(extra={"suite": SUITE, FINGERPRINTS: fingerprints(now)}))


@pytest.mark.parametrize("run_id", ["nothing", "../etc", "", "."])
def test_a_missing_run_is_reported(tmp_path: Path, run_id: str):
    written(tmp_path, ("a", "PASS"))
    with pytest.raises(ConfigError, match=f"the last runs are {RUN}"):
        Resumption.find(tmp_path, run_id, SUITE)


def test_another_suite_is_not_resumed(tmp_path: Path):
    written(tmp_path, ("a", "PASS"))
    with pytest.raises(ConfigError, match="has no suite 'Other'"):
        Resumption.find(tmp_path, RUN, "Other")


def test_a_verdict_that_was_edited_is_not_carried_over(tmp_path: Path):
    path = written(tmp_path, ("a", "PASS"), ("b", "FAIL")) / "requirements.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace('"FAIL"', '"PASS"'), encoding="utf-8")
    with pytest.raises(
        ConfigError, match=r"requirements\.jsonl:2: was changed \(bytes \d+ to \d+ of the file\); .* proves"
    ):
        Resumption.find(tmp_path, RUN, SUITE)


def test_an_environment_that_was_edited_is_not_resumed(tmp_path: Path):
    """Another version of the router would be taken for the same one."""
    path = written(tmp_path, ("a", "PASS")) / "environment.json"
    path.write_text(path.read_text(encoding="utf-8").replace("24.10", "25.02"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"environment\.json: was changed"):
        Resumption.find(tmp_path, RUN, SUITE)


def test_what_was_altered_in_another_suites_folder_is_no_hindrance(tmp_path: Path):
    (written(tmp_path, ("a", "PASS")) / "extra.txt").write_text("")
    new = RunFolder.create(tmp_path, RUN)
    new.write_environment(environment(run=new.run_id, extra={"suite": "Other"}))
    assert Resumption.find(tmp_path, RUN, "Other").run_id == f"{RUN}-2"
    with pytest.raises(ConfigError, match=r"extra\.txt: was added"):
        Resumption.find(tmp_path, RUN, SUITE)
