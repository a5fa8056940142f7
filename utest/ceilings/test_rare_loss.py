"""A FAIL by rare loss needs to know that the generator does not lose a burst now and then itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lineproof.ceilings.headroom import MeasuredLimits
from lineproof.ceilings.rare_loss import apply_rare_loss
from lineproof.core.causes import Cause, Stage
from lineproof.core.ledger import ledger_without_router, make_ledger
from lineproof.core.telemetry import InterfaceCounters, Telemetry
from lineproof.core.trial import DirectionCount, Load, Outcome
from lineproof.core.verdict import Ruling, Verdict
from lineproof.stats import more_often
from support.ceilings import ceiling, measured_limits
from support.known_router import run


def verdict(*lost: int, goal: str = "standard") -> Verdict:
    """The verdict where trial n loses so many frames; the last one repeats."""
    rows = list(lost)

    def measure(load: Load, duration: float) -> Outcome:
        frames = round(load.pps * duration)
        gone = rows.pop(0) if len(rows) > 1 else rows[0]
        return Outcome(load, duration, duration, 0.0, (DirectionCount(0, 1, frames, frames, frames - gone),))

    return run("64b unidirectional ≥ 1 Mpps", measure, goal)


def watched(lossy: int, trials: int = 30, duration: float = 1.0) -> MeasuredLimits:
    found = {"goal": "standard", "load_pps": 7e6, "trials": trials, "lossy": lossy, "trial_duration": duration}
    return measured_limits(ceiling(watched=found))


OFTEN = (0, 0, 0, 5, 0, 5, 0, 5, 0, 5, 0, 5, 0, 5, 0, 5)
"""A small burst in every second trial: a FAIL with seven of them."""


@pytest.mark.parametrize(("lossy", "ruling"), [(0, Ruling.FAIL), (1, Ruling.FAIL), (15, Ruling.INCONCLUSIVE)])
def test_a_generator_that_was_watched_shows_whose_loss_it_is(lossy: int, ruling: Ruling) -> None:
    assert apply_rare_loss(verdict(*OFTEN), watched(lossy)).ruling is ruling


def test_it_must_have_been_watched_for_as_long_as_the_verdict_took() -> None:
    found = apply_rare_loss(verdict(0, 12, goal="rfc2544"), watched(0))
    assert found.ruling is Ruling.INCONCLUSIVE and "less than these 60 s of trials" in found.message
    assert apply_rare_loss(verdict(0, 12, goal="rfc2544"), watched(0, 1, 60.0)).ruling is Ruling.FAIL


def test_loss_that_is_not_rare_is_the_routers() -> None:
    for lost in ((500,), (0, 60_000), (0, 3_000)):
        found = verdict(*lost)
        assert found.ruling is Ruling.FAIL and apply_rare_loss(found, None) is found
    passed = verdict(0)
    assert apply_rare_loss(passed, None) is passed


@pytest.mark.parametrize(("counted", "ruling"), [(12, Ruling.FAIL), (5, Ruling.INCONCLUSIVE)])
def test_what_the_routers_own_counters_explain_is_the_routers(counted: int, ruling: Ruling) -> None:
    rare = verdict(0, 12, goal="rfc2544")
    last = rare.trials[-1]
    sent = last.outcome.directions[0].offered

    def reading(received: int, dropped: int, out: int) -> Telemetry:
        interfaces = {"in": InterfaceCounters(rx_packets=received), "out": InterfaceCounters(tx_packets=out)}
        return Telemetry(1.0, interfaces, causes=(Cause(Stage.ARRIVING, "rx-miss", "in", dropped),))

    ports = {0: "in", 1: "out"}
    book = make_ledger([last], reading(0, 0, 0), reading(sent - 12, counted, sent - 12), ports)
    assert apply_rare_loss(replace(rare, ledgers=(book,)), None).ruling is ruling
    unread = ledger_without_router([last], ports, "it could not be read")
    assert apply_rare_loss(replace(rare, ledgers=(unread,)), None).ruling is Ruling.INCONCLUSIVE


def test_more_often_is_fishers_exact_test() -> None:
    # the tea tasting of Fisher (1935): 4 of 4 against 0 of 4 has p = 1/70, 3 of 4 against 1 of 4 has 17/70
    assert more_often(4, 4, 0, 4, 1 - 1 / 69) and not more_often(4, 4, 0, 4, 1 - 1 / 71)
    assert more_often(3, 4, 1, 4, 1 - 17 / 69) and not more_often(3, 4, 1, 4, 1 - 17 / 71)
