"""What a sentence promises a value of: the base of all quantities, and the promise of one sentence in numbers.

A quantity is an extension: a folder of :mod:`lineproof.quantities`, or an entry point ``lineproof.quantities`` of
another distribution. The rule needs its limit, its figures and its doubts; everything else here is for words.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

from .bounds import UNKNOWN, Bounds, Limit
from .doubts import Conditions, Doubt, OwnPart, sent_less
from .goal import Goal
from .latency import Statistic
from .rule import Ruling
from .step_down import StepDown
from .telemetry import Telemetry
from .trial import During, Load, Measure, Outcome, Trial
from .units import RATE_UNITS, Unit

if TYPE_CHECKING:
    from .requirement import Requirement

Need = Literal["load", "probes", "runtime", "power", "changing load"]
"""Beside frames: a load in the sentence, probe frames, VPP's runtime counters, a power meter, a load that changes."""


class Instruments(Protocol):
    """What a trial is measured with, on an open testbed or from a record."""

    @property
    def clock_speed(self) -> float:
        """Seconds of the testbed's clock per real second."""
        ...

    def measure(self, load: Load, duration: float, during: During | None = None) -> Outcome:
        """Measure one trial; *during* is done while frames are sent."""
        ...

    def step_down(self, first: Load, seconds: float, second: Load, after: float, every: float) -> StepDown:
        """Measure traffic whose load changes, read *every* so many s."""
        ...

    def clear_runtime(self) -> None:
        """Clear the router's runtime counters. Raises TestbedError."""
        ...

    def read_runtime(self) -> Telemetry:
        """Read them. Raises TestbedError."""
        ...

    def keep_runtime(self, telemetry: Telemetry) -> None:
        """Keep what was read for the record."""
        ...

    def powered(self) -> Measure:
        """Return a trial whose readings have the power that was drawn."""
        ...


@dataclass(frozen=True, slots=True)
class Reason:
    """Why. ``summary`` is one clause with the figure; ``details`` are one line each, the most important first."""

    summary: str
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n  ".join([self.summary, *self.details])

    def with_details(self, *details: str) -> Reason:
        """Return it with further lines, without those that are empty."""
        return Reason(self.summary, (*self.details, *filter(None, details)))


@dataclass(frozen=True)
class Promise:
    """One sentence on one testbed, in numbers. ``limit`` is in the unit of the quantity's figures.

    ``load_pps``: frames/s into each port at which it is judged; ``names_load``: the sentence says so. ``soak``: trials
    of ``for TIME``, 0: none. ``own``: the generator's own part. ``mean_size`` in bytes with FCS.
    """

    quantity: Quantity
    limit: Limit
    goal: Goal
    load_pps: float
    unit: Unit
    in_total: bool = False
    statistic: Statistic | None = None
    names_load: bool = False
    soak: int = 0
    own: OwnPart = field(default_factory=OwnPart)
    mean_size: float = 64.0
    link_bps: float = 10e9
    pairs: int = 1

    @property
    def conditions(self) -> Conditions:
        """What its trials are held against."""
        goal = self.goal
        seconds = self.quantity.trial_seconds(self)
        return Conditions(self.load_pps, goal.resolution, goal.unseen, goal.risk, seconds, self.own)

    def figures(self, trials: Sequence[Trial], perfect: int = 0) -> tuple[Bounds, ...]:
        """Return :meth:`Quantity.figures`."""
        return self.quantity.figures(self, trials, perfect)

    @property
    def needs_full_load(self) -> bool:
        """Whether a trial must certainly have offered the load, and may be asked for a little more."""
        return sent_less in self.quantity.doubts or (self.names_load and "changing load" not in self.quantity.needs)

    @property
    def limits_rate(self) -> bool:
        """Whether its limit is a rate in frames/s, which a trial's figure is a count per second of."""
        return self.unit in RATE_UNITS and not self.quantity.threshold_is_load

    @property
    def forgiven(self) -> Limit:
        """What all trials together must keep for a PASS."""
        return self.quantity.forgiven(self)


