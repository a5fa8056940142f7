"""The decision rule: what a list of trials proves about a requirement under a goal. Pure functions of the counts.

A trial is evidence for the router (GOOD), against it (BAD, or CLEAR if it loses too much for the exceed ratio), or it
proves nothing (NONE). With duration sum *S* and exceed ratio *e* of the goal (RFC 9971 conditional throughput, applied
after each trial):

* FAIL as soon as one trial is CLEAR, or BAD trials last longer than ``e * S``: further trials cannot change that;
* PASS as soon as GOOD trials last at least ``(1 - e) * S``: likewise;
* INCONCLUSIVE when more trials than the goal's ``invalid_trials`` proved nothing; for a PASS, trials that lost
  frames at less than the full load count among them, so that a router does not pass because it lost more;
* INCONCLUSIVE when trials whose figure is too coarse for the threshold (TOO_COARSE) last longer than ``e * S``, alone
  or, for a PASS, together with the BAD ones: they may have been bad.

A goal with ``whole`` (a soak) passes only when its trials have lasted for the whole duration sum, and fails as soon as
BAD trials last longer than ``e * window`` within any ``window`` of consecutive trials.

The rule counts trials. What the sentence bounds is bounded over all frames of all trials besides: a PASS that
contradicts its sentence becomes a FAIL (in :mod:`linerate.methods`).
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from ..counts.ledger import Ledger
from ..counts.ledger_phrases import trials_text, where_lost
from ..counts.trial import Trial
from .goals import Goal
from .requirement import Quantity, Requirement

_ROUNDING = 1e-9


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


EvidenceRule = Callable[[Trial], Evidence]


@dataclass(frozen=True, slots=True)
class Tally:
    """Seconds of trials for (``good``) and against the router (``bad``); number that proved nothing (``spoilt``).

    ``clear``: number of trials that are a FAIL alone; ``below``: number that were bad at less than the load asked for.
    ``too_coarse``: seconds of trials whose figure cannot be compared with the threshold.
    """

    good: float
    bad: float
    spoilt: int
    clear: int = 0
    below: int = 0
    too_coarse: float = 0.0


class Weighing:
    """What the trials so far prove under a goal. Each trial is looked at once: a soak may have 86 400 of them."""

    def __init__(self, goal: Goal, evidence_of: EvidenceRule) -> None:
        self._goal, self._evidence_of = goal, evidence_of
        self._trials: Counter[tuple[Evidence, float]] = Counter()
        self._within: deque[tuple[float, float]] = deque()
        """Duration, and s of it that are bad, of the last trials that last for a window together."""

        self._seconds = self._bad = 0.0
        self.bad_window: float | None = None
        """Seconds of BAD trials in the first window that has more of them than the goal allows; None: there is none."""

    def add(self, trial: Trial) -> None:
        """Weigh one more *trial*."""
        evidence, duration = self._evidence_of(trial), trial.outcome.duration
        self._trials[evidence, duration] += 1
        window = self._goal.window
        if window is None or self.bad_window is not None or evidence in (Evidence.NONE, Evidence.SCOUT):
            return
        self._within.append((duration, duration if evidence.against_router else 0.0))
        self._seconds, self._bad = self._seconds + duration, self._bad + self._within[-1][1]
        while self._seconds > window + _ROUNDING:
            seconds, bad = self._within.popleft()
            self._seconds, self._bad = self._seconds - seconds, self._bad - bad
        if self._bad > self._goal.exceed_ratio * window + _ROUNDING:
            self.bad_window = self._bad

    @property
    def tally(self) -> Tally:
        """The sums of what the trials prove."""
        rows = self._trials.items()

        def seconds(*wanted: Evidence) -> float:
            return math.fsum(number * duration for (evidence, duration), number in rows if evidence in wanted)

        def count(wanted: Evidence) -> int:
            return sum(number for (evidence, _), number in rows if evidence is wanted)

        return Tally(
            good=seconds(Evidence.GOOD),
            bad=seconds(*(evidence for evidence in Evidence if evidence.against_router)),
            spoilt=count(Evidence.NONE),
            clear=count(Evidence.CLEAR),
            below=count(Evidence.BAD_BELOW),
            too_coarse=seconds(Evidence.TOO_COARSE),
        )

    @property
    def ruling(self) -> Ruling | None:
        """The verdict that the trials prove; None while more of them are needed."""
        goal, found = self._goal, self.tally
        allowed_bad = goal.exceed_ratio * goal.duration_sum + _ROUNDING
        if found.clear or found.bad > allowed_bad or self.bad_window is not None:
            return Ruling.FAIL
        enough = found.good >= (1 - goal.exceed_ratio) * goal.duration_sum - _ROUNDING
        if enough and (not goal.whole or found.good + found.bad + found.too_coarse >= goal.duration_sum - _ROUNDING):
            # without loss, trials below the load would count as spoilt; their loss must not turn that into a PASS
            clean = found.spoilt + found.below <= goal.invalid_trials and found.bad + found.too_coarse <= allowed_bad
            return Ruling.PASS if clean else Ruling.INCONCLUSIVE
        if found.spoilt > goal.invalid_trials or found.too_coarse > allowed_bad:
            return Ruling.INCONCLUSIVE
        return None


def weigh(goal: Goal, trials: Iterable[Trial], evidence_of: EvidenceRule) -> Weighing:
    """All of *trials*, weighed."""
    found = Weighing(goal, evidence_of)
    for trial in trials:
        found.add(trial)
    return found


def whole_loss_ratio(trials: Sequence[Trial], in_total: bool) -> float:
    """Loss ratio of all *trials* together: of all directions, or of the worst one."""
    rows = [trial.outcome.directions for trial in trials]
    if not rows:
        return 0.0
    lost = [sum(row[place].lost for row in rows) for place in range(len(rows[0]))]
    offered = [sum(row[place].offered for row in rows) for place in range(len(rows[0]))]
    if in_total:
        return sum(lost) / max(1, sum(offered))
    return max((count / max(1, whole) for count, whole in zip(lost, offered, strict=True)), default=0.0)


def loss_rule(goal: Goal, in_total: bool) -> EvidenceRule:
    """Loss within the goal is GOOD at the load asked for; more loss is BAD at that load or any lower load.

    Frames whose loss a problem of the testbed explains are not counted. A trial shorter than the goal's is a scout: it
    can only be CLEAR.
    """

    def evidence_of(trial: Trial) -> Evidence:
        if clear_loss(goal, trial, in_total):
            return Evidence.CLEAR
        if trial.outcome.duration < goal.final_trial_duration - _ROUNDING:
            return Evidence.SCOUT
        if trial.certain_loss_ratio(in_total) > goal.loss_ratio:
            return Evidence.BAD if trial.valid else Evidence.BAD_BELOW
        return Evidence.GOOD if trial.valid else Evidence.NONE

    return evidence_of


def clear_loss(goal: Goal, trial: Trial, in_total: bool) -> bool:
    """Whether *trial* alone is a FAIL."""
    return goal.clear_loss_ratio is not None and trial.clear_loss(in_total) > goal.clear_loss_ratio


def forwarded_pps(trial: Trial, requirement: Requirement) -> float:
    """Forwarding rate in frames/s: of all directions together for ``in total``, else of the worst one."""
    return _rate([direction.forwarded for direction in trial.outcome.directions], trial, requirement)


def offered_pps(trial: Trial, requirement: Requirement) -> float:
    """Offered load in frames/s, of the same directions as :func:`forwarded_pps`."""
    return _rate([direction.offered for direction in trial.outcome.directions], trial, requirement)


def _rate(frames: Sequence[float], trial: Trial, requirement: Requirement) -> float:
    rates = [count / max(trial.seconds, _ROUNDING) for count in frames]
    return math.fsum(rates) if requirement.in_total else min(rates, default=0.0)


def forwarding_rule(requirement: Requirement, link_bps: float) -> EvidenceRule:
    """A forwarding rate at or above the threshold is GOOD, whatever was offered; a lower one is BAD.

    If less than the threshold was offered, the trial proves nothing (NONE) instead of BAD: unlike loss, a forwarding
    rate says nothing about a higher load. Frames whose loss a problem of the testbed explains may have been forwarded:
    with them a trial can be BAD, and never GOOD.
    """
    threshold = requirement.threshold_pps(link_bps)

    def evidence_of(trial: Trial) -> Evidence:
        if trial.blames_router and forwarded_pps(trial, requirement) >= threshold:
            return Evidence.GOOD
        most = [min(row.offered, row.forwarded + trial.explained(row)) for row in trial.outcome.directions]
        if _rate(most, trial, requirement) < threshold <= offered_pps(trial, requirement):
            return Evidence.BAD
        return Evidence.NONE

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
    """The generator's own ceiling, if it turned a FAIL into INCONCLUSIVE (:mod:`linerate.ceilings.headroom`)."""

    ledgers: tuple[Ledger, ...] = ()
    """Where the frames were lost, for each bad trial."""

    @property
    def message(self) -> str:
        """``FAIL: <sentence>: <what was measured>; <where the router lost them>; <goal>``."""
        where = ""
        if self.ruling is Ruling.FAIL and self.ledgers:
            # the loss of its last trial counts: a ledger that spans many good trials adds up more frames
            in_total = self.requirement.in_total
            loss = {trial.number: trial.loss_ratio(in_total) for trial in self.trials}
            worst = max(self.ledgers, key=lambda ledger: loss.get(ledger.last_trial, 0.0))
            where = "" if worst.first_trial == worst.last_trial and len(self.trials) == 1 else f"{trials_text(worst)}, "
            where += f"{where_lost(worst)}; "
        return f"{self.ruling.value}: {self.requirement.sentence}: {self.reason}; {where}{self.goal}"

    @property
    def is_rfc2544_throughput(self) -> bool:
        """Whether this is RFC 2544 throughput (26.1): a PASS of one frame size in trials of 60 s without loss.

        The caller must know whether the testbed is real.
        """
        goal = self.goal
        strict = goal.final_trial_duration >= 60 and not goal.loss_ratio and not goal.exceed_ratio
        one_size = len(self.requirement.profile.frames) == 1
        asked = self.requirement.quantity is Quantity.THROUGHPUT
        return self.ruling is Ruling.PASS and asked and strict and one_size
