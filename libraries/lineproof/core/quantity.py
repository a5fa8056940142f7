"""The base of all quantities, a sentence that was read, and its promise in numbers. The grammar is :mod:`.sentence`.

A quantity is an extension: a folder of :mod:`lineproof.quantities`, or an entry point ``lineproof.quantities`` of
another distribution. The rule needs its limit, its figures and its doubts; everything else here is for words.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import ClassVar, Literal

from ..errors import SentenceError
from ..units import Rate, apart, si
from .bounds import UNKNOWN, Bounds, Limit
from .doubts import GENTLE, Conditions, Doubt, OwnPart, sent_less
from .goal import Goal
from .latency import Statistic
from .rule import Ruling
from .step_down import StepDown
from .telemetry import Telemetry
from .traffic.profiles import Traffic
from .trial import Load, Measure, Outcome, Trial
from .units import RATE_UNITS, Unit, Value

Need = Literal["load", "probes", "runtime", "power", "changing load"]
"""Beside frames: a load in the sentence, probe frames, VPP's runtime counters, a power meter, a load that changes."""


@dataclass(frozen=True)
class Instruments:
    """The instruments that a trial is measured with. What asks the router raises TestbedError.

    ``clock_speed``: seconds of the testbed's clock per real second. ``measure``: one trial of a load and s, and what is
    done while frames are sent. ``step_down``: traffic at a load for some s, then at another, read every so many s.
    ``clear_runtime``, ``read_runtime``: the router's runtime counters; ``keep_runtime``: for the record. ``powered``:
    returns how a trial is measured whose readings have the power that was drawn.
    """

    clock_speed: float
    measure: Callable[..., Outcome]
    step_down: Callable[[Load, float, Load, float, float], StepDown]
    clear_runtime: Callable[[], None]
    read_runtime: Callable[[], Telemetry]
    keep_runtime: Callable[[Telemetry], None]
    powered: Callable[[], Measure]


@dataclass(frozen=True, slots=True)
class Reason:
    """Why. ``summary`` is one clause with the figure; ``details`` are one line each, the most important first."""

    summary: str
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n  ".join([self.summary, *self.details])

    def with_details(self, *details: str) -> Reason:
        """Return the reason with further lines, without those that are empty."""
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
        """Return what its trials are held against."""
        goal = self.goal
        seconds = self.quantity.trial_seconds(self)
        unnoticed = math.inf
        if self.quantity.judges_loss and self.limit.value:
            unnoticed = self.limit.value / 10
        elif self.is_rate:
            # of a total each direction has a part
            rate = self.limit.value / (2 * self.pairs if self.in_total else 1)
            unnoticed = goal.resolution * rate / self.load_pps
        return Conditions(self.load_pps, goal.resolution, goal.unseen, goal.risk, seconds, self.own, unnoticed)

    @property
    def is_rate(self) -> bool:
        """Return whether so many frames/s are to come back, whatever is offered."""
        return self.unit in RATE_UNITS and not self.quantity.threshold_is_load

    def in_unit(self, pps: float) -> float:
        """Return a rate in frames/s in the unit of the promise."""
        rate = Rate(pps, self.mean_size, self.link_bps)
        return {Unit.PERCENT_LINE: rate.percent, Unit.BPS_L1: rate.l1_bps, Unit.BPS_L2: rate.l2_bps}.get(self.unit, pps)

    def is_below_load(self, trial: Trial) -> bool:
        """Return whether clearly less than the load was offered in *trial*."""
        least = self.load_pps * trial.seconds.high * (1 - self.goal.resolution)
        return any(row.offered + 1 < least for row in trial.outcome.directions)

    def is_above_load(self, trial: Trial) -> bool:
        """Return whether clearly more was offered in *trial* than the load that the sentence names."""
        most = self.load_pps * trial.seconds.low * (1 + GENTLE)
        return self.names_load and any(row.offered - 1 > most for row in trial.outcome.directions)

    def figures(self, trials: Sequence[Trial], perfect: int = 0) -> tuple[Bounds, ...]:
        """Return :meth:`Quantity.figures`."""
        return self.quantity.figures(self, trials, perfect)

    def digits(self, figure: float, least: int = 4) -> str:
        """Return *figure* with *least* digits, or with so many more that it is not shown as the limit."""
        return f"{apart(figure, self.limit.value, least):.9g}"

    def worst(self, trials: Sequence[Trial]) -> Bounds:
        """Return the figure of the worst direction."""
        figures, worst = self.figures(trials), min if self.limit.at_least else max
        return Bounds(worst(figure.low for figure in figures), worst(figure.high for figure in figures))

    @property
    def needs_full_load(self) -> bool:
        """Return whether a trial must certainly have offered the load, and may be asked for a little more."""
        return sent_less in self.quantity.doubts or (self.names_load and "changing load" not in self.quantity.needs)

    @property
    def forgiven(self) -> Limit:
        """Return what all trials together must keep for a PASS."""
        return self.quantity.forgiven(self)


