"""The sequential plan of a goal: how many good and bad trials are enough for a verdict (Wald 1945, truncated)."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

from pydantic import Field, model_validator

from ..config import Config


class SequentialPlan(Config):
    """A verdict by the number of good and of bad trials of one direction so far.

    ``good_for_pass``: the fewest good trials for a PASS after 0, 1, 2 … bad ones; more bad trials than it has entries
    for are a FAIL. ``good_for_fail``: the most good trials with which 0, 1, 2 … bad ones are a FAIL (None: they are
    not one yet).
    """

    good_for_pass: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)]
    good_for_fail: tuple[Annotated[int, Field(ge=0)] | None, ...]

    @model_validator(mode="after")
    def _check_monotonic(self) -> SequentialPlan:
        if len(self.good_for_pass) != len(self.good_for_fail):
            raise ValueError("good_for_pass and good_for_fail must have as many entries: one for 0 bad trials, 1, 2 …")
        if any(most is not None and most >= least for least, most in self._rows):
            raise ValueError("good_for_fail must be below good_for_pass for as many bad trials")
        # otherwise a trial that is bad instead of good could make a FAIL a PASS
        if any(later < earlier - 1 for earlier, later in pairwise(self.good_for_pass)):
            raise ValueError("good_for_pass must not fall by more than 1 from one number of bad trials to the next")
        fails = [-1 if most is None else most for most in self.good_for_fail]
        if any(later < earlier - 1 for earlier, later in pairwise(fails)):
            raise ValueError("good_for_fail must not fall by more than 1 from one number of bad trials to the next")
        return self

    @classmethod
    def fixed(cls, good: int, most_bad: int, whole: bool = False) -> SequentialPlan:
        """PASS after *good* trials, FAIL after more than *most_bad*; *whole*: PASS only after the sum of both."""
        passing = [good + (most_bad - bad if whole else 0) for bad in range(most_bad + 1)]
        return cls(good_for_pass=tuple(passing), good_for_fail=(None,) * (most_bad + 1))

    @property
    def _rows(self) -> list[tuple[int, int | None]]:
        return list(zip(self.good_for_pass, self.good_for_fail, strict=True))

    @property
    def most_bad(self) -> int:
        """The most bad trials of a PASS."""
        return len(self.good_for_pass) - 1

    @property
    def most_trials(self) -> int:
        """The most good and bad trials together until a verdict."""
        return max(good + bad for bad, good in enumerate(self.good_for_pass))

    def passes(self, good: int, bad: int) -> bool:
        """Return whether so many trials are enough for a PASS."""
        return bad <= self.most_bad and good >= self.good_for_pass[bad]

    def fails(self, good: int, bad: int) -> bool:
        """Return whether so many trials are enough for a FAIL."""
        if bad > self.most_bad:
            return True
        most = self.good_for_fail[bad]
        return most is not None and good <= most

    def __str__(self) -> str:
        first, last = self.good_for_pass[0], max(self.good_for_pass)
        words = f"PASS after {first} good trial{'s' * (first > 1)}"
        return f"{words}, or up to {last} if up to {self.most_bad} are bad" if self.most_bad else words
