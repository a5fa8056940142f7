"""The results of a study: what is proven and what is not, in every form. The same router seldom differs from itself."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lineproof.commands.study import _show
from lineproof.core.router_facts import NicFacts, RouterFacts
from lineproof.evidence.records import MeasurementRecord
from lineproof.project import Project
from lineproof.studies.forms import headline, pictures_of
from lineproof.studies.results import SESSIONS
from lineproof.studies.runner import StudyRun, pcie_links
from lineproof.studies.senders import CORE_SHARE, FRAME, OFFERED, RECEIVED, STEAL, fit
from lineproof.studies.study import AT_LEAST, LINK, Published, Study, StudyRow
from lineproof.units import line_rate_pps
from support.paths import ROOT
from support.study_builders import SMALL, csv_rows, measurements, results_of, study_of, text

BLOCKS = 5
SAME = Study.model_validate(
    {
        "study": "same",
        "title": "the same router three times",
        "platform": "linux_router",
        "repeats": BLOCKS,
        "baseline": "one",
        "measures": {"one flow": {"cpu_time": "64b 1-flow unidirectional", "at": "200 kpps"}},
        "variants": {"one": {}, "two": {}, "three": {}},
    }
)
Gaps = dict[str, list[float | None]]


RATE = SAME.model_copy(update={"measures": {"one flow": StudyRow.model_validate({"forwards": "64b 1-flow"})}})


@pytest.mark.parametrize(
    ("bounds", "two", "limited"),
    [
        (("one", "two"), 60.0, False),
        # its own limit is somewhere above: maybe above the baseline's, too
        (("two",), 40.0, False),
        (("one",), 60.0, False),
        # the difference can but grow
        (("one",), 40.0, True),
        (("two",), 60.0, True),
    ],
)
def test_what_a_generator_could_not_exceed_is_no_limit_of_a_router(
    bounds: tuple[str, ...], two: float, limited: bool
) -> None:
    study, records = RATE, []
    for name in study.variants:
        middle = two if name == "two" else 50.0
        values = {name: [middle + 0.01 * (number % 3) for number in range(2 * BLOCKS)]}
        records += measurements(study, values, figures={AT_LEAST: 1.0} if name in bounds else {})
    results = results_of(study, records)
    cell = results.cells["one flow", "two"]
    assert cell.compared is not None and cell.compared.proven is limited is not cell.compared.limited
    flags = {row["variant"]: row["at_least"] for row in csv_rows(results)}
    assert flags == {name: str(name in bounds).lower() for name in study.variants}
    assert ("one flow" in results.drifts) is ("one" not in bounds)


@pytest.mark.parametrize(
    ("values", "enough"),
    [
        ([4.3, None, None, None, None], False),
        ([4.3, 4.31, None, None, None], False),
        ([4.3, 4.31, 4.29, None, None], True),
        ([None] * 5, False),
    ],
)
def test_values_of_fewer_than_half_of_the_blocks_are_no_figure(
    tmp_path: Path, values: list[float | None], enough: bool
) -> None:
    study = RATE.model_copy(update={"published": Published(rows={"one flow": {"two": 4.3}})})
    others: Gaps = {name: [5.0 + number for number in range(10)] for name in ("one", "three")}
    records = measurements(study, others | {"two": values})
    results = results_of(study, records, planned=len(records))
    cell = results.cells["one flow", "two"]
    assert cell.inside is enough and (cell.compared is not None) is enough and (cell in results.failures) is not enough
    assert results.cells["one flow", "three"].compared is not None and results.close_enough is enough
    assert ("1 figure missing" in headline(results)) is not enough
    assert ("too few" in text(results)) is (not enough and any(values))
    assert _show(replace(results, folder=tmp_path)) == (0 if enough else 1)
    # of what is not here it is no failure
    excused = [replace(record, excused=record.value is None) for record in records]
    assert not results_of(study, excused).failures


def test_published_figures_are_met_by_medians_within_the_tolerance(tmp_path: Path) -> None:
    study = study_of(tmp_path)
    results = results_of(study, measurements(study, {"vpp": [33.6, None, 33.5, 90.0], "linux": [5.4, 5.5]}))
    vpp, linux = results.cells["one flow", "vpp"], results.cells["one flow", "linux"]
    assert vpp.inside and vpp.allowed == pytest.approx(0.05 * 33.7)
    assert vpp.values == (33.6, 33.5, 90.0) and vpp.gaps == ("the link <b>flapped</b>",)
    assert linux.inside is False and linux.allowed == pytest.approx(0.432)  # one point of the line is more than 10 %
    assert results.published == (vpp, linux) and results.outside == (linux,) and not results.close_enough


# -- whether a generator fills a line: by the interval of its repeats, and never where others took its CPU


GIGABIT = line_rate_pps(1e9, 64)


def repeats(*shares: float, received: float = 1.0, **more: float) -> list[dict[str, float]]:
    """Return one measurement for each of *shares* of a gigabit's line rate, of which a share was *received*."""
    fixed = {FRAME: 64.0, LINK: 10e9, CORE_SHARE: 1.0, STEAL: 0.0}
    rates = [{OFFERED: share * GIGABIT, RECEIVED: received * share * GIGABIT} for share in shares]
    return [{**fixed, **rate, **more} for rate in rates]


