"""The result of a study's measurements: differences, drift, gaps, and published figures."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from lineproof.studies.forms import headline
from lineproof.studies.measuring import was_all_offered
from lineproof.studies.results import error_percent, results_of
from lineproof.studies.study import Published, Study, StudyRow, StudyTolerance
from support.study_builders import SMALL, measurements, study_of, text

A_A = Study.model_validate(
    {
        "study": "same",
        "title": "the same router eight times",
        "platform": "netgate6100",
        "repeats": 5,
        "baseline": "v0",
        "measures": {"one flow": {"forwards": "64b 1-flow"}},
        "variants": {f"v{number}": {} for number in range(8)},
    }
)


def test_a_difference_within_the_baselines_drift_is_not_proven() -> None:
    falling = [5.0, 4.0, 5.01, 4.02, 5.02, 4.01, 4.99, 3.99, 5.0, 4.0]
    steady = [5.0, 5.01, 4.99, 5.0, 5.02, 5.0, 4.98, 5.01, 5.0, 5.0]
    assert not results_of(A_A, measurements(A_A, {"v0": steady})).drifts["one flow"].proven
    found = results_of(A_A, measurements(A_A, {"v0": falling, "v1": [5.4] * 5, "v2": [6.5] * 5}))
    assert found.drifts["one flow"].proven
    near, far = (found.cells["one flow", name].compared for name in ("v1", "v2"))
    assert near is not None and near.comparison.significant and not near.proven
    assert far is not None and far.proven


def test_published_figures_are_met_by_medians_within_the_tolerance(tmp_path: Path) -> None:
    study = study_of(tmp_path)
    found = results_of(study, measurements(study, {"vpp": [33.6, 33.7, 33.5, 90.0], "linux": [5.4, 5.5]}))
    vpp, linux = found.cells["one flow", "vpp"], found.cells["one flow", "linux"]
    assert vpp.inside and vpp.allowed == pytest.approx(0.05 * 33.7)
    assert linux.inside is False and linux.allowed == pytest.approx(0.432)  # one point of the line is more than 10 %
    assert found.published == (vpp, linux) and found.outside == (linux,) and not found.close_enough


def test_a_gap_is_no_number_and_meets_nothing(tmp_path: Path) -> None:
    study = study_of(tmp_path)
    found = results_of(study, measurements(study, {"vpp": [33.6, None, 33.5, 33.4], "linux": [None, None]}))
    assert found.cells["one flow", "vpp"].values == (33.6, 33.5, 33.4)
    assert found.cells["one flow", "vpp"].gaps == ("the link <b>flapped</b>",)
    assert found.cells["one flow", "linux"].inside is False
    assert [(cell.row, cell.variant) for cell in found.gaps] == [
        ("one flow", "linux"),
        ("ramp", "vpp"),
        ("ramp", "linux"),
    ]


def test_published_runs_have_an_answer_of_their_own(tmp_path: Path) -> None:
    study = study_of(tmp_path, SMALL.replace("linux: 4.32", "linux: [4.3, 4.31, 4.35]"))
    found = results_of(study, measurements(study, {"vpp": [33.6] * 4, "linux": [4.3, 4.4]}))
    published = found.cells["one flow", "linux"].published_compared
    assert published is not None and published.proven


def test_a_variant_may_have_a_baseline_of_its_own() -> None:
    study = A_A.model_copy(
        update={"variants": {**A_A.variants, "v2": A_A.variants["v2"].model_copy(update={"baseline": "v1"})}}
    )
    values = {name: [5.0, 5.01, 4.99, 5.0, 5.0] for name in study.variants} | {"v1": [9.0, 9.01, 9.0, 8.99, 9.0]}
    found = results_of(study, measurements(study, values)).cells["one flow", "v2"].compared
    assert found is not None and found.comparison.reference.mean == pytest.approx(9.0)


@pytest.mark.parametrize(
    ("values", "enough"),
    [
        ([4.3, None, None, None, None], False),
        ([4.3, 4.31, None, None, None], False),
        ([4.3, 4.31, 4.29, None, None], True),
        ([4.3], False),
        ([None] * 5, False),
    ],
)
def test_values_of_fewer_than_half_of_the_blocks_are_no_figure(values: list[float | None], enough: bool) -> None:
    published = Published(rows={"one flow": {"v1": 4.3}})
    study = A_A.model_copy(update={"published": published})
    found = results_of(
        study, measurements(study, {name: [5.0 + each for each in range(10)] for name in study.variants})
    )
    rows = [each for each in found.records if each.variant != "v1"] + measurements(study, {"v1": values})
    found = results_of(study, rows, planned=len(rows))
    cell = found.cells["one flow", "v1"]
    assert cell.inside is enough and (cell.compared is not None) is enough and (cell in found.failures) is not enough
    assert found.cells["one flow", "v2"].compared is not None and found.close_enough is enough
    assert bool(found.errors) is enough and ("1 figure missing" in headline(found)) is not enough
    assert ("too few" in text(found)) is (not enough and any(values))


def test_what_is_not_here_is_no_failure_for_a_block_that_was_measured() -> None:
    rows = [replace(record, excused=record.value is None) for record in measurements(A_A, {"v1": [4.3, *[None] * 4]})]
    cell = (found := results_of(A_A, rows)).cells["one flow", "v1"]
    assert cell in found.gaps and cell not in found.failures


@pytest.mark.parametrize(
    ("row", "pps", "bound"),
    [
        (StudyRow.model_validate({"forwards": "64b"}), 1e6, True),
        (StudyRow.model_validate({"forwards": "64b"}), 0.9985e6, False),
        (StudyRow.model_validate({"takes_in": "64b"}), 1.001e6, True),
        (StudyRow.model_validate({"drops_sending": "64b"}), 1e6, False),
        # the load is what was asked, and no limit of the generator
        (StudyRow.model_validate({"forwards": "64b", "at": "1 Mpps"}), 1e6, False),
    ],
)
def test_a_rate_that_is_all_that_was_offered_is_no_limit_of_the_router(row: StudyRow, pps: float, bound: bool) -> None:
    assert was_all_offered(row, pps, 1e6) is bound


def test_a_row_of_one_repeat_has_its_figure() -> None:
    once = A_A.model_copy(update={"measures": {"one flow": A_A.measures["one flow"].model_copy(update={"repeats": 1})}})
    assert results_of(once, measurements(once, {"v1": [4.3]})).cells["one flow", "v1"].measured


def test_nothing_is_close_to_zero_but_zero() -> None:
    assert error_percent(1.0, 0.0) == math.inf and error_percent(0.0, 0.0) == 0


@pytest.mark.parametrize(
    ("published", "allowed"), [(5.0, 0.5), (20.0, 2.0), (30.0, 3.0), (50.0, 3.0), (80.0, 4.0), (0.0, 0.0)]
)
def test_points_count_up_to_a_share_of_the_published_figure(published: float, allowed: float) -> None:
    tolerance = StudyTolerance()
    assert tolerance.allowed(published, 100.0) == pytest.approx(allowed)
    assert tolerance.allowed(published, None) == pytest.approx(0.05 * published)
    assert tolerance.allowed(published, 100.0, difference=True) == pytest.approx(max(3.0, 0.05 * published))
    assert StudyTolerance(percent=7).words(rate=False) == "7 % of the published figure"
