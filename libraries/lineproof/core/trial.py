"""One trial: intended, offered and forwarded frames. Counts are kept, rates are derived from them.

Terms: RFC 2285 3.5 (intended load, offered load), RFC 2544 26.1 (trial), RFC 9971 (trial duration, loss ratio).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .bounds import Bounds
from .json_types import Count, Figure, Moment, NamedEnum, NotKept, NotNegative, Positive
from .latency import LatencyCount


@dataclass(frozen=True, slots=True)
class Load:
    """An intended load: ``pps`` frames/s of **each** sending port (all streams of the profile together)."""

    pps: Positive

    def __post_init__(self) -> None:
        if not self.pps > 0:
            raise ValueError(f"a load is a positive number of frames per second, not {self.pps}")


@dataclass(frozen=True, slots=True)
class DirectionCount:
    """Counts of one direction in one trial.

    ``intended``: load x duration; ``offered``: really sent; ``forwarded``: received on the expected port, without the
    ``changed`` ones. ``changed``: received, but not as any was sent (RFC 2544 section 10): the least number that their
    bytes, or a sample of them, show. Bytes are L2 with FCS, of all frames received.
    ``backlog``: frames that came out of queues after sending ended (None: not known); a growing queue hides a shortage.
    ``foreign``: the most frames of other origin among those forwarded (:mod:`.foreign`); they may hide as many lost.
    """

    tx_port: Count
    rx_port: Count
    intended: Count
    offered: Count
    forwarded: Count
    offered_bytes: Count = 0
    forwarded_bytes: Count = 0
    backlog: Count | None = None
    foreign: Count = 0
    changed: Count = 0

    @property
    def received(self) -> int:
        """Frames received on the expected port, whatever they are."""
        return self.forwarded + self.changed

    @property
    def sustained(self) -> int:
        """Frames surely forwarded while frames were sent: none that came out of a queue afterwards, none of others."""
        return max(0, self.forwarded - (self.backlog or 0) - self.foreign)

    @property
    def unsent(self) -> int:
        """Frames that the generator did not send: never the router's loss."""
        return max(0, self.intended - self.offered)

    @property
    def lost(self) -> int:
        """Frames that did not come back; 0 where there is a :attr:`surplus`."""
        return max(0, self.offered - self.forwarded)

    @property
    def came_back(self) -> int:
        """Frames of those offered that came back; a :attr:`surplus` is none of them."""
        return self.offered - self.lost

    @property
    def surplus(self) -> int:
        """Frames received beyond those offered and the foreign ones that are expected."""
        return max(0, self.forwarded - self.offered - self.foreign)

    @property
    def loss_ratio(self) -> float:
        """Lost / offered, 0..1 (RFC 9971). 0 where nothing was offered."""
        return self.lost / self.offered if self.offered else 0.0


class Fault(NamedEnum):
    """A thing that the testbed can do wrong in a trial, in words."""

    UNDER_OFFERED = "less than the load may have been sent"
    UNTIMED = "how long the sending took is not known exactly"
    UNSENT = "the generator failed to send frames"
    OVER_OFFERED = "more than the load may have been sent"
    STRETCHED = "the generator took longer than the trial's duration"
    CPU_BOUND = "the generator's CPU was too busy"
    CEILING = "the load is beyond what the generator itself carries"
    OWN_LOSS = "the generator loses frames itself"
    UNWATCHED = "the generator was not watched for long enough without the router"
    OWN_DELAY = "the generator delays frames itself"
    SURPLUS = "more frames came back than were sent"
    FOREIGN = "frames of other origin came in"
    CHANGED = "changed or copied frames came back"
    COPIES = "frames may have come back twice"
    LOST_PROBES = "more probe frames were lost than frames are missing"
    SPARED_PROBES = "frames were later than the probe frames among them"
    LATE = "frames may have come too late"
    LINK_DOWN = "a link was down"
    QUEUES = "frames were still under way when sending ended"
    COUNTERS = "counters went backwards or could not be read"
    MISCOUNTED = "two counts of the same frames differ"
    READING = "what is read while frames flow was not"
    PAUSED = "pause frames stopped the generator"
    PAUSING = "the generator stopped the router with pause frames"
    DAMAGED = "frames reached the router damaged"
    AFTER_ROUTER = "the router counts missing frames as sent"
    GENERATOR = "the generator reported an error"
    NEIGHBOUR = "the router lost the address of the generator's port"
    SET_UP = "the router's set-up may have changed"
    ROUTER = "the router restarted or could not be reached"
    CLOCK = "the clock jumped"
    UNENDED = "the run was ended"

    @property
    def may_cost(self) -> bool:
        """Return whether frames may be missing by it that the router did not lose."""
        # frames that were not sent are not among those offered, so none of them is missing
        return self not in (*_HIDES_ONLY, Fault.UNSENT, Fault.READING, Fault.OWN_DELAY, Fault.SPARED_PROBES)

    @property
    def may_hide(self) -> bool:
        """Return whether the router may have lost frames without its being seen."""
        return self in _HIDES_ONLY or self in (Fault.COUNTERS, Fault.MISCOUNTED, Fault.CLOCK, Fault.UNENDED)

    @property
    def generator_too_slow(self) -> bool:
        """Return whether the intended load could not be sent in time, or only just, or nobody knows (UNTIMED)."""
        slow = (Fault.UNDER_OFFERED, Fault.UNTIMED, Fault.UNSENT, Fault.STRETCHED, Fault.CPU_BOUND, Fault.CEILING)
        return self in slow


