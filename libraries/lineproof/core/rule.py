"""The rule that decides PASS, FAIL or INCONCLUSIVE. It knows figures and limits: no quantity, no clock, no words.

1. A trial gives an interval per direction.
2. What the testbed did wrong widens it, and does nothing else.
3. The rule is asked twice: with each trial at its worse end, and with each trial at its better end. PASS if the worse
   ends pass, FAIL if the better ends fail. If both have answered otherwise, INCONCLUSIVE.
4. Asked once, a trial keeps the limit or misses it. The evidence of a direction is Wald's likelihood ratio of its
   trials. All directions must reach 1 / risk for a pass, one must reach directions / risk for a fail.
5. The whole must agree: for a pass, all trials together lose no more than the goal forgives in all; for a fail, they
   miss the limit itself. If no rest of the budget can bring them back to what is forgiven, that alone is a fail.

Of several runs the evidence is multiplied, each has a budget of its own, and point 5 is asked of each by itself and
of all together. A goal of ``runs: 3`` decides when three have ended, each by its own evidence or budget.

Wald, "Sequential tests of statistical hypotheses" (1945); the risk holds whenever one stops (Ville's inequality).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from .bounds import Bounds, Limit


class Ruling(Enum):
    """The three outcomes of a sentence."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True, slots=True)
class Shares:
    """How sure a verdict is.

    ``bad_share`` and ``good_share``: the share of trials that miss the limit, of a router at the limit and of a sound
    one. ``risk``: of a wrong verdict, for each side. ``budget``: trials. ``soak``: trials of a sentence with
    ``for 30 min``; 0: none. The budget is then a window that slides over them. ``runs``: that decide together.
    """

    bad_share: float
    good_share: float
    risk: float
    budget: int
    soak: int = 0
    runs: int = 1

    def kept_weight(self, length: float = 1.0) -> float:
        """Return the log likelihood ratio, for the router, of a trial so many times as long that keeps the limit."""
        return length * math.log((1 - self.good_share) / (1 - self.bad_share))

    def missed_weight(self, length: float = 1.0) -> float:
        """Return the log likelihood ratio, against the router, of a trial so long that misses the limit."""
        return math.log((1 - (1 - self.bad_share) ** length) / (1 - (1 - self.good_share) ** length))

    @property
    def fewest_trials(self) -> int:
        """The number of trials of a PASS in which no trial misses the limit."""
        return max(self.soak, math.ceil(math.log(1 / self.risk) / self.kept_weight() - 1e-9))

    @property
    def most_trials(self) -> int:
        """The number of trials after which the rule has answered."""
        return self.soak or self.budget


class Asking:
    """The rule for figures that are known exactly. ``answer`` is None while it needs more trials.

    ``trials``: of the last run. In a soak, good trials are no credit for bad ones that follow.
    """

    def __init__(self, shares: Shares, directions: int) -> None:
        self.shares, self.trials = shares, 0
        self.evidence = [0.0] * directions
        self.answer: Ruling | None = None
        self.is_hopeless = False
        self._against = [0.0] * directions
        self._is_forgiven = self._were_forgiven = True
        chances = directions * max(1, shares.soak)  # a soak can begin to fail at each of its trials
        self._pass, self._fail = math.log(1 / shares.risk), math.log(chances / shares.risk)

    def add(
        self,
        keeps: Sequence[bool],
        whole_misses: Sequence[bool],
        is_forgiven: bool,
        can_be_forgiven: bool,
        length: float,
        answers: bool = True,
    ) -> None:
        """Add a trial. *keeps*: of each direction; *whole_misses*: whether all of a direction's trials together do.

        *is_forgiven*: whether those of this run lose no more than is forgiven; *can_be_forgiven*: whether
        perfect further trials would bring them there. *answers*: whether there may be an answer yet.
        """
        shares = self.shares
        self.trials += 1
        for way, kept in enumerate(keeps):
            step = shares.kept_weight(length) if kept else -shares.missed_weight(length)
            self.evidence[way] += step
            self._against[way] = (max(0.0, self._against[way]) if shares.soak else self._against[way]) - step
        self._is_forgiven = is_forgiven
        if self.answer is not None:
            return
        self.is_hopeless = self.is_hopeless or not can_be_forgiven
        against = zip(self._against, whole_misses, strict=True)
        if not answers:
            return
        if self.is_hopeless or any(evidence >= self._fail and misses for evidence, misses in against):
            self.answer = Ruling.FAIL
        elif self.trials >= shares.soak and min(self.evidence) >= self._pass and is_forgiven and self._were_forgiven:
            self.answer = Ruling.PASS
        elif self.trials >= shares.most_trials:
            self.answer = Ruling.INCONCLUSIVE

    def begin_run(self) -> None:
        """Begin a further run, with a new budget. What a run lost by itself beyond what is forgiven stays so."""
        self.trials, self._were_forgiven = 0, self._were_forgiven and self._is_forgiven
        self.answer = Ruling.FAIL if self.is_hopeless else None

    def needed_odds(self, ruling: Ruling) -> float:
        """Return the evidence to 1 that *ruling* needs."""
        return math.exp(self._fail if ruling is Ruling.FAIL else self._pass)

    @property
    def trials_left(self) -> int:
        """The number of further trials until it passes, if all keep the limit; at most those that there can be."""
        shares = self.shares
        short = math.ceil((self._pass - min(self.evidence)) / shares.kept_weight() - 1e-9)
        return min(shares.most_trials - self.trials, max(0, short, shares.soak - self.trials))

    def odds(self, ruling: Ruling | None) -> float:
        """Return the evidence to 1 for the router, of the direction that has least of it; of a FAIL that against it."""
        evidence = max(self._against) if ruling is Ruling.FAIL else min(self.evidence)
        return math.exp(min(evidence, 700.0))


