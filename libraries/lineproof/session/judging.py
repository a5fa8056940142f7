"""From a sentence to its verdict on a bench: trials until the rule decides, between two readings of the router."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from operator import itemgetter
from typing import Protocol

from ..core.counter_names import pause_seconds
from ..core.deciding import KEEPS, Decision, Standing, TrialConditions, ask, decide
from ..core.doubts import OwnPart
from ..core.foreign import SLACK_FRAMES, SLACK_RATIO, Ports, copied_frames
from ..core.ledger import Ledger, ledger_without_router, lost_at_router, make_ledger
from ..core.quantity import Promise, Reason, Requirement, TrafficWords
from ..core.rule import Ruling
from ..core.step_down import StepDown
from ..core.telemetry import Stage, Telemetry
from ..core.traffic.frame_kinds import kinds_of
from ..core.traffic.profiles import Profile
from ..core.trial import POWER, Fault, Load, Measure, Problem, Tolerance, Trial
from ..core.verdict import Verdict, deviations_of_verdict, verdict_of
from ..errors import BREAKDOWN_ERRORS, TestbedError, in_words
from ..units import counted
from .came_back import changed_shares, not_looked_at, surely_changed
from .plan import Plan
from .router_watch import RouterRestarted


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


def judge(bench: Bench, requirement: Requirement, hear: Listener = nobody, earlier: Sequence[Trial] = ()) -> Verdict:
    """Return the verdict on *requirement*. What is known of the testbed afterwards weighs the same trials again.

    The router is also read after each bad trial, for the ledgers. *earlier*: trials of the runs that this one goes on
    with. If they decide, nothing is sent. Never fails: a testbed that breaks down is INCONCLUSIVE.
    """
    verdict = decided(bench, requirement, earlier)
    if verdict is None:
        verdict = _Sentence(bench, requirement, hear, tuple(earlier)).judged()
    power = bench.plan.power_text if POWER in verdict.figures else ""
    reason = verdict.reason.with_details(power, bench.plan.line_text(requirement.pairs), _remedy(bench, verdict))
    return replace(verdict, reason=reason, deviations=deviations_of_verdict(verdict))


REMEDY = "calibrate the generator: "
"""Begins the line of a verdict that says by which command more is known of the generator."""


def _remedy(bench: Bench, verdict: Verdict) -> str:
    """Return how to know more of the generator, where *verdict* tells that too little is; not of a model in a FAIL."""
    is_told = any(Fault.UNWATCHED.value in line for line in verdict.reason.details)
    is_settled = bench.simulated and verdict.ruling is Ruling.FAIL
    return f"{REMEDY}{bench.plan.calibrate}" if is_told and not is_settled else ""


def decided(bench: Bench, requirement: Requirement, earlier: Sequence[Trial]) -> Verdict | None:
    """Return the verdict on *requirement* that the trials of *earlier* runs have reached; None: it is open."""
    # of a run that was interrupted, probe frames must show first whether lost frames were hidden by copies
    if not earlier or any(_unread(trial) for trial in earlier if trial.run == earlier[-1].run):
        return None
    promise = promised(bench, requirement)
    decision = ask(promise, earlier)
    if decision.ruling not in (Ruling.PASS, Ruling.FAIL):
        return None
    return verdict_of(decision, promise, requirement)


def promised(bench: Bench, requirement: Requirement, load: Load | None = None) -> Promise:
    """Return *requirement* in numbers, on this bench; at another *load* than its own, if one is given."""
    load = load or bench.plan.load_for(requirement)
    promise = requirement.promise(bench.plan.goal, load, bench.plan.link_bps(requirement.pairs))
    own = bench.own_part(requirement, load.pps, promise.quantity.trial_seconds(promise))
    return replace(promise, own=own)


@dataclass
class _Sentence:
    """One sentence on its bench. ``trials``: those of this run, as they end."""

    bench: Bench
    requirement: Requirement
    hear: Listener
    earlier: tuple[Trial, ...]
    trials: list[Trial] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.promise = promised(self.bench, self.requirement)

    def judged(self) -> Verdict:
        """Return the verdict, without the deviations from the methods that it is named after."""
        try:
            if (warm_up := self.bench.prepare(self.requirement)) is not None:
                self.hear(EndedTrial(warm_up))
        except BREAKDOWN_ERRORS as error:
            return replace(self._inconclusive(in_words(error)), breakdown=in_words(error))
        try:
            before = self._read(BEFORE)
        except TestbedError as error:
            return self._inconclusive(f"the router could not be read before the trials: {error}")
        settle = None if self.bench.simulated else self.bench.settle
        book = Bookkeeper(self._read, before, self.bench.interfaces, settle, self.bench.uncounted)
        restarts = self.bench.restarts
        try:
            decision = self._decide(book, warm_up)
        except BREAKDOWN_ERRORS as error:
            causes = in_words(error)
            causes = "; ".join([*(ended for ended in self.bench.problems() if ended not in causes), causes])
            book.close_without_reading(causes)
            reason = f"the testbed broke down after {counted(len(self.trials), 'trial')}: {causes}"
            verdict = self._inconclusive(reason, (*self.earlier, *self.trials))
            return replace(verdict, breakdown=causes, ledgers=tuple(book.ledgers))
        finally:
            self.bench.examine(False)
        after, problems = self._reading_afterwards(book)
        if after is not None:
            if self.bench.restarts > restarts:
                # a link was down too, so the router was configured again before the next trial
                problems.append(Problem(Fault.ROUTER, "it restarted between two trials, and was configured again"))
            problems += lost_neighbours(self.trials, after, self.bench.interfaces, self.requirement.profile)
            problems += self._copies(before, after)
            if decision.ruling is Ruling.FAIL:
                problems += self._changed_by_others()
        trials = self._with_known(problems, book, self._unseen(decision))
        decision = decision if trials == decision.trials else ask(self.promise, trials)
        verdict = replace(verdict_of(decision, self.promise, self.requirement), ledgers=tuple(book.ledgers))
        if after is not None and all(problem.fault is not Fault.COPIES for problem in problems):
            whole, worst = make_ledger(self.trials, before, after, self.bench.interfaces), verdict.worst_ledger
            # a FAIL whose worst ledger names no place has said why already
            unused = "" if verdict.ruling is Ruling.FAIL and worst and worst.unused_words else whole.unused_words
            verdict = replace(verdict, reason=verdict.reason.with_details(unused))
        offered = sum(row.offered for trial in self.trials for row in trial.outcome.directions)
        drops = None if after is None else lost_at_router(before, after, self.bench.interfaces.values(), offered)
        return replace(verdict, router_drops=drops)

    def _decide(self, book: Bookkeeper, warm_up: Trial | None) -> Decision:
        bench, rounds = self.bench, count(1)

        def on_trial(trial: Trial, standing: Standing) -> None:
            self.trials.append(trial)
            self.hear(EndedTrial(trial, standing))
            book.add_trial(trial, standing)

        def before_trial(look: bool) -> None:
            bench.examine(look)
            book.account()

        def weigh(trials: Sequence[Trial]) -> Sequence[Trial]:
            # a testbed that loses frames goes on to, and each round may cost a reading
            if next(rounds) > MAX_LEDGERS:
                return trials
            book.account(must=True)
            return self._with_known((), book)

        conditions = TrialConditions(bench.tolerance, bench.clock_speed, on_trial, before_trial, weigh)
        line_pps = self.requirement.profile.line_rate_pps(self.promise.link_bps)
        measure = bench.measure_of(self.promise, self.hear)
        return decide(self.promise, measure, conditions, line_pps, warm_up, self.earlier)

    def _read(self, moment: str) -> Telemetry:
        try:
            reading = self.bench.read(moment)
        except TestbedError as error:
            self.hear(Reading(moment, None, str(error), isinstance(error, RouterRestarted)))
            raise
        self.hear(Reading(moment, reading))
        return reading

    def _reading_afterwards(self, book: Bookkeeper) -> tuple[Telemetry | None, list[Problem]]:
        """Return the reading after the last trial, or None and what that means."""
        if why := self.bench.why_no_ledger:
            book.close_without_reading(why)
        try:
            after = self._read(AFTER)
        except RouterRestarted as error:
            book.close_without_reading(str(error))
            return None, [Problem(Fault.ROUTER, str(error))]
        except TestbedError as error:
            book.close_without_reading(f"the router could not be read: {error}")
            problems = [Problem(Fault.ROUTER, f"it could not be read afterwards: {error}")]
            if any(trial.lost for trial in self.trials):
                problems.append(Problem(Fault.COPIES, "the router was not read, so whether they did is not known"))
            return None, problems
        book.account(after)
        return after, []

    def _copies(self, before: Telemetry, after: Telemetry) -> Iterator[Problem]:
        """Yield that more frames came than the router sent between two readings."""
        trials, interfaces = self.trials, self.bench.interfaces
        if not copied_frames(trials, before, after, interfaces):
            return
        # counters that lag are read a second time
        self.bench.settle()
        with suppress(TestbedError):
            after = self._read(AFTER)
        for port, (frames, words) in copied_frames(trials, before, after, interfaces).items():
            directions = tuple(ports for ports in ports_of(trials) if ports[1] == port)
            yield Problem(Fault.COPIES, words, frames, directions)

    def _changed_by_others(self) -> list[Problem]:
        """Return that somebody has taken back what the run has set on the router, or that this is not known."""
        try:
            shown = self.bench.read(SET_UP)
        except TestbedError as error:
            self.hear(Reading(SET_UP, None, str(error)))
            return [Problem(Fault.SET_UP, f"whether it has is not known: {error}")]
        if not shown.taken_back:
            return []
        self.hear(Reading(SET_UP, shown))
        return [Problem(Fault.SET_UP, "it does not show any more: " + "; ".join(shown.taken_back))]

    def _unseen(self, decision: Decision) -> list[Problem]:
        """Return that a PASS rests on trials in which neither the router's counts nor probe frames show copies."""
        interrupted = next(filter(None, map(_unread, self.earlier)), "")
        unread = self.bench.uncounted or interrupted
        may_hide = decision.ruling is Ruling.PASS and (interrupted or any(trial.lost for trial in decision.trials))
        unprobed = any(trial.probes(row) is None for trial in decision.trials for row in trial.outcome.directions)
        is_unseen = unread and may_hide and unprobed
        return [Problem(Fault.COPIES, f"{unread}, and no probe frames were sent")] if is_unseen else []

    def _with_known(
        self, problems: Sequence[Problem], book: Bookkeeper, of_all: Sequence[Problem] = ()
    ) -> tuple[Trial, ...]:
        """Return all trials with *problems* in those of this run, those that *book* shows, and those *of_all*."""
        if not self.promise.quantity.doubts:
            return (*self.earlier, *self.trials)
        shown = surely_changed((*self.earlier, *self.trials))
        own, of_looks, interfaces = shown[len(self.earlier) :], changed_shares(shown), self.bench.interfaces
        of_spans = [(own, problem) for problem in problems]
        for span, before, after in book.spans:
            of_spans += [(span, problem) for problem in pauses(span, before, after, interfaces, self.promise.link_bps)]
            of_spans += [(span, problem) for problem in damaged_frames(span, before, after, interfaces)]
        for numbers, problem in lost_after_router(book.ledgers, self.promise.own, self.promise.goal.risk):
            of_spans.append(([trial for trial in own if trial.number in numbers], problem))
        for span, problem in of_spans:
            own = with_shared(own, {trial.number for trial in span}, problem, self.promise)
        trials = (*shown[: len(self.earlier)], *own)
        known = ([*trial.problems, *not_looked_at(trial, of_looks), *of_all] for trial in trials)
        return tuple(replace(trial, problems=tuple(of_trial)) for trial, of_trial in zip(trials, known, strict=True))

    def _inconclusive(self, reason: str, trials: Sequence[Trial] = ()) -> Verdict:
        """Return the verdict INCONCLUSIVE, because of *reason*."""
        return Verdict(self.requirement, self.promise, Ruling.INCONCLUSIVE, Reason(reason), tuple(trials))


