"""``forwards ≥ 5 Mpps``: the rate that comes back while more is offered (RFC 2285 3.6.2, forwarding rate)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from ...core.bounds import Bounds, Limit
from ...core.deciding import MOST_EXTRA
from ...core.doubts import GENTLE, OF_FRAMES, USABLE_SHARE, Conditions, name, ports, queues
from ...core.goal import Goal
from ...core.phrases import between, changed_words, difference, direction_lines, mean_rate, percent, proven, rate_words
from ...core.quantity import Promise, Quantity, Reason, Requirement
from ...core.rule import Ruling
from ...core.trial import DirectionCount, Fault, Problem, Trial
from ...core.units import RATE_UNITS
from ...units import si


def receiving_ceiling(trial: Trial, conditions: Conditions) -> Iterator[Problem]:
    """Yield that a rate near the most that the generator itself receives may be its own limit."""
    own = conditions.own
    most = USABLE_SHARE * min(own.lossless_pps, own.received_pps)
    for row in trial.outcome.directions:
        if row.forwarded / trial.seconds.high > most:
            yield Problem(Fault.CEILING, f"{name(row)}: {own.words}", None, ports(row))


class ForwardingRate(Quantity):
    """The forwarding rate of each direction in frames/s, or of all in total. Queued frames do not count."""

    name = "forwards"
    is_mean = True
    word = "forwards"
    units = RATE_UNITS
    at_least = True
    doubts = (*OF_FRAMES, receiving_ceiling, queues)
    chart = "rates"
    loss_explains = True
    margin = "its own trials"
    title = "Forwarding rate"
    example = "forwards ≥ 5 Mpps"

    def limit(self, requirement: Requirement, goal: Goal, link_bps: float) -> Limit:
        """Return the promised rate in frames/s, of one direction or of all in total."""
        # a trial has whole frames: one of each direction is rounding
        rounded = (requirement.directions if requirement.in_total else 1) / goal.final_trial_duration
        per_port = requirement.within_clocks(requirement.threshold_load(link_bps), link_bps).pps
        judged = per_port * (requirement.directions if requirement.in_total else 1)
        return Limit(judged - rounded, at_least=True)

    def forgiven(self, promise: Promise) -> Limit:
        """Return the promise itself; where it is the whole load, less what the goal forgives of the load."""
        if promise.in_total or not promise.names_load:
            return promise.limit
        return Limit(min(promise.limit.value, promise.load_pps * (1 - promise.goal.forgiven)), at_least=True)

    def figures(self, promise: Promise, trials: Sequence[Trial], perfect: int = 0) -> tuple[Bounds, ...]:
        """Return the forwarding rate; the higher end with frames that were not offered, as if they had come back."""
        more = 1 + perfect / len(trials)
        least, longest = sum(trial.seconds.low for trial in trials), sum(trial.seconds.high for trial in trials)
        places = range(len(trials[0].outcome.directions))
        rates = []
        for group in [places] if promise.in_total else [range(place, place + 1) for place in places]:
            frames = [_forwarded(promise, trial, group) for trial in trials]
            best = perfect * max(_most(promise, trial, group) for trial in trials)
            low = (sum(came.low for came in frames) + best) / (longest * more)
            high = (sum(came.high for came in frames) + best) / (max(least, 1e-9) * more)
            rates.append(Bounds(low, max(low, high)))
        return tuple(rates)

    def shown(self, promise: Promise, trials: Sequence[Trial]) -> Bounds:
        """Return the rate in the promise's unit."""
        worst = promise.worst(trials)
        return Bounds(promise.in_unit(worst.low), promise.in_unit(worst.high))

    def reason(self, promise: Promise, ruling: Ruling, trials: Sequence[Trial]) -> Reason:
        """Return the mean rate, and how far it is from the promise."""
        worst = promise.worst(trials)
        offered = mean_rate(trials, promise, "offered")
        if ruling is Ruling.INCONCLUSIVE:
            # what was not offered might have come back, but did not
            most = max(worst.low, min(worst.high, offered))
            rate, against = between(Bounds(worst.low, most), lambda pps: si(pps, "pps", 5)), ""
        else:
            rate = proven(worst, ruling, promise.limit, lambda pps: rate_words(pps, promise))
            end = worst.low if ruling is Ruling.PASS else worst.high
            # a study promises nothing; of a promise the limit is the frames without those that are rounding
            directions = len(trials[0].outcome.directions) if promise.in_total else 1
            whole = promise.limit.value + directions / promise.goal.final_trial_duration
            share = end / whole if promise.limit.value > 0 else math.inf
            against = f", {difference(share - 1)} against the promise" if math.isfinite(share) else ""
            if ruling is Ruling.PASS and end < promise.limit.value:
                against += f", {percent(promise.goal.forgiven)} forgiven in all"
        changed = changed_words(trials) if ruling is Ruling.FAIL else ""
        summary = f"forwarded {rate} of {si(offered, 'pps')} offered{against}{f': {changed}' if changed else ''}"
        details = direction_lines(promise, trials)
        total = sum(trial.offered for trial in trials) / (sum(trial.seconds.low for trial in trials) or 1e-9)
        if total / (1 if promise.in_total else len(trials[0].outcome.directions)) < promise.limit.value:
            details.insert(0, "the generator offered less than is to be forwarded; use a faster one")
        return Reason(summary, tuple(details))

    def named_figures(self, promise: Promise, trials: Sequence[Trial]) -> Mapping[str, float]:
        """Return the smallest and largest rate of a trial, and the bounds of the worst direction's, in frames/s."""
        rates = [mean_rate([trial], promise, "forwarded") for trial in trials]
        figures = {"forwarded_pps_min": min(rates), "forwarded_pps_max": max(rates)}
        whole = promise.worst(trials)
        ends = {"forwarded_pps_low": whole.low, "forwarded_pps_high": whole.high}
        return figures | {name: pps for name, pps in ends.items() if math.isfinite(pps)}

    def plain(self, promise: Promise, figure: str, load: str) -> str:
        """Return what is still delivered."""
        return f"The router, {load}, still delivers {figure}."