class Rule:
    """Both askings over the trials of a sentence with this *limit* and what is *forgiven* in all.

    ``runs`` that were begun. ``own``: the rule of the last run by itself, where several must decide together.
    """

    def __init__(self, shares: Shares, limit: Limit, forgiven: Limit, directions: int) -> None:
        self.shares, self.limit, self.forgiven, self.runs = shares, limit, forgiven, 1
        self.worse, self.better = Asking(shares, directions), Asking(shares, directions)
        self.own: Rule | None = None
        if shares.runs > 1:
            self.own = Rule(replace(shares, runs=1), limit, forgiven, directions)

    def begin_run(self) -> bool:
        """Begin a run with a new budget and return True; False: the one before had not ended, and goes on with it."""
        if self.ruling is None:
            for rule in filter(None, (self, self.own)):
                rule.worse.trials = rule.better.trials = 0
            return False
        self.runs += 1
        self.worse.begin_run()
        self.better.begin_run()
        if self.own is not None:
            self.own = Rule(self.own.shares, self.limit, self.forgiven, len(self.worse.evidence))
        return True

    def add(
        self,
        figures: Sequence[Bounds],
        whole: Sequence[Bounds],
        completed: Sequence[Bounds],
        length: float = 1.0,
        of_all: Sequence[Bounds] = (),
    ) -> Ruling | None:
        """Add a trial and return the ruling, None while more trials are needed.

        *whole*: of all trials of this run (in a soak: of its last window). *completed*: with perfect further trials.
        *of_all*: of all runs together; empty: there is one. *length*: of the trial, in trials of the goal. In a long
        one chance has more time for a miss, so a miss counts less. But what differs from trial to trial is no smaller
        in it, so one that keeps the limit counts once.
        """
        limit, forgiven, of_all = self.limit, self.forgiven, of_all or whole
        answers = self.own is None
        if self.own is not None:
            answers = self.own.add(figures, whole, completed, length) is not None and self.runs >= self.shares.runs
        # when a run ends, no further trial can make up for what all runs lost
        is_over = answers if self.own is not None else self.worse.trials + 1 >= self.shares.most_trials
        bounded = [*completed, *of_all] if is_over else completed
        ends = (self.worse, limit.worse_end, 1.0), (self.better, limit.better_end, max(1.0, length))
        for asking, end, lasts in ends:
            asking.add(
                [limit.keeps(end(bounds)) for bounds in figures],
                [not limit.keeps(end(bounds)) for bounds in of_all],
                all(forgiven.keeps(end(bounds)) for bounds in whole),
                all(forgiven.keeps(end(bounds)) for bounds in bounded),
                lasts,
                answers,
            )
        return self.ruling

    def evidence(self, ruling: Ruling) -> tuple[float, float]:
        """Return the evidence to 1 for the router, of a FAIL that against it, and as much as *ruling* needs."""
        if ruling is Ruling.FAIL:
            return self.better.odds(ruling), self.better.needed_odds(ruling)
        # what the testbed may have done is evidence for nobody
        return max(self.worse.odds(ruling), min(1.0, self.better.odds(ruling))), self.worse.needed_odds(ruling)

    @property
    def is_incomplete(self) -> bool:
        """Return whether further runs are needed, however this one ends."""
        return self.runs < self.shares.runs

    @property
    def trials_left(self) -> int:
        """The number of further trials until the ruling, if all keep the limit."""
        if self.own is not None:
            return self.own.trials_left
        return (self.better if self.worse.answer is not None else self.worse).trials_left

    @property
    def cannot_pass(self) -> bool:
        """Return whether the worse ends have failed: no further trial makes a PASS; they may still be a FAIL."""
        return self.worse.answer is Ruling.FAIL

    @property
    def ruling(self) -> Ruling | None:
        """Return what both answers mean together; None while this run has not ended."""
        if self.own is not None and self.own.ruling is None:
            return None
        if self.is_incomplete:
            return Ruling.INCONCLUSIVE
        if self.worse.answer is Ruling.PASS:
            return Ruling.PASS
        if self.better.answer is Ruling.FAIL:
            return Ruling.FAIL
        if self.own is None and (self.worse.answer is None or self.better.answer is None):
            return None
        return Ruling.INCONCLUSIVE