_HIDES_ONLY = (
    *(Fault.UNDER_OFFERED, Fault.UNTIMED, Fault.STRETCHED, Fault.SURPLUS, Fault.FOREIGN, Fault.COPIES),
    *(Fault.LOST_PROBES, Fault.LATE, Fault.CHANGED, Fault.QUEUES, Fault.PAUSED),
)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with one trial, with its figures in words. It widens intervals, and does nothing else.

    ``frames``: the most frames of each direction that it may have cost or hidden (None: any number); ``directions``:
    pairs of sending and receiving port that it concerns (empty: all). ``delay``: µs that it may have added to a frame.
    """

    fault: Fault
    detail: str
    frames: NotNegative | None = None
    directions: tuple[tuple[int, int], ...] = ()
    delay: NotNegative = 0.0

    def __str__(self) -> str:
        return f"{self.fault.value}: {self.detail}"

    def concerns(self, direction: DirectionCount) -> bool:
        """Return whether it may have touched frames of *direction*."""
        return not self.directions or (direction.tx_port, direction.rx_port) in self.directions

    @property
    def most_frames(self) -> float:
        """``frames``; infinite: any number."""
        return math.inf if self.frames is None else self.frames


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one trial: intended ``duration`` s, ``elapsed`` s of transmission, counts per direction.

    ``started``: Unix time in s. ``problems``: those that the generator saw; :func:`read_trial` adds others.
    ``readings``: further figures of the generator (CPU in per cent, queue_full …). ``latency``: of the directions with
    probe frames. ``counters``: raw counters by moment: ``before``, ``ended`` (the end of sending), ``after`` (the
    drain); keys like ``0.opackets``. Empty: not read. ``frames``: the last ones without FCS, by receiving port, where
    they were asked for; they are looked at, and not recorded.
    """

    load: Load
    duration: NotNegative
    elapsed: Figure
    started: Moment
    directions: tuple[DirectionCount, ...]
    problems: tuple[Problem, ...] = ()
    readings: Mapping[str, Figure] = field(default_factory=dict)
    latency: tuple[LatencyCount, ...] = ()
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    frames: NotKept[Mapping[int, tuple[bytes, ...]]] = field(default_factory=dict)


DRAIN = 2.0
"""Seconds after the last frame was sent in which a frame must come (RFC 2544 23), by the testbed's clock."""

Measure = Callable[[Load, float], Outcome]
"""All that a method knows of the testbed: ``measure(load, duration in s) -> Outcome``."""

During = Callable[[Callable[[float], None]], None]
"""An action in a trial while frames are sent. Its argument waits so many s of the testbed's clock."""

MeasureDuring = Callable[[Load, float, During], Outcome]
"""A trial with something to be done during it (see :meth:`~lineproof.generators.base.Generator.measure`)."""

DURING_READING = "during_ended"
"""The reading of such a trial that says when it was done: s of the testbed's clock since the start was requested. What
is below the trial's duration was done before the last frame was sent."""


UNDER_WAY = "under_way."
"""Begins a reading of each sending port: how many frames were under way all the time, once the first had come back."""

LATE = "late."
"""Begins a reading of each receiving port: frames of the trial that came to it later than DRAIN. They are lost."""

HOST_COUNTS = "host_counts"
"""The reading of a trial whose frames no generator counted by itself: 1 where the counts of the host that sends and
receives stand alone, 0 where a switch counted the same. A trial without this reading was counted by its generator."""

