"""Keywords: their words for a verdict, their documentation, and the words on Robot's command line."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from robot.libdoc import LibraryDocumentation

from lineproof.core.goal import read_goal
from lineproof.core.quantity import Reason
from lineproof.core.rule import Ruling
from lineproof.core.sentence import parse
from lineproof.core.trial import Load, Tolerance, read_trial
from lineproof.core.verdict import Verdict
from lineproof.errors import ConfigError, Inconclusive, SlaFailure
from lineproof.generators.abilities import Method
from lineproof.robot import acceptance
from lineproof.robot.acceptance import AcceptanceKeywords
from lineproof.robot.run_variables import NAMES, check_names, check_values
from lineproof.robot.sentence_check import METHODS
from lineproof.robot.shared import Judged, Shared
from lineproof.robot.suite_sentences import plain
from support.catalogue import CATALOGUE
from support.evidence_builders import requirement_record
from support.made_testbeds import router
from support.model_bench import PROJECT
from support.paths import ROOT


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


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("CHARACTERISE", "xx", "'-v CHARACTERISE:xx': expected never, on failure or always"),
        ("GOAL", "", "'-v GOAL:' is empty; expected a value"),
        ("SEARCH_DEADLINE", "soon", "expected a time"),
        ("MARGIN", "always", "'-v MARGIN:always': expected on or off"),
        ("SOAK", "all", "'-v SOAK:all': expected part or whole"),
        ("RESUME", "../x", "expected the name of a run's folder"),
        ("CALIBRATIONS", "/nowhere/at/all", "(-v CALIBRATIONS:) does not exist"),
        ("CALIBRATIONS", "/etc/passwd", "(-v CALIBRATIONS:) is not a folder"),
        ("RESULTS", "/etc/passwd/runs", "/etc/passwd: is not a folder"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_expected(name: str, value: Any, says: str):
    with pytest.raises(ConfigError) as caught:
        check_values({name: value})
    assert says in str(caught.value)


@pytest.mark.parametrize(("name", "meant"), [("GAOL", "GOAL"), ("TESTBED=lab", "TESTBED"), ("goals", "GOAL")])
def test_a_misspelt_variable_is_refused(name: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"did you mean '-v {meant}:"):
        check_names([name], "")
    check_names(["goal", "TOKEN", *NAMES, name], f"Log    ${{{name}}}")


def test_defaults_and_what_robot_takes_are_right(tmp_path: Path):
    check_values(dict.fromkeys(NAMES))
    check_values({"CHARACTERISE": "On_Failure", "SEARCH_DEADLINE": "5 min", "RESUME": "20261121T120000Z-1a2b3c"})
    check_values({"MARGIN": True, "MARGIN_DEADLINE": "20 s"})
    check_values({"MARGIN": "ON", "MARGIN_DEADLINE": None})
    check_values({"SEARCH_DEADLINE": 300, "CALIBRATIONS": str(tmp_path), "RESULTS": str(tmp_path / "new" / "one")})
