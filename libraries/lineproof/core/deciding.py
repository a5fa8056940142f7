"""Trials of one sentence, one after the other, until the rule decides. Knows no quantity by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, field
from operator import add

from .bounds import Bounds
from .doubts import overloaded, sent_less, with_doubts
from .foreign import LATEST
from .quantity import Promise
from .rule import Rule, Ruling
from .trial import Fault, Load, Measure, Tolerance, Trial, read_trial

MOST_UNCERTAIN = 0.003
"""Share of a trial by which its sending time may be uncertain: more load makes up for that much, then longer trials."""

MOST_EXTRA = 0.01
"""The most that is asked for beyond the load, as a share of it."""

FINEST = 1e-4
"""The smallest share of a rate for which trials grow: 1 ms in the longest trial of the shipped goals."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The standing so far: how many trials miss the limit even at their better end, or are OPEN.

    ``last``: KEEPS, MISSES or OPEN of the last one; ``rule``: both askings.
    """

    misses: int
    unknown: int
    last: str
    rule: Rule


KEEPS, MISSES, OPEN = "keeps", "misses", "open"
"""The limit in a trial: kept at every direction's worse end, missed at the better end of one, neither."""


@dataclass(frozen=True, slots=True)
class TrialConditions:
    """The settings of every trial of a sentence. ``on_trial`` is called after each trial, before the next.

    ``before_trial`` is called before it, with whether the frames that come back are to be looked at. ``weigh`` returns
    the trials of a FAIL with what is known of them besides; if they decide nothing then, more follow.
    """

    tolerance: Tolerance = field(default_factory=Tolerance)
    clock_speed: float = 1.0
    on_trial: Callable[[Trial, Standing], None] = lambda trial, standing: None
    before_trial: Callable[[bool], None] = lambda look: None
    weigh: Callable[[Sequence[Trial]], Sequence[Trial]] = lambda trials: trials


@dataclass(frozen=True, slots=True)
class Decision:
    """A ruling (None: the trials decide nothing yet), the trials that it rests on, and both askings."""

    ruling: Ruling | None
    trials: tuple[Trial, ...]
    rule: Rule


class Asked:
    """The rule, asked of one trial after the other: those of earlier runs first, then those of this one."""

    def __init__(self, promise: Promise, trials: Sequence[Trial] = ()) -> None:
        self.promise, self.trials = promise, list[Trial]()
        self._rule: Rule | None = None
        self._shown = {KEEPS: 0, MISSES: 0, OPEN: 0}
        self._own, self._spent = list[Trial](), 0
        for trial in trials:
            self.add(trial)

    def add(self, trial: Trial) -> Standing:
        """Add a trial, with its doubts, and return what all of them show."""
        promise, goal = self.promise, self.promise.goal
        figures = promise.figures([trial])
        if self._rule is None:
            self._rule = Rule(goal.shares(promise.soak), promise.limit, promise.forgiven, len(figures))
        elif trial.run != self.trials[-1].run:
            self._own, self._spent = [] if self._rule.begin_run() else self._own, 0
        self.trials.append(trial)
        self._own.append(trial)
        self._spent += 1
        window = min(goal.budget, promise.soak or goal.budget)
        latest = self._added_up(self._own[-window:] if promise.soak else self._own)
        # where no trial has ended yet, the whole decides nothing
        whole = promise.figures(latest) if latest else (Bounds(*[promise.forgiven.value] * 2),) * len(figures)
        rest = window - self._spent
        completed = promise.figures(latest, rest) if rest > 0 and latest else whole
        is_first = len(self._own) == len(self.trials) or not latest
        of_all = whole if is_first else promise.figures(self._added_up(self.trials))
        # a mean counts as one trial, however long; so does a trial whose length the quantity sets
        nominal = trial.outcome.duration if promise.quantity.is_mean else promise.quantity.trial_seconds(promise)
        self._rule.add(figures, whole, completed, trial.outcome.duration / nominal, of_all)
        last = shown_by(trial, promise)
        self._shown[last] += 1
        return Standing(self._shown[MISSES], self._shown[OPEN], last, self._rule)

    def _added_up(self, trials: Sequence[Trial]) -> Sequence[Trial]:
        """Return *trials* without the first one in which a run was ended: nothing was counted of it.

        It missed, or kept, the limit. If a second one is ended, all of it may be lost: somebody may end the bad ones.
        So it may in a soak, which promises all of the time.
        """
        if self.promise.soak:
            return trials
        first = next((trial for trial in self.trials if not trial.has_ended), None)
        return [trial for trial in trials if trial is not first]

    @property
    def trials_left(self) -> int:
        """The number of further trials until the ruling, if all keep the limit."""
        shares = self.promise.goal.shares(self.promise.soak)
        return shares.fewest_trials if self._rule is None else self._rule.trials_left

    @property
    def decision(self) -> Decision:
        """The ruling so far."""
        if self._rule is None:
            raise ValueError("no trial was added")
        return Decision(self._rule.ruling, tuple(self.trials), self._rule)


