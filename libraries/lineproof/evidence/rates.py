"""The rates that tables and plots show, derived from the counts of trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..core.trial import DirectionCount, Trial
from ..units import Rate


@dataclass(frozen=True, slots=True)
class DirectionRow:
    """One direction of one trial: its counts, and the rates of intended, offered and forwarded frames."""

    trial: Trial
    count: DirectionCount
    intended: Rate
    offered: Rate
    forwarded: Rate

    @property
    def direction(self) -> str:
        """``0 → 1``: sending port, receiving port."""
        return f"{self.count.tx_port} → {self.count.rx_port}"


def direction_rows(trials: Sequence[Trial], mean_size: float, link_bps: float) -> tuple[DirectionRow, ...]:
    """Return every direction of every trial, in order.

    *mean_size*: of frames, in bytes with FCS; *link_bps*: link speed of one direction in L1 bit/s.
    """

    def rate(frames: int, seconds: float) -> Rate:
        return Rate(frames / seconds if seconds > 0 else 0.0, mean_size, link_bps)

    return tuple(
        DirectionRow(
            trial,
            count,
            rate(count.intended, trial.outcome.duration),
            rate(count.offered, trial.seconds.high),
            rate(count.forwarded, trial.seconds.high),
        )
        for trial in trials
        for count in trial.outcome.directions
    )


def percent(ratio: float) -> str:
    """A ratio as per cent, small ones with significant digits: ``14.2 %``, ``0.00012 %``, ``0 %``."""
    value = 100 * ratio
    if value == 0:
        return "0 %"
    return f"{value:.2f} %" if value >= 0.1 else f"{value:.2g} %" if value >= 1e-4 else f"{value:.1e} %"


def trial_name(trial: Trial) -> str:
    """The trial's number, or ``warm-up``."""
    return str(trial.number) if trial.number else "warm-up"


def is_set_aside(trial: Trial) -> bool:
    """Return whether the testbed may have cost or hidden any number of frames of a judged trial: no mean has it."""
    doubts = (problem for problem in trial.problems if problem.frames is None)
    return bool(trial.number) and any(problem.fault.may_cost or problem.fault.may_hide for problem in doubts)
