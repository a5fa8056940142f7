"""Latency and packet delay variation at a load, from probe frames in the traffic. Only a sure bound decides."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..core.goals import Goal
from ..core.latency import LatencyBounds, LatencyCount, LatencySpread, Statistic, pooled
from ..core.requirement import Requirement
from ..core.trial import DirectionCount, Load, Measure, Trial
from ..core.verdict import Evidence, Ruling, Verdict, clear_loss, on_the_whole
from ..units import si
from .phrases import percent, rate_figures, set_aside_text, spoilt_trials_reason
from .sequential import TrialConditions, contradicts, run_until_decided


def latency(
    requirement: Requirement,
    load: Load,
    goal: Goal,
    measure: Measure,
    link_bps: float,
    conditions: TrialConditions,
    clock: str = "",
) -> Verdict:
    """Judge a ``latency …`` or ``pdv …`` sentence at *load* (frames/s into each port, probe frames included).

    *measure* sends probe frames among the traffic (``Outcome.latency``). Each direction is judged by itself; a trial is
    good if the statistic of all probe frames that were sent is certainly within the threshold, bad if it certainly is
    not; else it proves nothing. A lost frame is later than any limit: a lost probe frame counts so in the statistic,
    and a trial that loses more than the goal allows is bad. *clock*: what the generator's clock measures, in words.
    """
    load = requirement.within_clocks(load, link_bps)
    statistic = requirement.statistic or Statistic("max")
    threshold = requirement.threshold.number

    def rule(trial: Trial) -> tuple[Evidence, ...]:
        rows = trial.outcome.directions
        if clear_loss(goal, trial, in_total=False):
            return (Evidence.CLEAR,) * max(1, len(rows))
        known = {(row.tx_port, row.rx_port): bounds for row, _, bounds in _bounds(trial, statistic)}
        probes = {(count.tx_port, count.rx_port): count for count in trial.outcome.latency}

        def evidence(row: DirectionCount, lost: float) -> Evidence:
            # at a lower load queues are shorter: a frame late there is late at the load, an early one proves nothing
            bad = Evidence.BAD if trial.valid else Evidence.BAD_BELOW
            ports = row.tx_port, row.rx_port
            bounds, count = known.get(ports), probes.get(ports)
            if lost > goal.loss_ratio:
                return bad
            enough = count is not None and count.sent >= statistic.frames_needed
            if bounds is not None and bounds.low > threshold and enough:
                return bad
            if not trial.valid:
                return Evidence.NONE
            few = count is None or count.received < statistic.frames_needed
            return Evidence.GOOD if bounds is not None and bounds.high <= threshold and not few else Evidence.TOO_COARSE

        return tuple(map(evidence, rows, trial.certain_loss_ratios))

    def evidence_of(trial: Trial) -> Evidence:
        return on_the_whole(rule(trial))

    def conclusive_of(trials: Sequence[Trial]) -> list[Trial]:
        return [trial for trial in trials if evidence_of(trial) not in (Evidence.NONE, Evidence.TOO_COARSE)]

    def bounds_of_all(trials: Sequence[Trial]) -> LatencyBounds | None:
        return _bounds_of_all([trial for trial in trials if evidence_of(trial) is not Evidence.NONE], statistic)

    def fails_anyway(trials: Sequence[Trial]) -> bool:
        """Return whether the limit is certainly missed, even if all further trials of the plan were perfect."""
        weighed = [trial for trial in trials if evidence_of(trial) is not Evidence.NONE and _spreads(trial)]
        planned = goal.plan_for(requirement.directions).most_trials
        found = _bounds_of_all(weighed, statistic, planned)
        return found is not None and found.low > threshold

    def keeps(trials: Sequence[Trial]) -> bool:
        whole = bounds_of_all(trials)
        return whole is not None and whole.high <= threshold

    found = run_until_decided(measure, load, goal, rule, conditions, keeps=keeps, needed=load)
    ruling, trials = found.ruling, found.trials
    conclusive = conclusive_of(trials)
    figures = rate_figures(requirement, trials, link_bps) | _figures(conclusive or trials, statistic)
    whole = bounds_of_all(trials)
    contradiction = contradicts(ruling, goal, trials, rule)
    if (contradiction or ruling is Ruling.INCONCLUSIVE) and fails_anyway(trials):
        ruling = Ruling.FAIL
        reason = (
            f"{statistic} of all probe frames of its trials together is {whole or 'too high'} (limit {threshold:g} µs,"
            " the worse direction); the goal forgives bad trials, but not that"
        )
    elif contradiction:
        ruling = Ruling.INCONCLUSIVE
        known = "not known" if whole is None else f"only known to be {whole}"
        reason = (
            f"{statistic} of all probe frames of its trials together is {known} (limit {threshold:g} µs, the worse"
            " direction)"
        )
    elif ruling is Ruling.INCONCLUSIVE:
        reason = _inconclusive_reason(trials, statistic, threshold)
    else:
        reason = (
            f"{statistic} {_bounds_text(conclusive, statistic)} (limit {threshold:g} µs, the worse direction)"
            f" of {sum(count.received for trial in conclusive for count in trial.outcome.latency)} probe frames at"
            f" {si(figures['offered_pps'], 'pps')} offered{_loss_text(conclusive, goal)}"
        )
        if ruling is Ruling.PASS:
            reason += set_aside_text(trials, rule)
    return Verdict(requirement, goal, ruling, reason + (f"; {clock}" if clock else ""), trials, link_bps, figures)


def _spreads(trial: Trial) -> list[tuple[DirectionCount, LatencyCount, LatencySpread]]:
    """The probe frames of each direction, where something is known of them."""
    found = []
    counts = {(count.tx_port, count.rx_port): count for count in trial.outcome.latency}
    for direction in trial.outcome.directions:
        count = counts.get((direction.tx_port, direction.rx_port))
        # probe frames that are missing while the direction is not may have come, and not been recognised
        explained = trial.explained(direction)
        lost = max(0.0, direction.lost - explained)
        if count is not None and (spread := count.spread(trial.seconds, lost, explained)) is not None:
            found.append((direction, count, spread))
    return found


def _bounds(trial: Trial, statistic: Statistic) -> list[tuple[DirectionCount, LatencyCount, LatencyBounds]]:
    rows = [(direction, count, spread.bounds(statistic)) for direction, count, spread in _spreads(trial)]
    return [(direction, count, bounds) for direction, count, bounds in rows if bounds is not None]


def _worst_bounds(trial: Trial, statistic: Statistic) -> LatencyBounds | None:
    """The statistic in the direction where it is highest; None if a direction has none."""
    known = [bounds for _, _, bounds in _bounds(trial, statistic)]
    return _worst(known) if known and len(known) == len(trial.outcome.directions) else None


def _worst(known: Sequence[LatencyBounds]) -> LatencyBounds:
    return LatencyBounds(max(bounds.low for bounds in known), max(bounds.high for bounds in known))


def _bounds_of_all(trials: Sequence[Trial], statistic: Statistic, planned: int = 0) -> LatencyBounds | None:
    """The statistic of all trials' probe frames together, in the direction where it is highest; None: not known.

    Of fewer trials than *planned*, the lower bound is that with perfect further ones.
    """
    rows: dict[tuple[int, int], list[LatencySpread]] = {}
    for trial in trials:
        found_here = _spreads(trial)
        if len(found_here) < len(trial.outcome.directions):
            return None
        for _, count, spread in found_here:
            rows.setdefault((count.tx_port, count.rx_port), []).append(spread)
    found = [pooled(spreads, max(0, planned - len(spreads))).bounds(statistic) for spreads in rows.values()]
    known = [bounds for bounds in found if bounds is not None]
    return _worst(known) if known else None


def _count_with_too_few_probes(trial: Trial, statistic: Statistic) -> LatencyCount | None:
    """A direction with fewer probe frames than the statistic needs."""
    return next((count for count in trial.outcome.latency if count.sent < statistic.frames_needed), None)


def _figures(trials: Sequence[Trial], statistic: Statistic) -> dict[str, float]:
    counts = [count for trial in trials for count in trial.outcome.latency if count.received]
    worst = [bounds for trial in trials if (bounds := _worst_bounds(trial, statistic)) is not None]
    if not counts or not worst:
        return {}
    quantity = "pdv" if statistic.variation else "latency"
    bounds = _worst(worst)
    figures = {
        f"{quantity}_low_us": bounds.low,
        f"{quantity}_high_us": bounds.high,
        "probe_frames": float(sum(count.received for count in counts)),
        "probe_frames_lost": float(sum(count.lost for count in counts)),
    }
    return {name: value for name, value in figures.items() if math.isfinite(value)}


def _bounds_text(trials: Sequence[Trial], statistic: Statistic) -> str:
    worst = [bounds for trial in trials if (bounds := _worst_bounds(trial, statistic)) is not None]
    if not worst:
        return "not reported"
    widest = _worst(worst)
    if len(worst) == 1:
        return str(widest)
    return f"{widest} in the worst of {len(worst)} trials"


def _loss_text(trials: Sequence[Trial], goal: Goal) -> str:
    lossy = [trial for trial in trials if trial.loss_ratio(in_total=False) > goal.loss_ratio]
    if not lossy:
        return ""
    most = max(trial.loss_ratio(in_total=False) for trial in lossy)
    return (
        f"; {len(lossy)} of {len(trials)} trials lost up to {percent(most)} of their frames (goal:"
        f" {percent(goal.loss_ratio)}): a lost frame is later than any limit"
    )


def _inconclusive_reason(trials: Sequence[Trial], statistic: Statistic, threshold: float) -> str:
    last = trials[-1]
    if any(trial.problems for trial in trials):
        return spoilt_trials_reason(trials)
    few = _count_with_too_few_probes(last, statistic)
    if few is not None and few.sent:
        return (
            f"a trial of {last.outcome.duration:g} s at this load has room for {few.sent} probe frames (a tenth of it),"
            f" and {statistic} needs {statistic.frames_needed}; expected a higher load, or a goal with longer"
            " trials"
        )
    gone = next((count for count in last.outcome.latency if count.received < statistic.frames_needed), None)
    if gone is not None:
        return (
            f"only {gone.received} of {gone.sent} probe frames came back from port {gone.tx_port} at port"
            f" {gone.rx_port}; {statistic} needs {statistic.frames_needed}; check that the generator's card supports"
            " latency streams"
        )
    worst = _worst_bounds(last, statistic)
    for trial in reversed(trials):
        found = _worst_bounds(trial, statistic)
        if (found is None or math.isinf(found.high)) and (doubt := _doubt(trial)):
            return doubt
    if worst is None:
        return "the generator reported no latency; check that its card supports latency streams"
    known = [bounds for trial in trials if (bounds := _worst_bounds(trial, statistic)) is not None]
    # the last trial alone may have decided
    worst = next((bounds for bounds in reversed(known) if bounds.low <= threshold < bounds.high), worst)
    # a figure may be the lower end itself, which keeps that limit, and is never the upper end
    limits = [f"less than {worst.low:g}"] * (worst.low > 0) + [f"at least {worst.high:g}"] * math.isfinite(worst.high)
    expected = f"; expected a limit of {' or '.join(limits)} µs" if limits else ""
    return (
        f"{statistic} is {worst}, by which a limit of {threshold:g} µs may be kept or missed: the generator's histogram"
        f" is too coarse{expected}"
    )


def _doubt(trial: Trial) -> str:
    """Why the histogram of a direction does not say how late its frames were; "" if it does."""
    for count in trial.outcome.latency:
        total, name = count.received + count.elsewhere, f"from port {count.tx_port} to port {count.rx_port}"
        if count.unplaced < 0:
            return (
                f"{name} the generator's histogram has {total - count.unplaced} probe frames, and it received {total}:"
                " its figures contradict each other"
            )
        if count.unexplained:
            return (
                f"{name} {count.unexplained} of {total} received probe frames are missing in the generator's"
                " histogram, which leaves out those later than 1 s (the latest known:"
                f" {count.maximum:g} µs)"
            )
        if (late := count.most_late(trial.seconds)) > 0:
            return (
                f"{name} {late} of {total} received probe frames came in less than 10 µs, or later than 1 s: the"
                " generator's histogram leaves out the late ones, and its bucket 0 may be of an earlier trial"
                f" ({count.out_of_order} out of order, {count.lost} lost, the latest known: {count.maximum:g} µs)"
            )
        if count.lost:
            return (
                f"{name} {count.lost} of {count.sent} probe frames did not come back, which may be later than any limit"
            )
    return ""
