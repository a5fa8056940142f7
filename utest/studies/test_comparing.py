"""The same router many times: how many studies prove a difference that is none, however its measurements scatter."""

from __future__ import annotations

import csv
import io
import random
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from lineproof.studies.forms import csv_text, markdown, text
from lineproof.studies.order import visits_of
from lineproof.studies.page import page
from lineproof.studies.pictures import bars_picture
from lineproof.studies.results import StudyResults, results_of
from lineproof.studies.study import AT_LEAST, Study, StudyRow
from support.study_builders import measurements

STUDIES = 300
MOST = 0.08
"""The share of studies that may prove one: 5 % is promised, and 300 studies show it to 1.3 %."""

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

Values = dict[str, list[float]]


def proven(values: Values, study: Study = SAME) -> list[str]:
    found = results_of(study, measurements(study, values))
    return [name for (_, name), cell in found.cells.items() if cell.compared is not None and cell.compared.proven]


def _scattered(chance: random.Random, baseline: float, others: float) -> Values:
    spreads = {"one": baseline, "two": others, "three": others}
    return {
        name: [chance.gauss(1000, spread) for _ in range(BLOCKS * (2 if name == "one" else 1))]
        for name, spread in spreads.items()
    }


def equal(chance: random.Random) -> Values:
    return _scattered(chance, 1, 1)


def wider(chance: random.Random) -> Values:
    return _scattered(chance, 1, 5)


def narrower(chance: random.Random) -> Values:
    return _scattered(chance, 5, 1)


def offsets(chance: random.Random) -> Values:
    """Each session is off by something of its own; the baseline ends a block and begins the next one in one session."""
    values: Values = {name: [] for name in SAME.variants}
    offset, last = 0.0, ""
    for visit in visits_of(SAME):
        if visit.variant != last:
            offset, last = chance.gauss(0, 1), visit.variant
        values[visit.variant].append(1000 + offset + chance.gauss(0, 0.1))
    return values


@pytest.mark.parametrize("scatter", [equal, wider, narrower, offsets])
def test_the_same_router_is_seldom_proven_to_differ(scatter: Callable[[random.Random], Values]) -> None:
    """The seeds are fixed, so that the count is the same on each machine."""
    wrong = sum(bool(proven(scatter(random.Random(f"{scatter.__name__}/{seed}")))) for seed in range(STUDIES))
    assert wrong <= MOST * STUDIES, wrong


def test_a_difference_of_three_spreads_is_proven_in_five_blocks() -> None:
    hits = 0
    for seed in range(40):
        values = equal(random.Random(f"more/{seed}"))
        hits += proven({**values, "two": [value + 3 for value in values["two"]]}) == ["two"]
    assert hits >= 34, hits


def test_the_baseline_s_two_measurements_in_one_session_are_one() -> None:
    values = {"one": [float(each) for each in range(10)], "two": [30.0, 31.0, 32.0, 33.0, 34.0]}
    compared = results_of(SAME, measurements(SAME, values)).cells["one flow", "two"].compared
    assert compared is not None and compared.comparison.method == "welch"
    # 0, then the means of 1 and 2, 3 and 4, 5 and 6, 7 and 8, then 9
    assert compared.comparison.reference.n == 6 and compared.comparison.reference.mean == pytest.approx(4.5)
    assert compared.comparison.candidate.n == 5


SEARCHED = SAME.model_copy(update={"measures": {"one flow": StudyRow(throughput="64b 1-flow unidirectional")}})


def constant(study: Study, two: float) -> StudyResults:
    """Every search ends at the same bound: *two* per cent of line for the second variant, 50 for the others."""
    values = {name: [two if name == "two" else 50.0] * 2 * BLOCKS for name in study.variants}
    return results_of(study, measurements(study, values))


@pytest.mark.parametrize(("two", "differs"), [(50.0, False), (49.75, False), (50.00001, False), (49.4, True)])
def test_without_a_spread_no_difference_within_the_resolution_is_proven(two: float, differs: bool) -> None:
    found = constant(SEARCHED, two)
    compared = found.cells["one flow", "two"].compared
    assert compared is not None and compared.proven is differs
    assert "± 0" not in text(found)
    assert not any(row["p"] for row in csv.DictReader(io.StringIO(csv_text(found))))


def test_a_frame_at_the_end_of_a_trial_is_no_spread() -> None:
    values = {"one": [50.0, 50.00001] * BLOCKS, "two": [50.0001, 50.00011] * 3, "three": [50.0] * BLOCKS}
    assert proven(values, SEARCHED) == []


def test_a_ramp_shows_no_difference_smaller_than_its_step() -> None:
    rows = {"one flow": StudyRow(ramp="64b 1-flow bidirectional", steps=50)}
    assert [
        found.proven
        for two in (47.0, 45.0)
        if (found := constant(SAME.model_copy(update={"measures": rows}), two).cells["one flow", "two"].compared)
    ] == [False, True]