class Quantity(ABC):
    """A value that a sentence promises. One object for each, made where its folder is imported.

    ``name`` is that of records; ``word`` that of a sentence ("": none), ``after`` a word that must follow it;
    ``units`` of its threshold. ``needs`` of its trials. ``statistics``: those that a sentence names beside percentiles;
    empty: it names none. ``has_directions``: each direction is judged by itself unless a sentence says ``in total``;
    ``has_total``: it may say so. ``doubts``: those that concern it; none where lost or late frames do not change its
    figures. ``is_mean``: its figure is a mean over a trial, which chance spoils no more often in a long one.
    ``loss_explains``: a FAIL may come of lost frames, which the router's counters then explain.
    ``margin``: where it shows how much more is carried than is promised. ``chart``: the rates of each trial, the ranges
    of its figure, or the histogram of the probe frames. ``title`` for charts, ``example`` for messages, ``glossary``
    for people who know no network.
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
    is_mean: ClassVar[bool] = False
    loss_explains: ClassVar[bool] = False
    margin: ClassVar[Literal["", "higher loads", "its own trials"]] = ""
    doubts: ClassVar[tuple[Doubt, ...]]
    chart: ClassVar[Literal["rates", "range", "histogram"]] = "range"
    title: ClassVar[str] = ""
    example: ClassVar[str] = ""
    glossary: ClassVar[Mapping[str, str]] = {}
    scale: ClassVar[float] = 1.0
    """The figure that people read, as a multiple of its own: 100 for per cent of a ratio."""
    judges_loss: ClassVar[bool] = False
    """Return whether its figure is a loss ratio."""

    @property
    def threshold_is_load(self) -> bool:
        """Return whether its threshold is the load that is offered, and its figures are ratios of lost frames.

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
        """Return how many probe frames a trial needs so that an end of its figure is wrong with *error* at most."""
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
        worst = promise.worst(trials)
        return Bounds(self.scale * worst.low, self.scale * worst.high)

    def ends(self, promise: Promise, trials: Sequence[Trial]) -> Bounds:
        """Return the ends between which what is promised lies, in the promise's unit, whatever was offered."""
        return self.shown(promise, trials)

    def charted(self, promise: Promise, trial: Trial) -> Mapping[str, Bounds]:
        """Return what a chart shows of *trial*, in the promise's unit, by the name of the series."""
        bounds = self.ends(promise, [trial])
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


CLOCKS_SHARE = 0.9998
"""The share of line rate that any two ports carry: each clock may be off by 100 ppm (IEEE 802.3), in opposite ways."""

ROUNDED = 5e-4
"""The most by which a rate in frames/s or bits/s that people have rounded may be beyond line rate, as a ratio."""


class Scope(Enum):
    """How several directions count: each for itself, or all together."""

    ONE = ""
    EACH_WAY = "each way"
    IN_TOTAL = "in total"


@dataclass(frozen=True)
class TrafficWords(Traffic):
    """Traffic without a demand. ``sentence``: its words, for example ``64b 1-flow unidirectional``."""

    sentence: str


