"""The same router many times: how many studies prove a difference that is none, however its measurements scatter."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate

import pytest

from lineproof.studies.fitness import Fitness, fit
from lineproof.studies.measuring import (
    CORE_SHARE,
    FRAME,
    LINK,
    OFFERED,
    RECEIVED,
    STEAL,
)
from lineproof.studies.results import results_of
from lineproof.studies.study import AT_LEAST, Study, StudyRow, steps_of
from lineproof.units import line_rate_pps
from support.study_builders import csv_rows, measurements, text

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
"""Places of a study's measurements: in each block two variants and the baseline twice."""

Values = dict[str, list[float]]


def proven(values: Values, study: Study = SAME) -> list[str]:
    found = results_of(study, measurements(study, values))
    return [name for (_, name), cell in found.cells.items() if cell.compared is not None and cell.compared.proven]


def laid(study: Study, figures: Iterable[float]) -> Values:
    """*figures* in the order of the measurements."""
    values: Values = {name: [] for name in study.variants}
    for visit, figure in zip(steps_of(study), figures, strict=True):
        values[visit.variant].append(figure)
    return values


def _scattered(chance: random.Random, study: Study, baseline: float, others: float) -> Values:
    return laid(
        study, [chance.gauss(1000, baseline if visit.variant == "one" else others) for visit in steps_of(study)]
    )


def equal(chance: random.Random, study: Study) -> Values:
    return _scattered(chance, study, 1, 1)


def wider(chance: random.Random, study: Study) -> Values:
    return _scattered(chance, study, 1, 5)


def offsets(chance: random.Random, study: Study) -> Values:
    """Each session is off by something of its own; the baseline ends a block and begins the next one in one session."""
    figures, offset, last = [], 0.0, ""
    for visit in steps_of(study):
        if visit.variant != last:
            offset, last = chance.gauss(0, 1), visit.variant
        figures.append(1000 + offset + chance.gauss(0, 0.1))
    return laid(study, figures)


def walk(chance: random.Random, study: Study) -> Values:
    return laid(study, accumulate((chance.gauss(0, 50) for _ in PLACES[1:]), initial=2500))


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
        *((each, 300) for each in (equal, wider, offsets)),
        *((each, 60) for each in (walk, bursts)),
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


SEARCHED = SAME.model_copy(
    update={"measures": {"one flow": StudyRow.model_validate({"throughput": "64b 1-flow unidirectional"})}}
)


RAMPED = SAME.model_copy(
    update={
        "measures": {
            "one flow": StudyRow.model_validate({"ramp": "64b 1-flow bidirectional", "steps": 25, "unit": "kpps"})
        }
    }
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
    assert wrong <= 5, wrong


def test_the_interval_has_the_step_of_a_ramp_in_it() -> None:
    values = {"one": [600.0, 600.02] * BLOCKS, "two": [590.0, 590.02] * 3}
    found = results_of(RAMPED, measurements(RAMPED, values))
    compared = found.cells["one flow", "two"].compared
    assert compared is not None and str(compared) == "-1.67 % ± 1.3 %" and compared.absolute == "-10 ± 8"
    (row,) = (row for row in csv_rows(found) if row["variant"] == "two")
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
    assert cell.compared is not None and cell.compared.proven is limited is not cell.compared.limited
    assert cell.at_least is ("two" in bounds)
    shown = " ".join(text(found).split())
    assert "its own limit is somewhere above" in shown
    flags = {row["variant"]: row["at_least"] for row in csv_rows(found)}
    assert flags == {name: str(name in bounds).lower() for name in SEARCHED.variants}
    assert ("one flow" in found.drifts) is ("one" not in bounds)


# -- whether a generator fills a line: by the interval of its repeats, and never where others took its CPU


GIGABIT = line_rate_pps(1e9, 64)


def repeats(*shares: float, **more: float) -> list[dict[str, float]]:
    """One measurement for each of *shares* of a gigabit's line rate."""
    fixed = {FRAME: 64.0, LINK: 10e9, CORE_SHARE: 1.0, STEAL: 0.0}
    return [{**fixed, OFFERED: share * GIGABIT, RECEIVED: share * GIGABIT, **more} for share in shares]


def lossy(*shares: float) -> list[dict[str, float]]:
    """Repeats that fill the line, of which only *shares* arrive."""
    return [{**row, RECEIVED: share * row[OFFERED]} for row, share in zip(repeats(1.2, 1.2, 1.2), shares, strict=True)]


@pytest.mark.parametrize(
    ("rows", "link", "verdict"),
    [
        # the interval of the repeats decides
        (repeats(1.2, 1.21, 1.19), 1e9, Fitness.FIT),
        (repeats(0.6, 0.61, 0.59), 1e9, Fitness.UNFIT),
        (repeats(1.3, 0.7, 1.1), 1e9, Fitness.OPEN),
        (repeats(5.0, 5.0), 1e9, Fitness.OPEN),
        (lossy(1, 0.4, 1), 1e9, Fitness.OPEN),
        (lossy(0.991, 0.991, 0.991), 1e9, Fitness.FIT),
        # without its CPU it is not called unfit, unless the whole core would not have been enough
        (repeats(0.6, 0.6, 0.6, **{CORE_SHARE: 0.5}), 1e9, Fitness.OPEN),
        (repeats(0.6, 0.6, 0.6, **{CORE_SHARE: 0.8}), 1e9, Fitness.UNFIT),
        (repeats(0.6, 0.6, 0.6, **{STEAL: 45.0}), 1e9, Fitness.OPEN),
        (repeats(0.6, 0.6, 0.6, **{STEAL: 5.0}), 1e9, Fitness.UNFIT),
        ([*repeats(0.6, 0.6), *repeats(0.6, **{CORE_SHARE: 0.3})], 1e9, Fitness.OPEN),
        # nor where it does not say what it had
        ([{key: row[key] for key in row if key != CORE_SHARE} for row in repeats(0.6, 0.6, 0.6)], 1e9, Fitness.OPEN),
        # one that filled the line needs no more
        (repeats(1.2, 1.2, 1.2, **{CORE_SHARE: 0.3, STEAL: 20.0}), 1e9, Fitness.FIT),
        (repeats(1.0, 1.0, 1.0, **{LINK: 1e9}), 10e9, Fitness.OPEN),
    ],
)
def test_a_line_is_filled_or_not_by_what_was_measured_on_a_core_of_its_own(
    rows: list[dict[str, float]], link: float, verdict: Fitness
) -> None:
    assert fit(rows, link) is verdict
