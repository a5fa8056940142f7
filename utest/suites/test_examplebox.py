"""The made-up box of the walk-through, and what the documents show of files, sentences and messages, is true."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from robot.api import TestSuite as Suite

from lineproof.core.sentence import is_sentence
from lineproof.project import Project
from lineproof.session.plan import Plan
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


def test_the_sentences_at_the_top_of_the_readme(tmp_path: Path):
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 500
    top = next(fence.text for fence in fences(ROOT / "README.md") if fence.language == "robotframework")
    (tmp_path / "top.robot").write_text(top, encoding="utf-8")
    plan = Plan.read(Project.find(ROOT), "netgate6100", "vpp", "simulated", "standard")
    shown = sentences(tmp_path / "top.robot")
    assert len(shown) == 3
    for sentence in shown:
        plan.requirement(sentence)
