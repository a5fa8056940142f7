"""Proofs by counts after a change of load: frames that are lost besides never make the router look better."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.scripted import stepped
from lineproof.core.step_down import CountSnapshot, StepDown
from lineproof.core.trial import DirectionCount, Load, Outcome, Tolerance, read_trial
from support.made_testbeds import promised


@given(
    missing=st.lists(st.integers(0, 20_000), min_size=12, max_size=40),
    place=st.integers(0, 40),
    more=st.integers(0, 10**6),
    still=st.integers(0, 50_000),
)
def test_frames_lost_besides_make_no_bound_earlier_and_hide_no_loss(missing, place, more, still):
    def found(counts: list[int], lost: int) -> StepDown:
        sent = [1_000_000 + 300_000 * (index + 1) for index in range(len(counts))]
        samples = tuple(CountSnapshot((all_,), (all_ - count,)) for all_, count in zip(sent, counts, strict=True))
        row = DirectionCount(0, 1, sent[-1], sent[-1], sent[-1] - lost)
        outcome = Outcome(Load(6e6), 1.0, 1.0, 0.0, (row,))
        change = CountSnapshot((1_000_000,), (1_000_000,))
        return StepDown(outcome, Load(3e6), change, change, samples)

    first = found(missing, still)
    second = found([count + more * (index >= place) for index, count in enumerate(missing)], still + more)
    earlier, later = first.recovery(0), second.recovery(0)
    assert earlier is not None and later is not None
    assert later.low >= earlier.low
    assert second.undetectable_loss(0) <= first.undetectable_loss(0)
    for seconds in (0.0, 0.5, 2.0):
        assert second.lost_after(seconds, 0) >= first.lost_after(seconds, 0) - 1e-6


@pytest.mark.parametrize("sent", [0.65, 1.0, 1.3])
def test_the_overload_that_was_sent_is_beside_the_one_that_was_asked_for(sent: float) -> None:
    promise = promised("64b unidirectional recovers in ≤ 2 s at 10 Mpps")

    def step_down(first: Load, seconds: float, second: Load, after: float, every: float) -> StepDown:
        over = first.pps > second.pps
        return stepped(Load(first.pps * (sent if over else 1)), seconds, second, after, every, 1, 0.5, 0.0, 0.3)

    measure = promise.quantity.measure(cast(Any, SimpleNamespace(step_down=step_down)), promise)
    outcome = measure(Load(promise.load_pps), 10.0)
    assert outcome.readings["overload_sent.0"] == pytest.approx(sent, rel=0.01)
    (figure,) = promise.figures([read_trial(1, outcome, Tolerance())])
    assert (figure.low == 0.0, math.isinf(figure.high)) == (sent > 1, sent < 1)
