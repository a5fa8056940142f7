"""Goals: how sure a verdict is, and how its trials are made, in the terms of RFC 9971. ``variables/goals/*.yaml``."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from ..config import Config, load_config
from ..platforms import named_file
from ..project import Folder
from ..units import counted
from .rule import Shares

Share = Annotated[float, Field(gt=0, lt=1)]


class Goal(Config):
    """How much evidence a verdict needs. Shares and ratios are 0 to 1, times are in s.

    ``bad_share``, ``good_share``: the share of trials that miss the limit, of a router at the limit and of a sound one
    (None: the goal is for searches, and judges nothing). ``risk``: of a wrong verdict, for each side. ``budget``: the
    most trials; in a soak, the trials of the window that slides over it. ``runs``: that must have ended before their
    evidence together decides.

    ``forgiven``: loss ratio of all trials together that a PASS without loss may have. ``unseen``: share of the frames
    in whose place foreign ones may come without being a doubt. ``resolution``: share of the load to which it is known,
    and below which a queue may hide a shortage. ``loss_ratio`` of a trial that keeps a throughput.

    ``warm_up``: before the first trial of a sentence. ``final_trial_duration``; trials grow to ``longest_trial`` at
    most, until neither clock nor queues can hide a shortage.

    ``duration_sum``, ``exceed_ratio``, ``width``: of a search (relative width).
    """

    goal: str
    bad_share: Share | None = None
    good_share: Share | None = None
    risk: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    final_trial_duration: Annotated[float, Field(gt=0, le=3600)]
    budget: Annotated[int, Field(ge=1, le=10_000)] = 60
    runs: Annotated[int, Field(ge=1, le=100)] = 1
    forgiven: Annotated[float, Field(ge=0, lt=1)] = 0.001
    unseen: Annotated[float, Field(ge=0, lt=1)] = 1e-5
    resolution: Annotated[float, Field(ge=1e-6, lt=1)] = 0.001
    loss_ratio: Annotated[float, Field(ge=0, lt=1)] = 0.0
    warm_up: Annotated[float, Field(ge=0, le=600)] = 1.0
    longest_trial: Annotated[float, Field(gt=0, le=3600)] = 10.0
    duration_sum: Annotated[float, Field(gt=0, le=86400)] = 20.0
    exceed_ratio: Annotated[float, Field(ge=0, lt=1)] = 0.2
    width: Annotated[float, Field(gt=0, lt=1)] = 0.005
    about: str

    @model_validator(mode="after")
    def _check_consistent(self) -> Goal:
        if (self.bad_share is None) is not (self.good_share is None):
            raise ValueError("expected both 'bad_share' and 'good_share', or neither")
        if self.bad_share is not None and self.good_share is not None:
            if self.good_share >= self.bad_share:
                raise ValueError("good_share must be less than bad_share")
            if self.fewest_trials > self.budget:
                raise ValueError(f"budget must be at least {self.fewest_trials}: so many good trials are a PASS")
        if self.duration_sum < self.final_trial_duration:
            raise ValueError("duration_sum must be at least final_trial_duration")
        return self

    @property
    def of_searches(self) -> str:
        """The terms that searches take from it, in words."""
        terms = f"goal '{self.goal}': trials of {self.final_trial_duration:g} s"
        return f"{terms}, duration sum {self.duration_sum:g} s, exceed ratio {self.exceed_ratio:g}"

    def __str__(self) -> str:
        if self.bad_share is None:
            return f"{self.of_searches}; judges nothing"
        enough, most = counted(self.fewest_trials, "good one"), counted(self.budget, "trial")
        terms = f"goal '{self.goal}': trials of {self.final_trial_duration:g} s"
        terms += f", PASS after {enough}, at most {most}, risk {self.risk:g}"
        return f"{terms}; {self.runs} runs decide together" if self.runs > 1 else terms

    def shares(self, soak: int = 0) -> Shares:
        """Return what the rule needs of it. *soak*: trials of a sentence with ``for TIME``; 0: none."""
        if self.bad_share is None or self.good_share is None:
            raise ValueError(f"goal '{self.goal}' is for searches, and judges no sentence")
        return Shares(self.bad_share, self.good_share, self.risk, self.budget, soak, self.runs)

    @property
    def fewest_trials(self) -> int:
        """The number of trials of a PASS in which no trial misses the limit."""
        return self.shares().fewest_trials

    @property
    def is_strict(self) -> bool:
        """Return whether its trials are those of RFC 2544 26.1: 60 s at least, not one frame lost, one decides."""
        return self.final_trial_duration >= 60 and not self.loss_ratio and not self.forgiven and self.budget == 1


def read_goal(folder: Folder, name: str) -> Goal:
    """Return the goal *name* of *folder*. Raises ConfigError, which lists the goals that exist."""
    return load_config(named_file(folder, name, "goal"), Goal, "goal")
