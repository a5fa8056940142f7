"""Trials whose CPU time per frame says something, and those that say nothing."""

from __future__ import annotations

import pytest

from lineproof.core.trial import DirectionCount, Fault, Load, Outcome, Problem, Tolerance, read_trial
from lineproof.session.cpu_time import CpuReading, CpuTime, why_unusable

READ = [CpuReading(0, 0.0, 0.0)]


def outcome(offered: int, lost: int = 0, problems: tuple[Problem, ...] = ()) -> Outcome:
    counts = (DirectionCount(0, 1, 100_000, offered, offered - lost),)
    return Outcome(Load(100_000.0), 1.0, 1.0, 0.0, counts, problems=problems)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (outcome(100_000), ""),
        (outcome(40_000), ""),  # the machine could not send more: what it sent has its price
        (outcome(100_000, lost=900), ""),
        (outcome(100_000, lost=1100), "1100 of 100000 frames lost"),
        (outcome(100_000, problems=(Problem(Fault.LINK_DOWN, "port 1"),)), "a link was down"),
        (outcome(100_000, lost=-1), ""),  # a bridge says that it is there
        (outcome(100_000, lost=-1100), "more frames came back"),
        (outcome(100_000, problems=(Problem(Fault.CPU_BOUND, "99 %"),)), ""),
    ],
)
def test_only_what_was_sent_and_came_back_has_a_price(found: Outcome, reason: str) -> None:
    said = why_unusable(read_trial(1, found, Tolerance()), READ)
    assert said.startswith(reason) and bool(said) == bool(reason)


def test_nothing_read_is_no_price() -> None:
    assert "nothing was read" in why_unusable(read_trial(1, outcome(100_000), Tolerance()), [])


def test_one_disturbed_window_does_not_move_the_value() -> None:
    assert CpuTime((1500.0, 1510.0, 9000.0, 1490.0, 1505.0)).value == 1505.0
    assert CpuTime(reason="no").value is None
