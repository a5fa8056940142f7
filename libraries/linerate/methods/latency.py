"""Latency and jitter at a load, from probe frames among the traffic; a bound decides only if it is sure."""

from __future__ import annotations

from collections.abc import Sequence

from ..counts.latency import LatencyBounds, LatencyCount, Statistic, pooled
from ..counts.trial import Load, Measure, Trial
from ..sla.goals import Goal
from ..sla.requirement import Requirement
from ..sla.verdict import Evidence, Ruling, Verdict, clear_loss, undivided
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
    """Judge a ``latency …`` or ``jitter`` sentence at *load* (frames/s into each port, probe frames included).

    *measure* sends probe frames among the traffic (``Outcome.latency``). Each trial is judged on its worse direction:
    good if the statistic is certainly within the threshold, bad if it certainly is not; else it proves nothing. A trial
    that loses more than the goal allows is bad: a lost frame is later than any limit. *clock*: resolution and bias of
    the generator's clock, in words.
    """
    load = requirement.within_clocks(load, link_bps)
    statistic = requirement.statistic or Statistic("max")
    threshold = requirement.threshold.number

    def evidence_of(trial: Trial) -> Evidence:
        if clear_loss(goal, trial, in_total=False):
            return Evidence.CLEAR
        # at a lower load queues are shorter: a frame late there is late at the load too, an early one proves nothing
        bad = Evidence.BAD if trial.valid else Evidence.BAD_BELOW
        if trial.certain_loss_ratio(in_total=False) > goal.loss_ratio:
            return bad
        if not trial.blames_router:
            return Evidence.NONE
        worst = _worst_bounds(trial, statistic)
        if worst is None or _count_with_too_few_probes(trial, statistic):
            return Evidence.TOO_COARSE if trial.valid else Evidence.NONE
        if worst.low > threshold:
            return bad
        if not trial.valid:
            return Evidence.NONE
        return Evidence.GOOD if worst.high <= threshold else Evidence.TOO_COARSE

    def conclusive_of(trials: Sequence[Trial]) -> list[Trial]:
        return [trial for trial in trials if evidence_of(trial) not in (Evidence.NONE, Evidence.TOO_COARSE)]

    def keeps(trials: Sequence[Trial]) -> bool:
        whole = _bounds_of_all(conclusive_of(trials), statistic)
        return whole is None or whole.low <= threshold

    rule = undivided(evidence_of)
    found = run_until_decided(measure, load, goal, rule, conditions, keeps=keeps, needed=load)
    ruling, trials = found.ruling, found.trials
    conclusive = conclusive_of(trials)
    figures = rate_figures(requirement, trials, link_bps) | _figures(conclusive or trials, statistic)
    whole = _bounds_of_all(conclusive, statistic)
    if contradicts(ruling, goal, trials, rule):
        reason = (
            f"{statistic} of all probe frames of its trials together is {whole} (limit {threshold:g} µs, the worse"
            " direction); the goal forgives bad trials, but not that"
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


def _worst_bounds(trial: Trial, statistic: Statistic) -> LatencyBounds | None:
    """The statistic in the direction where it is highest; None if a direction has none."""
    found = [count.bounds(statistic) for count in trial.outcome.latency]
    known = [bounds for bounds in found if bounds is not None]
    if not known or len(known) < len(trial.outcome.directions):
        return None
    return LatencyBounds(max(bounds.low for bounds in known), max(bounds.high for bounds in known))


def _bounds_of_all(trials: Sequence[Trial], statistic: Statistic) -> LatencyBounds | None:
    """The statistic of all trials' probe frames together, in the direction where it is highest; None: not known."""
    rows = [trial.outcome.latency for trial in trials if trial.outcome.latency]
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        return None
    found = [pooled(counts).bounds(statistic) for counts in zip(*rows, strict=True)]
    known = [bounds for bounds in found if bounds is not None]
    if not known:
        return None
    return LatencyBounds(max(bounds.low for bounds in known), max(bounds.high for bounds in known))


def _count_with_too_few_probes(trial: Trial, statistic: Statistic) -> LatencyCount | None:
    """A direction with fewer probe frames than the statistic needs."""
    return next((count for count in trial.outcome.latency if count.received < statistic.frames_needed), None)


def _figures(trials: Sequence[Trial], statistic: Statistic) -> dict[str, float]:
    counts = [count for trial in trials for count in trial.outcome.latency if count.received]
    worst = [bounds for trial in trials if (bounds := _worst_bounds(trial, statistic)) is not None]
    if not counts or not worst:
        return {}
    received = sum(count.received for count in counts)
    return {
        "latency_low_us": max(bounds.low for bounds in worst),
        "latency_high_us": max(bounds.high for bounds in worst),
        "latency_mean_us": sum(count.mean * count.received for count in counts) / received,
        "latency_max_us": max(count.maximum for count in counts),
        "jitter_us": max(count.jitter for count in counts),
        "probe_frames": float(received),
        "probe_frames_lost": float(sum(count.lost for count in counts)),
    }


def _bounds_text(trials: Sequence[Trial], statistic: Statistic) -> str:
    worst = [bounds for trial in trials if (bounds := _worst_bounds(trial, statistic)) is not None]
    if not worst:
        return "not reported"
    widest = LatencyBounds(max(bounds.low for bounds in worst), max(bounds.high for bounds in worst))
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
    if few is not None and 0 < few.sent < statistic.frames_needed:
        return (
            f"a trial of {last.outcome.duration:g} s at this load has room for {few.sent} probe frames (a tenth of it),"
            f" and {statistic} needs {statistic.frames_needed}; expected a higher load, or a goal with longer"
            " trials"
        )
    if few is not None:
        return (
            f"only {few.received} of {few.sent} probe frames came back from port {few.tx_port} at port {few.rx_port};"
            f" {statistic} needs {statistic.frames_needed}; check that the generator's card supports latency streams"
        )
    worst = _worst_bounds(last, statistic)
    if worst is None:
        return "the generator reported no latency; check that its card supports latency streams"
    return (
        f"{statistic} is {worst}, and the limit of {threshold:g} µs lies between: the generator's histogram is too"
        f" coarse; expected a limit of at most {worst.low:g} or at least {worst.high:g} µs"
    )
