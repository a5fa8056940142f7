"""The made-up box of the walk-through, and what the documents show of files, sentences and messages, is true."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from robot.api import TestSuite as Suite

from lineproof.core.sentence import is_sentence
from lineproof.platforms import read_platform
from lineproof.project import Project
from lineproof.session.plan import Plan
from lineproof.testbed.settings import HardwareSettings
from support import robot_run

ROOT = robot_run.ROOT
WALK = ROOT / "docs" / "adding-a-platform.md"
SHOWN = ("variables/platforms/examplebox.yaml", "variables/testbeds/examplebox.yaml", "tests/examplebox.robot")


@dataclass(frozen=True)
class Fence:
    """A fenced block: its language and its text."""

    language: str
    text: str


def fences(document: Path) -> list[Fence]:
    found = re.findall(r"^```(\w+)\n(.*?)^```$", document.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [Fence(language, text) for language, text in found]


def named_fences(document: Path) -> dict[str, str]:
    """Return those whose first line is a comment with the file's path."""
    found = ((re.match(r"# (\S+/\S+)\n", fence.text), fence.text) for fence in fences(document))
    return {name[1]: text for name, text in found if name}


def project_with(folder: Path, files: dict[str, str]) -> Path:
    """A project of a user's own: this one's goals, profiles and keywords, and *files*."""
    project = folder / "project"
    for kept in ("variables/goals", "variables/profiles", "resources"):
        shutil.copytree(ROOT / kept, project / kept)
    (project / "libraries").symlink_to(ROOT / "libraries")
    for name, text in files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return project


def sentences(suite: Path) -> list[str]:
    """The sentences of the tests in *suite*."""
    steps = [step for test in Suite.from_file_system(suite).all_tests for step in test.body]
    return [step.name for step in steps if is_sentence(step.name or "")]


def test_the_walk_through_shows_the_files_of_the_tree() -> None:
    # a file begins with a comment, and what is only a part of one does not
    files = [fence.text for fence in fences(WALK) if fence.language == "yaml" and fence.text.startswith("# ")]
    files += [fence.text for fence in fences(WALK) if fence.language == "robotframework"]
    assert files == [(ROOT / name).read_text(encoding="utf-8") for name in SHOWN]


@pytest.mark.slow
def test_your_own_router_in_the_readme(tmp_path: Path):
    files = named_fences(ROOT / "README.md")
    assert list(files) == ["variables/platforms/mybox.yaml", "variables/testbeds/mylab.yaml", "tests/mybox.robot"]
    project = project_with(tmp_path, files)
    plan = Plan.read(Project.find(project), "mybox", "linux", "mylab", "standard")
    assert isinstance(plan.testbed, HardwareSettings)
    assert plan.platform == read_platform(project / "variables" / "platforms", "mybox")
    assert [plan.requirement(sentence).sentence for sentence in sentences(project / "tests" / "mybox.robot")] == [
        "imix bidirectional ≥ 70% line rate each way"
    ]
    found = robot_run.run(
        tmp_path, project / "tests" / "mybox.robot", "--dryrun", "--exitonerror", "-v", "TESTBED:mylab"
    )
    assert found.status == 0, found.console


def test_the_sentences_at_the_top_of_the_readme(tmp_path: Path):
    top = next(fence.text for fence in fences(ROOT / "README.md") if fence.language == "robotframework")
    (tmp_path / "top.robot").write_text(top, encoding="utf-8")
    plan = Plan.read(Project.find(ROOT), "netgate6100", "vpp", "simulated", "standard")
    shown = sentences(tmp_path / "top.robot")
    assert len(shown) == 3
    for sentence in shown:
        plan.requirement(sentence)
