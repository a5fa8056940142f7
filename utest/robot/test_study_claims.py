"""What a suite claims of a study: a value that is no number is said to be none."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from robot.libraries.BuiltIn import BuiltIn

from lineproof.commands.study import _show
from lineproof.errors import ConfigError, Inconclusive, SlaFailure
from lineproof.robot.shared import Shared
from lineproof.robot.studies import StudyKeywords
from lineproof.studies.results import results_of
from lineproof.studies.study import AT_LEAST, Study
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
    says = r"one flow, linux: no difference proven at 95 %; measured \+6\.67 % ± 21 %; one of up to 27 % may be hidden"
    assert re.fullmatch(says, words)


DRIFTING = [100.1, 109.9, 99.9, 110.1, 100.0, 110.0, 100.2, 109.8, 99.8, 110.2]
"""First and last of five blocks: 10 % more within each."""


def claims_of(folder: Path, values: dict[str, list[float]], study: Study | None = None) -> StudyKeywords:
    study = study or study_of(folder, SMALL.replace("repeats: 2", "repeats: 5"))
    found = StudyKeywords(Shared(), lambda: folder)
    found._found = results_of(study, measurements(study, values))
    return found


def test_a_difference_that_may_be_drift_is_neither_proven_nor_disproved(tmp_path: Path) -> None:
    claims = claims_of(tmp_path, {"vpp": DRIFTING, "linux": [115.0, 115.1, 114.9, 115.05, 114.95]})
    says = (
        r"^INCONCLUSIVE: SIMULATED: one flow, linux: no difference proven at 95 %; measured \+9\.\d+ % ± [\d.]+ %:"
        r" no more than the baseline drifted \(9\.52 % of its mean\)$"
    )
    with pytest.raises(Inconclusive, match=says):
        claims.no_difference_should_be_proven("one flow", "linux")
    for direction in ("more", "less"):
        with pytest.raises(Inconclusive, match=says):
            claims.difference_should_be_proven("one flow", "linux", direction)
    claims_of(tmp_path, {"vpp": DRIFTING, "linux": [150.0, 150.1, 149.9, 150.05, 149.95]}).difference_should_be_proven(
        "one flow", "linux", "more"
    )


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the keywords add to their test's message."""
    words: list[str] = []
    monkeypatch.setattr(BuiltIn, "set_test_message", lambda self, text, **_: words.append(text))
    return words


def test_a_drift_is_named_where_it_does_not_decide_too(tmp_path: Path, said: list[str]) -> None:
    claims_of(tmp_path, {"vpp": DRIFTING, "linux": [104.0, 107.0, 105.0, 103.0, 106.0]}).no_difference_should_be_proven(
        "one flow", "linux"
    )
    assert re.search(r"; the baseline drifted by \+10\.00 % ± [\d.]+ %; one of up to 9\.5 % may be hidden$", said[0])


def test_a_difference_that_the_correction_takes_away_says_so(tmp_path: Path, said: list[str]) -> None:
    variants = "".join(f"  linux{number}: {{software: linux}}\n" for number in range(3))
    text = SMALL.replace("repeats: 2", "repeats: 5").replace("published:", f"{variants}published:")
    steady = [100.0, 101.0, 99.0, 100.5, 99.5] * 2
    values = {"vpp": steady, "linux": [101.2, 101.9, 99.7, 101.4, 101.4]}
    values |= {f"linux{number}": [100.0, 101.0, 99.0, 100.5, 99.5] for number in range(3)}
    claims = claims_of(tmp_path, values, study_of(tmp_path, text))
    claims.no_difference_should_be_proven("one flow", "linux")
    assert ": not after correction for 4 comparisons; one of up to" in said[0]
    with pytest.raises(SlaFailure, match="not after correction for 4 comparisons; expected more"):
        claims.difference_should_be_proven("one flow", "linux", "more")
    alone = claims_of(tmp_path, {name: values[name] for name in ("vpp", "linux")})
    alone.difference_should_be_proven("one flow", "linux", "more")


def test_without_a_spread_it_says_what_could_not_be_proven(tmp_path: Path, said: list[str]) -> None:
    claims = claims_of(tmp_path, {"vpp": [100.0] * 10, "linux": [100.5] * 5})
    claims.no_difference_should_be_proven("one flow", "linux", within=1.5)
    assert said[0].endswith(
        "measured +0.50 %, no spread was seen: one of up to 1 % is not proven; one of up to 1 % may be hidden"
    )


def test_a_study_that_measured_too_little_does_not_pass_a_bound(tmp_path: Path, said: list[str]) -> None:
    wide = {"vpp": [30.0, 50.0, 40.0, 35.0, 45.0] * 2, "linux": [35.0, 45.0, 41.0, 39.0, 40.0]}
    claims = claims_of(tmp_path, wide)
    claims.no_difference_should_be_proven("one flow", "linux", within=50)
    with pytest.raises(Inconclusive, match=r"one of up to [\d.]+ % may be hidden; expected at most 5 %"):
        claims.no_difference_should_be_proven("one flow", "linux", within=5)
    drifting = claims_of(tmp_path, {"vpp": DRIFTING, "linux": [104.9, 105.0, 105.1, 105.0, 105.0]})
    with pytest.raises(Inconclusive, match=r"one of up to 9\.5 % may be hidden; expected at most 5 %"):
        drifting.no_difference_should_be_proven("one flow", "linux", within=5)
    claims_of(tmp_path, {"vpp": [0.0] * 10, "linux": [0.0] * 5}).no_difference_should_be_proven(
        "one flow", "linux", within=5
    )
    nothing = claims_of(tmp_path, {"vpp": [-1.0, 1.0] * 5, "linux": [0.0] * 5})
    with pytest.raises(Inconclusive, match=r"one of up to [\d.e-]+ may be hidden; expected at most 5 %"):
        nothing.no_difference_should_be_proven("one flow", "linux", within=5)
    for bound in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="is no bound"):
            claims.no_difference_should_be_proven("one flow", "linux", within=bound)