@pytest.mark.parametrize(
    ("rows", "link", "verdict"),
    [
        # the interval of the repeats decides
        (repeats(1.2, 1.21, 1.19), 1e9, True),
        (repeats(0.6, 0.61, 0.59), 1e9, False),
        (repeats(1.3, 0.7, 1.1), 1e9, None),
        (repeats(5.0, 5.0), 1e9, None),
        ([*repeats(1.2, 1.2), *repeats(1.2, received=0.4)], 1e9, None),
        (repeats(1.2, 1.2, 1.2, received=0.991), 1e9, True),
        # without its CPU it is not called unfit, unless the whole core would not have been enough
        (repeats(0.6, 0.6, 0.6, **{CORE_SHARE: 0.5}), 1e9, None),
        (repeats(0.6, 0.6, 0.6, **{CORE_SHARE: 0.8}), 1e9, False),
        (repeats(0.6, 0.6, 0.6, **{STEAL: 45.0}), 1e9, None),
        (repeats(0.6, 0.6, 0.6, **{STEAL: 5.0}), 1e9, False),
        ([*repeats(0.6, 0.6), *repeats(0.6, **{CORE_SHARE: 0.3})], 1e9, None),
        # nor where it does not say what it had
        ([{key: row[key] for key in row if key != CORE_SHARE} for row in repeats(0.6, 0.6, 0.6)], 1e9, None),
        # one that filled the line needs no more
        (repeats(1.2, 1.2, 1.2, **{CORE_SHARE: 0.3, STEAL: 20.0}), 1e9, True),
        (repeats(1.0, 1.0, 1.0, **{LINK: 1e9}), 10e9, None),
    ],
)
def test_a_line_is_filled_or_not_by_what_was_measured_on_a_core_of_its_own(
    rows: list[dict[str, float]], link: float, verdict: bool | None
) -> None:
    assert fit(rows, link) is verdict


RULES = SMALL.replace("baseline: vpp", "baseline: vpp\nparameter: {name: rules, axis: log}").replace(
    "  vpp: {software: vpp}\n  linux: {software: linux}",
    "  vpp: {software: vpp, value: 0}\n  linux: {software: linux, value: 1, baseline: linux}\n"
    "  ten: {software: linux, value: 10, baseline: linux}\n  vpp ten: {software: vpp, value: 10}",
)


def pictures_by_title(study: Study, row: str, *records: MeasurementRecord) -> dict[str, str]:
    """Return the pictures of *row* by the rest of their titles."""
    results = results_of(study, records, planned=len(records))
    pictures = pictures_of(results, row, dict(results.rows())[row])
    return {title.removeprefix(row).strip(": "): picture for picture, title in pictures}