EXAMINED, EXAMINED_SLOWLY, SEEN_CHANGED = "examined.", "examined_slowly.", "seen_changed."
"""Readings of a trial: frames that came back and were compared with those that were sent, by receiving port; of the
trial itself, or of slow traffic before; those of the trial itself that had changed."""

POWER, IDLE_POWER = "power_watts", "idle_power_watts"
UNCERTAINTY = "power_uncertainty_watts"
ABOVE_IDLE_UNCERTAINTY = "power_above_idle_uncertainty_watts"
"""Readings of a trial: the mean power while frames flowed, that before the sentence's first trial, and by how much both
may be wrong by the meter's own statement."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How a generator keeps its load and its time.

    ``under``, ``over``: ratios by which it may differ from what a characterisation asks for. ``cpu``: per cent of a
    second that one of its cores may be busy (TRex's manual: less than 80 on average; a core that is too slow shows 98
    to 100). ``ends_in_time``: the generator itself ends a trial with its duration, so a late message of the end says
    nothing about the rate; else (TRex) it sends all frames, and takes longer.
    """

    under: float = 0.005
    over: float = 0.005
    cpu: float = 95.0
    ends_in_time: bool = False


@dataclass(frozen=True, slots=True)
class Trial:
    """An outcome, and what the testbed did wrong in it. The router lost :meth:`lost_frames`.

    Changed and foreign frames are not in its counts: ``session.came_back`` and ``core.foreign`` take them off before.
    ``number`` counts from 1 within a sentence; warm-up trials are 0. ``seconds`` that frames were sent, at least and at
    most, by the testbed's clock. ``problems`` widen the bounds. ``run``: the earlier run that it is of; "": this one.
    """

    number: Count
    outcome: Outcome
    problems: tuple[Problem, ...]
    seconds: Bounds
    run: str = ""

    @property
    def offered(self) -> int:
        """Frames offered, all directions."""
        return sum(direction.offered for direction in self.outcome.directions)

    @property
    def forwarded(self) -> int:
        """Frames forwarded, all directions."""
        return sum(direction.forwarded for direction in self.outcome.directions)

    @property
    def intended(self) -> int:
        """Frames intended, all directions."""
        return sum(direction.intended for direction in self.outcome.directions)

    @property
    def lost(self) -> int:
        """Frames that did not come back, all directions (a surplus in one does not cancel a loss in another)."""
        return sum(direction.lost for direction in self.outcome.directions)

    @property
    def is_clean(self) -> bool:
        """Return whether the testbed saw nothing wrong."""
        return not self.problems

    @property
    def has_ended(self) -> bool:
        """Return whether it was counted; False: the run was ended in it (:func:`unended`)."""
        return all(problem.fault is not Fault.UNENDED for problem in self.problems)

    @property
    def is_set_aside(self) -> bool:
        """Return whether the testbed may have cost or hidden any number of its frames: no mean has such a trial."""
        doubts = (problem.fault for problem in self.problems if problem.frames is None)
        return bool(self.number) and any(fault.may_cost or fault.may_hide for fault in doubts)

    def spares_probes(self, direction: DirectionCount) -> bool:
        """Return whether the frames of *direction* were later than its probe frames, which are no sample of them."""
        return any(problem.fault is Fault.SPARED_PROBES and problem.concerns(direction) for problem in self.problems)

    def cost(self, direction: DirectionCount, but: Collection[Fault] = ()) -> float:
        """Return the most frames of *direction* that the testbed may have cost, *but* by these faults; inf: any."""
        costing = (problem for problem in self.problems if problem.fault.may_cost and problem.fault not in but)
        return math.fsum(problem.most_frames for problem in costing if problem.concerns(direction))

    def hidden(self, direction: DirectionCount) -> float:
        """Return the most lost frames of *direction* that the counts may not show; infinite: any number."""
        hiding = (problem for problem in self.problems if problem.fault.may_hide and problem.concerns(direction))
        return math.fsum(problem.most_frames for problem in hiding)

    def delay(self, direction: DirectionCount) -> float:
        """Return the most µs that the testbed itself may have added to a frame of *direction*."""
        return math.fsum(problem.delay for problem in self.problems if problem.concerns(direction))

    def lost_frames(self, direction: DirectionCount) -> Bounds:
        """Return the frames of *direction* that the router lost."""
        low = max(0.0, direction.lost - self.cost(direction))
        most = max(direction.offered, direction.intended)
        return Bounds(low, max(low, min(direction.lost + self.hidden(direction), most)))

    def forwarded_frames(self, direction: DirectionCount) -> Bounds:
        """Return the frames of *direction* that came back and are frames that were sent, each counted once."""
        most = float(min(direction.offered, direction.forwarded))
        least = max(0.0, most - self.hidden(direction))
        return Bounds(least, max(least, min(direction.offered, most + self.cost(direction))))

    def loss_ratio(self, in_total: bool) -> float:
        """Return the loss ratio as it was counted, of all directions together, or of the worst one."""
        if in_total:
            return self.lost / self.offered if self.offered else 0.0
        return max((direction.loss_ratio for direction in self.outcome.directions), default=0.0)

    def probes(self, direction: DirectionCount) -> LatencyCount | None:
        """Return the probe frames of *direction*; None: it had none."""
        ports = direction.tx_port, direction.rx_port
        return next((count for count in self.outcome.latency if (count.tx_port, count.rx_port) == ports), None)


