"""The decision rule: what a list of trials proves about a requirement under a goal. Pure functions of the counts.

A trial is evidence for the router (GOOD), against it (BAD, or CLEAR if it loses too much to be forgiven), or it proves
nothing (NONE); for each direction that is judged by itself. The goal's plan (:mod:`.sequential_plan`) says after how
many GOOD and BAD trials of a direction it is decided. After each trial:

* FAIL as soon as one trial is CLEAR, or the trials of one direction are enough for a FAIL;
* PASS as soon as the trials of every direction are enough for a PASS;
* INCONCLUSIVE when more trials than the goal's ``invalid_trials`` proved nothing; for a PASS, trials that lost
  frames at less than the full load count among them, so that a router does not pass because it lost more;
* trials whose figure is too coarse for the threshold (TOO_COARSE) count for a PASS as bad ones, and for a FAIL as good
  ones; INCONCLUSIVE when they make a PASS impossible, and no bad trial, or no room for more, leaves a FAIL possible.

A soak (``whole``) fails as soon as BAD trials last longer than ``exceed_ratio * window`` within any ``window`` of
consecutive trials.

The rule counts trials. What the sentence bounds is bounded over all frames of all trials besides: until that is so
there is no PASS, and it is a FAIL when the plan has no room for further trials (:mod:`lineproof.methods.sequential`).
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from .explanation import Why
from .goals import Goal
from .ledger import Ledger
from .ledger_phrases import trials_text, where_lost
from .requirement import Quantity, Requirement
from .trial import HOST_COUNTS, Trial

_ROUNDING = 1e-9

RFC2544_GOAL = "rfc2544"
"""The goal whose messages point to the declared deviations from RFC 2544."""


class Ruling(Enum):
    """The three outcomes of a requirement."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"


class Evidence(Enum):
    """What one trial proves."""

    GOOD = "good"
    BAD = "bad"
    BAD_BELOW = "bad at less than the load"
    CLEAR = "bad beyond what is forgiven"
    NONE = "none"
    SCOUT = "too short to weigh"
    TOO_COARSE = "a figure too coarse to tell"

    @property
    def against_router(self) -> bool:
        """Whether it is evidence against the router."""
        return self in (Evidence.BAD, Evidence.BAD_BELOW, Evidence.CLEAR)


EvidenceRule = Callable[[Trial], tuple[Evidence, ...]]
"""What a trial proves of each direction that is judged by itself, always as many."""

_FIRST = (Evidence.CLEAR, Evidence.BAD, Evidence.BAD_BELOW, Evidence.NONE, Evidence.TOO_COARSE, Evidence.SCOUT)


def on_the_whole(evidences: Sequence[Evidence]) -> Evidence:
    """What a trial proves: what is worst of its directions."""
    return next((evidence for evidence in _FIRST if evidence in evidences), Evidence.GOOD)


def undivided(rule: Callable[[Trial], Evidence]) -> EvidenceRule:
    """A rule that judges all directions together."""
    return lambda trial: (rule(trial),)


@dataclass(frozen=True, slots=True)
class Tally:
    """Numbers of trials: ``good`` for the router in all directions, ``bad`` against it, ``spoilt`` proving nothing.

    ``clear``: those that are a FAIL alone; ``below``: those that were bad at less than the load asked for.
    ``last``: what the last trial proves. ``directions``: good and bad trials of each direction judged by itself.
    """

    good: int = 0
    bad: int = 0
    spoilt: int = 0
    clear: int = 0
    below: int = 0
    last: Evidence | None = None
    directions: tuple[tuple[int, int], ...] = ()


class _Window:
    """The last trials of one direction that last for the goal's window together."""

    def __init__(self, goal: Goal) -> None:
        self._goal = goal
        self._within: deque[tuple[float, float]] = deque()
        self._seconds = self._bad = 0.0

    def add(self, evidence: Evidence, duration: float) -> float | None:
        """Seconds of BAD trials in the window that ends now, if they are more than the goal allows; else None."""
        window = self._goal.window
        if window is None or evidence in (Evidence.NONE, Evidence.SCOUT):
            return None
        self._within.append((duration, duration if evidence.against_router else 0.0))
        self._seconds, self._bad = self._seconds + duration, self._bad + self._within[-1][1]
        while self._seconds > window + _ROUNDING:
            seconds, bad = self._within.popleft()
            self._seconds, self._bad = self._seconds - seconds, self._bad - bad
        return self._bad if self._bad > self._goal.exceed_ratio * window + _ROUNDING else None


