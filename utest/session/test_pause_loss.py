"""A FAIL of a router that received pause frames: only the loss that they can have caused is not its own."""

from __future__ import annotations

import pytest

from lineproof.counts.pause_names import Pauses
from lineproof.session.pause_loss import why_paused
from lineproof.sla.verdict import Ruling
from support.lossy_verdict import verdict

NAMES = {0: "in0", 1: "in1"}
MANY = Pauses(received=1000)


@pytest.mark.parametrize("quantity", ["≥ 100 kpps", "loses ≤ 1% at 100 kpps", "forwards ≥ 100 kpps"])
def test_loss_where_the_router_was_stopped_proves_nothing(quantity: str) -> None:
    found = verdict(f"64b unidirectional {quantity}", 50_000)
    assert "because the generator stopped it" in why_paused(found, {"in1": MANY}, NAMES)


@pytest.mark.parametrize("quantity", ["≥ 100 kpps", "loses ≤ 1% at 100 kpps", "forwards ≥ 100 kpps"])
@pytest.mark.parametrize(
    "paused",
    [
        # the interface that frames come in by, one of no direction, and one that sent them
        {"in0": MANY},
        {"in2": MANY},
        {"in1": Pauses(sent=1000)},
        # one pause frame stops 10 Gbit/s for 3.4 ms: 0.3 % of the trial
        {"in1": Pauses(received=1)},
    ],
)
def test_loss_that_no_pause_explains_stands(quantity: str, paused: dict[str, Pauses]) -> None:
    assert why_paused(verdict(f"64b unidirectional {quantity}", 50_000), paused, NAMES) == ""


def test_each_direction_is_judged_by_itself() -> None:
    sentence = "64b bidirectional ≥ 100 kpps each way"
    assert why_paused(verdict(sentence, 50_000, 0), {"in1": MANY}, NAMES)
    assert why_paused(verdict(sentence, 50_000, 50_000), {"in1": MANY}, NAMES) == ""
    assert why_paused(verdict(sentence, 0, 50_000), {"in1": MANY}, NAMES) == ""


def test_the_loss_of_a_few_frames_by_a_single_pause_proves_nothing() -> None:
    assert why_paused(verdict("64b unidirectional ≥ 100 kpps", 300), {"in1": Pauses(received=1)}, NAMES)


def test_a_latency_that_pauses_may_have_made_proves_nothing_in_their_direction_only() -> None:
    found = verdict("64b unidirectional latency p99 ≤ 1 ms at 100 kpps", 0)
    assert why_paused(found, {"in1": Pauses(received=1)}, NAMES)
    assert why_paused(found, {"in0": MANY}, NAMES) == ""


def test_a_pass_stays() -> None:
    assert why_paused(verdict("64b unidirectional ≥ 100 kpps", 0, ruling=Ruling.PASS), {"in1": MANY}, NAMES) == ""
