"""Mistakes that a little slow traffic shows before any trial: crossed cables, directions that carry nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.trial import DirectionCount, Load, Outcome
from lineproof.errors import TestbedError
from lineproof.session.links import ALL_RATIO, DIRECTION_STEP, NothingArrives, check_arrival

SENT = [1000, 1250, 1500, 1750]
DIRECTIONS = [(0, 1), (1, 0), (2, 3), (3, 2)]


def outcome(received: list[int], sent: list[int] | None = None) -> Outcome:
    counts = zip(DIRECTIONS, sent or SENT, received, strict=True)
    directions = tuple(DirectionCount(tx, rx, offered, offered, forwarded) for (tx, rx), offered, forwarded in counts)
    return Outcome(Load(1000.0), 1.0, 1.0, 0.0, directions)


def test_frames_that_arrive_at_the_expected_port_pass():
    check_arrival("mine", outcome(SENT))
    check_arrival("mine", outcome([980, 1200, 1400, 1000]))  # a slow router passes too
    check_arrival("mine", outcome([1010, 1250, 1500, 1750]))  # a few frames of a switch


@given(st.permutations(range(4)))
def test_any_crossed_cables_are_found(order: list[int]):
    received = [SENT[item] for item in order]
    if order == [0, 1, 2, 3]:
        check_arrival("mine", outcome(received))
        return
    with pytest.raises(TestbedError, match=r"received \d+ frames, and \d+ of .* were to arrive there"):
        check_arrival("mine", outcome(received))
    assert [round(1000 * (1 + DIRECTION_STEP * index)) for index in range(4)] == SENT


def test_a_direction_that_carries_nothing_is_named():
    # a bridge that does not forward yet sends its own frames
    with pytest.raises(
        NothingArrives, match="3 of 1500 frames of 'mine' sent slowly from the generator's port 2 came back at port 3"
    ):
        check_arrival("mine", outcome([1000, 1250, 3, 1750]))
    with pytest.raises(TestbedError, match="port 0 sends no frames"):
        check_arrival("mine", outcome([0, 1250, 1500, 1750], [0, 1250, 1500, 1750]))


@pytest.mark.parametrize(
    ("received", "says"),
    [
        ([0, 1250, 1500, 1750], "none of 1000 frames of 'mine' .* came back at port 1"),
        ([1000, 600, 1500, 1750], "600 of 1250 frames of 'mine' .* came back at port 0"),
        ([2000, 1250, 1500, 1750], "port 1 received 2000 frames, and 1000 of 'mine' were to"),
    ],
)
def test_traffic_with_its_own_addresses_must_be_forwarded(received: list[int], says: str):
    check_arrival("mine", outcome(SENT), lambda: "why", ALL_RATIO)
    with pytest.raises(TestbedError, match=says):
        check_arrival("mine", outcome(received), lambda: "why", ALL_RATIO)
