"""Latency and jitter at a load: probe frames among the traffic, judged by the bound that is against the verdict."""

from __future__ import annotations

from collections.abc import Sequence

from ..counts.latency import LatencyBounds, LatencyCount, Statistic
from ..counts.trial import Load, Measure, Trial
from ..sla.goals import Goal
from ..sla.requirement import Requirement
from ..sla.verdict import Evidence, Ruling, Verdict
from ..units import si
from .phrases import percent, rate_figures, testbed_reason
from .sequential import Conditions, until_decided


def latency(
    requirement: Requirement,
    load: Load,
    goal: Goal,
    measure: Measure,
    link_bps: float,
    conditions: Conditions,
    clock: str = "",
) -> Verdict:
    """Judge a ``latency …`` or ``jitter`` sentence at *load* (frames/s into each port, probe frames included).

    *measure* puts probe frames among the traffic (``Outcome.latency``). Each trial is judged on its worse direction:
    good where the statistic is surely within the threshold, bad where it surely is not, else it proves nothing. A trial
    that loses more than the goal allows is bad: a frame that never comes is later than any limit. *clock* tells
    resolution and bias of the generator's clock.
    """
    statistic = requirement.statistic or Statistic("max")
    threshold = requirement.threshold.number

    def weigh(trial: Trial) -> Evidence:
        if not trial.blames_router:
            return Evidence.NONE
        if goal.clear_loss_ratio is not None and trial.clear_loss(in_total=False) > goal.clear_loss_ratio:
            return Evidence.CLEAR
        # at less than the load a queue is shorter: late there is late, soon enough proves nothing
        bad = Evidence.BAD if trial.valid else Evidence.BAD_BELOW
        if trial.loss_ratio(in_total=False) > goal.loss_ratio:
            return bad
        worst = _worst(trial, statistic)
        if worst is None or _too_few(trial, statistic):
            return Evidence.UNTOLD if trial.valid else Evidence.NONE
        if worst.low > threshold:
            return bad
        if not trial.valid:
            return Evidence.NONE
        return Evidence.GOOD if worst.high <= threshold else Evidence.UNTOLD

    ruling, trials = until_decided(measure, load, goal, weigh, conditions)
    telling = [trial for trial in trials if weigh(trial) not in (Evidence.NONE, Evidence.UNTOLD)]
    figures = rate_figures(requirement, trials, link_bps) | _figures(telling or trials, statistic)
    if ruling is Ruling.INCONCLUSIVE:
        reason = _why_not(trials, statistic, threshold)
    else:
        reason = (
            f"{statistic} {_spread(telling, statistic)} (limit {threshold:g} µs, the worse direction)"
            f" of {sum(count.received for trial in telling for count in trial.outcome.latency)} probe frames at"
            f" {si(figures['offered_pps'], 'pps')} offered{_lost(telling, goal)}"
        )
    return Verdict(requirement, goal, ruling, reason + (f"; {clock}" if clock else ""), trials, link_bps, figures)


def _worst(trial: Trial, statistic: Statistic) -> LatencyBounds | None:
    """The statistic of the direction in which it is highest; None where a direction has none."""
    found = [count.bounds(statistic) for count in trial.outcome.latency]
    known = [bounds for bounds in found if bounds is not None]
    if not known or len(known) < len(trial.outcome.directions):
        return None
    return LatencyBounds(max(bounds.low for bounds in known), max(bounds.high for bounds in known))


def _too_few(trial: Trial, statistic: Statistic) -> LatencyCount | None:
    """A direction with fewer probe frames than the statistic needs."""
    return next((count for count in trial.outcome.latency if count.received < statistic.frames_needed), None)


def _figures(trials: Sequence[Trial], statistic: Statistic) -> dict[str, float]:
    counts = [count for trial in trials for count in trial.outcome.latency if count.received]
    worst = [bounds for trial in trials if (bounds := _worst(trial, statistic)) is not None]
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


def _spread(trials: Sequence[Trial], statistic: Statistic) -> str:
    worst = [bounds for trial in trials if (bounds := _worst(trial, statistic)) is not None]
    if not worst:
        return "not told"
    widest = LatencyBounds(max(bounds.low for bounds in worst), max(bounds.high for bounds in worst))
    if len(worst) == 1:
        return str(widest)
    return f"{widest} in the worst of {len(worst)} trials"


def _lost(trials: Sequence[Trial], goal: Goal) -> str:
    lossy = [trial for trial in trials if trial.loss_ratio(in_total=False) > goal.loss_ratio]
    if not lossy:
        return ""
    most = max(trial.loss_ratio(in_total=False) for trial in lossy)
    return (
        f"; {len(lossy)} of {len(trials)} trials lost up to {percent(most)} of their frames (goal:"
        f" {percent(goal.loss_ratio)}): a frame that never comes is later than any limit"
    )


def _why_not(trials: Sequence[Trial], statistic: Statistic, threshold: float) -> str:
    last = trials[-1]
    if any(trial.problems for trial in trials):
        return testbed_reason(trials)
    few = _too_few(last, statistic)
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
    worst = _worst(last, statistic)
    if worst is None:
        return "the generator told no latency; check that its card supports latency streams"
    return (
        f"{statistic} is {worst}, and the limit of {threshold:g} µs lies within: the generator's histogram is too"
        f" coarse to tell; expected a limit of at most {worst.low:g} or at least {worst.high:g} µs"
    )
