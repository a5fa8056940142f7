"""Keywords: their words for a verdict, their documentation, the words on Robot's command line; claims of a study."""

from __future__ import annotations

import logging
import re
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal
from unittest.mock import MagicMock, Mock

import pytest
from robot.errors import ExecutionFailed
from robot.libdoc import LibraryDocumentation

from lineproof.commands.study import _show
from lineproof.core.goal import read_goal
from lineproof.core.quantity import Reason
from lineproof.core.rule import Ruling
from lineproof.core.sentence import parse
from lineproof.core.trial import Load, Tolerance, read_trial
from lineproof.core.verdict import Verdict
from lineproof.errors import ConfigError, Inconclusive, SlaFailure
from lineproof.evidence.records import MarginRecord
from lineproof.generators.base import Method
from lineproof.procedures.search.margin import Margin
from lineproof.robot import acceptance, characterisation, studies
from lineproof.robot.acceptance import AcceptanceKeywords
from lineproof.robot.characterisation import CharacterisationKeywords
from lineproof.robot.sentences import METHODS, plain
from lineproof.robot.shared import VARIABLES, Judged, Shared, check_names, check_values
from lineproof.robot.studies import StudyKeywords
from lineproof.studies.results import results_of
from lineproof.studies.study import AT_LEAST
from support.catalogue import CATALOGUE
from support.evidence_builders import requirement_record
from support.made_testbeds import router
from support.model_bench import PROJECT
from support.paths import ROOT
from support.study_builders import SMALL, measurements, study_of


def keywords_of(verdict: Verdict, expected: str = "PASS") -> AcceptanceKeywords:
    """Return the keywords where *verdict* is that of the sentence."""
    recorder = MagicMock()
    recorder.keep_verdict.return_value = requirement_record()
    shared = Shared(opened=[("suite", bench())], recorder=recorder)
    shared.judged = Judged(verdict.requirement, expected, verdict)
    return AcceptanceKeywords(shared)


def bench() -> MagicMock:
    session = MagicMock(simulated=True)
    session.plan.link_bps.return_value = 10e9
    session.traffic.reconnection.note = session.revival.note = ""
    return session


def verdict_of(ruling: Ruling, *details: str) -> Verdict:
    requirement, goal = parse("64b unidirectional ≥ 1 kpps", CATALOGUE), read_goal(PROJECT.goals, "quick")
    trial = read_trial(1, router()(Load(1000.0), 1.0), Tolerance())
    promise = requirement.promise(goal, Load(1000.0), 10e9)
    return Verdict(requirement, promise, ruling, Reason("lost 2 % (of 7) at 1 kpps", details), (trial,))


def test_a_plot_that_cannot_be_drawn_costs_no_verdict(monkeypatch: Any, caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: Any, **__: Any) -> str:
        raise ZeroDivisionError("no such axis")

    monkeypatch.setattr(acceptance, "sentence_plot", broken)
    keywords = keywords_of(verdict_of(Ruling.PASS))
    keywords.keep_evidence()
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "no plot of the trials: an error of Lineproof's own (lineproof/robot/acceptance.py, line " in warning
    (table,) = keywords.shared.shown
    assert "<table" in table


