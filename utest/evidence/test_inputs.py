"""The files that define a run, kept in its folder, make the same plan again; secrets do not get there."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from lineproof import __version__
from lineproof.core.rule import Ruling
from lineproof.errors import ConfigError, SentenceError
from lineproof.evidence.environment import code_identity
from lineproof.evidence.inputs import REMOVED, input_files, read_kept_plan, without_secrets
from lineproof.evidence.recorder import Recorder
from lineproof.evidence.records import EnvironmentRecord
from lineproof.evidence.rejudge import AskedSentence, judge_another_sla
from lineproof.evidence.run import RunFolder, read_run
from lineproof.evidence.run_files import INPUTS
from lineproof.project import Project
from lineproof.session.plan import Plan
from support import robot_run

RUN = "20260101T000000Z-abcdef"


def own_project(folder: Path) -> Project:
    """A project with a goal, a testbed and traffic words of its own over the packaged files."""
    variables = folder / "variables"
    packaged = robot_run.ROOT / "variables"
    for kind, name in (("goals", "quick"), ("testbeds", "simulated")):
        (variables / kind).mkdir(parents=True)
        text = (packaged / kind / f"{name}.yaml").read_text(encoding="utf-8")
        (variables / kind / f"{name}.yaml").write_text(f"# api_key: abc123\n{text}", encoding="utf-8")
    (variables / "profiles").mkdir()
    mix = (
        "entries:\n  - {kind: mix, name: imix, about: mine, frames: [{size: 100, weight: 1}, {size: 900, weight: 1}]}\n"
    )
    (variables / "profiles" / "mine.yaml").write_text(mix, encoding="utf-8")
    return Project(folder)


def kept(plan: Plan, folder: Path) -> Path:
    """The folder of a run of *plan*."""
    goal = {"goal": plan.goal.model_dump()}
    record = EnvironmentRecord(
        RUN, True, plan.testbed.testbed, plan.platform.platform, plan.software_name, 50.0, 0.0, extra=goal
    )
    recorder = Recorder(folder, RUN, record)
    recorder.keep_inputs(plan)
    return recorder.folder.path


def test_the_kept_files_are_the_same_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    project = own_project(tmp_path / "project")
    plan = Plan.read(project, "netgate6100", "vpp", "simulated", "quick")
    folder = kept(plan, tmp_path / "results")
    # neither the project's files nor those that come with Lineproof are there any more
    monkeypatch.setattr("lineproof.project.packaged_variables", lambda: tmp_path / "nothing")
    again = read_kept_plan(read_run(folder))
    assert (again.goal, again.testbed, again.platform) == (plan.goal, plan.testbed, plan.platform)
    assert [file.card for file in again.cards] == [file.card for file in plan.cards]
    for words in ("imix", "64b 1-flow", "128b vlan"):
        assert again.catalogue.profile(words.split()) == plan.catalogue.profile(words.split())
    assert again.catalogue.profile(["imix"]).mean_size == 500, "the project's own word wins over the packaged one"


def test_project_and_packaged_files_are_kept_apart(tmp_path: Path):
    plan = Plan.read(own_project(tmp_path), "netgate6100", "vpp", "simulated", "quick")
    names = set(input_files(plan))
    assert {"variables/goals/quick.yaml", "variables/profiles/mine.yaml", "packaged/profiles/mixes.yaml"} <= names
    assert "packaged/goals/quick.yaml" not in names and "packaged/goals/standard.yaml" not in names


@pytest.mark.parametrize(
    "text",
    [
        "password: hunter2",
        "# the api_key = hunter2",
        '{user: ci, "token": "hunter2", port: 22}',
        "about: see https://ci:hunter2@example.org/lab",
        "key: |\n  -----BEGIN OPENSSH PRIVATE KEY-----\n  hunter2\n  -----END OPENSSH PRIVATE KEY-----",
    ],
)
def test_what_looks_like_a_secret_is_not_kept(text: str):
    found = without_secrets("", text)
    assert "hunter2" not in found and REMOVED in found


@pytest.mark.parametrize(
    "value", ["hunter2", "'hunter2'  # a path", "|\n  -----BEGIN OPENSSH PRIVATE KEY-----\n  hunter2"]
)
def test_the_key_of_a_testbed_is_not_kept(value: str) -> None:
    kept = without_secrets(
        "variables/testbeds/lab.yaml", f"router: {{user: me, key: hunter2}}\nport: 22\nkey: {value}\n"
    )
    data = yaml.safe_load(kept)
    assert "hunter2" not in kept and (data["router"], data["port"]) == ({"user": "me", "key": REMOVED}, 22)


@pytest.mark.parametrize(
    "text",
    [
        "password_from: LAB_PASSWORD",
        "passphrase_from: LAB_KEY",
        "key: id_lab",
        "about: each token bucket of 3 frames",
        "user: root",
    ],
)
def test_what_is_no_secret_stays(text: str):
    assert without_secrets("", text) == text


def test_no_file_of_the_packaged_ones_is_changed():
    for path in (robot_run.ROOT / "variables").rglob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        assert without_secrets("", text) == text, path


def test_a_secret_of_a_file_is_removed_in_its_copy(tmp_path: Path):
    plan = Plan.read(own_project(tmp_path / "project"), "netgate6100", "vpp", "simulated", "quick")
    folder = kept(plan, tmp_path / "results")
    assert "abc123" not in (folder / INPUTS).read_text()
    assert read_kept_plan(read_run(folder)).testbed == plan.testbed


def test_a_run_without_inputs_says_so(tmp_path: Path):
    environment = EnvironmentRecord(RUN, True, "simulated", "netgate6100", "vpp", 50.0, 0.0)
    folder = RunFolder.create(tmp_path, RUN)
    folder.write_environment(replace(environment, extra={"goal": {"goal": "quick"}}))
    with pytest.raises(ConfigError, match=r"has no inputs\.jsonl"):
        read_kept_plan(read_run(folder.path))
    folder.add_input("variables/goals/quick.yaml", b"goal: quick\n")
    with pytest.raises(ConfigError, match="no platform 'netgate6100'"):
        read_kept_plan(read_run(folder.path))


@pytest.mark.slow
def test_which_lineproof_it_was(tmp_path: Path):
    unknown = {"version": __version__, "commit": "unknown", "dirty": "unknown"}
    package = tmp_path / "lineproof"
    package.mkdir()
    (package / "__init__.py").write_text("")
    assert code_identity(package) == unknown, "no checkout"
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q"], check=True, timeout=20)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True, timeout=20)
    assert code_identity(package) == unknown, "installed inside the checkout of something else"
    subprocess.run([*git, "add", "lineproof"], check=True, timeout=20)
    subprocess.run([*git, "commit", "-q", "-m", "second"], check=True, timeout=20)
    found = code_identity(package)
    assert len(found["commit"]) == 40 and found["dirty"] is False
    (package / "__init__.py").write_text("# changed\n")
    assert code_identity(package) == {**found, "dirty": True}


@pytest.mark.parametrize("word", ["captured", "ours"])
def test_a_capture_or_profile_that_was_never_sent_is_named(tmp_path: Path, word: str) -> None:
    project = own_project(tmp_path / "project")
    (tmp_path / "project" / "variables" / "profiles" / "files.yaml").write_text(
        "entries:\n  - {kind: pcap, name: captured, file: c.pcap, about: a test}\n"
        "  - {kind: trex, name: ours, file: o.py, about: a test}\n"
    )
    folder = kept(Plan.read(project, "netgate6100", "vpp", "simulated", "quick"), tmp_path / "results")
    sentences = [AskedSentence("T", f"{traffic} unidirectional ≥ 1 Mpps") for traffic in (word, "64b")]
    _, (found, other) = judge_another_sla(folder, sentences)
    assert {found.ruling, other.ruling} == {Ruling.INCONCLUSIVE}
    assert f"the run never sent '{word}'" in found.message
    assert "the run has no trials that decide it" in other.message
    with pytest.raises(SentenceError, match=r"'later' is not understood.*\n\(platform, ports and traffic words are"):
        judge_another_sla(folder, [AskedSentence("T", "later unidirectional ≥ 1 Mpps")])