def _unread(trial: Trial) -> str:
    """Return why the router was not read after a trial of an earlier run: copies may have hidden what it lost."""
    return next((problem.detail for problem in trial.problems if problem.fault is Fault.ROUTER), "")


# -- doubts that are known only after the trials, and ledgers of lost frames


def ports_of(trials: Sequence[Trial]) -> list[Ports]:
    """Return the directions of *trials*."""
    return sorted({(row.tx_port, row.rx_port) for trial in trials for row in trial.outcome.directions})


def lost_neighbours(
    trials: Sequence[Trial], after: Telemetry, interfaces: Mapping[int, str], profile: Profile
) -> Iterator[Problem]:
    """Yield that a router which has lost the address of the generator's port could not address its frames.

    Where its entries could not be read any more, nobody knows.
    """
    if after.neighbours_unread:
        yield Problem(Fault.NEIGHBOUR, f"whether it has is not known: {after.neighbours_unread}")
    # labelled frames leave through the IPv4 neighbour
    ipv6 = kinds_of(profile) & {"ipv6", "mpls"} == {"ipv6"}
    gone = {entry.interface: entry for entry in after.neighbours if entry.problem and (":" in entry.address) is ipv6}
    for ports in ports_of(trials):
        if (entry := gone.get(interfaces.get(ports[1], ""))) is not None:
            remedy = entry.remedy or "set it for good"
            yield Problem(Fault.NEIGHBOUR, f"{entry.problem}; {remedy}", directions=(ports,))


