"""Arguments of the keywords that characterise."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lineproof.robot.characterisation import _deadline


@pytest.mark.parametrize(("time", "traffic"), [(None, None), (timedelta(0), 0.0), (timedelta(minutes=2), 120.0)])
def test_a_deadline_of_nothing_is_a_deadline(time: timedelta | None, traffic: float | None) -> None:
    assert _deadline(time).traffic == traffic
