"""Throughput and ``loses``: the share of the offered frames that did not come back (RFC 1242 3.6, 3.17; RFC 9971)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

from ...core.bounds import Bounds, Limit
from ...core.doubts import AT_THE_LOAD, OF_FRAMES, own_ceiling, queues
from ...core.goal import Goal
from ...core.phrases import (
    as_received,
    between,
    changed_words,
    direction_lines,
    mean_rate,
    part,
    percent,
    proven,
    rate_words,
)
from ...core.quantity import Need, Promise, Quantity, Reason, Requirement
from ...core.rule import Ruling
from ...core.trial import DirectionCount, Load, Trial, loss_ratio
from ...core.units import RATE_UNITS, Unit
from ...units import counted


class Loss(Quantity):
    """``loses ≤ 0.1% at 5 Mpps``: lost / offered, at a load."""

    name = "loses"
    word = "loses"
    units: ClassVar[tuple[Unit, ...]] = (Unit.PERCENT,)
    needs: ClassVar[frozenset[Need]] = frozenset({"load"})
    doubts = (*OF_FRAMES, *AT_THE_LOAD, own_ceiling, queues)
    loss_explains = True
    title = "Loss ratio"
    example = "loses ≤ 0.1% at 5 Mpps"
    judges_loss = True
    scale = 100.0

    def limit(self, requirement: Requirement, goal: Goal, link_bps: float) -> Limit:
        """Return the promised loss ratio, 0 to 1."""
        return Limit(requirement.threshold.number / 100)

    def figures(self, promise: Promise, trials: Sequence[Trial], perfect: int = 0) -> tuple[Bounds, ...]:
        """Return the loss ratio, 0 to 1, of each direction, or of all together ``in total``."""
        columns = list(zip(*(trial.outcome.directions for trial in trials), strict=True))
        groups = [columns] if promise.in_total else [[column] for column in columns]
        return tuple(_loss_ratio(trials, group, perfect) for group in groups)

    def forgiven(self, promise: Promise) -> Limit:
        """Return what all trials together may lose for a PASS: a promise without loss forgives a little in all."""
        return Limit(promise.limit.value or promise.goal.forgiven)

    def reason(self, promise: Promise, ruling: Ruling, trials: Sequence[Trial]) -> Reason:
        """Return how much was lost of which load; of a FAIL with frames that came back changed, how many did first."""
        changed = changed_words(trials)
        is_split = bool(changed) and ruling is Ruling.FAIL
        counted_lost = as_received(trials) if is_split else trials
        offered, lost = sum(trial.offered for trial in trials), sum(trial.lost for trial in counted_lost)
        worst, load = promise.worst(trials), rate_words(mean_rate(trials, promise, "offered"), promise)
        several = len(trials[0].outcome.directions) > 1
        shown = partial(percent, limit=promise.limit.value)
        # what a FAIL counted, as every table has it; lines below say how much of it may be the testbed's
        as_counted = shown(loss_ratio(counted_lost, promise.in_total))
        lost_share = as_counted if ruling is Ruling.FAIL else proven(worst, ruling, promise.limit, shown)
        # where none is missing, and some may have been lost all the same
        missing = " are missing" * (not lost and lost_share != shown(0.0))
        counts = f"{lost:,} of {offered:,} frames{' of all directions' * several}{missing}"
        where = " in the worst direction" * (several and lost > 0 and not promise.in_total)
        lost_words = "lost or changed" if changed and not is_split else "lost"
        summary = f"{lost_words} {lost_share}{where} ({counts}) at {load}"
        details = direction_lines(promise, trials)
        if ruling is Ruling.PASS and lost and promise.limit.value < (most := promise.forgiven.value):
            missed = sum(any(not promise.limit.keeps(ratio.high) for ratio in promise.figures([one])) for one in trials)
            summary += f", {percent(most)} forgiven in all"
            details.insert(0, f"{counted(missed, 'trial')} lost frames")
        if is_split:
            least = shown(loss_ratio(trials, promise.in_total))
            return Reason(f"lost or changed at least {least}: {changed}", (summary, *details))
        return Reason(summary, tuple(details))

    def named_figures(self, promise: Promise, trials: Sequence[Trial]) -> Mapping[str, float]:
        """Return the frames offered and lost, how many of these came back changed, and the worst trial's loss ratio."""
        changed = sum(row.changed for trial in trials for row in trial.outcome.directions)
        return {
            "offered_frames": float(sum(trial.offered for trial in trials)),
            "lost_frames": float(sum(trial.lost for trial in trials)),
            "worst_loss_ratio": max((trial.loss_ratio(promise.in_total) for trial in trials), default=0.0),
            **({"changed_frames": float(changed)} if changed else {}),
        }

    def charted(self, promise: Promise, trial: Trial) -> Mapping[str, Bounds]:
        """Return the loss ratio of each direction in per cent, or of all together."""
        figures = [Bounds(100 * ratio.low, 100 * ratio.high) for ratio in promise.figures([trial])]
        names = [f"loss ratio {row.tx_port} → {row.rx_port}" for row in trial.outcome.directions]
        if len(figures) < len(names):
            names = ["loss ratio of all directions"]
        return dict(zip(names, figures, strict=True))

    def plain(self, promise: Promise, figure: str, load: str) -> str:
        """Return how many frames are lost."""
        return f"The router, {load}, loses {figure} of the frames."


