"""The five sentences of the rule, and the numbers of the goals."""

from __future__ import annotations

import math

import pytest

from lineproof.core.bounds import Bounds, Limit
from lineproof.core.rule import Rule, Ruling, Shares
from support.made_testbeds import decided, down, goal_named, promised, router, then

STANDARD, QUICK, STRICT = (goal_named(name).shares() for name in ("standard", "quick", "rfc2544"))
RATE = "64b unidirectional ≥ 5 Mpps"
ZERO = Limit(0.0)
"""A figure that keeps it is 0."""


def ruled(shares: Shares, *rows: tuple[float, ...] | tuple[Bounds, ...], forgiven: float = 0.5) -> tuple[Ruling, int]:
    """Return the ruling and after how many trials: *rows* of figures by direction, the last one again and again."""
    rule, seen = Rule(shares, ZERO, Limit(forgiven), len(rows[0])), list[list[Bounds]]()
    while rule.ruling is None:
        row = rows[min(len(seen), len(rows) - 1)]
        seen.append([item if isinstance(item, Bounds) else Bounds(item, item) for item in row])
        window = seen[-shares.most_trials :] if not shares.soak else seen[-shares.budget :]
        columns = list(zip(*window, strict=True))
        whole = [_sum(column, len(window)) for column in columns]
        mended = [_sum(column, max(len(window), shares.budget)) for column in columns]
        rule.add(seen[-1], whole, mended)
    return rule.ruling, len(seen)


def _sum(column: tuple[Bounds, ...], trials: int) -> Bounds:
    return Bounds(math.fsum(item.low for item in column) / trials, math.fsum(item.high for item in column) / trials)


@pytest.mark.parametrize(
    ("shares", "bad", "good"),
    [
        (STANDARD, 0, 8),
        (STANDARD, 1, 11),
        (STANDARD, 2, 15),
        (STANDARD, 3, 18),
        (QUICK, 0, 4),
        (QUICK, 1, 6),
        (STRICT, 0, 1),
    ],
)
def test_pass_after_so_many_good_trials_with_so_many_bad(shares: Shares, bad: int, good: int) -> None:
    rows = [(0.0,)] * 2 + [(0.1,), (0.0,), (0.0,)] * bad + [(0.0,)]
    assert ruled(shares, *rows) == (Ruling.PASS, good + bad)


@pytest.mark.parametrize(("shares", "trials"), [(STANDARD, 3), (QUICK, 2), (STRICT, 1)])
def test_fail_after_so_many_bad_trials_in_a_row(shares: Shares, trials: int) -> None:
    assert ruled(shares, (0.1,), forgiven=1.0) == (Ruling.FAIL, trials)


def test_a_trial_that_no_rest_of_the_budget_can_mend_is_a_fail() -> None:
    assert ruled(STANDARD, (0.061,), (0.0,), forgiven=0.001) == (Ruling.FAIL, 1)
    assert ruled(STANDARD, (0.059,), (0.0,), forgiven=0.001)[0] is Ruling.PASS


def test_a_pass_needs_every_direction_and_a_fail_one_that_counts_their_number() -> None:
    assert ruled(STANDARD, (0.0, 0.1), (0.1, 0.0), (0.0, 0.0)) == (Ruling.PASS, 12)
    assert ruled(STANDARD, (0.0, 0.1)) == (Ruling.FAIL, 4)
    assert ruled(STANDARD, (0.0,) * 7 + (0.1,)) == (Ruling.FAIL, 5)


def test_a_wide_figure_counts_at_its_worse_end_for_a_pass_and_at_its_better_end_for_a_fail() -> None:
    wide = Bounds(0.0, 1.0)
    assert ruled(STANDARD, (wide,)) == (Ruling.INCONCLUSIVE, 8)
    assert ruled(STANDARD, (wide,), (0.0,), forgiven=1.0) == (Ruling.PASS, 12)
    assert ruled(STANDARD, (wide,), (0.1,)) == (Ruling.FAIL, 4)


def test_all_trials_together_must_agree() -> None:
    rows = [(0.02,), *[(0.0,)] * 10, (0.0,)]
    assert ruled(STANDARD, *rows, forgiven=0.001)[1] == 20
    assert ruled(STANDARD, (0.1,), forgiven=1.0)[0] is Ruling.FAIL


def test_a_budget_that_is_used_up_is_inconclusive() -> None:
    half = Shares(bad_share=0.40, good_share=0.12, risk=0.05, budget=10)
    assert ruled(half, (0.1,), (0.0,), (0.0,), (0.0,), (0.1,), (0.0,)) == (Ruling.INCONCLUSIVE, 10)


def test_a_soak_passes_at_its_end_and_fails_wherever_it_begins_to() -> None:
    soak = Shares(bad_share=0.40, good_share=0.12, risk=0.05, budget=60, soak=200)
    assert ruled(soak, (0.0,)) == (Ruling.PASS, 200)
    assert ruled(soak, *[(0.0,)] * 100, (0.1,)) == (Ruling.FAIL, 107)
    assert ruled(soak, *[(0.0,)] * 197, (0.1,)) == (Ruling.PASS, 200)


def test_a_long_trial_speaks_for_the_router_as_one_and_against_it_as_many() -> None:
    assert STANDARD.missed_weight(10) < STANDARD.missed_weight() / 3
    rule = Rule(STANDARD, ZERO, Limit(1.0), 1)
    for _ in range(9):
        rule.add([Bounds(1, 1)], [Bounds(1, 1)], [Bounds(0, 0)], length=10.0)
    assert rule.better.answer is None and rule.worse.answer is Ruling.FAIL


def test_evidence_says_how_much_it_is_and_how_much_is_needed() -> None:
    decision = decided(promised(RATE), router())
    assert decision.rule.worse.odds == pytest.approx((0.88 / 0.6) ** 8)
    assert decision.rule.worse.needed_odds(Ruling.PASS) == pytest.approx(20)
    assert decision.rule.better.needed_odds(Ruling.FAIL) == pytest.approx(20)


@pytest.mark.parametrize("goal", ["standard", "quick", "rfc2544"])
def test_sound_and_slow_routers_end_after_as_many_trials_as_the_goal_says(goal: str) -> None:
    promise = promised(RATE, goal)
    sound, slow = decided(promise, router()), decided(promise, router(1e-3))
    assert (sound.ruling, len(sound.trials)) == (Ruling.PASS, promise.goal.fewest_trials)
    assert slow.ruling is Ruling.FAIL and len(slow.trials) <= 3


def test_the_window_of_a_short_soak_is_the_soak() -> None:
    promise = promised(f"{RATE} for 20 s")
    assert decided(promise, then((5, router()), (1, router(0.03)), (1, router()))).ruling is Ruling.FAIL
    assert decided(promise, then((5, router()), (1, router(0.01)), (1, router()))).ruling is Ruling.PASS


def test_no_order_of_loss_and_excuse_passes_a_router_that_loses() -> None:
    excused = router(0.01, problems=(down(),))
    for rows in (((3, excused), (1, router(0.01))), ((1, router(0.01)), (3, excused), (1, router(0.01)))):
        assert decided(promised(RATE), then(*rows)).ruling is Ruling.FAIL


def test_a_figure_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="low <= high"):
        Bounds(math.nan, 1.0)
