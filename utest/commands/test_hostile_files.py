"""Whatever is in a file that a user writes: ``lineproof check`` says it in one paragraph, soon, in little memory."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.commands import check
from lineproof.project import KINDS
from lineproof_bench.model.check import problems as model_problems
from support import hostile
from support.paths import ROOT

FILES = sorted(path for kind in KINDS for path in (ROOT / "variables" / kind).glob("*.yaml"))


@pytest.fixture(autouse=True)
def models_are_read_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "_models", lambda paths: [words for path in paths for words in model_problems(path)])


def problems(project: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return what `lineproof check` prints, each a paragraph of its own."""
    arguments = argparse.Namespace(suites=[], project=project, json=False)
    with hostile.bounded():
        status = check.run(arguments)
    *found, last = capsys.readouterr().out.splitlines()
    found = [line for line in found if not line.startswith("warning: ")]  # that it hides a packaged file
    assert last.startswith(f"{len(found)} problem{'' if len(found) == 1 else 's'} in "), found
    assert status == bool(found)
    for problem in found:
        assert problem.isprintable() and len(problem) < 2500, problem
        assert problem.startswith(str(project)), problem
    return found


def mutated_file(project: Path, source: Path, content: bytes) -> Path:
    path = project / "variables" / source.parent.name / source.name
    for old in path.parent.parent.glob("*/*"):
        old.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@hostile.of(40)
@given(data=st.data())
def test_a_mutated_file_is_right_or_one_paragraph(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: st.DataObject
):
    source = data.draw(st.sampled_from(FILES))
    content = data.draw(hostile.mutated(source.read_text(encoding="utf-8")))
    mutated_file(tmp_path, source, content)
    problems(tmp_path, capsys)
