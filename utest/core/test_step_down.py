"""What counts after a change of load prove: frames that are lost besides never make the router look better."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.step_down import CountSnapshot, StepDown
from lineproof.core.trial import DirectionCount, Load, Outcome


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
    curve = first.lost_later(0)
    assert len(curve) == len(missing) + 1 and all(0 <= later <= still for _, later in curve)
    assert [at for at, _ in curve] == sorted(at for at, _ in curve) and curve[0] == (0.0, float(still))
    for seconds in (0.0, 0.5, 2.0):
        assert second.lost_after(seconds, 0)[0] >= first.lost_after(seconds, 0)[0] - 1e-6