def test_what_was_offered_most_is_no_exact_figure_in_any_form(tmp_path: Path) -> None:
    study, bound = study_of(tmp_path, RULES), {AT_LEAST: 1.0}
    records = [
        *measurements(study, {"vpp": [30.0] * 4, "ten": [5.0, 5.1]}),
        *measurements(study, {"linux": [97.0, 97.0]}, figures=bound),
        *measurements(study, {"linux": [97.0]}, "ramp", curve=((10.0, 10.0), (97.0, 97.0)), figures=bound),
    ]
    for picture in (
        pictures_by_title(study, "one flow", *records) | pictures_by_title(study, "ramp", *records)
    ).values():
        assert "≥" in picture or "linux: does not fall behind up to 97" in picture
    (bar,) = [line for line in text(results_of(study, records)).splitlines() if re.search(r"^linux +2 ", line)]
    assert bar.count("≥ 97") == 3


def test_bars_have_the_rates_of_an_internet_mix_above_them(tmp_path: Path) -> None:
    study = study_of(tmp_path, SMALL.replace("tolerance:", "unit: pps, imix: 354.33, tolerance:"))
    picture = pictures_by_title(study, "one flow", *measurements(study, {"vpp": [8e6] * 4, "linux": [7e6, 7e6]}))["pps"]
    texts = [(node.text, float(node.get("x", 0))) for node in ElementTree.fromstring(picture).iter() if node.get("x")]
    # 5 and 10 Gbit/s are 1.76 and 3.53 Mpps of it, as far apart as those
    below, above = dict(texts[::-1]), dict(texts)
    share = (above["10"] - above["5"]) / (below["8000000"] - below["2000000"])
    assert share == pytest.approx(5e9 / (8 * 354.33) / 6e6, rel=0.01)


def test_the_pcie_link_that_was_read_stands_beside_that_of_the_model(tmp_path: Path) -> None:
    card = NicFacts("xxv0", pcie_width=4, pcie_speed=8.0)
    facts, results = RouterFacts(nics=(card, replace(card, interface="xxv1"))), results_of(study_of(tmp_path), [])
    links = pcie_links(StudyRun(Project(ROOT), "gowin_n305", "simulated").plan, facts)
    extra = {SESSIONS: {"gowin_n305, cx5_rdma": links}}
    shown = text(replace(results, environment=replace(results.environment, extra=extra)))
    assert re.search(r"^gowin_n305, cx5_rdma +x4 at 8 GT/s: 31.51 +31.5$", shown, re.MULTILINE)


SOURCES = """
tables:
  Rates: {rows: [vpp, linux], columns: [Mpps, Gbit/s, percent of lines], measure: one flow,
    variant: "{row}", unit: "{column}"}
  A core: {rows: [cycles], columns: [pps, MHz], variant: vpp, unit: "{column}"}
"""


def test_a_table_of_the_source_has_ours_beside_theirs_in_its_units(tmp_path: Path) -> None:
    measures = "measures:\n  cycles: {cycles: 64b 1-flow unidirectional, at: 10 Mpps, repeats: 1}\n"
    rows = SMALL.replace("measures:\n", measures).replace("unidirectional, tol", "bidirectional, tol")
    study = study_of(tmp_path, rows + SOURCES)
    records = [
        *measurements(study, {"vpp": [50.0] * 4, "linux": [None, None]}),
        *measurements(study, {"vpp": [440.0]}, "cycles", figures={"forwarded_pps": 5e6}),
    ]
    shown = text(results_of(study, records))
    assert re.search(r"^vpp +7\.44 \(5\.015\) +5 \(3\.37\) +25 \(16\.85\)$", shown, re.MULTILINE)
    assert re.search(r"^linux +– \(0\.6428\) ", shown, re.MULTILINE)
    assert re.search(r"^cycles +5000000 +2200$", shown, re.MULTILINE)