def pauses(
    trials: Sequence[Trial], before: Telemetry, after: Telemetry, interfaces: Mapping[int, str], link_bps: float
) -> Iterator[Problem]:
    """Yield that an interface of the router that received pause frames did not send meanwhile.

    Its card counts them where the generator's does not show them.
    """
    pps = max((trial.outcome.load.pps for trial in trials), default=0.0)
    for ports in ports_of(trials):
        name = interfaces.get(ports[1], "")
        if received := after.pauses.get(name, 0) - before.pauses.get(name, 0):
            frames, detail = None, f"the count of the router's {name} began anew"
            if received > 0:
                frames = math.ceil(pause_seconds(received, link_bps) * pps)
                detail = f"the router's {name} received {received}"
            yield Problem(Fault.PAUSING, f"{detail}; switch flow control off", frames, (ports,))


_DAMAGED = re.compile(r"crc|fcs|symbol_?err|illegal_?byte|align", re.IGNORECASE)
"""Names of counters of frames whose check sum (IEEE 802.3 3.2.9) or line code was wrong, and of nothing else."""


def damaged_frames(
    trials: Sequence[Trial], before: Telemetry, after: Telemetry, interfaces: Mapping[int, str]
) -> Iterator[Problem]:
    """Yield that frames which the router's card took for damaged are the cable's loss. In which trials is not known."""
    old = {(cause.name, cause.interface): cause.count for cause in before.causes if cause.stage is Stage.ARRIVING}
    counted = [cause for cause in after.causes if cause.stage is Stage.ARRIVING and _DAMAGED.search(cause.name)]
    for ports in ports_of(trials):
        name = interfaces.get(ports[0], "")
        rises = [cause.count - old.get((cause.name, name), 0) for cause in counted if cause.interface == name]
        if any(rises):
            # drivers repeat a count by another name; how many came before one began anew is not known
            count = max(rises) if min(rises) >= 0 else None
            detail = "frames that arrived damaged, by the router's own count of CRC errors"
            detail += f": {name} {'began anew' if count is None else count}; change the cable or modules"
            yield Problem(Fault.DAMAGED, detail, count, (ports,))


