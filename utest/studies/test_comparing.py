"""The same router many times: how many studies prove a difference that is none, however its measurements scatter."""

from __future__ import annotations

import csv
import io
import math
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import accumulate

import pytest

from lineproof.studies.forms import csv_text, text
from lineproof.studies.results import StudyResults, results_of
from lineproof.studies.study import AT_LEAST, Study, StudyRow, visits_of
from support.study_builders import measurements

MOST = 0.084
"""The share of studies that may prove one: 5 % is promised, and 300 studies show it to 1.3 %, 60 to 2.8 %."""

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
PLACES = range(4 * BLOCKS)
"""Of the measurements of a study: in each block two variants and the baseline twice."""

Values = dict[str, list[float]]


def proven(values: Values, study: Study = SAME) -> list[str]:
    found = results_of(study, measurements(study, values))
    return [name for (_, name), cell in found.cells.items() if cell.compared is not None and cell.compared.proven]


def laid(study: Study, figures: Iterable[float]) -> Values:
    """*figures* in the order of the measurements."""
    values: Values = {name: [] for name in study.variants}
    for visit, figure in zip(visits_of(study), figures, strict=True):
        values[visit.variant].append(figure)
    return values


def _scattered(chance: random.Random, study: Study, baseline: float, others: float) -> Values:
    return laid(
        study, [chance.gauss(1000, baseline if visit.variant == "one" else others) for visit in visits_of(study)]
    )


def equal(chance: random.Random, study: Study) -> Values:
    return _scattered(chance, study, 1, 1)


def wider(chance: random.Random, study: Study) -> Values:
    return _scattered(chance, study, 1, 5)


def narrower(chance: random.Random, study: Study) -> Values:
    return _scattered(chance, study, 5, 1)


def offsets(chance: random.Random, study: Study) -> Values:
    """Each session is off by something of its own; the baseline ends a block and begins the next one in one session."""
    figures, offset, last = [], 0.0, ""
    for visit in visits_of(study):
        if visit.variant != last:
            offset, last = chance.gauss(0, 1), visit.variant
        figures.append(1000 + offset + chance.gauss(0, 0.1))
    return laid(study, figures)


def walk(chance: random.Random, study: Study) -> Values:
    return laid(study, accumulate((chance.gauss(0, 50) for _ in PLACES[1:]), initial=2500))


def warming(chance: random.Random, study: Study) -> Values:
    return laid(study, [2500 + 400 * math.exp(-place / 8) + chance.gauss(0, 20) for place in PLACES])


def neighbour(chance: random.Random, study: Study) -> Values:
    """Somebody begins to work and ends: two steps."""
    begin, end = sorted(chance.sample(PLACES, 2))
    return laid(study, [(3100 if begin <= place < end else 2500) + chance.gauss(0, 30) for place in PLACES])


def bursts(chance: random.Random, study: Study) -> Values:
    burst = [chance.expovariate(1 / 800) if chance.random() < 0.15 else 0 for _ in PLACES]
    return laid(study, [2500 + more + chance.gauss(0, 40) for more in burst])


Scatter = Callable[[random.Random, Study], Values]


def drawn(scatter: Scatter, studies: int) -> Iterator[tuple[Study, Values]]:
    """The seeds are fixed, so that a count is the same on each machine."""
    for seed in range(studies):
        study = SAME.model_copy(update={"seed": seed})
        yield study, scatter(random.Random(f"{scatter.__name__}/{seed}"), study)


@pytest.mark.parametrize(
    ("scatter", "studies"),
    # what changes slowly falls on all variants alike, because the order of a block is random
    [
        *((each, 300) for each in (equal, wider, narrower, offsets)),
        *((each, 60) for each in (walk, warming, neighbour, bursts)),
    ],
)
def test_the_same_router_is_seldom_proven_to_differ(scatter: Scatter, studies: int) -> None:
    wrong = sum(bool(proven(values, study)) for study, values in drawn(scatter, studies))
    assert wrong <= MOST * studies, wrong


@pytest.mark.parametrize(("scatter", "more"), [(equal, 3), (walk, 1500)])
def test_a_large_difference_is_proven_in_five_blocks(scatter: Scatter, more: float) -> None:
    hits = sum(
        proven({**values, "two": [value + more for value in values["two"]]}, study) == ["two"]
        for study, values in drawn(scatter, 40)
    )
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
    shown = " ".join(text(found).split())
    assert "its own limit is somewhere above" in shown and (limited or "not compared: some values" in shown)
    if limited:
        sign = "≥" if two > 50 else "≤"
        assert cell.compared is not None and str(cell.compared).startswith(f"{sign} {'+' if two > 50 else '-'}")
        rows = {row["variant"]: row["change_bound"] for row in csv.DictReader(io.StringIO(csv_text(found)))}
        assert rows == {"one": "", "two": sign, "three": ""}
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
