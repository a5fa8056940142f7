"""``latency p99 ≤ 100 µs at 1 Mpps`` and ``pdv``: from probe frames in the traffic (RFC 1242 3.8, RFC 5481 4.2).

A percentile of a sample is bounded by order statistics. Their errors are the goal's own shares: of a router that keeps
the promise at most ``good_share`` of the trials look bad, of one that misses it at most ``1 - bad_share`` look good.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

from ...core.bounds import UNKNOWN, Bounds, ranks
from ...core.doubts import AT_THE_EXACT_LOAD, foreign_frames, name, own_ceiling, own_delay, own_loss, spared_probes
from ...core.goal import Goal
from ...core.latency import Errors, LatencyCount, LatencySpread, Statistic, pooled, time_words
from ...core.phrases import mean_rate
from ...core.quantity import Promise, Quantity, Reason
from ...core.rule import Ruling
from ...core.trial import DirectionCount, Fault, Trial
from ...core.units import Unit
from ...units import counted, si

MOST_LOST = 100.0
"""Lost frames for each probe frame that was sent, where hardly a frame came back."""


class Latency(Quantity):
    """A statistic of the latency of each direction in µs. A lost frame is later than any limit."""

    name = "latency"
    word = "latency"
    units = (Unit.MICROSECONDS,)
    needs = frozenset({"load", "probes"})
    statistics: ClassVar[tuple[str, ...]] = ("min", "mean", "max")
    has_total = False
    loss_explains = True
    doubts = (*AT_THE_EXACT_LOAD, foreign_frames, own_loss, own_ceiling, own_delay, spared_probes)
    chart = "histogram"
    title = "Latency"
    example = "latency p99 ≤ 100 µs at 1 Mpps"

    def figures(self, promise: Promise, trials: Sequence[Trial], perfect: int = 0) -> tuple[Bounds, ...]:
        """Return the statistic of each direction in µs, of the probe frames of all *trials*."""
        goal = promise.goal
        errors: Errors = (goal.risk / max(1, promise.soak),) * 2
        if len(trials) == 1 and not perfect and goal.good_share is not None and goal.bad_share is not None:
            errors = goal.good_share, 1 - goal.bad_share
        columns = zip(*(trial.outcome.directions for trial in trials), strict=True)
        return tuple(_statistic(list(zip(trials, column, strict=True)), promise, errors, perfect) for column in columns)

    def reason(self, promise: Promise, ruling: Ruling, trials: Sequence[Trial]) -> Reason:
        """Return the statistic of all probe frames, and what is known of them."""
        worst = self.shown(promise, trials)
        counts = [count for trial in trials for count in trial.outcome.latency]
        received, lost, sent = (sum(getattr(count, name) for count in counts) for name in ("received", "lost", "sent"))
        offered = si(mean_rate(trials, promise, "offered"), "pps")
        time = "is not known" if worst == UNKNOWN else time_words(worst, promise.digits)
        summary = f"{promise.statistic or 'max'} {time} ({counted(received, 'probe frame')}) at {offered} offered"
        details = [f"{lost:,} of {sent:,} probe frames did not come back"] if lost else []
        if promise.statistic is not None and promise.goal.bad_share is not None and ruling is Ruling.INCONCLUSIVE:
            needed = promise.statistic.frames_needed(1 - promise.goal.bad_share)
            if 0 < (fewest := min((count.sent for count in counts), default=0)) < needed:
                details.append(f"a trial had {counted(fewest, 'probe frame')}, too few: expected at least {needed}")
        doubts = [doubt for trial in trials if (doubt := _doubt_of_histogram(trial, ruling))]
        return Reason(summary, (*details, *doubts[:1]))

    def named_figures(self, promise: Promise, trials: Sequence[Trial]) -> Mapping[str, float]:
        """Return the bounds in µs, and the probe frames."""
        counts = [count for trial in trials for count in trial.outcome.latency if count.received]
        worst = self.shown(promise, trials)
        figures = {
            f"{self.name}_low_us": worst.low,
            f"{self.name}_high_us": worst.high,
            "probe_frames": float(sum(count.received for count in counts)),
            "probe_frames_lost": float(sum(count.lost for count in counts)),
        }
        return {name: value for name, value in figures.items() if math.isfinite(value)}

    def plain(self, promise: Promise, figure: str, load: str) -> str:
        """Return which frames come through in which time."""
        return f"{_share(promise)} through the router in {figure}, {load}."


class DelayVariation(Latency):
    """A statistic of the packet delay variation: a frame's latency less that of the fastest one (RFC 5481 4.2)."""

    name = "pdv"
    word = "pdv"
    statistics = ("mean", "max")
    title = "Packet delay variation"
    example = "pdv p99.9 ≤ 50 µs at 1 Mpps"

    def statistic(self, word: str) -> Statistic:
        """Return the statistic, of how much later frames come than the fastest one."""
        return Statistic.read(word, self.statistics, variation=True)

    def plain(self, promise: Promise, figure: str, load: str) -> str:
        """Return by how much the frames are later than the fastest one."""
        return f"{_share(promise)} through in {figure} more than the fastest frame, {load}."


