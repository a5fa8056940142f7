"""Documents tell the truth: rows of hardware-habits.md, files of the walk-through, sentences of the README."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from textwrap import dedent

import pytest

from lineproof.core.sentence import is_sentence
from lineproof.project import Project
from lineproof.session.plan import Plan
from lineproof.testbed.files import read_testbed
from support.paths import ROOT

TABLE = ROOT / "docs" / "hardware-habits.md"
ROWS = [
    [cell.strip() for cell in line.strip().strip("|").split(" | ")]
    for line in TABLE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| habit ", "| --- "))
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:60])
def test_a_habit_has_a_test(row: list[str]) -> None:
    assert len(row) == 4, row
    named = re.findall(r"`(?:utest/)?([\w/]+\.py)::(\w+)`", row[3])
    assert named and row[0] and row[2], row
    for file, name in named:
        tree = ast.parse((ROOT / "utest" / file).read_text(encoding="utf-8"))
        functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert name in functions, f"{file} has no {name}"


# -- the walk-through's made-up box, and the README: all that they show of files and sentences is true


SHOWN = ("variables/platforms/examplebox.yaml", "variables/testbeds/examplebox.yaml", "tests/examplebox.robot")


def fences(document: Path) -> list[tuple[str, str]]:
    """Return the language and the text of each fenced block."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", document.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_walk_through_shows_the_files_of_the_tree() -> None:
    walk = fences(ROOT / "docs" / "adding-a-platform.md")
    # a file begins with a comment, and what is only a part of one does not
    files = [text for language, text in walk if language == "yaml" and text.startswith("# ")]
    files += [text for language, text in walk if language == "robotframework"]
    assert files == [(ROOT / name).read_text(encoding="utf-8") for name in SHOWN]


def test_the_sentences_at_the_top_of_the_readme() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 500
    top = next(text for language, text in fences(ROOT / "README.md") if language == "robotframework")
    plan = Plan.read(Project.find(ROOT), "netgate6100", "vpp", "simulated", "standard")
    shown = [line.strip() for line in top.splitlines() if is_sentence(line.strip())]
    assert len(shown) == 3
    for sentence in shown:
        plan.requirement(sentence)


def test_the_rehearsal_on_a_real_kernel_names_a_testbed_that_is_one(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "first-hardware-run.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n( +testbed: rehearsal.*?)```", page, re.DOTALL)
    (tmp_path / "rehearsal.yaml").write_text(dedent(text), encoding="utf-8")
    assert read_testbed(tmp_path, "rehearsal").prepare == "configure"
