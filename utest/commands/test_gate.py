"""Commands on recorded runs: gate (exit status, why, and the form for CI servers), history; and init."""

from __future__ import annotations

import json
import random
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from junitparser import JUnitXml
from sqlalchemy import text

from lineproof.commands.main import main
from lineproof.core.goal import read_goal
from lineproof.core.rule import Ruling
from lineproof.errors import ConfigError
from lineproof.evidence.gate import (
    ComparedSentence,
    ComparisonRule,
    Proven,
    RunComparison,
    compare_sentences,
    junit,
)
from lineproof.evidence.history.store import HistoryStore, store_url
from lineproof.evidence.summary import SentenceRow
from lineproof.project import Project
from lineproof.testbed.settings import read_testbed
from support.evidence_builders import promised, requirement_record
from support.made_runs import (
    FORWARDS,
    LOAD,
    LOSES,
    RECOVERS,
    SENTENCE,
    Sentence,
    around,
    few,
    made_run,
    write_run,
)
from support.paths import ROOT, VARIABLES
from support.shown_commands import blocks

pytestmark = pytest.mark.usefixtures("as_recorded")

GOOD = Sentence(LOAD, margin=(1.1, 1.11)), Sentence(FORWARDS, around(5.5e6, 1))
ID = "20261122T205037Z-440fb6"
LATER = "20261122T215037Z-99aadd"


def answer(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str]:
    status = main(["gate", *map(str, arguments)])
    return status, capsys.readouterr().out


def test_junit_holds_any_words():
    (suite,) = JUnitXml.fromstring(junit(RunComparison(problems=["</error>\x1b[2J\x00\ud800 & <x>"])))
    assert suite.errors == 1


def test_a_tag_never_means_another_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    before, after = made_run(tmp_path, ID, *GOOD), made_run(tmp_path, LATER, *GOOD)
    answer(capsys, before, "--tag", "release")
    manifest = before / "manifest.json"
    manifest.write_bytes(manifest.read_bytes() + b"\n")
    with pytest.raises(ConfigError, match="which was moved, altered or replaced"):
        main(["gate", str(after), "--baseline", "release"])
    before.rename(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match=f"names {before}, which was moved"):
        main(["gate", str(after), "--baseline", "release"])
    for damaged in ("", "x\n", f"{'0' * 64}  ../manifest.json\n"):
        (tmp_path / "baselines" / "release").write_text(damaged)
        with pytest.raises(ConfigError, match="is no line of a tag"):
            main(["gate", str(after), "--baseline", "release"])


def test_an_execution_of_several_suites_is_one_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def execution(run_id: str) -> None:
        for suffix, suite in (("", "A"), ("-2", "B"), ("-10", "C")):
            made_run(tmp_path / "results", f"{run_id}{suffix}", Sentence(FORWARDS, around(5e6, 1)), suite=suite)

    for run_id in (ID, LATER):
        execution(run_id)
    # one that is still measured, and one of a ramp alone, are no newer ones
    made_run(tmp_path / "results", "20991231T000000Z-abcdef", GOOD[0]).joinpath("manifest.json").unlink()
    made_run(tmp_path / "results", "20991231T000001Z-abcdef")
    monkeypatch.chdir(tmp_path)
    for name in ("results", LATER, LATER[:12]):
        status, output = answer(capsys, name, "--baseline", ID)
        assert status == 0 and output.startswith("PASS: 3 PASS, ")
    main(["summary", "results"])
    told = capsys.readouterr().err
    assert LATER in told and "sentence: 20991231T000000Z-abcdef, 20991231T000001Z-abcdef)" in told
    assert answer(capsys, f"results/{LATER}", "--baseline", ID)[0] == 2
    with pytest.raises(ConfigError, match="2 executions in results begin with '2026'"):
        main(["gate", "2026"])
    answer(capsys, LATER, "--tag", "both")
    assert answer(capsys, ID, "--baseline", "both")[1].startswith("PASS: 3 PASS, ")
    # the results of another pipeline lie beside those that have the tag
    monkeypatch.chdir("/")
    shutil.copytree(tmp_path / "results" / ID, tmp_path / "another" / ID)
    assert main(["gate", str(tmp_path / "another"), "--baseline", "both"]) == 2
    assert f"{tmp_path}/results/{LATER}" in capsys.readouterr().out