def shown_by(trial: Trial, promise: Promise) -> str:
    """Return KEEPS, MISSES or OPEN of one trial with its doubts."""
    limit, figures = promise.limit, promise.figures([trial])
    if all(limit.keeps(limit.worse_end(bounds)) for bounds in figures):
        return KEEPS
    return OPEN if all(limit.keeps(limit.better_end(bounds)) for bounds in figures) else MISSES


def ask(promise: Promise, trials: Sequence[Trial]) -> Decision:
    """Return what *trials* decide, with their doubts: those that already decided, or the same ones, widened."""
    return Asked(promise, trials).decision


def decide(
    promise: Promise,
    measure: Measure,
    conditions: TrialConditions,
    line_pps: float,
    warm_up: Trial | None = None,
    earlier: Sequence[Trial] = (),
) -> Decision:
    """Repeat trials until the rule decides; their number is bounded by the goal's budget.

    *warm_up*: a trial before, which is not judged: it only shows how much load and time a trial needs. *line_pps*: the
    most that a port can send. *earlier*: trials of the runs that this one goes on with, which decide nothing yet.
    Exceptions of *measure* pass through, after ``on_trial`` of the finished trials.
    """
    asked, doubts = Asked(promise, earlier), promise.quantity.doubts
    plan = TrialPlan(promise, line_pps, is_timed=conditions.clock_speed == 1 and not conditions.tolerance.ends_in_time)
    if warm_up is not None:
        plan.learn(with_doubts(warm_up, promise.conditions, doubts))
    while True:
        own = asked.trials[len(earlier) :]
        # looked at: the first trial, the last before a PASS, and of a soak every one
        look = not own or promise.soak > 0 or asked.trials_left <= 1
        look = look or any(problem.fault is Fault.CHANGED for trial in own for problem in trial.problems)
        conditions.before_trial(look)
        outcome = measure(Load(plan.pps), plan.seconds)
        trial = read_trial(len(asked.trials) + 1, outcome, conditions.tolerance, conditions.clock_speed)
        trial = with_doubts(trial, promise.conditions, doubts)
        standing = asked.add(trial)
        conditions.on_trial(trial, standing)
        if standing.rule.ruling is Ruling.FAIL:
            asked = Asked(promise, conditions.weigh(asked.trials))
        if asked.decision.ruling is not None:
            return asked.decision
        plan.learn(trial)
        if standing.rule.cannot_pass and sent_less in doubts:
            plan.ask_no_more()


