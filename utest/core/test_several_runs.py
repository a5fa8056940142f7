"""Runs whose evidence is multiplied: one that is gone on with, and goals of several runs. The risk holds."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.deciding import Asked, TrialConditions, decide
from lineproof.core.quantity import Promise
from lineproof.core.rule import Ruling
from lineproof.core.trial import Load, Tolerance, Trial, read_trial, unended
from support.made_testbeds import LINE_PPS, RANK, down, goal_named, promised, router

STANDARD = goal_named("standard")
RATE = "64b unidirectional ≥ 100 kpps"
FEW, LITTLE, MUCH = 1e-4, 5e-4, 0.02
"""Loss ratios of a trial that misses: one that is forgiven in all, one that some good trials mend, one that few do."""


def promise_of(runs: int = 1, budget: int = 60, sentence: str = RATE) -> Promise:
    return promised(sentence, STANDARD.model_copy(update={"runs": runs, "budget": budget}))


def made(loss: float, run: str = "", *, is_down: bool = False) -> Trial:
    outcome = router(loss, problems=(down(),) if is_down else ())(Load(1e5), 1.0)
    return replace(read_trial(1, outcome, Tolerance()), run=run)


def ruling_of(promise: Promise, *runs: Sequence[Trial]) -> Ruling | None:
    """Return the ruling on runs, one after the other; PASS and FAIL end them."""
    asked, ruling = Asked(promise), None
    for number, run in enumerate(runs):
        for trial in run:
            ruling = asked.add(replace(trial, run=str(number))).rule.ruling
            if ruling in (Ruling.PASS, Ruling.FAIL):
                return ruling
    return ruling


def share_of(ruling: Ruling, missing: float, promise: Promise, most: int, stop: float, tries: int = 400) -> float:
    """Return how often runs one after the other come to *ruling*, where this share of the trials misses the limit.

    *most*: runs; *stop*: how often somebody interrupts one after a trial.
    """
    chance, count = random.Random(32), 0
    good, bad = made(0.0), made(FEW)
    for _ in range(tries):
        asked, answer = Asked(promise), None
        for number in range(most):
            answer = None
            while answer is None and chance.random() >= stop:
                trial = bad if chance.random() < missing else good
                answer = asked.add(replace(trial, run=str(number))).rule.ruling
            if answer in (Ruling.PASS, Ruling.FAIL):
                break
        count += answer is ruling
    return count / tries


RUNS = [(promise_of(budget=12), 6, 0.0), (promise_of(budget=12), 6, 0.1), (promise_of(3, 12), 4, 0.0)]


@pytest.mark.parametrize(("promise", "most", "stop"), RUNS, ids=["inconclusive", "interrupted", "three runs"])
def test_the_risk_of_a_wrong_verdict_holds_over_all_runs(promise: Promise, most: int, stop: float) -> None:
    goal = promise.goal
    assert goal.bad_share is not None and goal.good_share is not None
    sigma = (goal.risk * (1 - goal.risk) / 400) ** 0.5
    assert share_of(Ruling.PASS, goal.bad_share, promise, most, stop) < goal.risk + 2 * sigma
    assert share_of(Ruling.FAIL, goal.good_share, promise, most, stop) < goal.risk + 2 * sigma


def test_going_on_multiplies_the_evidence_with_a_new_budget() -> None:
    promise = promise_of(budget=12)
    close = [made(loss) for loss in [0.0, 0.0, FEW, 0.0] * 3]
    assert ruling_of(promise, close) is Ruling.INCONCLUSIVE
    earlier = [replace(trial, run="a", number=number) for number, trial in enumerate(close, 1)]
    fresh = decide(promise, router(), TrialConditions(), LINE_PPS)
    found = decide(promise, router(), TrialConditions(), LINE_PPS, earlier=earlier)
    assert (found.ruling, fresh.ruling) == (Ruling.PASS, Ruling.PASS)
    own = [trial for trial in found.trials if not trial.run]
    assert len(own) > len(fresh.trials), "the evidence was against the router"
    assert [trial.number for trial in found.trials] == list(range(1, len(found.trials) + 1))


def test_an_interrupted_run_is_one_with_that_which_goes_on() -> None:
    promise, lossy = promise_of(), made(LITTLE)
    whole = [lossy, *[made(0.0)] * 11]
    assert ruling_of(promise, whole) is ruling_of(promise, whole[:2], whole[2:]) is Ruling.PASS


def test_whoever_ends_the_run_in_each_bad_trial_gains_nothing() -> None:
    promise, good = promise_of(), made(0.0)
    cut = [[good] * 2 + [unended(good)]] * 20
    assert ruling_of(promise, *cut) is not Ruling.PASS, "each third trial may have missed the limit"
    seldom = [[good] * 4 + [unended(good)]] * 2
    assert ruling_of(promise, *seldom, [good] * 60) is Ruling.INCONCLUSIVE, "all of the second may have been lost"
    once = [[good] * 7 + [unended(good)], [good] * 3]
    assert (ruling_of(promise, *once), ruling_of(promise, *once, [good])) == (None, Ruling.PASS)
    assert ruling_of(promise, [unended(good)], [good] * 11) is Ruling.PASS, "nothing was counted before"
    soak = promise_of(sentence=f"{RATE} for 20 s")
    assert ruling_of(soak, [good] * 19 + [unended(good)]) is not Ruling.PASS, "it promises all of its time"


def test_what_a_run_lost_beyond_what_is_forgiven_is_not_mended_by_others() -> None:
    promise = promise_of(budget=12)
    doubtful = [made(0.0), *[made(MUCH, is_down=True)] * 11]
    assert ruling_of(promise, doubtful) is Ruling.INCONCLUSIVE
    assert ruling_of(promise, doubtful, *[[made(0.0)] * 12] * 20) is Ruling.INCONCLUSIVE


@pytest.mark.parametrize(
    ("failed", "others", "ruling"),
    [([FEW] * 3, 2, Ruling.INCONCLUSIVE), ([FEW] * 3, 4, Ruling.PASS), ([MUCH] * 3, 4, Ruling.FAIL)],
)
def test_three_runs_decide_together_failed_ones_too(failed: list[float], others: int, ruling: Ruling) -> None:
    promise, good = promise_of(3), [made(0.0)] * 8
    runs = [[made(loss) for loss in failed], *[good] * others]
    assert [ruling_of(promise, *runs[:count]) for count in (1, 2)] == [Ruling.INCONCLUSIVE] * 2
    assert ruling_of(promise, *runs) is ruling


LOSSES = st.lists(st.sampled_from([0.0, 0.0, 0.0, FEW, LITTLE, MUCH]), min_size=12, max_size=12)


@given(data=st.data(), runs=st.sampled_from([1, 2]), losses=st.lists(LOSSES, min_size=2, max_size=3))
def test_a_worse_trial_never_improves_the_verdict_of_several_runs(
    data: st.DataObject, runs: int, losses: list[list[float]]
) -> None:
    promise = promise_of(runs, budget=12)
    run, place = data.draw(st.integers(0, len(losses) - 1)), data.draw(st.integers(0, 11))
    worse = [list(of_run) for of_run in losses]
    worse[run][place] = max(worse[run][place], MUCH)
    before, after = (ruling_of(promise, *[[made(loss) for loss in part] for part in rows]) for rows in (losses, worse))
    assert RANK[after or Ruling.INCONCLUSIVE] <= RANK[before or Ruling.INCONCLUSIVE]