@pytest.mark.parametrize(
    ("ruling", "expected", "error", "says"),
    [
        (Ruling.FAIL, "PASS", SlaFailure, "FAIL: 64b unidirectional ≥ 1 kpps: lost 2 % (of 7) at 1 kpps\n  of {0}\n"),
        (Ruling.INCONCLUSIVE, "PASS", Inconclusive, "INCONCLUSIVE: 64b unidirectional ≥ 1 kpps: lost 2 %"),
        (Ruling.PASS, "FAIL", Inconclusive, "INCONCLUSIVE: 64b unidirectional ≥ 1 kpps: FAIL was expected\n  PASS: "),
        (Ruling.FAIL, "INCONCLUSIVE", Inconclusive, "INCONCLUSIVE: 64b unidirectional ≥ 1 kpps: INCONCLUSIVE was e"),
        (Ruling.PASS, "PASS", None, "PASS: 64b unidirectional ≥ 1 kpps:     lost 2 %"),
        (Ruling.FAIL, "FAIL", None, "FAIL, as expected: 64b unidirectional ≥ 1 kpps: lost 2 %"),
    ],
)
def test_a_test_passes_with_the_verdict_that_it_expects_in_narrow_lines(
    ruling: Ruling, expected: str, error: type[Exception] | None, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(acceptance, "add_to_test_message", said.append)
    long = " ".join(["figure"] * 12)
    keywords = keywords_of(verdict_of(ruling, f"of {long}"), expected)
    keywords.shared.widest = len("64b unidirectional ≥ 1 kpps") + 4
    try:
        keywords.verdict_should_be_as_expected()
    except (SlaFailure, Inconclusive) as raised:
        assert type(raised) is error
        said.append(str(raised))
    (message,) = said
    assert re.sub(r"\n {4,}", " ", message).startswith(says.format(long))
    assert message.endswith("the promise is kept: remove expect=FAIL") is ((ruling, expected) == (Ruling.PASS, "FAIL"))
    assert all(len(line) <= 79 for line in message.splitlines())


# -- the documentation of all keywords, as libdoc shows it


def test_every_keyword_has_a_name_of_its_own_tags_and_an_example() -> None:
    sources = [*map(str, (ROOT / "resources").glob("*.resource")), "lineproof.robot.Lineproof"]
    keywords = [word for source in sources for word in LibraryDocumentation(source).keywords]
    assert [word.name for word in keywords if not word.tags or "Example" not in word.doc] == []
    names = {plain(word.name) for word in keywords}
    assert len(names) == len(keywords) > 40
    assert METHODS.keys() <= names and set(METHODS.values()) == set(Method)


# -- which words on Robot's command line are checked before any traffic, and which a run keeps as its command


@pytest.mark.parametrize(("name", "meant"), [("GAOL", "GOAL"), ("TESTBED=lab", "TESTBED"), ("goals", "GOAL")])
def test_a_misspelt_variable_is_refused(name: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"did you mean '-v {meant}:"):
        check_names([name], "")
    check_names(["goal", "TOKEN", *VARIABLES, name], f"Log    ${{{name}}}")


def test_defaults_and_what_robot_takes_are_right(tmp_path: Path):
    check_values(dict.fromkeys(VARIABLES))
    check_values({"CHARACTERISE": "On_Failure", "SEARCH_DEADLINE": "5 min", "RESUME": "20261121T120000Z-1a2b3c"})
    check_values({"MARGIN": True, "MARGIN_DEADLINE": "20 s"})
    check_values({"MARGIN": "ON", "MARGIN_DEADLINE": None})
    check_values({"SEARCH_DEADLINE": 300, "CALIBRATIONS": str(tmp_path), "RESULTS": str(tmp_path / "new" / "one")})


# -- the search for the margin after a sentence: when there is one, and that it changes no verdict


RATE, PASS = "64b unidirectional ≥ 5 Mpps", Ruling.PASS


def searched(
    monkeypatch: pytest.MonkeyPatch, search: Mock, sentence: str = RATE, ruling: Ruling = PASS, wanted: bool = True
) -> str:
    """Return what the keyword adds to the message of such a verdict. *search*: the characteriser's."""
    monkeypatch.setattr(characterisation, "CharacterisationWork", lambda *terms: nullcontext(Mock()))
    monkeypatch.setattr(characterisation, "margin", search)

    def keep(number: int, sentence: str, **found: Any) -> MarginRecord:
        return MarginRecord("run", True, number, "T", sentence, **found)

    kept = SimpleNamespace(number=1, keep_margin=keep)
    verdict: Any = SimpleNamespace(ruling=ruling, requirement=parse(sentence, CATALOGUE))
    judged = Judged(verdict.requirement, "PASS", verdict)
    shared: Any = SimpleNamespace(records=kept, sentence=judged, verdict=verdict)
    CharacterisationKeywords(shared).search_for_more(wanted, None, "never", None)
    return "\n".join(judged.more)


@pytest.mark.parametrize(
    ("sentence", "ruling", "wanted", "searches"),
    [
        (RATE, PASS, True, 1),
        (RATE, PASS, False, 0),
        (RATE, Ruling.FAIL, True, 0),
        (RATE, Ruling.INCONCLUSIVE, True, 0),
        ("64b unidirectional latency p99 ≤ 1 ms at 1 Mpps", PASS, True, 0),
        ("64b unidirectional loses ≤ 1% at 1 Mpps", PASS, True, 0),
    ],
)
def test_only_a_pass_of_a_rate_is_followed_by_a_search(
    monkeypatch: pytest.MonkeyPatch, sentence: str, ruling: Ruling, wanted: bool, searches: int
):
    search = Mock(return_value=Margin(1.08, None, limit="line rate"))
    assert searched(monkeypatch, search, sentence, ruling, wanted) == ""
    assert search.call_count == searches


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), AssertionError("of ours"), KeyError("x")])
def test_whatever_goes_wrong_in_a_search_is_one_line_of_the_result(monkeypatch: pytest.MonkeyPatch, error: Exception):
    told = searched(monkeypatch, Mock(side_effect=error))
    assert told.startswith("margin: ") and "\n" not in told


