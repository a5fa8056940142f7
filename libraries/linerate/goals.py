"""Search goals in the terms of RFC 9971 (MLRsearch). ``variables/goals/*.yaml``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from .config import Config, load
from .errors import ConfigError
from .platforms import named_file


class Goal(Config):
    """How much evidence a verdict needs.

    ``final_trial_duration`` and ``duration_sum`` in s; ``loss_ratio`` is the most a trial may lose, ``exceed_ratio``
    the share of the duration sum that may lose more (0..1). ``invalid_trials``: how many trials spoilt by the bench are
    repeated before the verdict is INCONCLUSIVE. ``warm_up`` in s, before the first trial of a sentence.
    """

    goal: str
    final_trial_duration: Annotated[float, Field(gt=0, le=3600)]
    duration_sum: Annotated[float, Field(gt=0, le=86400)]
    loss_ratio: Annotated[float, Field(ge=0, lt=1)]
    exceed_ratio: Annotated[float, Field(ge=0, lt=1)]
    warm_up: Annotated[float, Field(ge=0, le=600)] = 1.0
    invalid_trials: Annotated[int, Field(ge=0, le=100)] = 3
    about: str

    @model_validator(mode="after")
    def _whole_trials(self) -> Goal:
        if self.duration_sum < self.final_trial_duration:
            raise ValueError("duration_sum must be at least final_trial_duration")
        return self

    def __str__(self) -> str:
        return (
            f"goal '{self.goal}': trials of {self.final_trial_duration:g} s, duration sum {self.duration_sum:g} s,"
            f" loss ratio {self.loss_ratio:g}, exceed ratio {self.exceed_ratio:g}"
        )

    def allowing(self, loss_ratio: float) -> Goal:
        """This goal with another loss ratio (for a sentence that states its own)."""
        return self.model_copy(update={"loss_ratio": loss_ratio})


def read_goal(folder: Path, name: str) -> Goal:
    """The goal *name* of *folder*. Raises ConfigError listing those that exist."""
    path = named_file(folder, name, "goal")
    found = load(path, Goal)
    if found.goal != name:
        raise ConfigError(f"says 'goal: {found.goal}'; in a file of this name right would be '{name}'", path)
    return found
