"""A study's results as people and programs read them, and its pictures."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lineproof.evidence.chart import SIGNS
from lineproof.studies.forms import headline
from lineproof.studies.page import page, pictures_of
from lineproof.studies.results import StudyResults, results_of
from lineproof.studies.study import AT_LEAST
from support.study_builders import SMALL, measurements, study_of, text

RULES = SMALL.replace("baseline: vpp", "baseline: vpp\nparameter: {name: rules, reference: linear, axis: log}").replace(
    "  vpp: {software: vpp}\n  linux: {software: linux}",
    "  vpp: {software: vpp, value: 0}\n  linux: {software: linux, value: 1}\n  ten: {software: linux, value: 10}",
)


@pytest.fixture
def found(tmp_path: Path) -> StudyResults:
    study = study_of(tmp_path)
    ramps = measurements(
        study, {"vpp": [33.0], "linux": [4.0]}, "ramp", curve=((10.0, 10.0), (50.0, 33.0), (97.0, 33.0))
    )
    values: dict[str, list[float | None]] = {"vpp": [33.6, 33.7, None, 33.5], "linux": [4.3, 9.0]}
    return replace(results_of(study, [*measurements(study, values), *ramps], 8), run="20261123T120000Z-abcdef")


def test_the_page_has_the_pictures(found: StudyResults) -> None:
    assert page(found).count("<svg") == 3  # bars of both rows, and the ramp


def test_what_was_offered_most_is_no_exact_figure_in_any_form(tmp_path: Path) -> None:
    study = study_of(tmp_path, RULES)
    bound = {AT_LEAST: 1.0}
    records = [
        *measurements(study, {"vpp": [30.0] * 4, "ten": [5.0, 5.1]}),
        *measurements(study, {"linux": [97.0, 97.0]}, figures=bound),
        *measurements(study, {"linux": [97.0]}, "ramp", curve=((10.0, 10.0), (97.0, 97.0)), figures=bound),
    ]
    found = results_of(study, records, planned=len(records))
    for row in ("one flow", "ramp"):
        for _, picture in pictures_of(found, row, dict(found.rows())[row]):
            shown = "".join(ElementTree.fromstring(picture).itertext())
            assert "≥" in shown or "linux: does not fall behind up to 97" in shown
    (bar,) = [line for line in text(found).splitlines() if re.search(r"^linux +2 ", line)]
    assert bar.count("≥ 97") == 3


def test_a_parameter_has_a_curve_with_its_reference(tmp_path: Path) -> None:
    study = study_of(tmp_path, RULES)
    values = {"vpp": [30.0] * 4, "linux": [20.0, 20.1], "ten": [5.0, 5.1]}
    found = results_of(study, measurements(study, values))
    (_, _), (title, picture) = pictures_of(found, "one flow", dict(found.rows())["one flow"])
    assert title == "one flow over rules"
    assert "linear with the parameter" in picture and "logarithmic" in picture and "published" in picture


def test_each_baseline_has_a_line_over_the_parameter(tmp_path: Path) -> None:
    """Two routers, each compared with itself without rules: no line goes from one to the other."""
    rules = {"vpp": ("vpp", 0), "vpp ten": ("vpp", 10), "linux": ("linux", 0), "linux ten": ("linux", 10)}
    variants = "".join(
        f"  {name}: {{software: {software}, value: {value}{f', baseline: {software}' if value else ''}}}\n"
        for name, (software, value) in rules.items()
    )
    head, _ = SMALL.split("variants:")
    text = head.replace("baseline: vpp", "parameter: {name: rules}") + "variants:\n" + variants
    study = study_of(tmp_path, text)
    values = {"vpp": [30.0, 30.2], "vpp ten": [29.0, 29.1], "linux": [5.0, 5.1], "linux ten": [1.0, 1.1]}
    found = results_of(study, measurements(study, values))
    *_, (title, picture) = pictures_of(found, "one flow", dict(found.rows())["one flow"])
    assert title == "one flow over rules" and ">vpp<" in picture and ">linux<" in picture
    lines = re.findall(r'<polyline points="([^"]+)" fill="none" stroke="([^"]+)"', picture)
    faster, slower = (
        [float(y) for points, colour in lines if colour == sign.colour for y in re.findall(r",([\d.]+)", points)]
        for sign in SIGNS[:2]
    )
    # in pixels from the top: the faster router's line is wholly above the other's
    assert faster and slower and max(faster) < min(slower)


def test_nothing_measured_is_shown_as_well(tmp_path: Path) -> None:
    study = study_of(tmp_path)
    found = results_of(study, [], planned=8)
    assert headline(found).startswith("0 of 2 published figures inside; INCOMPLETE: 0 of 8 measurements")
    assert "–" in text(found) and "no value" in page(found)


def test_a_proven_drift_is_noted(tmp_path: Path) -> None:
    study = study_of(tmp_path, SMALL.replace("repeats: 2", "repeats: 5"))
    falling = [40.0, 30.0, 40.1, 30.2, 40.0, 30.1, 39.9, 30.0, 40.2, 30.1]
    found = results_of(study, measurements(study, {"vpp": falling, "linux": [4.3, 4.31, 4.32, 4.3, 4.31]}))
    folded = " ".join(text(found).split())
    assert re.search(
        r"the baseline drifted within the blocks by -24\.\d+ % ± [\d.]+ %; a smaller difference is not proven", folded
    )
