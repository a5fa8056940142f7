"""Search goals in the terms of RFC 9971 (MLRsearch). ``variables/goals/*.yaml``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, model_validator

from ..config import Config, load_config
from ..errors import ConfigError
from ..platforms import named_file
from ..project import Folder
from ..visible import shortened
from .sequential_plan import SequentialPlan

MOST_LENGTHENED_TRIALS = 20
"""So many trials distinguish a burst of loss from a shortage; lengthening trials keeps at most this number."""

_ROUNDING = 1e-6

MOST_TRIALS = 100_000
"""Of a verdict: a day of one-second trials is fewer."""

FORGIVEN = 0.001
"""Where no loss is allowed, bad trials that the goal forgives may lose this share of all frames together."""


class Promise(Config):
    """A share of routers that pass, 0..1: ``at_least`` or ``at_most``.

    ``capacity``: true capacity of the routers against the SLA, as a ratio (0: exactly it, 0.005: 0.5 % more).
    ``burst_every``: s between the bursts of frames that they lose, on average (None: as the study's routers do).
    ``directions``: so many are judged (None: any number).
    """

    capacity: Annotated[float, Field(gt=-1)]
    burst_every: Annotated[float | None, Field(gt=0)] = None
    directions: Annotated[int | None, Field(ge=1)] = None
    at_least: Annotated[float | None, Field(gt=0, lt=1)] = None
    at_most: Annotated[float | None, Field(gt=0, lt=1)] = None

    @model_validator(mode="after")
    def _check_one_bound(self) -> Promise:
        if (self.at_least is None) is (self.at_most is None):
            raise ValueError("a promise has one bound: expected 'at_least' or 'at_most'")
        return self


class Goal(Config):
    """How much evidence a verdict needs.

    ``final_trial_duration`` and ``duration_sum`` in s; ``loss_ratio`` is the most a trial may lose, ``exceed_ratio``
    the share of the duration sum that may lose more (0..1). ``invalid_trials``: number of trials spoilt by the testbed
    that are repeated before the verdict is INCONCLUSIVE. ``warm_up`` in s, before the first trial of a sentence.

    ``plan``: when trials are enough, by the number of directions (a plan serves fewer directions too). With several
    directions each is judged by itself, and a sound one must fail the less often. It is computed from ``promises``.
    Without a plan, and in a soak, ``duration_sum`` and ``exceed_ratio`` say it; a search always uses these.

    ``clear_loss_ratio``: one trial that loses more is a FAIL at once, whatever the exceed ratio allows (None: no such
    bound). ``scout`` in s: a shorter first trial, which can only show such a FAIL (0: none).

    ``resolution``: the largest share of a trial's frames that may be under way, in queues, when sending ends: they hide
    as large a shortage. Trials with more are lengthened, to ``longest_trial`` s at most, or prove nothing.
    ``buffer_frames``: what is assumed where the generator cannot tell. ``confidence`` (0..1) of the intervals of
    measured figures.

    ``whole``: a PASS needs trials of the whole duration sum (a soak), even when the goal can no longer be missed.
    ``window``: s of consecutive trials in which no more than the exceed ratio may be bad, wherever they begin (None:
    only in the whole duration sum).
    """

    goal: str
    final_trial_duration: Annotated[float, Field(gt=0, le=3600)]
    duration_sum: Annotated[float, Field(gt=0, le=86400)]
    loss_ratio: Annotated[float, Field(ge=0, lt=1)]
    exceed_ratio: Annotated[float, Field(ge=0, lt=1)]
    warm_up: Annotated[float, Field(ge=0, le=600)] = 1.0
    invalid_trials: Annotated[int, Field(ge=0, le=100)] = 3
    clear_loss_ratio: Annotated[float | None, Field(ge=0, le=1)] = None
    scout: Annotated[float, Field(ge=0, le=60)] = 0.0
    buffer_frames: Annotated[int, Field(ge=0, le=10**9)] = 0
    resolution: Annotated[float, Field(ge=1e-6, lt=1)] = 0.01
    longest_trial: Annotated[float | None, Field(gt=0, le=3600)] = None
    confidence: Annotated[float, Field(gt=0, le=0.999999)] = 0.95
    whole: bool = False
    window: Annotated[float | None, Field(gt=0)] = None
    plan: Mapping[Annotated[int, Field(ge=1)], SequentialPlan] = {}
    promises: tuple[Promise, ...] = ()
    about: str

    @model_validator(mode="after")
    def _check_consistent(self) -> Goal:
        if self.duration_sum < self.final_trial_duration:
            raise ValueError("duration_sum must be at least final_trial_duration")
        if self.duration_sum > MOST_TRIALS * self.final_trial_duration:
            raise ValueError(f"duration_sum must be at most {MOST_TRIALS} times final_trial_duration")
        if self.longest_trial is not None and self.longest_trial < self.final_trial_duration:
            raise ValueError("longest_trial must be at least final_trial_duration")
        if self.clear_loss_ratio is not None and self.clear_loss_ratio < self.loss_ratio:
            raise ValueError("clear_loss_ratio must be at least loss_ratio")
        if self.scout and self.clear_loss_ratio is None:
            raise ValueError("a scout can only show a clear fail: clear_loss_ratio must say what that is")
        if self.scout and self.scout >= self.final_trial_duration:
            raise ValueError("scout must be shorter than final_trial_duration; expected 0 where trials are short")
        return self

    def __str__(self) -> str:
        clear = "" if self.clear_loss_ratio is None else f", clear loss ratio {self.clear_loss_ratio:g}"
        words = f"goal '{self.goal}': trials of {self.final_trial_duration:g} s, loss ratio {self.loss_ratio:g}{clear}"
        if self.plan and not self.whole:
            return f"{words}, {self.plan_for(min(self.plan))}"
        return f"{words}, duration sum {self.duration_sum:g} s, exceed ratio {self.exceed_ratio:g}"

    def plan_for(self, directions: int) -> SequentialPlan:
        """When trials are enough for a verdict, if so many *directions* are judged one by one."""
        if self.plan and not self.whole:
            return self.plan[min((key for key in self.plan if key >= directions), default=max(self.plan))]
        trials = self.duration_sum / self.final_trial_duration
        most_bad = math.floor(self.exceed_ratio * trials + _ROUNDING)
        if self.whole:
            return SequentialPlan.fixed(max(1, math.ceil(trials - _ROUNDING) - most_bad), most_bad, whole=True)
        return SequentialPlan.fixed(max(1, math.ceil((1 - self.exceed_ratio) * trials - _ROUNDING)), most_bad)

    @property
    def is_strict(self) -> bool:
        """Whether its trials are those of RFC 2544 26.1: 60 s at least, and not one frame lost."""
        return self.final_trial_duration >= 60 and not self.loss_ratio and not self.plan_for(1).most_bad

    def promises_for(self, directions: int) -> list[Promise]:
        """What is promised where so many *directions* are judged."""
        return [promise for promise in self.promises if promise.directions in (None, directions)]

    def for_directions(self, directions: int) -> Goal:
        """This goal with the plan for so many *directions* alone."""
        return self.model_copy(update={"plan": {directions: self.plan_for(directions)}}) if self.plan else self

    def as_soak(self, seconds: float) -> Goal:
        """This goal for *seconds* of trials, all of them; as before, so many may be bad within its duration sum.

        Raises ValueError if they are more than MOST_TRIALS.
        """
        if seconds > MOST_TRIALS * self.final_trial_duration:
            raise ValueError(f"more than {MOST_TRIALS} trials of {self.final_trial_duration:g} s; expected less time")
        return self.model_copy(update={"plan": {}, "duration_sum": seconds, "whole": True, "window": self.duration_sum})

    def with_loss_ratio(self, loss_ratio: float) -> Goal:
        """This goal with the loss ratio that a sentence states.

        The clear loss ratio stays as far beyond it as before, as a share of the frames to be forwarded.
        """
        clear = self.clear_loss_ratio
        if clear is not None:
            beyond = (clear - self.loss_ratio) / (1 - self.loss_ratio)
            clear = loss_ratio + (1 - loss_ratio) * beyond
        return self.model_copy(update={"loss_ratio": loss_ratio, "clear_loss_ratio": clear})

    def for_load(self, pps: float) -> Goal:
        """This goal for a load of *pps* frames/s into each port: its trials are long enough to overflow the buffer."""
        return self.for_backlog(self.buffer_frames, pps)

    def for_backlog(self, frames: float, pps: float) -> Goal:
        """This goal with trials so long that *frames* are no more than ``resolution`` of a load of *pps* frames/s.

        The duration sum grows too, so that the number of trials stays; it need not hold more than
        MOST_LENGTHENED_TRIALS of the longer ones.
        """
        longest = max(self.longest_trial or 0.0, self.final_trial_duration)
        # rounded up to a tenth of a second, which reads better
        needed = math.ceil(10 * frames / (self.resolution * pps)) / 10
        duration = min(max(self.final_trial_duration, needed), longest)
        if duration == self.final_trial_duration:
            return self

        def lengthened(seconds: float) -> float:
            return max(seconds, min(seconds / self.final_trial_duration, MOST_LENGTHENED_TRIALS) * duration)

        window = None if self.window is None else lengthened(self.window)
        longer = {"duration_sum": lengthened(self.duration_sum), "window": window}
        return self.model_copy(update={"final_trial_duration": duration, **longer})

    @property
    def forgiven_loss_ratio(self) -> float:
        """The most of all frames of all trials, 0..1, that a PASS may have lost.

        The loss ratio; of a goal without loss FORGIVEN, if it allows bad trials.
        """
        return self.loss_ratio or (FORGIVEN if self.plan_for(1).most_bad else 0.0)

    def hidden_shortage(self, pps: float) -> float:
        """The largest shortage, as a ratio of a load of *pps* frames/s, that ``buffer_frames`` hide in a trial."""
        return min(1.0, self.buffer_frames / (pps * self.final_trial_duration))

    def hidden_shortage_text(self, pps: float) -> str:
        """The shortage that a PASS at *pps* frames/s may hide, in words; empty if the trials are long enough."""
        hidden = self.hidden_shortage(pps)
        # the tolerance is for durations rounded to a tenth of a second
        if hidden <= self.resolution * 1.001:
            return ""
        return (
            f"a buffer of {self.buffer_frames} frames, if the router has one, hides a shortage of up to"
            f" {100 * hidden:.3g} % in trials of {self.final_trial_duration:g} s at this rate"
        )


def read_goal(folder: Folder, name: str) -> Goal:
    """The goal *name* of *folder*. Raises ConfigError, which lists the goals that exist."""
    path = named_file(folder, name, "goal")
    found = load_config(path, Goal)
    if found.goal != name:
        raise ConfigError(f"says 'goal: {shortened(found.goal)}'; in a file of this name expected '{name}'", path)
    return found