class Weighing:
    """What the trials so far prove under a goal. Each trial is looked at once: a soak may have 86 400 of them."""

    def __init__(self, goal: Goal, evidence_of: EvidenceRule) -> None:
        self._goal, self._evidence_of = goal, evidence_of
        self._trials: Counter[Evidence] = Counter()
        self._directions: tuple[Counter[Evidence], ...] = ()
        self._plan = goal.plan_for(1)
        self._windows: tuple[_Window, ...] = ()
        self._last: Evidence | None = None
        self.bad_window: float | None = None
        """Seconds of BAD trials in the first window that has more of them than the goal allows; None: there is none."""

    def add(self, trial: Trial) -> None:
        """Weigh one more *trial*."""
        # without a direction a trial proves nothing
        found = self._evidence_of(trial) or (Evidence.NONE,)
        if not self._directions:
            self._directions = tuple(Counter() for _ in found)
            self._windows = tuple(_Window(self._goal) for _ in found)
            self._plan = self._goal.plan_for(len(found))
        for direction, evidence in zip(self._directions, found, strict=True):
            direction[evidence] += 1
        self._last = whole = on_the_whole(found)
        self._trials[whole] += 1
        for window, evidence in zip(self._windows, found, strict=True):
            bad = window.add(evidence, trial.outcome.duration)
            self.bad_window = bad if self.bad_window is None else self.bad_window

    @property
    def tally(self) -> Tally:
        """What the trials prove, counted."""
        count = self._trials
        return Tally(
            good=count[Evidence.GOOD],
            bad=_bad(count),
            spoilt=count[Evidence.NONE],
            clear=count[Evidence.CLEAR],
            below=count[Evidence.BAD_BELOW],
            last=self._last,
            directions=tuple((count[Evidence.GOOD], _bad(count)) for count in self._directions),
        )

    @property
    def is_longest(self) -> bool:
        """Whether as many trials were weighed as the plan has room for."""
        proved_nothing = self._trials[Evidence.NONE] + self._trials[Evidence.SCOUT]
        return self._trials.total() - proved_nothing >= self._plan.most_trials

    @property
    def ruling(self) -> Ruling | None:
        """The verdict that the trials prove; None while more of them are needed."""
        plan, directions = self._plan, self._directions
        if self._trials[Evidence.CLEAR] or self.bad_window is not None:
            return Ruling.FAIL
        coarse = Evidence.TOO_COARSE
        if any(plan.fails(count[Evidence.GOOD] + count[coarse], _bad(count)) for count in directions):
            return Ruling.FAIL
        spoilt, most_spoilt = self._trials[Evidence.NONE], self._goal.invalid_trials
        if directions and all(plan.passes(count[Evidence.GOOD], _bad(count) + count[coarse]) for count in directions):
            # without loss, trials below the load would count as spoilt; their loss must not turn that into a PASS
            return Ruling.PASS if spoilt + self._trials[Evidence.BAD_BELOW] <= most_spoilt else Ruling.INCONCLUSIVE
        if spoilt > most_spoilt:
            return Ruling.INCONCLUSIVE
        no_pass = any(count[coarse] and _bad(count) + count[coarse] > plan.most_bad for count in directions)
        # as long as some trials were bad, further ones may be enough for a FAIL
        if no_pass and (self.is_longest or not any(map(_bad, directions))):
            return Ruling.INCONCLUSIVE
        return None


def _bad(count: Counter[Evidence]) -> int:
    return sum(number for evidence, number in count.items() if evidence.against_router)


def weigh(goal: Goal, trials: Iterable[Trial], evidence_of: EvidenceRule) -> Weighing:
    """All of *trials*, weighed."""
    found = Weighing(goal, evidence_of)
    for trial in trials:
        found.add(trial)
    return found


def whole_loss_ratio(trials: Sequence[Trial], in_total: bool) -> float:
    """Certain loss ratio of all *trials* together: of all directions, or of the worst one."""
    rows = [trial.outcome.directions for trial in trials]
    if not rows:
        return 0.0
    lost = [
        math.fsum(trial.certain_loss(row[place]) for trial, row in zip(trials, rows, strict=True))
        for place in range(len(rows[0]))
    ]
    offered = [sum(row[place].offered for row in rows) for place in range(len(rows[0]))]
    if in_total:
        return sum(lost) / max(1, sum(offered))
    return max((count / max(1, whole) for count, whole in zip(lost, offered, strict=True)), default=0.0)