def read_trial(number: int, outcome: Outcome, tolerance: Tolerance, clock_speed: float = 1.0) -> Trial:
    """Return the outcome as a trial, with the time that frames were sent.

    *clock_speed*: seconds of the testbed's clock per real second (1 except on a simulated testbed).
    """
    problems = list(outcome.problems)
    earliest = latest = outcome.duration
    uncertain = outcome.readings.get("elapsed_uncertainty", 0.0)
    if not math.isfinite(outcome.elapsed + uncertain):
        problems.append(Problem(Fault.CLOCK, "how long the sending took is not known"))
    elif clock_speed == 1.0 and not tolerance.ends_in_time:
        # a simulated clock sends for exactly the duration; real time has no meaning there
        latest = max(outcome.duration, outcome.elapsed + uncertain)
        # TRex sends no faster than it is asked to, but for the first 20 ms in software mode (v3.08)
        earliest = max(outcome.elapsed - uncertain, outcome.duration if latest > outcome.duration else 0.0)
    if not (busy := outcome.readings.get("cpu_util", 0.0)) <= tolerance.cpu:
        problems.append(Problem(Fault.CPU_BOUND, f"{busy:.0f} % of a second, at most {tolerance.cpu:g} % is allowed"))
    problems += miscounted(outcome, latest)
    return Trial(number, outcome, tuple(problems), Bounds(earliest, latest))


MOST_SENT = 1.5
"""No generator sends so many times as many frames as it is asked for: it counts them wrongly."""


def miscounted(outcome: Outcome, seconds: float) -> Iterator[Problem]:
    """Yield that two counts of a direction exclude each other, so that neither says how many of its frames were lost.

    Probe frames are some of the frames, and the frames sent are about those that were asked for in so many *seconds*.
    """
    probed = {(count.tx_port, count.rx_port): count for count in outcome.latency}
    for row in outcome.directions:
        ports = row.tx_port, row.rx_port
        probes, asked = probed.get(ports), max(row.intended, outcome.load.pps * seconds)
        detail = ""
        if row.offered > MOST_SENT * asked + 1:
            detail = f"{row.offered:,} frames sent, {asked:,.0f} asked for"
        elif probes is not None and (probes.sent > row.offered or probes.received > row.received):
            detail = f"{row.received:,} of {row.offered:,} frames came back, and"
            detail += f" {probes.received:,} of {probes.sent:,} probe frames"
        if detail:
            yield Problem(Fault.MISCOUNTED, f"port {row.tx_port} to {row.rx_port}: {detail}", directions=(ports,))


def unended(before: Trial) -> Trial:
    """Return the trial after *before*, in which the run was ended: nothing is known of it, so it speaks both ways."""
    directions = (DirectionCount(row.tx_port, row.rx_port, row.intended, 0, 0) for row in before.outcome.directions)
    seconds, problems = before.outcome.duration, (Problem(Fault.UNENDED, "before it was counted"),)
    outcome = Outcome(before.outcome.load, seconds, seconds, before.outcome.started, tuple(directions), problems)
    return Trial(before.number + 1, outcome, problems, Bounds(seconds, seconds))


def loss_ratio(trials: Sequence[Trial], in_total: bool) -> float:
    """Return the loss ratio of *trials* together, as it was counted, of all directions or of the worst one."""
    columns = list(zip(*(trial.outcome.directions for trial in trials), strict=True))
    groups = [[row for column in columns for row in column]] if in_total else columns
    ratios = [sum(row.lost for row in group) / max(1, sum(row.offered for row in group)) for group in groups]
    return max(ratios, default=0.0)