class Quantity(ABC):
    """A value that a sentence promises. One object for each, made where its folder is imported.

    ``name`` is that of records; ``word`` that of a sentence ("": none), ``after`` a word that must follow it;
    ``units`` of its threshold. ``needs`` of its trials. ``statistics``: those that a sentence names beside percentiles;
    empty: it names none. ``has_directions``: each direction is judged by itself unless a sentence says ``in total``;
    ``has_total``: it may say so. ``takes_time``: it may say ``for 30 min``. ``counts_frames``: lost or late frames
    change its figures, and ``doubts`` concern them. ``is_of_exact_load``: a little more load may change every frame's
    figure, not only those of as many frames. ``loss_explains``: a FAIL may come of lost frames, which the router's
    counters then explain. ``has_capacity``: how much the router carries can be searched for after its verdict.
    ``margin``: where it shows how much more is carried than is promised. ``chart``: the rates of each trial, the ranges
    of its figure, or the histogram of the probe frames. ``title`` for charts, ``example`` for messages.
    """

    name: ClassVar[str]
    word: ClassVar[str]
    after: ClassVar[str] = ""
    units: ClassVar[tuple[Unit, ...]]
    at_least: ClassVar[bool] = False
    needs: ClassVar[frozenset[Need]] = frozenset()
    statistics: ClassVar[tuple[str, ...]] = ()
    has_directions: ClassVar[bool] = True
    has_total: ClassVar[bool] = True
    takes_time: ClassVar[bool] = True
    counts_frames: ClassVar[bool] = True
    is_of_exact_load: ClassVar[bool] = False
    loss_explains: ClassVar[bool] = False
    has_capacity: ClassVar[bool] = False
    margin: ClassVar[Literal["", "higher loads", "its own trials"]] = ""
    doubts: ClassVar[tuple[Doubt, ...]]
    chart: ClassVar[Literal["rates", "range", "histogram"]] = "range"
    title: ClassVar[str] = ""
    example: ClassVar[str] = ""
    judges_loss: ClassVar[bool] = False
    """Whether its figure is a loss ratio."""

    @property
    def threshold_is_load(self) -> bool:
        """Whether its threshold is the load that is offered, and its figures are ratios of lost frames.

        By how much it is kept only a search says.
        """
        return self.margin == "higher loads"

    def limit(self, requirement: Requirement, goal: Goal, link_bps: float) -> Limit:
        """Return what a trial's figure is compared with."""
        return Limit(requirement.threshold.number, self.at_least)

    def load(self, requirement: Requirement, link_bps: float, maximum: Load) -> Load:
        """Return the load of each port that it is judged at: the one that it names, or the testbed's *maximum*."""
        return requirement.named_load(link_bps) or maximum

    def probes(self, requirement: Requirement, error: float) -> float:
        """Return the probe frames of a trial without which its figure has no end that is so seldom wrong."""
        return 0 if requirement.statistic is None else requirement.statistic.frames_needed(error)

    def statistic(self, word: str) -> Statistic:
        """Return the statistic that a sentence names by *word*. Raises SentenceError."""
        return Statistic.read(word, self.statistics)

    def needs_meter(self, unit: Unit) -> bool:
        """Return whether a threshold in *unit* takes a power meter; else a declared power will do."""
        return False

    def gentle_load(self, load: Load) -> Load:
        """Return the load of a warm-up, which must not break what is judged at *load* afterwards."""
        return load

    @abstractmethod
    def figures(self, promise: Promise, trials: Sequence[Trial], perfect: int = 0) -> tuple[Bounds, ...]:
        """Return the figure of each direction, of one trial or of all *trials* together.

        What was not measured is an open interval. *perfect*: so many trials more, in which every frame came back at
        once and nothing went wrong.
        """

    def shown(self, promise: Promise, trials: Sequence[Trial]) -> Bounds:
        """Return the figure of the worst direction as people read it, in the promise's unit."""
        figures = promise.figures(trials)
        if promise.limit.at_least:
            return Bounds(min(item.low for item in figures), min(item.high for item in figures))
        return Bounds(max(item.low for item in figures), max(item.high for item in figures))

    def charted(self, promise: Promise, trial: Trial) -> Mapping[str, Bounds]:
        """Return what a chart shows of *trial*, in the promise's unit, by the name of the series."""
        bounds = self.shown(promise, [trial])
        return {} if bounds == UNKNOWN else {self.title or self.name: bounds}

    def forgiven(self, promise: Promise) -> Limit:
        """Return what all trials together must keep for a PASS: the promise itself."""
        return promise.limit

    def measure(self, instruments: Instruments, promise: Promise) -> Measure:
        """Return how a trial is measured."""
        return instruments.measure

    def trial_seconds(self, promise: Promise) -> float:
        """Return the seconds of a trial."""
        return promise.goal.final_trial_duration

    @abstractmethod
    def reason(self, promise: Promise, ruling: Ruling, trials: Sequence[Trial]) -> Reason:
        """Return the words of a verdict: the figure, and lines of details."""

    def named_figures(self, promise: Promise, trials: Sequence[Trial]) -> Mapping[str, float]:
        """Return figures for the record, each with its unit in the name, beside the rates that every quantity has."""
        return {}

    def plain(self, promise: Promise, figure: str, load: str) -> str:
        """Return the sentence in words for somebody who knows no network.

        *figure*: ``at most 5 µs``; *load*: ``offered 5 Mpps at each port``.
        """
        return f"{self.title or self.name} of this traffic, {load}: {figure}."

    def __repr__(self) -> str:
        return self.name