@dataclass(frozen=True)
class Requirement(TrafficWords):
    """A parsed sentence. ``load``: the load that it names (None: the threshold, or the maximum offered load).

    ``statistic``: of a latency or packet delay variation. ``duration_sum``: s that ``for`` asks for, in place of the
    goal's (None: the goal's). ``cores``: those that a threshold per core was multiplied by.
    """

    quantity: Quantity
    at_least: bool
    threshold: Value
    scope: Scope
    load: Value | None = None
    load_scope: Scope = Scope.ONE
    statistic: Statistic | None = None
    duration_sum: float | None = None
    cores: int = 1

    @property
    def in_total(self) -> bool:
        """Return whether the directions are judged by their sum."""
        return self.scope is Scope.IN_TOTAL

    def on_cores(self, cores: int) -> Requirement:
        """Return the requirement with a threshold per core as one of *cores* together."""
        if self.threshold.unit is not Unit.PPS_PER_CORE:
            return self
        return replace(self, threshold=Value(self.threshold.number * cores, Unit.PPS), cores=cores)

    def text(self, number: float | None = None, rounded: Callable[[float], int] = round) -> str:
        """Return *number* (None: the threshold) with the threshold's unit, as ``5 Mpps``; see :func:`..units.apart`."""
        threshold = self.threshold
        return str(threshold if number is None else Value(apart(number, threshold.number, 4, rounded), threshold.unit))

    @property
    def relation(self) -> str:
        """``≥`` or ``≤``."""
        return "≥" if self.at_least else "≤"

    @property
    def demand(self) -> str:
        """The sentence without its traffic, load and time, as ``p99 ≤ 50 µs each way``."""
        statistic = self.statistic.name if self.statistic else ""
        return " ".join(filter(None, (statistic, self.relation, self.text(), self.scope.value)))

    def threshold_pps(self, link_bps: float) -> float:
        """Return a rate threshold in frames/s: of one direction, or of all directions together for ``in total``."""
        return self.threshold.pps(self.profile, link_bps)

    def threshold_load(self, link_bps: float) -> Load:
        """Return the threshold as a load of each sending port."""
        total = self.threshold_pps(link_bps)
        return Load(total / self.directions if self.in_total else total)

    def named_load(self, link_bps: float) -> Load | None:
        """Return the load that the sentence names with ``at``, of each sending port; None if it names none."""
        if self.load is None:
            return None
        pps = self.load.pps(self.profile, link_bps)
        return Load(pps / self.directions if self.load_scope is Scope.IN_TOTAL else pps)

    def within_clocks(self, load: Load, link_bps: float) -> Load:
        """Return *load*, at most CLOCKS_SHARE of line rate: beyond that the clocks decide, not the router."""
        most = CLOCKS_SHARE * self.profile.line_rate_pps(link_bps)
        return load if load.pps <= most else Load(most)

    def clocks_text(self, link_bps: float) -> str:
        """Return that it is judged at a little less than it says, because of the ports' clocks; "": it is not."""
        loads = [self.threshold_load(link_bps)] if self.threshold.unit in RATE_UNITS else []
        named = self.named_load(link_bps)
        if named is not None and "load" in self.quantity.needs:
            loads.append(named)
        if all(self.within_clocks(load, link_bps) is load for load in loads):
            return ""
        return (
            f"judged at {100 * CLOCKS_SHARE:.2f} % of line rate: the clocks of two ports may differ by 200 ppm"
            " (IEEE 802.3: ± 100 ppm each), and beyond that they decide, not the router"
        )

    def promise(self, goal: Goal, load: Load, link_bps: float, own: OwnPart = OwnPart()) -> Promise:
        """Return the sentence in numbers, judged at *load* under *goal* on ports of *link_bps* (L1 bit/s)."""
        return Promise(
            quantity=self.quantity,
            limit=self.quantity.limit(self, goal, link_bps),
            goal=goal,
            load_pps=self.within_clocks(load, link_bps).pps,
            unit=self.threshold.unit,
            in_total=self.in_total,
            statistic=self.statistic,
            names_load=self.load is not None,
            soak=max(1, round(self.duration_sum / goal.final_trial_duration)) if self.duration_sum else 0,
            own=own,
            mean_size=self.profile.mean_size,
            link_bps=link_bps,
            pairs=self.pairs,
        )

    def check(self, link_bps: float) -> None:
        """Raise SentenceError if no router can meet the sentence on ports of *link_bps* (L1 bit/s).

        That is a rate above line rate, or a forwarding rate above the load that the sentence names.
        """
        line, named, loads = self.profile.line_rate_pps(link_bps), self.named_load(link_bps), []
        if self.threshold.unit in RATE_UNITS:
            loads.append((self.threshold_load(link_bps).pps, self.threshold, self.scope))
        if named is not None and self.load is not None:
            loads.append((named.pps, self.load, self.load_scope))
        for pps, value, scope in loads:
            # people write 14.88 Mpps for line rate; a share of it needs no rounding
            if pps > line * (1 + (1e-9 if value.unit is Unit.PERCENT_LINE else ROUNDED)):
                directions = self.directions if scope is Scope.IN_TOTAL else 1
                most = Value(100.0 * directions, Unit.PERCENT_LINE)
                counted = f" {scope.value}" if scope.value else ""
                raise SentenceError(
                    f"'{self.sentence}': {value}{counted} is more than the ports can carry; a {si(link_bps, 'bit/s')}"
                    f" port carries {si(line, 'pps')} of {self.profile.name} in each direction; expected at most"
                    f" {most}{counted} ({si(line * directions, 'pps')})"
                )
        if len(loads) == 2 and loads[1][0] < loads[0][0] * (1 - 1e-9):
            raise SentenceError(
                f"'{self.sentence}': 'at' names a load of {si(loads[1][0], 'pps', 5)} into each port, less than the"
                f" {si(loads[0][0], 'pps', 5)} to be forwarded; expected at least {self.threshold}"
                f"{' ' + self.scope.value if self.scope.value else ''}"
            )
