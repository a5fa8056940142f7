"""Search goals in the terms of RFC 9971 (MLRsearch). ``variables/goals/*.yaml``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from ..config import Config, load
from ..errors import ConfigError
from ..platforms import named_file

ENOUGH_TRIALS = 20
"""As many trials tell a burst from a shortage; what asks for more asks for time."""


class Goal(Config):
    """How much evidence a verdict needs.

    ``final_trial_duration`` and ``duration_sum`` in s; ``loss_ratio`` is the most a trial may lose, ``exceed_ratio``
    the share of the duration sum that may lose more (0..1). ``invalid_trials``: how many trials spoilt by the testbed are
    repeated before the verdict is INCONCLUSIVE. ``warm_up`` in s, before the first trial of a sentence.

    ``clear_loss_ratio``: one trial that loses more decides at once, whatever the exceed ratio would forgive (None: no
    such bound). ``scout`` in s: a first trial of that duration, which can do nothing but show a clear fail (0: none).

    ``buffer_frames``: the buffer that a router is taken to have, in frames. A trial does not see a shortage that fits
    in it, so at low rates trials are lengthened, to ``longest_trial`` s at most, until a shortage of ``resolution``
    (ratio of the load) overflows it. ``confidence``: of the intervals that go with a measured figure, 0..1.

    ``whole``: a PASS takes trials of the whole duration sum (a soak), and is not given once it can no longer be missed.
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
    resolution: Annotated[float, Field(gt=0, lt=1)] = 0.01
    longest_trial: Annotated[float | None, Field(gt=0, le=3600)] = None
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95
    whole: bool = False
    about: str

    @model_validator(mode="after")
    def _whole_trials(self) -> Goal:
        if self.duration_sum < self.final_trial_duration:
            raise ValueError("duration_sum must be at least final_trial_duration")
        if self.longest_trial is not None and self.longest_trial < self.final_trial_duration:
            raise ValueError("longest_trial must be at least final_trial_duration")
        if self.clear_loss_ratio is not None and self.clear_loss_ratio < self.loss_ratio:
            raise ValueError("clear_loss_ratio must be at least loss_ratio")
        if self.scout and self.clear_loss_ratio is None:
            raise ValueError("a scout shows nothing but a clear fail: clear_loss_ratio must say what that is")
        if self.scout and self.scout >= self.final_trial_duration:
            raise ValueError("scout must be shorter than final_trial_duration; right is 0 where those are short")
        return self

    def __str__(self) -> str:
        clear = "" if self.clear_loss_ratio is None else f", clear loss ratio {self.clear_loss_ratio:g}"
        return (
            f"goal '{self.goal}': trials of {self.final_trial_duration:g} s, duration sum {self.duration_sum:g} s,"
            f" loss ratio {self.loss_ratio:g}, exceed ratio {self.exceed_ratio:g}{clear}"
        )

    def allowing(self, loss_ratio: float) -> Goal:
        """This goal with another loss ratio (for a sentence that states its own).

        A clear fail stays as far beyond it as it was: the same share of what was to be forwarded.
        """
        clear = self.clear_loss_ratio
        if clear is not None:
            beyond = (clear - self.loss_ratio) / (1 - self.loss_ratio)
            clear = loss_ratio + (1 - loss_ratio) * beyond
        return self.model_copy(update={"loss_ratio": loss_ratio, "clear_loss_ratio": clear})

    def at(self, pps: float) -> Goal:
        """This goal for a load of *pps* frames/s into each port: trials long enough to see past ``buffer_frames``.

        The duration sum grows with the trials, so that their number stays; a sum of more than ENOUGH_TRIALS of them (a
        soak) only as far as it must to hold those.
        """
        longest = max(self.longest_trial or 0.0, self.final_trial_duration)
        # to a tenth of a second, for the reader
        wanted = math.ceil(10 * self.buffer_frames / (self.resolution * pps)) / 10
        duration = min(max(self.final_trial_duration, wanted), longest)
        if duration == self.final_trial_duration:
            return self
        number = min(self.duration_sum / self.final_trial_duration, ENOUGH_TRIALS)
        total = max(self.duration_sum, number * duration)
        return self.model_copy(update={"final_trial_duration": duration, "duration_sum": total})

    def hidden_shortage(self, pps: float) -> float:
        """The largest shortage, as a ratio of a load of *pps* frames/s, that ``buffer_frames`` hide from each trial."""
        return min(1.0, self.buffer_frames / (pps * self.final_trial_duration))

    def unseen(self, pps: float) -> str:
        """What a PASS at *pps* frames/s did not look at, in words; empty where trials are as long as they should be."""
        hidden = self.hidden_shortage(pps)
        # a hair: trials are lengthened to a tenth of a second
        if hidden <= self.resolution * 1.001:
            return ""
        return (
            f"a buffer of {self.buffer_frames} frames, if the router has one, hides a shortage of up to"
            f" {100 * hidden:.3g} % in trials of {self.final_trial_duration:g} s at this rate"
        )


def read_goal(folder: Path, name: str) -> Goal:
    """The goal *name* of *folder*. Raises ConfigError listing those that exist."""
    path = named_file(folder, name, "goal")
    found = load(path, Goal)
    if found.goal != name:
        raise ConfigError(f"says 'goal: {found.goal}'; in a file of this name expected '{name}'", path)
    return found