def test_an_interrupt_ends_the_search_and_the_run(monkeypatch: pytest.MonkeyPatch):
    ending = ExecutionFailed("Execution terminated by signal", exit=True)
    with pytest.raises(ExecutionFailed):
        searched(monkeypatch, Mock(side_effect=ending))


# -- a suite's claims of a study, and when they are not proven


@pytest.fixture
def survivor(tmp_path: Path) -> StudyKeywords:
    """A study in which all but one block of a variant were spoilt."""
    study = study_of(tmp_path, SMALL.replace("repeats: 2", "repeats: 5"))
    study = study.model_copy(update={"measures": {"one flow": study.measures["one flow"]}})
    found = StudyKeywords(Shared(), lambda: tmp_path)
    values: dict[str, list[float | None]] = {"vpp": [33.6, 33.7] * 5, "linux": [None, None, 4.32, None, None]}
    found._found = results_of(study, measurements(study, values), planned=15)
    return found


def test_one_survivor_of_five_blocks_is_no_figure(survivor: StudyKeywords) -> None:
    found = survivor._found
    assert found is not None and found.complete
    assert _show(replace(found, folder=survivor._execution_folder())) == 1
    says = "values of 1 of 5 blocks are too few"
    with pytest.raises(Inconclusive, match=f"1 figure not measured: one flow, linux: {says} / the link"):
        survivor.every_figure_should_be_measured()
    with pytest.raises(Inconclusive, match=f"one flow, linux was not measured: {says}"):
        survivor.figure_should_be("one flow", "linux", "≥", 1)
    with pytest.raises(Inconclusive, match=says):
        survivor.no_difference_should_be_proven("one flow", "linux")
    with pytest.raises(SlaFailure, match=f"not measured: {says}, published 4.32"):
        survivor.published_figures_should_be_met()


