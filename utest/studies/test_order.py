"""The order of a study's measurements: from its seed, in blocks, with the baseline first and last."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lineproof.studies.forms import text
from lineproof.studies.results import results_of
from lineproof.studies.study import Step, Study, left_of, mean_places, visits_of
from support.study_builders import SMALL, study_of

MANY = Study.model_validate(
    {
        "study": "many",
        "title": "many",
        "platform": "netgate6100",
        "repeats": 4,
        "baseline": "b",
        "measures": {"long": {"ramp": "64b", "repeats": 1}, "short": {"forwards": "64b"}},
        "variants": {name: {} for name in "abcdef"},
    }
)


def test_a_block_begins_and_ends_with_the_baseline() -> None:
    for block in range(1, 5):
        visits = [visit for visit in visits_of(MANY) if visit.block == block]
        assert (visits[0].variant, visits[0].turn) == ("b", "first")
        assert (visits[-1].variant, visits[-1].turn) == ("b", "last")
        assert sorted(visit.variant for visit in visits[1:-1]) == ["a", "c", "d", "e", "f"]


def test_a_row_is_measured_as_often_as_it_says() -> None:
    steps = [step for visit in visits_of(MANY) for step in visit.steps]
    assert len(steps) == len(set(steps))
    assert sum(step.row == "long" for step in steps) == 6
    assert sum(step.row == "short" for step in steps) == 4 * 7


def test_blocks_and_seeds_have_orders_of_their_own() -> None:
    orders = {
        tuple(visit.variant for visit in visits_of(MANY.model_copy(update={"seed": seed})) if visit.block == block)
        for seed in range(5)
        for block in (1, 2)
    }
    assert len(orders) > 5


@given(st.data())
def test_what_is_left_is_what_is_not_done(data: st.DataObject) -> None:
    every = [step for visit in visits_of(MANY) for step in visit.steps]
    done = frozenset(data.draw(st.sets(st.sampled_from(every))))
    left = [step for visit in left_of(visits_of(MANY), done) for step in visit.steps]
    assert left == [step for step in every if step not in done]


def test_a_study_without_a_baseline_has_all_variants_once(tmp_path: Path) -> None:
    study = study_of(tmp_path, SMALL.replace("baseline: vpp\n", ""))
    assert {(visit.variant, visit.turn) for visit in visits_of(study)} == {("vpp", ""), ("linux", "")}
    assert Step(1, "", "vpp", "ramp") in [step for visit in visits_of(study) for step in visit.steps]


def test_the_mean_place_of_each_variant_is_said(tmp_path: Path) -> None:
    """A seed that always has one variant first is seen."""
    again = "  linux: {software: linux}\n  again: {software: vpp}"
    study = study_of(tmp_path, SMALL.replace("  linux: {software: linux}", again))
    seeds = [study.model_copy(update={"seed": seed}) for seed in range(20)]
    assert all(sum(mean_places(one).values()) == 3 for one in seeds)
    first = next(one for one in seeds if mean_places(one)["linux"] == 1)
    says = f"Order by seed {first.seed}; mean place in the blocks: linux 1, again 2."
    assert says in " ".join(text(results_of(first, [])).split())