def loss_rule(goal: Goal, in_total: bool, shortest: float | None = None) -> EvidenceRule:
    """Loss within the goal is GOOD at the load asked for; more loss is BAD at that load or any lower load.

    Each direction is judged by itself, unless a stated loss ratio is that of all directions together. Frames whose loss
    a problem of the testbed explains are not counted; where frames of others may hide too much loss for a GOOD, a trial
    proves nothing. A trial shorter than the goal's is not GOOD; one shorter than *shortest* s (None: than the goal's)
    is a scout, which can only be CLEAR.
    """
    together = in_total and goal.loss_ratio > 0

    def evidence_of(trial: Trial) -> tuple[Evidence, ...]:
        ratios = [trial.certain_loss_ratio(in_total)] if together else trial.certain_loss_ratios
        if clear_loss(goal, trial, together):
            return (Evidence.CLEAR,) * len(ratios)
        none = Evidence.NONE
        short = trial.outcome.duration < goal.final_trial_duration - _ROUNDING
        if short and (shortest is None or trial.outcome.duration < shortest - _ROUNDING):
            return (Evidence.SCOUT,) * len(ratios)
        bad = Evidence.BAD if trial.valid else Evidence.BAD_BELOW
        good = Evidence.NONE if not trial.valid else Evidence.SCOUT if short else Evidence.GOOD
        possible = trial.possible_loss_ratios(together)
        # what others may hide is no evidence for the router, and none against it
        rows = zip(ratios, possible, strict=True)
        return tuple(
            bad if ratio > goal.loss_ratio else good if most <= goal.loss_ratio else none for ratio, most in rows
        )

    return evidence_of


def clear_loss(goal: Goal, trial: Trial, in_total: bool) -> bool:
    """Return whether *trial* alone is a FAIL."""
    return goal.clear_loss_ratio is not None and trial.clear_loss(in_total) > goal.clear_loss_ratio


def forwarded_pps(trial: Trial, requirement: Requirement) -> float:
    """Forwarding rate in frames/s: of all directions together for ``in total``, else of the worst one."""
    return _rate([direction.forwarded for direction in trial.outcome.directions], trial, requirement)


def sustained_mean(trials: Sequence[Trial], requirement: Requirement) -> float:
    """Mean of :func:`forwarded_pps` without frames that came out of a queue later; of the worst direction's means."""
    rows = [[row.sustained / max(trial.seconds, _ROUNDING) for row in trial.outcome.directions] for trial in trials]
    means = [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]
    return math.fsum(means) if requirement.in_total else min(means, default=0.0)


def offered_pps(trial: Trial, requirement: Requirement) -> float:
    """Offered load in frames/s, of the same directions as :func:`forwarded_pps`."""
    return _rate([direction.offered for direction in trial.outcome.directions], trial, requirement)


def _rate(frames: Sequence[float], trial: Trial, requirement: Requirement) -> float:
    rates = [count / max(trial.seconds, _ROUNDING) for count in frames]
    return math.fsum(rates) if requirement.in_total else min(rates, default=0.0)


def forwarding_rule(requirement: Requirement, link_bps: float, duration: float = 0.0) -> EvidenceRule:
    """A forwarding rate at or above the threshold is GOOD, whatever was offered; a lower one is BAD.

    A trial shorter than *duration* s is not GOOD. Frames that came out of a queue after the sending are not counted.

    Each direction is judged by itself, unless the sentence says ``in total``. If less than the threshold was offered,
    the trial proves nothing (NONE) instead of BAD: unlike loss, a forwarding rate says nothing about a higher load.
    Frames whose loss a problem of the testbed explains may have been forwarded: with them a trial can be BAD, and never
    GOOD.
    """
    threshold = requirement.judged_pps(link_bps)

    def evidence_of(trial: Trial) -> tuple[Evidence, ...]:
        rows = trial.outcome.directions
        parts = [[row.offered, row.sustained, min(row.offered, row.forwarded + trial.explained(row))] for row in rows]
        if requirement.in_total:
            parts = [[math.fsum(column) for column in zip(*parts, strict=True)]]
        least, longest = max(trial.least_seconds, _ROUNDING), max(trial.seconds, _ROUNDING)
        short = trial.outcome.duration < duration - _ROUNDING

        def evidence(offered: float, sustained: float, most: float) -> Evidence:
            if trial.blames_router and sustained / longest >= threshold:
                return Evidence.SCOUT if short else Evidence.GOOD
            if most / least < threshold <= offered / longest:
                return Evidence.BAD if trial.blames_router else Evidence.BAD_BELOW
            return Evidence.NONE

        return tuple(evidence(*part) for part in parts)

    return evidence_of