def test_a_claim_of_what_was_never_offered_is_inconclusive(tmp_path: Path) -> None:
    claims = claims_of(tmp_path, {"vpp": [97.0] * 4, "linux": [97.0] * 2}, 2, figures={AT_LEAST: 1.0})
    claims.figure_should_be("one flow", "linux", "≥", 95)
    with pytest.raises(SlaFailure, match="≥ 97 percent of line, expected ≤ 40"):
        claims.figure_should_be("one flow", "linux", "≤", 40)
    wrong: tuple[tuple[Literal["≥", "≤"], float], ...] = (("≥", 98), ("≤", 98), ("≤", 97))
    for comparison, value in wrong:
        with pytest.raises(Inconclusive, match="≥ 97 percent of line: it did not fall behind"):
            claims.figure_should_be("one flow", "linux", comparison, value)
    with pytest.raises(SlaFailure, match=r"one flow, linux: ≥ 97, published 4\.32"):
        claims.published_figures_should_be_met()
    with pytest.raises(Inconclusive, match="not proven: some values are only what was offered"):
        claims.difference_should_be_proven("one flow", "linux", "less")


DRIFTING = [100.1, 109.9, 99.9, 110.1, 100.0, 110.0, 100.2, 109.8, 99.8, 110.2]
"""First and last of five blocks: 10 % more within each."""
WIDE = {"vpp": [30.0, 50.0, 40.0, 35.0, 45.0] * 2, "linux": [35.0, 45.0, 41.0, 39.0, 40.0]}


def claims_of(folder: Path, values: dict[str, list[float]], blocks: int = 5, **more: Any) -> StudyKeywords:
    study = study_of(folder, SMALL.replace("repeats: 2", f"repeats: {blocks}"))
    found = StudyKeywords(Shared(), lambda: folder)
    found._found = results_of(study, measurements(study, values, **more))
    return found


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the words that keywords add to their test's message."""
    words: list[str] = []
    monkeypatch.setattr(studies, "add_to_test_message", words.append)
    return words


def test_a_difference_is_claimed_with_its_direction(tmp_path: Path) -> None:
    claims = claims_of(tmp_path, {"vpp": [30.0, 30.1] * 5, "linux": [35.0, 35.1] * 3})
    claims.difference_should_be_proven("one flow", "linux", "more")
    with pytest.raises(SlaFailure, match=r"one flow, linux: \+16.* expected less"):
        claims.difference_should_be_proven("one flow", "linux", "less")
    with pytest.raises(SlaFailure, match="expected no difference"):
        claims.no_difference_should_be_proven("one flow", "linux")
    with pytest.raises(SlaFailure, match=r"not proven at 95 %.* expected more"):
        claims_of(tmp_path, WIDE).difference_should_be_proven("one flow", "linux", "more")


def test_no_difference_says_how_wide_the_interval_is(tmp_path: Path, said: list[str]) -> None:
    claims_of(tmp_path, WIDE).no_difference_should_be_proven("one flow", "linux")
    assert said == ["one flow, linux: not proven at 95 %; measured +1.05 % ± 16 %"]
    with pytest.raises(Inconclusive, match="of 2 values; at least 3"):
        claims_of(tmp_path, WIDE, 2).no_difference_should_be_proven("one flow", "linux")


@pytest.mark.parametrize(
    ("values", "within", "holds"),
    [
        (WIDE, 50, True),
        (WIDE, 5, False),
        # what was measured and the half of the interval
        ({**WIDE, "linux": [39.0, 49.0, 45.0, 43.0, 44.0]}, 20, False),
        # what the baseline drifts by may be the variant's difference
        ({"vpp": DRIFTING, "linux": [104.9, 105.0, 105.1, 105.0, 105.0]}, 5, False),
        ({"vpp": [100.0] * 10, "linux": [100.5] * 5}, 1.5, True),
        # no per cent of nothing
        ({"vpp": [0.0] * 10, "linux": [0.0] * 5}, 5, False),
    ],
)
def test_a_study_that_measured_too_little_does_not_pass_a_bound(
    tmp_path: Path, said: list[str], values: dict[str, list[float]], within: float, holds: bool
) -> None:
    claims = claims_of(tmp_path, values)
    if holds:
        claims.no_difference_should_be_proven("one flow", "linux", within)
        return
    with pytest.raises(Inconclusive, match=f"it may be more than {within} %"):
        claims.no_difference_should_be_proven("one flow", "linux", within)
