"""Trials at one load until the goal's rule decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ..core.goals import Goal
from ..core.trial import LEAST_OFFERED, Fault, Load, Measure, Problem, Tolerance, Trial, assess_trial
from ..core.verdict import Evidence, EvidenceRule, Ruling, Tally, Weighing, weigh


@dataclass(frozen=True, slots=True)
class TrialConditions:
    """The settings of every trial of a requirement. ``on_trial`` is called after each trial, before the next."""

    tolerance: Tolerance = field(default_factory=Tolerance)
    clock_speed: float = 1.0
    on_trial: Callable[[Trial, Tally], None] = lambda trial, so_far: None


MOST_EXTRA = 0.002
"""The most by which a trial is asked for more than the sentence's load, as a ratio."""

NAMED_EXTRA = 1e-6
"""A smaller share is rounding."""

LEAST_GROWTH = 1.5
"""Trials that become longer do so at least by this factor, so there are few lengths."""

FULL_COUNT = 0.9995
"""A generator that sends a smaller share of the frames is slow; its clock is not what leaves the load open."""

CLOCK_SHORTFALL = 0.01
"""A larger shortfall of the offered load, as a ratio, is not that of a clock or of rounding: no more is asked for."""


@dataclass(frozen=True, slots=True)
class Lengthening:
    """How trials grow until queues hide no more than the goal's resolution.

    ``rule_of``: the rule for a goal with longer trials. ``pps``: the load of which frames under way are a share, in
    frames/s of each port. ``subtracts``: the rule takes known backlogs off, so a trial that is good without is enough.
    """

    rule_of: Callable[[Goal], EvidenceRule]
    pps: float
    subtracts: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """The ruling, its trials, the goal with the length of the last trials, and how much more than the load was asked
    for at most (``extra``, a ratio)."""

    ruling: Ruling
    trials: tuple[Trial, ...]
    goal: Goal
    extra: float = 0.0

    @property
    def extra_text(self) -> str:
        """That more than the sentence's load was asked for, in words; "" if it was not."""
        if self.extra < NAMED_EXTRA:
            return ""
        return f"; up to {100 * self.extra:.2g} % more was asked for, as much as the generator's clock is uncertain"


def run_until_decided(
    measure: Measure,
    load: Load,
    goal: Goal,
    evidence_of: EvidenceRule,
    conditions: TrialConditions,
    scout: float = 0.0,
    keeps: Callable[[Sequence[Trial]], bool] = lambda trials: True,
    needed: Load | None = None,
    lengthening: Lengthening | None = None,
) -> Decision:
    """Repeat trials of the goal's duration at *load* until they prove a ruling.

    *scout*: s of a shorter first trial, which *evidence_of* recognises by its duration (0: none). *keeps*: whether all
    trials together keep what the sentence bounds. Where they do not, good trials are no PASS: more trials follow, and
    with the last one that the goal's plan has room for it is a FAIL (:func:`contradicts`). So losing more cannot help
    by asking for more trials. *needed*: the load that each trial must certainly have offered; if its clock leaves that
    open, the next ones ask for a little more. Trials grow by *lengthening* (None: they do not); then shorter ones count
    only against the router. The number of trials is bounded (:func:`most_trials`, of each length). Exceptions of
    *measure* pass through, after ``on_trial`` of the finished trials.
    """
    trials: list[Trial] = []
    weighing, extra = Weighing(goal, evidence_of), 0.0
    while True:
        duration = goal.final_trial_duration if trials or not scout else scout
        outcome = measure(Load(load.pps * (1 + extra)) if extra else load, duration)
        tolerance, speed = conditions.tolerance, conditions.clock_speed
        trial = assess_trial(len(trials) + 1, outcome, tolerance, speed, needed)
        longer = goal
        if lengthening is not None and (trials or not scout):
            longer, trial = _with_backlog(trial, goal, evidence_of, lengthening)
        trials.append(trial)
        if lengthening is not None and longer is not goal:
            goal, evidence_of = longer, lengthening.rule_of(longer)
            weighing = weigh(goal, trials, evidence_of)
        else:
            weighing.add(trial)
        if needed is not None:
            extra = max(extra, _extra(trial, needed, goal))
        conditions.on_trial(trial, weighing.tally)
        ruling = weighing.ruling
        if ruling is Ruling.PASS and not keeps(trials):
            ruling = Ruling.FAIL if weighing.is_longest else None
        if ruling is not None:
            return Decision(ruling, tuple(trials), goal, extra)


def _with_backlog(trial: Trial, goal: Goal, evidence_of: EvidenceRule, lengthening: Lengthening) -> tuple[Goal, Trial]:
    """The goal with trials that are long enough for what *trial* shows, and the trial, invalid if none would be."""
    rows = trial.outcome.directions
    against = any(evidence.against_router for evidence in evidence_of(trial))
    worst = max(rows, key=lambda row: row.backlog or 0, default=None)
    if worst is None:
        return goal, trial
    if any(row.backlog is None for row in rows) and not against:
        goal = goal.for_load(lengthening.pps)
    share = (worst.backlog or 0) / (lengthening.pps * trial.outcome.duration)
    good = all(evidence is Evidence.GOOD for evidence in evidence_of(trial))
    if share <= goal.resolution or (lengthening.subtracts and good):
        return goal, trial
    least = LEAST_GROWTH * goal.resolution * lengthening.pps * goal.final_trial_duration
    longer = goal.for_backlog(max(least, worst.backlog or 0), lengthening.pps)
    if longer is not goal and not against:
        return longer, trial
    words = (
        f"{worst.backlog} frames from port {worst.tx_port} to port {worst.rx_port}; a queue may hide a shortage of"
        f" {100 * share:.2g} % of the load, at most {100 * goal.resolution:.2g} % is allowed"
    )
    return goal, replace(trial, problems=(*trial.problems, Problem(Fault.BACKLOG, words)))


def _extra(trial: Trial, needed: Load, goal: Goal) -> float:
    """Ratio by which the next trials must ask for more, because the clock leaves open whether *trial* offered enough.

    A goal whose PASS may be called RFC 2544 throughput needs the whole load, others LEAST_OFFERED of it.
    """
    outcome = trial.outcome
    if any(row.offered + 1 < needed.pps * outcome.duration * FULL_COUNT for row in outcome.directions):
        return 0.0  # frames are missing, not seconds
    short = trial.shortfall(needed.pps)
    if short > CLOCK_SHORTFALL or (short <= 1 - LEAST_OFFERED and not goal.is_strict):
        return 0.0
    # the uncertainty is one of seconds, whatever the trial's length
    return min(MOST_EXTRA, short / (1 - short) * outcome.duration / goal.final_trial_duration + 1e-9)


def contradicts(ruling: Ruling, goal: Goal, trials: Sequence[Trial], evidence_of: EvidenceRule) -> bool:
    """Whether it is a FAIL because all *trials* together do not keep the sentence, though enough of them are good."""
    return ruling is Ruling.FAIL and weigh(goal, trials, evidence_of).ruling is Ruling.PASS


def most_trials(goal: Goal, directions: int = 1) -> int:
    """The largest number of trials, scout included, until a ruling, if no trial is TOO_COARSE."""
    plan = goal.plan_for(directions)
    # one less than decides, of each kind, and the trial that decides; a trial at a lower load may be bad in one
    # direction and prove nothing of the others
    below = plan.most_bad if directions > 1 else 0
    return bool(goal.scout) + plan.most_trials - 1 + below + goal.invalid_trials + 1