class TrialPlan:
    """The next measurement: a guess, on which no verdict relies. ``seconds`` of a trial; ``pps`` into each port.

    *is_timed*: by a real clock, whose uncertainty counts.
    """

    def __init__(self, promise: Promise, line_pps: float, is_timed: bool) -> None:
        self._promise, self._line, self._is_timed = promise, line_pps, is_timed
        self._extra, self._most_extra = 0.0, MOST_EXTRA
        self._clock, self._least_late, self._most_late = 0.0, 0.0, MOST_EXTRA
        """s by which the clock leaves a trial open; ratios by which the generator is late, as every trial shows it."""
        self.seconds = promise.quantity.trial_seconds(promise)

    @property
    def pps(self) -> float:
        """The load of the next trial."""
        load = self._promise.load_pps
        return max(load, min(load * (1 + self._extra), self._line)) if self._extra else load

    def ask_no_more(self) -> None:
        """Ask for the load alone from now on, where less than it excuses nothing and the excess does: for a FAIL."""
        self._extra = self._most_extra = 0.0

    def learn(self, trial: Trial) -> None:
        """Ask for as much more, and for as long trials, that neither clock nor queues can hide a shortage."""
        promise, goal, directions = self._promise, self._promise.goal, trial.outcome.directions
        if not directions or not (promise.quantity.doubts or promise.needs_full_load) or trial.seconds.low <= 0:
            return
        longest = max(goal.longest_trial, self.seconds)
        is_exact = overloaded in promise.quantity.doubts
        is_slow = self._learn_times(trial)
        late = max(self._least_late, 0.0 if is_exact else (self._least_late + self._most_late) / 2)
        width = self._clock / self.seconds
        is_full = promise.load_pps * (1 + max(self._extra, late + 1.25 * width)) >= self._line
        slack, needs_more = goal.resolution, promise.needs_full_load
        if promise.is_rate:
            # a rate is frames by time: a time that is not exact takes more frames to prove it
            least = promise.limit.value / (len(directions) if promise.in_total else 1)
            spare = (self._line if is_full else promise.load_pps) / least - 1 if least else math.inf
            slack, needs_more = min(slack, max(spare, FINEST)), needs_more or spare < width
        most = slack if is_exact or is_full else MOST_UNCERTAIN
        seconds = self.seconds
        if width > most and needs_more and not promise.soak:
            seconds = max(seconds, min(longest, self._clock / most))
        if needs_more and not is_slow:
            # a rate or a cost bears more than is needed; frames may be lost by it, so a longer trial asks for less
            least = self._extra if promise.quantity.is_mean else 0.0
            self._extra = min(self._most_extra, max(least, late + 1.25 * self._clock / seconds - slack))
        share = max((row.backlog or 0) / max(1, row.offered) for row in directions) / promise.conditions.finest
        # what keeps the promise without the frames in its queues needs no longer trials
        if share > 1 and shown_by(trial, promise) != KEEPS:
            seconds = max(seconds, trial.outcome.duration * share * 1.25)
        if not promise.soak:
            # to a tenth of a second, which reads better
            self.seconds = min(longest, round(seconds + 0.0499, 1))

    def _learn_times(self, trial: Trial) -> bool:
        """Learn how uncertain the clock is, and how late the generator; return whether it sends only a part instead.

        The clock's uncertainty is kept in s, as a longer trial has no more of it.
        """
        outcome, uncertain = trial.outcome, trial.outcome.readings.get("elapsed_uncertainty", 0.0)
        self._clock = max(self._clock, trial.seconds.high - trial.seconds.low)
        if self._is_timed and outcome.elapsed != outcome.duration and math.isfinite(uncertain):
            # this trial may show less than the whole of it, as none ends before its duration
            self._clock = max(self._clock, 2 * uncertain)
        sent = max(1, min(row.offered for row in outcome.directions))
        least, most = (max(0.0, outcome.load.pps * time / sent - 1) for time in (trial.seconds.low, trial.seconds.high))
        if least > MOST_EXTRA:
            return True
        self._least_late, self._most_late = max(self._least_late, least), min(self._most_late, most)
        return False


# -- how long sentences take -------------------------------------------------------------------------------------------

WALL_SECONDS_PER_TRIAL = 0.1
"""Wall-clock seconds of a trial beyond its traffic, about: the pause before it, and 0.02 s of the client."""


def wall_seconds(traffic: float, trials: int, clock_speed: float, drains: bool = False) -> float:
    """Return the wall-clock seconds of so many s of *traffic* in *trials*; *drains*: late ones are awaited in each."""
    each = WALL_SECONDS_PER_TRIAL + drains * LATEST / clock_speed
    return traffic / clock_speed + trials * each


@dataclass(frozen=True, slots=True)
class Budget:
    """Seconds of traffic on the testbed's clock, warm-up included, and the number of trials."""

    until_pass: float = 0.0
    """Until a PASS without a bad trial."""
    at_most: float = 0.0
    """If every trial is needed, and each is as long as clock or queues may make it."""
    trials: int = 0
    """Until that PASS, warm-up included."""
    most_trials: int = 0
    """If every trial is needed, warm-up included."""
    beside: float = 0.0
    """Seconds of the testbed's clock beside the traffic: for the power that is drawn without."""

    @classmethod
    def of(cls, promise: Promise, warm_up: float, least_trial: float = 0.0, beside: float = 0.0) -> Budget:
        """Return the budget of one sentence. *least_trial*: s that each of its trials lasts at least."""
        trial = max(promise.quantity.trial_seconds(promise), least_trial)
        longest = trial if promise.soak else max(trial, promise.goal.longest_trial)
        shares = promise.goal.shares(promise.soak)
        return cls(
            until_pass=warm_up + shares.fewest_trials * trial,
            at_most=warm_up + shares.most_trials * longest,
            trials=shares.fewest_trials + bool(warm_up),
            most_trials=shares.most_trials + bool(warm_up),
            beside=beside,
        )

    def __add__(self, other: Budget) -> Budget:
        """Return the budget of both, one after the other."""
        return Budget(*map(add, astuple(self), astuple(other)))

    def wall_seconds(self, clock_speed: float) -> float:
        """Wall-clock seconds until a PASS."""
        return wall_seconds(self.until_pass + self.beside, self.trials, clock_speed)

    def most_wall_seconds(self, clock_speed: float) -> float:
        """Wall-clock seconds if every trial is needed, and frames that are missing are awaited in each."""
        return wall_seconds(self.at_most + self.beside, self.most_trials, clock_speed, drains=True)
