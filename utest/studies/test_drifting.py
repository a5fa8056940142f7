"""The same router many times on a machine that changes meanwhile: how many differences are proven that are none.

The order of a block is random, so that what changes slowly falls on all variants alike: it widens the interval of each
comparison and makes none of them. What comes back with the period of a block is the worst: the baseline, which is at
its ends, always meets the same part of it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import accumulate, count

import pytest

from lineproof.studies.order import visits_of
from lineproof.studies.results import results_of
from lineproof.studies.study import Study
from support.study_builders import measurements

STUDIES = 60
PLACES = 20
"""Measurements of a study: five blocks of two variants and the baseline twice."""


def same(seed: int) -> Study:
    return Study.model_validate(
        {
            "study": "same",
            "title": "the same router three times",
            "platform": "linux_router",
            "seed": seed,
            "baseline": "one",
            "measures": {"one flow": {"cpu_time": "64b 1-flow unidirectional", "at": "200 kpps"}},
            "variants": {"one": {}, "two": {}, "three": {}},
        }
    )


def _white(chance: random.Random) -> list[float]:
    return [chance.gauss(0, 50) for _ in range(PLACES)]


def _walk(chance: random.Random) -> list[float]:
    return list(accumulate(chance.gauss(0, 50) for _ in range(PLACES)))


def _warming(chance: random.Random) -> list[float]:
    return [400 * math.exp(-place / 8) + chance.gauss(0, 20) for place in range(PLACES)]


def _neighbour(chance: random.Random) -> list[float]:
    """Somebody begins to work and ends: two steps."""
    begin, end = sorted(chance.sample(range(PLACES), 2))
    return [(600 if begin <= place < end else 0) + chance.gauss(0, 30) for place in range(PLACES)]


def _bursts(chance: random.Random) -> list[float]:
    return [chance.gauss(0, 40) + (chance.expovariate(1 / 800) if chance.random() < 0.15 else 0) for _ in range(PLACES)]


def proven(study: Study, noise: list[float], more: float = 0.0) -> list[str]:
    """The variants whose difference is proven; *more*: what the third router really takes more."""
    values: dict[str, list[float]] = {name: [] for name in study.variants}
    for place, visit in zip(count(), visits_of(study), strict=False):
        values[visit.variant].append(2500 + noise[place] + (more if visit.variant == "three" else 0))
    found = results_of(study, measurements(study, values))
    return [name for (_, name), cell in found.cells.items() if cell.compared is not None and cell.compared.proven]


@pytest.mark.parametrize("noise", [_white, _walk, _warming, _neighbour, _bursts])
def test_a_changing_machine_makes_no_differences(noise: Callable[[random.Random], list[float]]) -> None:
    """At most one of twenty; the seeds are fixed, so that the count is the same on each machine."""
    wrong = sum(bool(proven(same(seed), noise(random.Random(f"{noise.__name__}/{seed}")))) for seed in range(STUDIES))
    assert wrong <= STUDIES / 20 + 2, wrong


def test_a_large_difference_is_proven_on_a_changing_machine() -> None:
    found = [proven(same(seed), _walk(random.Random(f"more/{seed}")), 1500.0) for seed in range(20)]
    assert sum(names == ["three"] for names in found) >= 19