def with_shared(trials: Sequence[Trial], numbers: Collection[int], problem: Problem, promise: Promise) -> list[Trial]:
    """Return *trials* with *problem*, whose frames were counted once for all of those with these *numbers*.

    Which of them had the frames is not known, but all together had no more than the count. They go where they move
    most: to the trials that need the fewest to keep the limit at their better end, or to miss it at their worse end;
    then to any that lost frames, or in which more may be lost; the rest may be frames that were late.
    """
    limit = promise.limit
    end = limit.better_end if problem.fault.may_cost else limit.worse_end

    def with_part(trial: Trial, frames: float | None) -> Trial:
        return replace(trial, problems=(*trial.problems, replace(problem, frames=frames)))

    def kept(trial: Trial, frames: int) -> list[bool]:
        return [limit.keeps(end(bounds)) for bounds in promise.figures([with_part(trial, frames)])]

    if problem.frames is None:
        return [with_part(trial, None) if trial.number in numbers else trial for trial in trials]
    needed, missing, most = dict[int, int](), dict[int, int](), dict[int, int]()
    for trial in (trial for trial in trials if trial.number in numbers):
        rows = [row for row in trial.outcome.directions if problem.concerns(row)]
        lost, offered = sum(row.lost for row in rows), sum(row.offered for row in rows)
        missing[trial.number], frames = (lost, offered) if problem.fault.may_cost else (offered - lost,) * 2
        most[trial.number], before = frames, kept(trial, 0)
        if kept(trial, frames) != before:
            needed[trial.number] = bisect_left(range(frames), True, key=lambda part: kept(trial, part) != before)
    left, parts = problem.frames, defaultdict[int, float](float)
    for wanted in (dict(sorted(needed.items(), key=itemgetter(1))), missing, most):
        for number, frames in wanted.items():
            part = max(0, min(left, frames - parts[number]))
            parts[number] += part
            left -= part
    return [with_part(trial, parts[trial.number]) if parts[trial.number] else trial for trial in trials]


