"""May this go out? Exit status, why, and the forms for people and CI servers."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from junitparser import JUnitXml
from markdown_it import MarkdownIt

from lineproof.commands.main import main
from lineproof.errors import ConfigError, LineproofError
from lineproof.evidence.gate_forms import junit_of_error
from lineproof.evidence.text_tables import markdown_table, markdown_text
from support.made_runs import COSTS, FORWARDS, LOAD, Sentence, around, made_run

GOOD = Sentence(LOAD, margin=(1.1, 1.11)), Sentence(FORWARDS, around(5.5e6, 1))
ID = "20261122T205037Z-440fb6"
LATER = "20261122T215037Z-99aadd"


def answer(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str]:
    status = main(["gate", *map(str, arguments)])
    return status, capsys.readouterr().out


def test_a_margin_that_was_not_measured_is_noted_and_decides_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    for name, sentences, notes in (("without", (Sentence(LOAD), *GOOD), 1), ("with", GOOD, 0)):
        status, output = answer(capsys, made_run(tmp_path / name, ID, *sentences), "--json")
        assert status == 0 and len(json.loads(output)["notes"]) == notes


ONE_FIGURE = (Sentence(COSTS, [300.0]),)


@pytest.mark.parametrize(
    ("before", "after", "changes", "words"),
    [
        (GOOD, GOOD, {"simulated": True}, f"{LATER} is simulated, {ID} is not"),
        (GOOD, GOOD, {"platform": "otherbox"}, "other platform"),
        (GOOD, GOOD, {"closed": False}, "was never closed"),
        (GOOD, (Sentence(LOAD), GOOD[1]), {}, "margin not measured in the candidate"),
        (GOOD, GOOD[:1], {}, f"'{FORWARDS}' (T) of the baseline was not judged in {LATER}"),
        (ONE_FIGURE, ONE_FIGURE, {}, "1 and 1 figures, too few to compare"),
        ((), (), {}, ""),
        ((), GOOD, {"closed": False}, "was never closed"),
        ((), GOOD, {"unjudged": COSTS}, f"ended in '{COSTS}', which has no verdict"),
    ],
)
def test_what_cannot_be_compared_or_is_not_whole_is_not_decided(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    before: Sequence[Sentence],
    after: Sequence[Sentence],
    changes: Any,
    words: str,
):
    run, report = made_run(tmp_path, LATER, *after, **changes), tmp_path / "out" / "gate.xml"
    baseline = ("--baseline", made_run(tmp_path, ID, *before)) if before else ()
    status, output = answer(capsys, run, *baseline, "--junit", report)
    assert status == 2 and words in output
    assert any(case.is_error for suite in JUnitXml.fromfile(str(report)) for case in suite)


def test_a_sentence_that_the_baseline_lacks_is_judged_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    before, after = made_run(tmp_path, ID, *GOOD), made_run(tmp_path, LATER, GOOD[0])
    assert answer(capsys, before, "--baseline", after)[0] == 0


def test_an_altered_run_is_refused_and_junit_says_so(tmp_path: Path):
    run, report = made_run(tmp_path, ID, *GOOD), tmp_path / "gate.xml"
    path = run / "requirements.jsonl"
    path.write_bytes(path.read_bytes().replace(b"PASS", b"FAIL", 1))
    with pytest.raises(ConfigError, match="was altered proves nothing"):
        main(["gate", str(run), "--junit", str(report)])
    (suite,) = JUnitXml.fromfile(str(report))
    assert (suite.tests, suite.errors, suite.failures) == (1, 1, 0)
    assert "was altered" in next(iter(suite)).result[0].message


@given(st.text())
@settings(max_examples=50, deadline=None)
def test_junit_holds_any_words(words: str):
    (suite,) = JUnitXml.fromstring(junit_of_error(words))
    assert suite.errors == 1


@given(st.text(alphabet=st.one_of(st.sampled_from("|`*_<>[]()#~$&@!-+=\\\n\x1b. w"), st.characters())))
@settings(max_examples=100, deadline=None)
def test_markdown_shows_any_words_as_they_are(words: str):
    table = "\n".join(markdown_table(["a", "b"], [[markdown_text(words), "end"]]))
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(table)
    cells = [after for before, after in itertools.pairwise(tokens) if before.type == "td_open"]
    assert len(cells) == 2 and cells[1].content == "end"
    assert {child.type for child in cells[0].children or ()} <= {"text", "text_special"}


def test_json_has_the_answer_and_each_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    before, after = (
        made_run(tmp_path, name, GOOD[0], Sentence(FORWARDS, around(rate, 2)), simulated=True)
        for name, rate in ((ID, 5.5e6), (LATER, 5e6))
    )
    status, output = answer(capsys, after, "--baseline", before, "--json")
    found = json.loads(output)
    assert (status, found["exit_status"], found["answer"], found["simulated"]) == (1, 1, "FAIL", True)
    assert [item["answer"] for item in found["sentences"]] == ["PASS", "FAIL"]
    assert found["sentences"][0]["compared"]["by"] == "margin"
    assert found["sentences"][1]["compared"]["change"]["high"] < -1


# --- names of runs


def test_what_passes_alone_can_be_tagged_and_is_the_next_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    before, after = made_run(tmp_path, ID, *GOOD), made_run(tmp_path, LATER, *GOOD)
    status, output = answer(capsys, before, "--tag", "release-24.03")
    assert status == 0 and output.endswith(f"tagged: {tmp_path / 'baselines' / 'release-24.03'}\n")
    status, output = answer(capsys, after, "--baseline", "release-24.03")
    assert status == 0 and f"baseline  {tmp_path / ID}" in output
    assert main(["compare", "release-24.03", str(after)]) == 0
    failed = made_run(tmp_path / "failed", ID, Sentence(LOAD, verdict="FAIL"))
    status, output = answer(capsys, failed, "--tag", "release")
    assert status == 1 and "not tagged 'release'" in output
    assert not (tmp_path / "failed" / "baselines").exists()


def test_a_tag_never_means_another_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    before, after = made_run(tmp_path, ID, *GOOD), made_run(tmp_path, LATER, *GOOD)
    answer(capsys, before, "--tag", "release")
    manifest = before / "manifest.json"
    manifest.write_bytes(manifest.read_bytes() + b"\n")
    with pytest.raises(ConfigError, match="whose manifest is another now"):
        main(["gate", str(after), "--baseline", "release"])
    before.rename(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match=f"names the run {ID}, which is not in"):
        main(["gate", str(after), "--baseline", "release"])


@pytest.mark.parametrize("content", ["", "x\n", f"{'0' * 64}  ../manifest.json\n", "\x00", "é" * 9, "a" * 70_000])
def test_a_damaged_tag_is_one_sentence(tmp_path: Path, content: str):
    run = made_run(tmp_path, ID, *GOOD)
    (tmp_path / "baselines").mkdir()
    (tmp_path / "baselines" / "release").write_text(content, encoding="latin-1")
    with pytest.raises(ConfigError):
        main(["gate", str(run), "--baseline", "release"])


@pytest.mark.parametrize("name", ["../x", "", ".hidden", "a/b", "-x", "a b", ID, "é", "x\n", "x" * 101])
def test_a_tag_is_a_plain_name(tmp_path: Path, name: str):
    run = made_run(tmp_path, ID, *GOOD)
    with pytest.raises(LineproofError, match="cannot be a tag"):
        main(["gate", str(run), f"--tag={name}"])
    assert sorted(path.name for path in tmp_path.iterdir()) == [ID]


def test_an_execution_of_several_suites_is_one_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def execution(run_id: str) -> None:
        for suffix, suite in (("", "A"), ("-2", "B")):
            extra = {"goal": {"goal": "quick"}, "suite": suite}
            made_run(tmp_path / "results", f"{run_id}{suffix}", Sentence(FORWARDS, around(5e6, 1)), extra=extra)

    for run_id in (ID, LATER):
        execution(run_id)
    monkeypatch.chdir(tmp_path)
    for name in ("results", LATER, LATER[:12]):
        status, output = answer(capsys, name, "--baseline", ID)
        assert status == 0 and output.startswith("PASS: 2 of 2")
    status, output = answer(capsys, f"results/{LATER}", "--baseline", ID)
    assert status == 2 and "suite 'B' of the baseline" in output
    with pytest.raises(ConfigError, match="2 executions in results begin with '2026'"):
        main(["gate", "2026"])
    with pytest.raises(ConfigError, match="'nothing' is no run, no tag and no beginning of a run's id"):
        main(["gate", "nothing"])
    answer(capsys, LATER, "--tag", "both")
    assert answer(capsys, LATER, "--baseline", "both")[1].startswith("PASS: 2 of 2")
