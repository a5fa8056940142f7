"""The five sentences of the rule, and the numbers of the goals."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from lineproof.core.bounds import Bounds, Limit
from lineproof.core.doubts import OwnPart
from lineproof.core.goal import Goal
from lineproof.core.rule import Rule, Ruling, Shares
from lineproof.core.trial import EXAMINED, HOST_COUNTS, Fault
from lineproof.core.verdict import Try
from support.made_testbeds import decided, down, fault, goal_named, promised, router, slow, then, verdict_on

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


# -- trials become a verdict, which is RFC 2544 throughput only under its terms


@pytest.mark.parametrize(
    ("sentence", "share", "ruling"),
    [
        ("≥ 100% line rate", 1e-5, Ruling.PASS),
        ("≥ 100% line rate", 1e-3, Ruling.FAIL),
        ("forwards ≥ 100% line rate", 1e-5, Ruling.PASS),
    ],
)
def test_beyond_99_98_percent_of_line_rate_the_clocks_are_allowed_for(
    sentence: str, share: float, ruling: Ruling
) -> None:
    capacity = 10e9 / 672 * (1 - share)
    assert verdict_on(f"64b unidirectional {sentence}", slow(capacity, queue=0)).ruling is ruling


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"good_share": None}, "expected both 'bad_share' and 'good_share', or neither"),
        ({"good_share": 0.5}, "good_share must be less than bad_share"),
        ({"budget": 7}, "budget must be at least 8"),
        ({"duration_sum": 0.5}, "duration_sum must be at least"),
    ],
)
def test_a_contradictory_goal_is_refused(wrong: dict[str, Any], message: str) -> None:
    whole = {"goal": "any", "bad_share": 0.4, "good_share": 0.12, "final_trial_duration": 1, "about": ""}
    with pytest.raises(ValueError, match=message):
        Goal(**{**whole, **wrong})


LOOKED_AT = {f"{EXAMINED}1": 1000.0}


def test_only_rfc2544_goal_with_one_frame_size_is_rfc2544_throughput() -> None:
    assert verdict_on(RATE, router(readings=LOOKED_AT), "rfc2544").is_rfc2544_throughput
    assert not verdict_on("imix unidirectional ≥ 1 Mpps", router(readings=LOOKED_AT), "rfc2544").is_rfc2544_throughput
    assert not verdict_on(RATE, router(0.2, readings=LOOKED_AT), "rfc2544").is_rfc2544_throughput
    assert not verdict_on(RATE, router(readings=LOOKED_AT), "standard").is_rfc2544_throughput
    # it needs the whole load
    assert not verdict_on(RATE, router(late=0.001, readings=LOOKED_AT), "rfc2544").is_rfc2544_throughput
    line_rate = "64b unidirectional ≥ 100% line rate"
    assert not verdict_on(line_rate, router(readings=LOOKED_AT), "rfc2544").is_rfc2544_throughput
    # RFC 2544 section 10
    assert not verdict_on(RATE, router(), "rfc2544").is_rfc2544_throughput


@pytest.mark.parametrize(("reading", "labelled"), [(None, True), (0.0, True), (1.0, False)])
def test_counts_of_a_host_that_no_switch_checked_carry_no_label_of_rfc2544(
    reading: float | None, labelled: bool
) -> None:
    testbed = router(readings=LOOKED_AT if reading is None else {**LOOKED_AT, HOST_COUNTS: reading})
    verdict = verdict_on(RATE, testbed, "rfc2544")
    assert verdict.ruling is Ruling.PASS and verdict.is_rfc2544_throughput is labelled


def test_a_verdict_names_what_widened_it_where_that_matters() -> None:
    down = fault(Fault.LINK_DOWN)
    named = Fault.LINK_DOWN.value
    assert named not in verdict_on(RATE, router(problems=(down,))).message
    assert named in verdict_on(RATE, router(0.01, problems=(down,))).message
    # where no frame is missing, none can be the generator's own loss
    unwatched = verdict_on(RATE, router(foreign=5000), own=OwnPart())
    assert Fault.FOREIGN.value in unwatched.message and Fault.UNWATCHED.value not in unwatched.message
    verdict = verdict_on(RATE, router(0.01))
    assert verdict.evidence is not None and verdict.evidence[0] >= verdict.evidence[1] == pytest.approx(20)


@pytest.mark.parametrize(
    ("verdicts", "says"), [("FAIL INCONCLUSIVE", "try 3 of"), ("PASS", ""), ("INCONCLUSIVE", "try 2 of")]
)
def test_earlier_tries_that_did_not_pass_are_named(verdicts: str, says: str) -> None:
    tries = tuple(Try(f"run {name}", name, 0.0, 1.0) for name in verdicts.split())
    message = replace(verdict_on("64b unidirectional ≥ 1 Mpps", router()), tries=tries).message
    assert says in message and ("a FAIL" in message) is ("FAIL" in verdicts)
    assert bool(says) is ("of this sentence, after" in message)
