"""Trials become a verdict, which is RFC 2544 throughput only under its terms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lineproof.core.doubts import OwnPart
from lineproof.core.goal import Goal
from lineproof.core.rule import Ruling
from lineproof.core.trial import EXAMINED, HOST_COUNTS, Fault
from lineproof.core.verdict import Try
from support.made_testbeds import fault, router, slow, verdict_on

RATE = "64b unidirectional ≥ 5 Mpps"


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
    # RFC 2544 section 10
    assert not verdict_on(RATE, router(), "rfc2544").is_rfc2544_throughput


@pytest.mark.parametrize(("reading", "labelled"), [(None, True), (0.0, True), (1.0, False)])
def test_counts_of_a_host_that_no_switch_checked_carry_no_label_of_rfc2544(
    reading: float | None, labelled: bool
) -> None:
    testbed = router(readings=LOOKED_AT if reading is None else {**LOOKED_AT, HOST_COUNTS: reading})
    verdict = verdict_on(RATE, testbed, "rfc2544")
    assert verdict.ruling is Ruling.PASS and verdict.is_rfc2544_throughput is labelled


def test_the_label_of_rfc_2544_needs_the_whole_load() -> None:
    assert not verdict_on(RATE, router(late=0.001, readings=LOOKED_AT), "rfc2544").is_rfc2544_throughput
    whole = verdict_on("64b unidirectional ≥ 100% line rate", router(readings=LOOKED_AT), "rfc2544")
    assert not whole.is_rfc2544_throughput


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
