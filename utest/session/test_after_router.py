"""Frames that the router counts as sent and the generator never got: what else the router's counters span."""

from __future__ import annotations

import pytest

from lineproof.core.doubts import OwnPart
from lineproof.core.ledger import DirectionAccount, Ledger
from lineproof.session.afterwards import lost_after_router


@pytest.mark.parametrize(
    ("router_rx", "router_tx", "frames"),
    [
        (1_000_000, 950_000, 50_000),
        (1_000_000, 900_000, None),
        # a control of as many frames passes between the same readings
        (2_000_000, 1_900_000, None),
        # counts of other frames, of which the router says nothing on their arrival
        (1_000_000, 9_000_000, 100_000),
    ],
)
def test_only_missing_frames_of_the_trials_can_be_lost_after_the_router(
    router_rx: int, router_tx: int, frames: int | None
) -> None:
    row = DirectionAccount(0, 1, "eth0", "eth1", 1_000_000, 900_000, router_rx, router_tx)
    doubts = list(lost_after_router([Ledger(1, 1, (row,))], OwnPart(), 0.05))
    assert [problem.frames for _, problem in doubts] == ([] if frames is None else [frames])
