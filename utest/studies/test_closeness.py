"""How far figures are from published ones: in both scales, so that neither hides what the other shows."""

from __future__ import annotations

import math

import pytest

from lineproof.studies.results import Pair, closeness_words
from lineproof.studies.study import StudyTolerance


def test_a_slow_row_is_close_in_points_and_far_in_per_cent() -> None:
    slow = Pair(0.77, 0.5, 14.88)
    assert slow.points == pytest.approx(1.81, abs=0.01) and slow.percent == pytest.approx(54)
    assert closeness_words([slow]) == (
        "error of 1 figure: median 54.0 %, 95th percentile 54.0 %; 0 within 5 %, 0 within 10 %;"
        " in points of line rate: median 1.8, 95th percentile 1.8"
    )


def test_what_is_no_rate_has_no_points() -> None:
    assert closeness_words([Pair(104.0, 100.0), Pair(92.0, 100.0)]) == (
        "error of 2 figures: median 4.0 %, 95th percentile 8.0 %; 1 within 5 %, 2 within 10 %"
    )
    assert closeness_words([]) == ""


def test_nothing_is_close_to_zero_but_zero() -> None:
    assert Pair(1.0, 0.0).percent == math.inf and Pair(0.0, 0.0).percent == 0


@pytest.mark.parametrize(
    ("published", "allowed"), [(5.0, 0.5), (20.0, 2.0), (30.0, 3.0), (50.0, 3.0), (80.0, 4.0), (0.0, 0.0)]
)
def test_points_count_up_to_a_share_of_the_published_figure(published: float, allowed: float) -> None:
    tolerance = StudyTolerance()
    assert tolerance.allowed(published, 100.0) == pytest.approx(allowed)
    assert tolerance.allowed(published, None) == pytest.approx(0.05 * published)
    assert tolerance.allowed(published, 100.0, difference=True) == pytest.approx(max(3.0, 0.05 * published))
