"""Whatever is in a file that a user writes: ``lineproof check`` says it in one paragraph, soon, in little memory."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.commands import check
from lineproof.errors import LineproofError
from lineproof.methods.budget import duration_text
from lineproof.project import KINDS, Project
from lineproof.session.plan import Plan
from lineproof_bench.model.check import problems as model_problems
from support import hostile
from support.paths import ROOT

FILES = sorted(path for kind in KINDS for path in (ROOT / "variables" / kind).glob("*.yaml"))


@pytest.fixture(autouse=True)
def models_are_read_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "_models", lambda paths: [words for path in paths for words in model_problems(path)])


def problems(project: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What `lineproof check` prints, each a paragraph of its own."""
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


@pytest.mark.parametrize("kind", KINDS)
def test_aliases_of_aliases_take_no_time(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str):
    source = next(path for path in FILES if path.parent.name == kind)
    path = mutated_file(tmp_path, source, hostile.NESTED.encode() + b"\n" + source.read_bytes())
    (found,) = problems(tmp_path, capsys)
    assert found.startswith(f"{path}:5: more than 20000 values")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", ["folder", "pipe", "device", "link", "large"])
def test_what_is_no_file_is_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, what: str):
    source = next(path for path in FILES if path.parent.name == kind)
    path = mutated_file(tmp_path, source, b"#" * 300_000)
    says = "has more than 256 KiB"
    if what != "large":
        path.unlink()
    if what == "folder":
        path.mkdir()
        says = "is a folder; expected a file"
    elif what == "pipe":
        os.mkfifo(path)
        says = "is a device, a pipe or a socket"
    elif what == "device":
        path.symlink_to("/dev/zero")
        says = "is a device, a pipe or a socket"
    elif what == "link":
        path.symlink_to(tmp_path / "none")
        says = "is a link to a file that does not exist"
    (found,) = problems(tmp_path, capsys)
    assert found.startswith(f"{path}: {says}")


SENTENCES = (
    "64b 1-flow unidirectional ≥ 5 Mpps",
    "64b bidirectional forwards ≥ 1 Mpps in total for 2 h",
    "imix unidirectional latency p99.9 ≤ 100 µs at 1 Mpps",
    "64b bidirectional recovers in ≤ 2 s",
)


@hostile.of(30)
@given(data=st.data())
def test_what_is_accepted_serves_sentences(tmp_path: Path, data: st.DataObject):
    source = data.draw(st.sampled_from([path for path in FILES if path.parent.name != "generators"]))
    mutated_file(tmp_path, source, data.draw(hostile.mutated(source.read_text(encoding="utf-8"))))
    names = {"platforms": "netgate6100", "testbeds": "simulated", "goals": "standard"}
    names |= {source.parent.name: source.stem} if source.parent.name in names else {}
    with hostile.bounded():
        try:
            plan = Plan.read(Project.find(tmp_path), names["platforms"], None, names["testbeds"], names["goals"])
            found = [plan.requirement(sentence) for sentence in SENTENCES]
            duration_text(plan.budget(found).at_most)
            str(plan.goal)
        except LineproofError as error:
            assert str(error).isprintable()


EXTREMES = ("0", "1e-300", "1e-17", "1e-9", "0.999999999", "1e9", "1e17", "999999999999999999", "-1")


@hostile.of(25)
@given(data=st.data())
def test_no_figure_of_a_goal_takes_long(tmp_path: Path, data: st.DataObject):
    source = data.draw(st.sampled_from([path for path in FILES if path.parent.name == "goals"]))
    text = source.read_text(encoding="utf-8")
    for place in data.draw(st.lists(st.sampled_from(list(re.finditer(r"(?<=: )[0-9.]+$", text, re.M))), max_size=3)):
        text = text[: place.start()] + data.draw(st.sampled_from(EXTREMES)) + text[place.end() :]
    mutated_file(tmp_path, source, text.encode())
    with hostile.bounded():
        try:
            plan = Plan.read(Project.find(tmp_path), "netgate6100", "vpp", "simulated", source.stem)
            found = [plan.requirement(sentence) for sentence in SENTENCES]
            duration_text(plan.budget(found).at_most)
            str(plan.goal)
        except LineproofError as error:
            assert str(error).isprintable()
