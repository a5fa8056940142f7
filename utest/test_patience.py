"""Another try is only for a machine that others use: a quiet one has no excuse."""

from __future__ import annotations

import itertools

import pytest

from support import patience
from support.patience import undisturbed, unsent


@pytest.mark.parametrize(
    ("taken", "counts", "outcome", "says"),
    [
        (0.0, [1, 0], AssertionError, r"1 frames unsent; others had 0\.00"),
        (0.2, [3, 2, 0], None, ""),
        (0.2, [1] * 3, pytest.fail.Exception, "had no time for it"),
        (1.5, [1] * 3, pytest.skip.Exception, "had no time for it"),
        # more than was asked for is never excused
        (1.5, [-1], AssertionError, "1 frames more"),
    ],
)
def test_frames_unsent_are_tried_again_only_where_others_had_the_cpu(
    monkeypatch: pytest.MonkeyPatch, taken: float, counts: list[int], outcome: type[Exception] | None, says: str
) -> None:
    """Each reading of the clock is a second later, of which others had *taken* CPU seconds."""
    monkeypatch.setattr("support.patience.time.monotonic", itertools.count(1.0).__next__)
    monkeypatch.setattr(patience, "taken_away", itertools.count(taken, taken).__next__)
    monkeypatch.setattr("support.patience.os.cpu_count", lambda: 2)
    tries = iter(counts)
    if outcome is None:
        assert undisturbed(lambda: next(tries), unsent) == 0
    else:
        with pytest.raises(outcome, match=says):
            undisturbed(lambda: next(tries), unsent, tries=3)
    assert len(list(tries)) == (counts == [1, 0])
