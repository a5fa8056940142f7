"""The decision rule: what a list of trials proves about a requirement under a goal. Pure functions of the counts.

Each trial is evidence for the router (GOOD), against it (BAD, or CLEAR where it loses too much to be forgiven), or for
nothing (NONE). With duration sum *S* and exceed ratio *e* of the goal (RFC 9971 conditional throughput, read
sequentially):

* FAIL as soon as one trial is CLEAR, or BAD trials last longer than ``e * S``: whatever else came, the goal could not
  be met any more;
* PASS as soon as GOOD trials last at least ``(1 - e) * S``: whatever else came, it could not be missed any more;
* INCONCLUSIVE when more trials than the goal's ``invalid_trials`` proved nothing, or when as many did not have the full
  load, though some of them lost frames: a router must not pass for having lost more;
* INCONCLUSIVE, likewise, where trials whose figure could not be told against the threshold (UNTOLD) last longer than
  the bad ones may, both together: had they been worse, it would be no PASS either.

A goal that is to be kept for its *whole* duration sum (a soak) passes only once trials have lasted that long.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from ..counts.ledger import Ledger
from ..counts.ledger_words import span, where_lost
from ..counts.trial import Trial
from .goals import Goal
from .requirement import Quantity, Requirement

_HAIR = 1e-9


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
    UNTOLD = "a figure too coarse to tell"

    @property
    def against(self) -> bool:
        """Whether it speaks against the router."""
        return self in (Evidence.BAD, Evidence.BAD_BELOW, Evidence.CLEAR)


Weigh = Callable[[Trial], Evidence]


@dataclass(frozen=True, slots=True)
class Tally:
    """Seconds of trials for and against, and the number that proved nothing.

    ``clear``: trials that alone decide against; ``below``: trials that were bad at less than the load asked for.
    """

    good: float
    bad: float
    spoilt: int
    clear: int = 0
    below: int = 0
    untold: float = 0.0
    """Seconds of trials whose figure could not be told against the threshold."""


def tally(trials: Sequence[Trial], weigh: Weigh) -> Tally:
    """Add up what the trials prove."""
    weighed = [(weigh(trial), trial.outcome.duration) for trial in trials]

    def seconds(*wanted: Evidence) -> float:
        return math.fsum(duration for evidence, duration in weighed if evidence in wanted)

    def count(wanted: Evidence) -> int:
        return sum(1 for evidence, _ in weighed if evidence is wanted)

    return Tally(
        good=seconds(Evidence.GOOD),
        bad=seconds(*(evidence for evidence in Evidence if evidence.against)),
        spoilt=count(Evidence.NONE),
        clear=count(Evidence.CLEAR),
        below=count(Evidence.BAD_BELOW),
        untold=seconds(Evidence.UNTOLD),
    )


def decide(goal: Goal, trials: Sequence[Trial], weigh: Weigh) -> Ruling | None:
    """The verdict that *trials* allow, or None while more of them are needed."""
    found = tally(trials, weigh)
    forgiven = goal.exceed_ratio * goal.duration_sum + _HAIR
    if found.clear or found.bad > forgiven:
        return Ruling.FAIL
    enough = found.good >= (1 - goal.exceed_ratio) * goal.duration_sum - _HAIR
    if enough and (not goal.whole or found.good + found.bad + found.untold >= goal.duration_sum - _HAIR):
        # had those below the load lost nothing, they would be spoilt; losing more must not make a PASS of that
        clean = found.spoilt + found.below <= goal.invalid_trials and found.bad + found.untold <= forgiven
        return Ruling.PASS if clean else Ruling.INCONCLUSIVE
    if found.spoilt > goal.invalid_trials or found.untold > forgiven:
        return Ruling.INCONCLUSIVE
    return None


def weigh_loss(goal: Goal, in_total: bool) -> Weigh:
    """Loss within the goal is GOOD only at the load asked for; loss beyond it is BAD at that load *or any lower*.

    A trial shorter than the goal's is a scout: it can be CLEAR, and nothing else.
    """

    def weigh(trial: Trial) -> Evidence:
        scout = trial.outcome.duration < goal.final_trial_duration - _HAIR
        if trial.blames_router:
            loss = trial.loss_ratio(in_total)
            if goal.clear_loss_ratio is not None and trial.clear_loss(in_total) > goal.clear_loss_ratio:
                return Evidence.CLEAR
            if loss > goal.loss_ratio and not scout:
                return Evidence.BAD if trial.valid else Evidence.BAD_BELOW
        if scout:
            return Evidence.SCOUT
        return Evidence.GOOD if trial.valid else Evidence.NONE

    return weigh


def forwarded_pps(trial: Trial, requirement: Requirement) -> float:
    """Forwarding rate in frames/s as the sentence counts: of all directions together, or of the worst one."""
    seconds = max(trial.seconds, _HAIR)
    rates = [direction.forwarded / seconds for direction in trial.outcome.directions]
    return math.fsum(rates) if requirement.in_total else min(rates, default=0.0)


def offered_pps(trial: Trial, requirement: Requirement) -> float:
    """Offered load in frames/s, counted as :func:`forwarded_pps` counts."""
    seconds = max(trial.seconds, _HAIR)
    rates = [direction.offered / seconds for direction in trial.outcome.directions]
    return math.fsum(rates) if requirement.in_total else min(rates, default=0.0)


def weigh_forwarding(requirement: Requirement, link_bps: float) -> Weigh:
    """The rate forwarded reaches the threshold (GOOD), or it was offered that much and did not forward it (BAD).

    A generator that sends less than its maximum spoils nothing as long as what came back is enough. Where it sent less
    than the threshold itself, the trial proves nothing: unlike loss, a forwarding rate says nothing of a higher load.
    """
    threshold = requirement.threshold_pps(link_bps)

    def weigh(trial: Trial) -> Evidence:
        if not trial.blames_router:
            return Evidence.NONE
        if forwarded_pps(trial, requirement) >= threshold:
            return Evidence.GOOD
        return Evidence.BAD if offered_pps(trial, requirement) >= threshold else Evidence.NONE

    return weigh


@dataclass(frozen=True)
class Verdict:
    """What a requirement came to. ``figures``: named measured values with their unit in the name."""

    requirement: Requirement
    goal: Goal
    outcome: Ruling
    reason: str
    trials: tuple[Trial, ...]
    link_bps: float
    figures: Mapping[str, float]
    router_drops: Mapping[str, int] | None = None
    """Frames that the router's own counters say it dropped meanwhile, by cause; None where they were not read."""

    ceiling: Mapping[str, object] | None = None
    """The generator's own ceiling, where that took the place of a FAIL (:mod:`.headroom`)."""

    ledgers: tuple[Ledger, ...] = ()
    """Where the frames went, of each bad trial that lost some."""

    @property
    def message(self) -> str:
        """``FAIL: <sentence>: <what was measured>; <where the router lost them>; <goal>``."""
        where = ""
        if self.outcome is Ruling.FAIL and self.ledgers:
            # by the trial that it ends with: one that spans many good trials before adds up more frames
            in_total = self.requirement.in_total
            loss = {trial.number: trial.loss_ratio(in_total) for trial in self.trials}
            worst = max(self.ledgers, key=lambda ledger: loss.get(ledger.trial, 0.0))
            where = "" if worst.first == worst.trial and len(self.trials) == 1 else f"{span(worst)}, "
            where += f"{where_lost(worst)}; "
        return f"{self.outcome.value}: {self.requirement.sentence}: {self.reason}; {where}{self.goal}"

    @property
    def is_rfc2544_throughput(self) -> bool:
        """Whether this result may be called RFC 2544 throughput (26.1): one frame size, 60 s, not a frame lost.

        Whether the testbed was a real one is for the caller to know.
        """
        goal = self.goal
        strict = goal.final_trial_duration >= 60 and not goal.loss_ratio and not goal.exceed_ratio
        one_size = len(self.requirement.profile.frames) == 1
        asked = self.requirement.quantity is Quantity.THROUGHPUT
        return self.outcome is Ruling.PASS and asked and strict and one_size