def lost_after_router(ledgers: Sequence[Ledger], own: OwnPart, risk: float) -> Iterator[tuple[range, Problem]]:
    """Yield that missing frames which the router counts as sent may not be its loss, with the trials' numbers.

    They are, where the generator was watched clean, or where the router's counts contradict each other.
    """
    if own.is_clean(risk):
        return
    for ledger in ledgers:
        for row in () if ledger.contradiction else ledger.directions:
            if row.router_tx is None:
                continue
            # a control, or what else was sent beside the trials, passes the router without being a trial's
            beside = -(row.gaps[0] or 0)
            beside = beside if beside > SLACK_FRAMES + SLACK_RATIO * row.offered else 0
            if (after := min(row.lost, row.router_tx - row.forwarded - beside)) > 0:
                detail = (
                    f"port {row.tx_port} to {row.rx_port}: {after:,} of {row.lost:,}; look at cables and the generator"
                )
                trials = range(ledger.first_trial, ledger.last_trial + 1)
                yield trials, Problem(Fault.AFTER_ROUTER, detail, after, ((row.tx_port, row.rx_port),))


MAX_LEDGERS = 8
"""Ledgers of one sentence: each costs a reading, and more of them show nothing new."""


@dataclass
class Bookkeeper:
    """The ledgers of one sentence. *read* the router at a moment; *last_reading*: the one before the trials.

    *interfaces*: the router's, by generator port. *settle*: wait until counters that lag are up to date; None if none
    do. If a reading fails, ledgers say why they lack the router's counts (*unread*), and no more readings are tried; so
    from the beginning if *unread* is given.
    """

    read: Callable[[str], Telemetry]
    last_reading: Telemetry
    interfaces: Mapping[int, str]
    settle: Callable[[], None] | None = None
    unread: str = ""
    ledgers: list[Ledger] = field(default_factory=list)
    spans: list[tuple[list[Trial], Telemetry, Telemetry]] = field(default_factory=list)
    """Trials between two readings, and these."""
    _trials: list[Trial] = field(default_factory=list)
    _due: bool = False

    def add_trial(self, trial: Trial, standing: Standing) -> None:
        """Note that a trial is over, and how all stand. One that may miss the limit is accounted for."""
        self._trials.append(trial)
        self._due = standing.last != KEEPS and trial.lost > 0

    def account(self, after: Telemetry | None = None, must: bool = False) -> None:
        """Add the ledger of the last trial if it was bad, with the reading *after* it; None: the router is read.

        *must*: beyond MAX_LEDGERS too. The trials since the last reading are a span, whether they were bad or not.
        """
        if self._due and (must or len(self.ledgers) < MAX_LEDGERS):
            self._due, last = False, self._trials[-1:]
            if not self.unread:
                try:
                    self.ledgers.append(self._ledger(after))
                except BREAKDOWN_ERRORS as error:
                    self.unread = f"the router could not be read after trial {last[0].number}: {in_words(error)}"
                else:
                    self._trials = []
            if self._trials:
                self.ledgers.append(ledger_without_router(last, self.interfaces, self.unread))
        if after is not None and self._trials:
            self.spans.append((self._trials, self.last_reading, after))

    def close_without_reading(self, why: str) -> None:
        """Add the ledger of the last bad trial without a reading after it, because of *why*."""
        self.unread = self.unread or why
        self.account()

    def _ledger(self, after: Telemetry | None) -> Ledger:
        moment = f"trial {self._trials[-1].number}"
        now = after or self.read(moment)
        ledger = make_ledger(self._trials, self.last_reading, now, self.interfaces)
        is_odd = (
            ledger.contradiction or abs(ledger.whole.unexplained) > SLACK_FRAMES + SLACK_RATIO * ledger.whole.offered
        )
        if self.settle and is_odd:
            self.settle()
            now = self.read(moment)
            ledger = make_ledger(self._trials, self.last_reading, now, self.interfaces)
        self.spans.append((self._trials, self.last_reading, now))
        self.last_reading = now
        return ledger