class Throughput(Loss):
    """No word: the load that is carried with no more loss than the goal allows (RFC 1242 3.17)."""

    name = "throughput"
    word = ""
    units = RATE_UNITS
    at_least = True
    needs = frozenset()
    chart = "rates"
    margin = "higher loads"
    title = "Throughput"
    charted = Quantity.charted
    example = "≥ 95% line rate"

    def limit(self, requirement: Requirement, goal: Goal, link_bps: float) -> Limit:
        """Return the loss ratio of the goal."""
        return Limit(goal.loss_ratio)

    def load(self, requirement: Requirement, link_bps: float, maximum: Load) -> Load:
        """Return the promised rate: it is the load that is offered."""
        return requirement.threshold_load(link_bps)

    def shown(self, promise: Promise, trials: Sequence[Trial]) -> Bounds:
        """Return the forwarding rate of the worst direction, or of all in total, in the promise's unit."""
        seconds = sum(trial.seconds.high for trial in trials) or 1e-9
        columns = list(zip(*(trial.outcome.directions for trial in trials), strict=True))
        frames = [
            [trial.forwarded_frames(row) for trial, row in zip(trials, column, strict=True)] for column in columns
        ]
        lows, highs = ([sum(getattr(came, end) for came in row) for row in frames] for end in ("low", "high"))
        low, high = ((sum(ends) if promise.in_total else min(ends)) / seconds for ends in (lows, highs))
        return Bounds(promise.in_unit(low), promise.in_unit(high))

    def ends(self, promise: Promise, trials: Sequence[Trial]) -> Bounds:
        """Return the part of the promised load that is carried, in the promise's unit."""
        worst, load = promise.worst(trials), promise.in_unit(promise.load_pps)
        whole = load * (len(trials[0].outcome.directions) if promise.in_total else 1)
        return Bounds(whole * (1 - min(1.0, worst.high)), whole * (1 - min(1.0, worst.low)))

    def reason(self, promise: Promise, ruling: Ruling, trials: Sequence[Trial]) -> Reason:
        """Return what was lost; of a FAIL, what was forwarded comes first."""
        reason = super().reason(promise, ruling, trials)
        if ruling is not Ruling.FAIL:
            return reason
        carried = mean_rate(trials, promise, "came_back")
        offered = mean_rate(trials, promise, "offered")
        asked = promise.load_pps * (len(trials[0].outcome.directions) if promise.in_total else 1)
        changed = changed_words(trials)
        # of changed frames the first line says how many, as this one's does
        lines = list(reason.details if changed else (reason.summary, *reason.details))
        whole = max(asked, offered)
        summary, share = f"forwarded {rate_words(carried, promise)}", part(carried / whole)
        if changed:
            # of all frames only some were looked at
            least = min(self.shown(promise, trials).low / promise.in_unit(whole), carried / whole)
            summary = f"forwarded at most {rate_words(carried, promise)}"
            share = between(Bounds(least, carried / whole), part)
        return Reason(f"forwarded {share} of it{f': {changed}' if changed else ''}", (lines[0], summary, *lines[1:]))

    def plain(self, promise: Promise, figure: str, load: str) -> str:
        """Return the load that is carried."""
        most = promise.limit.value
        without = f"losing at most {percent(most)} of the frames" if most else "without loss"
        return f"The router carries {figure} of this traffic, in a good trial {without}."


def _loss_ratio(trials: Sequence[Trial], columns: Sequence[Sequence[DirectionCount]], perfect: int) -> Bounds:
    counted_rows = [(trial, row) for column in columns for trial, row in zip(trials, column, strict=True)]
    lost = [trial.lost_frames(row) for trial, row in counted_rows]
    more = 1 + perfect / len(trials)
    offered = more * sum(max(1, row.offered) for _, row in counted_rows)
    # at the worse end frames that were not offered count as lost, and those sent beyond the load not as offered
    intended = more * sum(
        max(1, min(row.offered, row.intended), gone.high) for gone, (_, row) in zip(lost, counted_rows, strict=True)
    )
    low, high = sum(gone.low for gone in lost) / offered, sum(gone.high for gone in lost) / intended
    return Bounds(low, max(low, high))


THROUGHPUT = Throughput()
LOSS = Loss()