@dataclass(frozen=True)
class Verdict:
    """The result of a requirement. ``figures``: measured values, each with its unit in the name."""

    requirement: Requirement
    goal: Goal
    ruling: Ruling
    reason: str
    trials: tuple[Trial, ...]
    link_bps: float
    figures: Mapping[str, float]
    router_drops: Mapping[str, int] | None = None
    """Frames that the router's counters report as dropped meanwhile, by cause; None if they were not read."""

    ceiling: Mapping[str, object] | None = None
    """The generator's own ceiling, if it turned a FAIL into INCONCLUSIVE (:mod:`lineproof.ceilings.headroom`)."""

    ledgers: tuple[Ledger, ...] = ()
    """Where the frames were lost, for each bad trial."""

    why: Why = field(default_factory=Why)
    """Why the frames of the worst trial were lost."""

    breakdown: str | None = None
    """What went wrong with the testbed before or between the trials, and ended them; None: nothing."""

    deviations: tuple[str, ...] = ()
    """From the methods that it is named after, in words."""

    @property
    def worst_ledger(self) -> Ledger | None:
        """The ledger of the bad trial that lost the largest share; None where none was made."""
        # the loss of its last trial counts: a ledger that spans many good trials adds up more frames
        loss = {trial.number: trial.loss_ratio(self.requirement.in_total) for trial in self.trials}
        return max(self.ledgers, key=lambda ledger: loss.get(ledger.last_trial, 0.0), default=None)

    @property
    def message(self) -> str:
        """``FAIL: <sentence>: <what was measured>; <where the router lost them>; why: <…>; goal '<name>'``."""
        where, worst = "", self.worst_ledger
        if self.ruling is Ruling.FAIL and worst is not None:
            where = "" if worst.first_trial == worst.last_trial and len(self.trials) == 1 else f"{trials_text(worst)}, "
            where += f"{where_lost(worst)}; "
        if self.ruling is Ruling.FAIL and str(self.why):
            where += f"{self.why}; "
        clocks = self.requirement.clocks_text(self.link_bps)
        where += f"{clocks}; " if clocks else ""
        declared = self.deviations and self.goal.goal == RFC2544_GOAL
        record = "; deviations from RFC 2544 section 23 and RFC 9971 are declared in its record" if declared else ""
        if self.goal.goal == RFC2544_GOAL and self.rests_on_host_counts:
            record += "; no RFC 2544 throughput: the host that sends counted its frames itself, and no switch did"
        where += f"goal '{self.goal.goal}'{record}"
        return f"{self.ruling.value}: {self.requirement.sentence}: {self.reason}; {where}"

    @property
    def rests_on_host_counts(self) -> bool:
        """Whether a trial's frames were counted by the sending host alone, neither by a generator nor by a switch."""
        return any(trial.outcome.readings.get(HOST_COUNTS, 0.0) > 0 for trial in self.trials)

    @property
    def is_rfc2544_throughput(self) -> bool:
        """Whether this is RFC 2544 throughput (26.1): a PASS of one frame size in trials of 60 s without loss.

        The whole load of the sentence must have been offered, even if the sending ended as late as it can have. The
        router must have counted no dropped frame: frames of other origin may stand in for as many. The caller must know
        whether the testbed is real.
        """
        if self.ruling is not Ruling.PASS or not self.goal.is_strict:
            return False
        if self.rests_on_host_counts or any((self.router_drops or {}).values()):
            return False
        if self.requirement.quantity is not Quantity.THROUGHPUT or len(self.requirement.profile.frames) > 1:
            return False
        load = self.requirement.threshold_load(self.link_bps)
        whole = [trial for trial in self.trials if trial.outcome.duration >= 60]
        if any(row.foreign or row.lost for trial in whole for row in trial.outcome.directions):
            return False  # what is foreign may hide lost frames
        return bool(whole) and all(trial.shortfall(load.pps) <= _ROUNDING for trial in whole)
