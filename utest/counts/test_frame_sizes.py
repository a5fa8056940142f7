"""Bytes compared with frames, in words."""

from __future__ import annotations

import pytest

from lineproof.counts.frame_sizes import frame_sizes
from lineproof.counts.trial import DirectionCount


@pytest.mark.parametrize(
    ("forwarded", "size", "explained", "words"),
    [
        (100, 64.0, True, "which lost frames do not explain"),
        (90, 64.0, True, "which lost frames do not explain"),
        (100, 60.0, False, "4 fewer: the generator's card counts no FCS of what it receives (net_ixgbe does not)"),
        (90, 60.0, False, "4 fewer: the generator's card counts no FCS"),
        (100, 61.0, False, "which lost frames do not explain: other frames were counted too"),
        (100, 68.0, False, "which lost frames do not explain: other frames were counted too"),
    ],
)
def test_a_card_that_leaves_the_fcs_out_is_named(forwarded: int, size: float, explained: bool, words: str) -> None:
    counted = DirectionCount(0, 1, 100, 100, forwarded, 6400, int(forwarded * size))
    (found,) = frame_sizes((counted,), 64, 64)
    assert (found.explained, words in str(found)) == (explained, True)