def _wanted(promise: Promise, trial: Trial, directions: int) -> float:
    """Return the frames that *trial* had to offer: of the named load, or of the promised rate."""
    return trial.seconds.high * (promise.load_pps * directions if promise.names_load else promise.limit.value)


def _most(promise: Promise, trial: Trial, group: range) -> float:
    """Return the frames of some directions that come back in a perfect trial like *trial*: all that may be offered.

    Of a trial whose counters were reset, 0 were counted as offered.
    """
    offered = sum(trial.outcome.directions[place].offered for place in group)
    asked = max(_wanted(promise, trial, len(group)), trial.seconds.high * promise.load_pps * len(group))
    return max(offered, asked * (1 + MOST_EXTRA))


def _forwarded(promise: Promise, trial: Trial, group: range) -> Bounds:
    """Return the frames of some directions that came back, if the load had been offered."""
    counts = [trial.outcome.directions[place] for place in group]
    if promise.names_load:
        parts = [_of_load(promise, trial, row) for row in counts]
        return Bounds(sum(part.low for part in parts), sum(part.high for part in parts))
    frames = [trial.forwarded_frames(row) for row in counts]
    short = _wanted(promise, trial, len(group)) - sum(row.offered for row in counts)
    # a sum that is rounded must not miss the limit by itself
    unsent = max(0.0, short) * (1 + 1e-9)
    return Bounds(sum(came.low for came in frames), sum(came.high for came in frames) + unsent)


def _of_load(promise: Promise, trial: Trial, row: DirectionCount) -> Bounds:
    """Return how many frames of the named load came back in one direction.

    Those that were not offered might have come back, or might have cost others; those beyond the load do not count.
    """
    frames, wanted = trial.forwarded_frames(row), _wanted(promise, trial, 1)
    short = wanted - row.offered
    low = min(frames.low, max(0.0, wanted - trial.lost_frames(row).high))
    if short - 1 > promise.goal.resolution * wanted:
        low = max(0.0, frames.low - short) if short <= GENTLE * wanted else 0.0
    return Bounds(low, frames.high + max(0.0, short))


FORWARDING_RATE = ForwardingRate()
