"""What a study says before anything starts: what it will not measure, and what it cannot be measured on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lineproof.commands.main import main
from lineproof.errors import ConfigError, TestbedError
from lineproof.evidence.recorder import Recorder
from lineproof.power.meter import CommandMeterSettings
from lineproof.project import Project
from lineproof.studies.carrying import Carried
from lineproof.studies.preparing import check_study, prepare_study
from lineproof.studies.study import visits_of
from support.evidence_builders import ENVIRONMENT, RUN
from support.paths import ROOT
from support.study_builders import SMALL, study_project

COMMANDS = "commands: [{do: nft add table ip a, undo: nft delete table ip a}]"


def test_commands_that_a_simulated_router_does_not_know_are_said_before_the_start(tmp_path: Path) -> None:
    text = SMALL.replace("  linux: {software: linux}", f"  linux: {{software: linux, {COMMANDS}}}")
    found = prepare_study(study_project(tmp_path, text), "small", "simulated", "quick")
    (line,) = found.gap_words(visits_of(found.study))
    assert line.startswith("not measured: linux (2 rows): testbed 'simulated' is simulated") and "'configured'" in line
    assert found.gap("linux", "one flow") and not found.gap("vpp", "one flow")
    # it is no excuse: the study's file can say it
    assert "linux" in found.unknown


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("platform: netgate6100", "platform: netgate6100\ntestbed: netnss", ":4: 'testbed': .*did you mean 'netns'"),
        (
            "  one flow: {forwards: 64b 1-flow unidirectional,",
            "  one flow: {forwards: 64b 1-flow unidirectional, at: 2 kps,",
            ":8: 'measures.one flow.at': .*did you mean 'kpps'",
        ),
    ],
)
def test_what_check_finds_without_a_testbed_a_run_says_too(tmp_path: Path, old: str, new: str, words: str) -> None:
    made = study_project(tmp_path, SMALL.replace(old, new))
    for attempt in (lambda: check_study(made, "small"), lambda: prepare_study(made, "small", None, "quick")):
        with pytest.raises(ConfigError, match=words):
            attempt()


def test_one_broken_study_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = study_project(tmp_path, SMALL)
    (made.root / "variables/studies/broken.yaml").write_text("study: broken\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["study", "list"]) == 2
    shown = capsys.readouterr()
    assert "small" in shown.out and "broken.yaml:1: the key 'title' is missing" in shown.err


def test_a_study_of_which_nothing_can_be_measured_is_refused(tmp_path: Path) -> None:
    text = SMALL.replace("{software: linux}", f"{{software: linux, {COMMANDS}}}")
    text = text.replace("{software: vpp}", f"{{software: vpp, {COMMANDS}}}")
    with pytest.raises(ConfigError, match="nothing can be measured: testbed 'simulated'"):
        prepare_study(study_project(tmp_path, text), "small", "simulated", "quick")


@pytest.mark.parametrize("name", ["generators", "nftables_rules", "same_router"])
def test_a_router_that_cannot_be_simulated_is_refused_with_the_testbed_that_measures_it(name: str) -> None:
    with pytest.raises(ConfigError, match=r"has no 'model:'.*run the study on --testbed netns"):
        prepare_study(Project(ROOT), name, "simulated", "standard")


SIMULATED = sorted(path.stem for path in (ROOT / "variables" / "studies").glob("freebsd_*.yaml"))


@pytest.mark.parametrize("name", [*SIMULATED, "gowin_n305", "netgate6100"])
def test_a_variants_commands_configure_a_simulated_router_as_that_variant_says(name: str) -> None:
    """Also where others have the same commands, as with another number of flows."""
    found = prepare_study(Project(ROOT), name, "simulated", "standard")
    for variant, plan in found.plans.items():
        own = found.study.variants[variant]
        known = [setup.configured for setup in plan.setups if setup.commands == own.commands]
        assert all(each == own.configured for each in known) and (known or not own.configured), variant


def test_a_study_knows_how_long_its_power_meter_takes() -> None:
    without = prepare_study(Project.find(ROOT), "netgate6100", "simulated", "quick")
    meter = CommandMeterSettings(kind="command", run="x", accuracy=1)
    plans = {
        name: replace(plan, testbed=plan.testbed.model_copy(update={"power": meter}))
        for name, plan in without.plans.items()
    }
    found, visits = replace(without, plans=plans), visits_of(without.study)
    energies = [
        visit.variant
        for visit in visits
        for row in visit.rows
        if without.study.measures[row].kind == "energy" and not without.gap(visit.variant, row)
    ]
    speed, once = found.plan.clock_speed, found.plan.goal.final_trial_duration
    longer = meter.trial_seconds(speed) - once
    assert energies and longer > 0
    (traffic, real), (before, real_before) = found.seconds(visits), without.seconds(visits)
    assert traffic - before == pytest.approx(len(energies) * longer)
    assert real - real_before == pytest.approx(len(energies) * (longer + meter.idle_seconds()) / speed)


def test_what_is_left_of_a_study_is_said_to_be_a_part_of_its_blocks(tmp_path: Path) -> None:
    found = prepare_study(study_project(tmp_path, SMALL), "small", "simulated", "quick", 3)
    visits = visits_of(found.study)
    assert " in 3 blocks, " in found.budget_words(visits)
    assert " in 2 of 3 blocks, " in found.budget_words([visit for visit in visits if visit.block > 1])
    # rows that are all repeated less than the study end in its first blocks
    fewer = {row: measure.model_copy(update={"repeats": 2}) for row, measure in found.study.measures.items()}
    less = replace(found, study=found.study.model_copy(update={"measures": fewer}))
    assert " in 2 blocks, " in less.budget_words(visits_of(less.study))


@pytest.mark.parametrize(("study", "says"), [({"study": "netgate6100"}, "of study 'netgate6100'"), ({}, "of no study")])
def test_a_run_of_another_study_is_said_to_be_one(tmp_path: Path, study: dict[str, object], says: str) -> None:
    found = prepare_study(study_project(tmp_path, SMALL), "small", "simulated", "quick")
    Recorder(tmp_path / "results", RUN, replace(ENVIRONMENT, extra=study)).close()
    with pytest.raises(TestbedError) as raised:
        Carried.of(tmp_path / "results" / RUN, found)
    assert f"run '{RUN}' is {says}, and cannot go on as 'small'" in str(raised.value)
    assert ";" in str(raised.value) and "has changed" not in str(raised.value)
