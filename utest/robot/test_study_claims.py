"""What a suite claims of a study: a value that is no number is said to be none."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from robot.libraries.BuiltIn import BuiltIn

from linerate.commands.study import _show
from linerate.errors import ConfigError, Inconclusive, SlaFailure
from linerate.robot.shared import Shared
from linerate.robot.studies import StudyKeywords
from linerate.studies.results import results_of
from linerate.studies.study import AT_LEAST
from support.study_builders import SMALL, measurements, study_of


@pytest.fixture
def keywords(tmp_path: Path) -> StudyKeywords:
    study = study_of(tmp_path)
    found = StudyKeywords(Shared(), lambda: tmp_path)
    found._found = results_of(study, measurements(study, {"linux": [4.3, 4.3]}))
    return found


@pytest.mark.parametrize("value", ["1 Mpps", "", "four", "4,3"])
def test_a_value_with_a_unit_is_refused_with_the_row_s_unit(keywords: StudyKeywords, value: str) -> None:
    with pytest.raises(ConfigError, match=f"'{value}' is no number; expected one in the unit of row 'one flow'"):
        keywords.figure_should_be("one flow", "linux", "≥", value)


def test_numbers_are_taken_as_text_too(keywords: StudyKeywords) -> None:
    keywords.figure_should_be("one flow", "linux", ">=", "4.2")
    keywords.figure_should_be("one flow", "linux", "≤", 4.4)
    with pytest.raises(ConfigError, match="'=' is no comparison"):
        keywords.figure_should_be("one flow", "linux", "=", "4")


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
    with pytest.raises(Inconclusive, match="was not compared"):
        survivor.no_difference_should_be_proven("one flow", "linux")
    with pytest.raises(SlaFailure, match=f"not measured: {says}, published 4.32"):
        survivor.published_figures_should_be_met()


def test_a_claim_of_what_was_never_offered_is_inconclusive(tmp_path: Path) -> None:
    study = study_of(tmp_path)
    claims = StudyKeywords(Shared(), lambda: tmp_path)
    values = {"vpp": [97.0] * 4, "linux": [97.0] * 2}
    claims._found = results_of(study, measurements(study, values, figures={AT_LEAST: 1.0}))
    claims.figure_should_be("one flow", "linux", "≥", 95)
    with pytest.raises(SlaFailure, match="≥ 97 percent of line, expected ≤ 40"):
        claims.figure_should_be("one flow", "linux", "≤", 40)
    for comparison, value in (("≥", 98), ("≤", 98), ("≤", 97)):
        with pytest.raises(Inconclusive, match="≥ 97 percent of line: it did not fall behind"):
            claims.figure_should_be("one flow", "linux", comparison, value)
    with pytest.raises(SlaFailure, match=r"one flow, linux: ≥ 97, published 4\.32"):
        claims.published_figures_should_be_met()
    with pytest.raises(Inconclusive, match="was not compared: neither fell behind at what was offered"):
        claims.difference_should_be_proven("one flow", "linux", "less")


def test_no_difference_says_how_wide_the_interval_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(BuiltIn, "set_test_message", lambda self, words, **_: said.append(words))
    claims = StudyKeywords(Shared(), lambda: tmp_path)
    for blocks in (2, 5):
        study = study_of(tmp_path, SMALL.replace("repeats: 2", f"repeats: {blocks}"))
        values = {"vpp": [30.0, 50.0, 40.0] * 4, "linux": [35.0, 45.0, 41.0, 39.0, 40.0]}
        claims._found = results_of(study, measurements(study, values))
        if blocks < 3:
            with pytest.raises(
                Inconclusive, match=r"no difference proven at 95 %; measured .* ± .*, of 2 values; at least 3"
            ):
                claims.no_difference_should_be_proven("one flow", "linux")
    claims.no_difference_should_be_proven("one flow", "linux")
    (words,) = said
    assert re.search(r"^one flow, linux: no difference proven at 95 %; measured [+-][\d.]+ % ± [\d.]+ %$", words)