def _share(promise: Promise) -> str:
    name = "max" if promise.statistic is None else promise.statistic.name
    if name.startswith("p"):
        return f"{name[1:]} % of the frames are"
    return {"min": "The fastest frame is", "mean": "On average a frame is"}.get(name, "Each measured frame is")


def _statistic(counts: list[tuple[Trial, DirectionCount]], promise: Promise, errors: Errors, perfect: int) -> Bounds:
    spreads = [_spread(trial, row, promise.goal) for trial, row in counts]
    known = [spread for spread in spreads if spread is not None]
    if len(known) < len(spreads):
        return UNKNOWN
    statistic = promise.statistic or Statistic("max")
    slowest = max(spread.bounds(Statistic("min")).high for spread in known)
    bounds_of_all = pooled(known, perfect).bounds(statistic, errors, slowest)
    if statistic.variation:
        # each trial has a fastest frame of its own; a statistic of all lies between those of single trials
        single = [spread.bounds(statistic, errors) for spread in known]
        low = bounds_of_all.low if perfect else max(bounds_of_all.low, min(bounds.low for bounds in single))
        bounds_of_all = Bounds(low, max(low, min(bounds_of_all.high, max(bounds.high for bounds in single))))
    delay = max(trial.delay(row) for trial, row in counts)
    hides_all = any(math.isinf(trial.hidden(row)) for trial, row in counts)
    return Bounds(max(0.0, bounds_of_all.low - delay), math.inf if hides_all else bounds_of_all.high)


def _spread(trial: Trial, row: DirectionCount, goal: Goal) -> LatencySpread | None:
    """Return the latencies of the probe frames of a direction; None: nothing is known, or the counts contradict.

    Of a load that loses more than is forgiven, as many are lost as of all frames.
    """
    count = trial.probes(row)
    if count is None or not count.sent:
        return None
    cost, offered, hidden = trial.cost(row), max(1, row.offered), trial.hidden(row)
    # it takes frames as they come: of the probe frames, a sample, about the same share
    own = min(1.0, trial.cost(row, but=_NOT_OWN) / offered)
    most_own = ranks(count.sent, own, goal.risk, goal.risk)[1] - 1
    lost, loss_ratio = max(0.0, count.lost - trial.cost(row, but=_OWN) - most_own), (row.lost - cost) / offered
    if loss_ratio > goal.forgiven:
        # of the probe frames no more may be the testbed's loss than of all frames
        lost = max(lost, min(count.lost, loss_ratio * count.sent))
    # what lost a frame made no other one late
    spread = count.spread(lost, count.sent * min(1.0, trial.cost(row, but=_LOSE_ONLY) / offered))
    if spread is None:
        return None
    if trial.spares_probes(row):
        spread = spread.with_later_frames()
    most, certain = (_lost_beside(count, ratio, goal.forgiven) for ratio in (row.lost / offered, loss_ratio))
    unseen = 0.0 if math.isinf(hidden) or hidden <= goal.forgiven * offered else count.sent * hidden / offered
    return spread.with_lost(most, min(certain, most), unseen)


_OWN = (Fault.OWN_LOSS, Fault.UNWATCHED)
"""The generator's own loss: no count of this trial, but of others, and a share of all frames alike."""

_NOT_OWN = tuple(fault for fault in Fault if fault not in _OWN)
_LOSE_ONLY = (*_OWN, Fault.DAMAGED, Fault.AFTER_ROUTER)


def _lost_beside(count: LatencyCount, loss_ratio: float, forgiven: float) -> float:
    """Return how many lost frames *count* lacks, so that it shows the *loss_ratio* of all frames."""
    if loss_ratio <= forgiven:
        return 0.0
    return min(MOST_LOST * count.sent, max(0.0, loss_ratio * count.sent - count.lost) / max(1e-9, 1 - loss_ratio))


def _doubt_of_histogram(trial: Trial, ruling: Ruling) -> str:
    """Return why the histogram of a direction does not say how late its frames were; "" if it does."""
    for row in trial.outcome.directions:
        if (probes := trial.probes(row)) is None or not probes.sent:
            return f"{name(row)}: the generator reported no probe frames"
    for count in trial.outcome.latency:
        way, total = f"port {count.tx_port} to port {count.rx_port}", count.received + count.elsewhere
        if count.unplaced < 0:
            return (
                f"{way}: the generator's histogram has {total - count.unplaced:,} probe frames, and it received"
                f" {total:,}: its figures contradict each other"
            )
        if ruling is Ruling.INCONCLUSIVE and (count.doubt or count.unplaced):
            rest = f"{count.unplaced:,} of {total:,} received probe frames are missing in the generator's histogram"
            return f"{way}: {count.doubt or rest}"
    return ""


LATENCY = Latency()
DELAY_VARIATION = DelayVariation()
