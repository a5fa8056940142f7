"""A suite's claims of a study, and when they are not proven."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from lineproof.commands.study import _show
from lineproof.errors import Inconclusive, SlaFailure
from lineproof.robot import studies
from lineproof.robot.shared import Shared
from lineproof.robot.studies import StudyKeywords
from lineproof.studies.results import results_of
from lineproof.studies.study import AT_LEAST
from support.study_builders import SMALL, measurements, study_of


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