@pytest.mark.parametrize("command", [("gate", "{}", "--baseline"), ("gate", "{}"), ("summary", "{}")])
@pytest.mark.parametrize("name", [f"results/{ID}", ID, ID[:12], "results", "release", "copy"])
def test_a_run_is_not_beside_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    run = made_run(tmp_path / "results", ID, *GOOD)
    shutil.copytree(run, tmp_path / "copy")
    assert main(["gate", str(run), "--tag", "release"]) == 0
    with pytest.raises(ConfigError, match=f"^'{run}' and '{name}' are one run, {ID}"):
        main([*(word.format(run) for word in command), name])


# -- ``lineproof init``: what a new project's tox installs. The rest: ``suites/test_installed.py``


@pytest.mark.parametrize(
    ("origin", "requirement"),
    [
        (None, "lineproof[bench]"),
        ({"url": "file:///srv/lineproof", "dir_info": {"editable": True}}, "lineproof[bench]"),
        (
            {"url": "https://example.org/lineproof.git", "vcs_info": {"vcs": "git", "commit_id": "0af3"}},
            "lineproof[bench] @ git+https://example.org/lineproof.git@0af3",
        ),
    ],
)
def test_tox_installs_what_is_installed_here(
    origin: dict[str, object] | None,
    requirement: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = None if origin is None else json.dumps(origin)
    installed = SimpleNamespace(read_text=lambda name: text)
    monkeypatch.setattr("importlib.metadata.distribution", lambda name: installed)
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0
    assert f"deps =\n    {{env:LINEPROOF:{requirement}}}\n" in (tmp_path / "tox.ini").read_text(encoding="utf-8")
    assert ("LINEPROOF='lineproof[bench] @ file:" in capsys.readouterr().out) == ("file:" in str(origin))


@pytest.mark.parametrize(("platform", "next_step"), [("netgate6100", "simulated"), ("linux_router", "TESTBED:lab")])
def test_a_new_project_is_simulated_where_its_platform_can_be(
    platform: str, next_step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    main(["init", "--platform", platform])
    assert next_step in next(line for line in capsys.readouterr().out.splitlines() if line.startswith("Next: "))
    read_testbed(Project.find().testbeds, "lab")


# -- ``lineproof history``: import and trend, as a person uses them


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LINEPROOF_HISTORY", raising=False)
    return tmp_path


def output(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main(["history", *words]) == 0
    return capsys.readouterr().out


def trend(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    output(capsys, "import", "results")
    answer: dict[str, Any] = json.loads(output(capsys, "trend", "--json", *words))
    return answer


def test_unlike_things_have_tables_of_their_own(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for day in range(3):
        write_run(project / "results", day, few(5.4e6, day), name=f"real{day}")
        write_run(project / "results", day, few(9.9e6, day), name=f"sim{day}", simulated=True)
        write_run(project / "results", day, few(5.4e6, day), name=f"quick{day}", goal="quick")
        write_run(project / "results", day, few(5.4e6, day), name=f"other{day}", platform="other")
    output(capsys, "import", "results")
    tables = [line for line in output(capsys, "trend").splitlines() if ", goal " in line]
    goals = [f"{platform} vpp on lab, goal {goal}" for platform, goal in (("box", "quick"), ("box", "standard"))]
    assert tables == [*goals, "other vpp on lab, goal standard", "box vpp on lab, goal standard"]
    assert output(capsys, "trend").count("SIMULATED – not a measurement") == 1
    for words, points in (
        (("--platform", "other"), 3),
        (("--sentence", "FORWARDS ≥ 5"), 12),
        (("--since", "2026-09-22"), 8),
    ):
        assert len(trend(capsys, *words)["points"]) == points
    with pytest.raises(ConfigError, match="no sentence of these"):
        main(["history", "trend", "--sentence", "5%"])  # a letter, no wildcard


def test_a_pass_without_a_search_is_no_change_among_margins(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for day in range(12):
        margin = None if day in (4, 5, 6) else (1.08, 1.09)
        write_run(project / "results", day, few(5e6, day), sentence="64b unidirectional ≥ 5 Mpps", margin=margin)
    answer = trend(capsys)
    assert {point["kind"] for point in answer["points"]} == {"capacity", "at least"}
    assert answer["changes"] == []


@pytest.mark.parametrize("sentence", [SENTENCE, "64b unidirectional loses ≤ 60 % at 5 Mpps"])
def test_fewer_frames_forwarded_is_worse_in_either_sense(
    project: Path, capsys: pytest.CaptureFixture[str], sentence: str
) -> None:
    for day in range(12):
        write_run(project / "results", day, few(6e6 if day < 6 else 5e6, day), sentence=sentence)
    (change,) = trend(capsys)["changes"]
    assert change["worse"] and change["run"] == "run-0006" and abs(change["percent"]) > 15


def test_without_the_extra_it_is_named(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("sqlalchemy", "lineproof.evidence.history"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(ConfigError, match=r"pip install 'lineproof\[history\]"):
        main(["history", "trend"])


def test_the_pages_queries_run(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(project / "results", 1, [5e6, 5e6])
    output(capsys, "import", "results")
    store = HistoryStore(store_url(None, project / "results"))
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    statements = [*filter(str.strip, ";".join(blocks("sql", page)).split(";"))]
    assert statements
    for statement in statements:
        assert store.read(text(statement))


# -- the rule of gate: when runs can be compared, and what is proven worse


QUICK = read_goal(VARIABLES / "goals", "quick")


def row(words: str, sample: tuple[float, ...]) -> SentenceRow:
    return SentenceRow(requirement_record(sentence=words), sample, 0.0)


def compared(*couples: tuple[SentenceRow, SentenceRow], allowed: float = 0.01, **later: Any) -> list[ComparedSentence]:
    rule, later = ComparisonRule(allowed=allowed), {"run": "later", **later}
    couples = tuple((old, replace(new, record=replace(new.record, **later))) for old, new in couples)
    sentences = [ComparedSentence(*couple, rule) for couple in couples]
    compare_sentences(sentences, rule)
    return sentences


def state(before: SentenceRow, after: SentenceRow) -> Proven:
    return compared((before, after))[0].state


def test_losses_of_a_sentence_that_allows_none_are_not_compared():
    to_nothing, none = LOSES.replace("2 %", "0 %"), (0.0,) * 7
    assert state(row(to_nothing, none), row(to_nothing, none)) is Proven.NOTHING_PROVEN
    assert state(row(to_nothing, none), row(to_nothing, (*none, 1e-5))) is Proven.NOT_COMPARED


def test_equal_runs_are_called_worse_in_less_than_one_of_twenty_pairs():
    """70 pairs of runs of one router, 12 sentences each; 5 % of 70, and three standard deviations."""
    chance = random.Random(20261122)

    def equal() -> SentenceRow:
        return row(FORWARDS, tuple(5e6 * (1 + chance.gauss(0, 0.02)) for _ in range(7)))

    for allowed, most in ((0.001, 8), (0.01, 2)):
        pairs = ([(equal(), equal()) for _ in range(12)] for _ in range(70))
        states = [{each.state for each in compared(*pair, allowed=allowed)} for pair in pairs]
        assert sum(Proven.WORSE in proven or Proven.BETTER in proven for proven in states) <= most


def test_a_run_that_goes_on_with_its_baseline_is_not_compared_by_the_same_trials():
    both = row(FORWARDS, tuple(around(5e6, 1)))
    (sentence,) = compared((both, both), runs={both.record.run: 20})
    assert sentence.state is Proven.NOT_COMPARED and sentence.answer is Ruling.INCONCLUSIVE
    assert sentence.why_not == f"both rest on trials of {both.record.run}"


def test_a_trial_without_an_upper_bound_is_not_left_out():
    (sentence,) = compared((row(RECOVERS, (0.5, 0.5)), row(RECOVERS, (0.5, float("inf"), 0.5))))
    assert sentence.state is Proven.NOT_COMPARED and "1 of 3 trials" in sentence.why_not


def test_the_same_words_with_another_meaning_are_not_compared():
    old = row(FORWARDS, (5e6, 5.1e6))
    other = {"goal": QUICK.model_copy(update={"risk": 0.04})}
    for change in ({"mean_size": 128.0}, {"link_bps": 25e9}, other, {"load_pps": 1e6}, promised(LOAD)):
        new = replace(old, record=replace(old.record, **change))
        assert state(old, new) is Proven.NOT_COMPARED
