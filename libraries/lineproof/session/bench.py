"""The seam between the judge and what it judges: an open testbed, or a recorded run; and what is heard of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ..core.deciding import Standing
from ..core.doubts import OwnPart
from ..core.quantity import Promise, Requirement, TrafficWords
from ..core.step_down import StepDown
from ..core.telemetry import Telemetry
from ..core.trial import Measure, Tolerance, Trial
from .plan import Plan


@dataclass(frozen=True, slots=True)
class EndedTrial:
    """A trial is over. ``standing``: of all so far; None: it was a warm-up."""

    trial: Trial
    standing: Standing | None = None


BEFORE, AFTER, SET_UP = "before", "after", "set-up"
"""Moments of the readings before and after a sentence's trials, and of the look at the run's changes before a FAIL."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of a reading at a ``moment``: BEFORE, AFTER, SET_UP, ``trial 3``, or ``under load``.

    ``telemetry``, or None and the ``error``; ``restarted``: that the router did.
    """

    moment: str
    telemetry: Telemetry | None
    error: str = ""
    restarted: bool = False


Listener = Callable[[EndedTrial | Reading | StepDown], None]
"""Hears all that a verdict rests on, in order: a repetition of an overload before its trial."""


def nobody(event: EndedTrial | Reading | StepDown) -> None:
    """Hear nothing."""


class Bench(Protocol):
    """A testbed as the judge knows it, open or recorded."""

    plan: Plan

    @property
    def interfaces(self) -> Mapping[int, str]:
        """The router's interfaces under test, by the generator's port."""
        ...

    @property
    def tolerance(self) -> Tolerance:
        """How far a trial may differ from what was intended."""
        ...

    @property
    def clock_speed(self) -> float:
        """Seconds of the testbed's clock per real second; NaN for a simulation that does not say it."""
        ...

    @property
    def simulated(self) -> bool:
        """Return whether nothing here is a measurement. The counters of a simulation do not lag."""
        ...

    @property
    def uncounted(self) -> str:
        """Why the frames that the router itself counts are not read; "": they are."""
        ...

    @property
    def restarts(self) -> int:
        """How many restarts of the router were noticed."""
        ...

    @property
    def why_no_ledger(self) -> str:
        """Why the reading after the trials says nothing of the last of them; "": it does."""
        ...

    def own_part(self, traffic: TrafficWords, load_pps: float, seconds: float) -> OwnPart:
        """Return the generator's own part in trials of so many *seconds* at *load_pps* into each port."""
        ...

    def prepare(self, requirement: Requirement) -> Trial | None:
        """Put the streams of a sentence on the ports, and return its warm-up. Raises TestbedError."""
        ...

    def measure_of(self, promise: Promise, hear: Listener) -> Measure:
        """Return how a trial of *promise* is measured."""
        ...

    def examine(self, frames: bool) -> None:
        """Look at the last *frames* of each trial from now on, where the generator can keep some; or do not."""
        ...

    def read(self, moment: str) -> Telemetry:
        """Read the router's counters; AFTER the trials neighbours too; SET_UP: changes alone. Raises TestbedError."""
        ...

    def settle(self) -> None:
        """Wait until counters that lag are up to date."""
        ...

    def problems(self) -> tuple[str, ...]:
        """Return which processes of the testbed have ended, in words."""
        ...