RAMPED = SAME.model_copy(
    update={"measures": {"one flow": StudyRow(ramp="64b 1-flow bidirectional", steps=25, unit="kpps")}}
)


@pytest.mark.parametrize("jitter", [0.0, 1e-6, 1.3e-5, 1e-4])
@pytest.mark.parametrize(
    ("study", "two", "differs"),
    # a ramp in steps of 4 kpps each way, and a search of a width of 0.5 %
    [(RAMPED, 592.0, False), (RAMPED, 591.0, True), (SEARCHED, 597.6, False), (SEARCHED, 593.0, True)],
)
def test_a_little_jitter_does_not_make_a_step_a_difference(
    study: Study, two: float, differs: bool, jitter: float
) -> None:
    wrong = 0
    for seed in range(100):
        chance = random.Random(f"jitter/{seed}")
        values = {
            name: [chance.gauss(two if name == "two" else 600.0, 600 * jitter) for _ in range(2 * BLOCKS)]
            for name in ("one", "two")
        }
        compared = results_of(study, measurements(study, values)).cells["one flow", "two"].compared
        assert compared is not None
        wrong += compared.proven is not differs
        if compared.resolution is None:
            assert compared.proven is (abs(compared.comparison.difference) > compared.half_width)
    assert wrong <= 5, wrong


def test_the_interval_has_the_step_of_a_ramp_in_it() -> None:
    values = {"one": [600.0, 600.02] * BLOCKS, "two": [590.0, 590.02] * 3}
    found = results_of(RAMPED, measurements(RAMPED, values))
    compared = found.cells["one flow", "two"].compared
    assert compared is not None and str(compared) == "-1.67 % ± 1.3 %" and compared.absolute == "-10 ± 8"
    (row,) = (row for row in csv.DictReader(io.StringIO(csv_text(found))) if row["variant"] == "two")
    assert float(row["change_half_width_percent"]) == pytest.approx(1.34, abs=0.01)
    assert "step of a ramp" in " ".join(text(found).split())


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
    records = []
    for name in SEARCHED.variants:
        middle = two if name == "two" else 50.0
        values = {name: [middle + 0.01 * (number % 3) for number in range(2 * BLOCKS)]}
        figures = {AT_LEAST: 1.0} if name in bounds else {}
        records += measurements(SEARCHED, values, figures=figures)
    found = results_of(SEARCHED, records)
    cell = found.cells["one flow", "two"]
    assert (cell.compared is not None) is limited is not cell.unlimited
    assert cell.at_least is ("two" in bounds)
    for shown in (text(found), markdown(found), page(found)):
        folded = " ".join(re.sub("<[^>]*>", " ", shown).split())
        assert (f"≥ {two + 0.01:g}" in folded) is cell.at_least and "its own limit is somewhere above" in folded
        assert limited or "not compared: some values" in folded
    if limited:
        sign = "≥" if two > 50 else "≤"
        assert cell.compared is not None and str(cell.compared).startswith(f"{sign} {'+' if two > 50 else '-'}")
        rows = {row["variant"]: row["change_bound"] for row in csv.DictReader(io.StringIO(csv_text(found)))}
        assert rows == {"one": "", "two": sign, "three": ""}
    label = f">{'≥ ' if cell.at_least else ''}{two + 0.01:g}</text>"
    assert label in bars_picture("one flow", list(found.cells.values()), simulated=False)
    flags = {row["variant"]: row["at_least"] for row in csv.DictReader(io.StringIO(csv_text(found)))}
    assert flags == {name: str(name in bounds).lower() for name in SEARCHED.variants}
    assert ("one flow" in found.drifts) is ("one" not in bounds)


@pytest.mark.parametrize(
    ("bounds", "least", "limited"),
    [
        # what the generator offered at most makes the variant worse, or the baseline
        ("two", 985.0, False),
        ("one", 985.0, False),
        # or hides that it is better
        ("two", 1000.0, False),
        # it is better for all that
        ("two", 1040.0, True),
    ],
)
def test_a_few_values_of_a_generator_prove_no_deficit(bounds: str, least: float, limited: bool) -> None:
    chance = random.Random("a few bounds")
    better = 1050 if least > 1000 else 1000
    records, left = [], 2
    values = {name: [chance.gauss(better if name == "two" else 1000, 1) for _ in range(10)] for name in ("one", "two")}
    for record in measurements(SEARCHED, values):
        if record.variant == bounds and left:
            record, left = replace(record, value=least, figures={AT_LEAST: 1.0}), left - 1
        records.append(record)
    found = results_of(SEARCHED, records)
    cell = found.cells["one flow", "two"]
    assert cell.unlimited is not limited and not cell.at_least
    assert (cell.compared is not None and cell.compared.proven) is limited
    shown = " ".join(text(found).split())
    # what is least is the generator's, unless the router did worse by itself
    assert (f" ≥ {least:g} " in shown) is (least != 1000) and "≥: the router did not fall behind" in shown
