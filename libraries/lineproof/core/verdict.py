"""The result of a sentence, in words."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from ..units import counted
from .deciding import Decision, ask
from .json_types import Moment
from .ledger import Drop, Ledger
from .phrases import changed_words, rate_figures
from .quantity import Promise, Quantity, Reason, Requirement
from .rule import Rule, Ruling
from .trial import DRAIN, EXAMINED, EXAMINED_SLOWLY, HOST_COUNTS, LATE, Fault, Problem, Trial
from .under_load import Why

RFC2544_GOAL = "rfc2544"
"""The goal whose messages point to the declared deviations from RFC 2544."""

BUSY_CPU_PERCENT = 80.0
"""Above this CPU load of the generator, in per cent, a failure mentions it."""

MOST_DOUBTS = 4
"""Lines of a message that name what widened the intervals."""


ENDED_EARLY = "ENDED"
"""In place of the verdict of a run that was ended in the sentence."""


@dataclass(frozen=True, slots=True)
class Try:
    """An earlier run's verdict on the same sentence, goal and router. ``odds``: evidence for the router to 1.

    ``runs``: those before it that its evidence is of, too. ``apart``: why that does not count together with this run's,
    as of another firmware or setting; "": it does.
    """

    run: str
    verdict: str
    ended: Moment
    odds: float
    runs: tuple[str, ...] = ()
    apart: str = ""


@dataclass(frozen=True)
class Verdict:
    """The result of a requirement. ``promise``: it in numbers, as it was judged.

    ``figures``: measured values, each with its unit in the name.
    """

    requirement: Requirement
    promise: Promise
    ruling: Ruling
    reason: Reason
    trials: tuple[Trial, ...]
    figures: Mapping[str, float] = field(default_factory=dict)
    evidence: tuple[float, float] | None = None
    """To 1, for a PASS or against the router for a FAIL, and as much as is needed; None: no trial was judged."""

    router_drops: Mapping[str, int] | None = None
    """Frames that the router's counters report as dropped meanwhile, by cause; None if they were not read."""

    ledgers: tuple[Ledger, ...] = ()
    """Where the frames were lost, for each bad trial."""

    why: Why = field(default_factory=Why)
    """Why the frames of the worst trial were lost."""

    breakdown: str | None = None
    """Words for what went wrong with the testbed before or between the trials, and ended them; None: nothing."""

    deviations: tuple[str, ...] = ()
    """From the methods that it is named after, in words."""

    tries: tuple[Try, ...] = ()
    """Earlier runs whose evidence is not in this one: it begins at 1."""

    begins_at_1: str = ""
    """Why the evidence of the run that it should go on with does not count; "": it does, or none was named."""

    @property
    def runs(self) -> dict[str, int]:
        """The earlier runs that its evidence is of, and their numbers of trials."""
        return dict(Counter(trial.run for trial in self.trials if trial.run))

    @property
    def weighing(self) -> Sequence[Trial]:
        """The trials that its figures, ledger and cause are of (:func:`weighing_trials`)."""
        return weighing_trials(self.promise, self.trials, self.ruling)

    @property
    def worst_ledger(self) -> Ledger | None:
        """The ledger of the bad trial that lost the largest share; None where none was made."""
        # the loss of its last trial counts: a ledger that spans many good trials adds up more frames
        loss = {trial.number: trial.loss_ratio(self.requirement.in_total) for trial in self.weighing}
        # frames that came back changed are in none
        lossy = (ledger for ledger in self.ledgers if ledger.whole.lost)
        return max(lossy, key=lambda ledger: loss.get(ledger.last_trial, 0.0), default=None)

    @property
    def message(self) -> str:
        """``FAIL: <sentence>: <figure>``, and below it the details, one line each."""
        return f"{self.ruling.value}: {self.requirement.sentence}: {self.reason.with_details(*self._details())}"

    def _details(self) -> list[str]:
        lines, worst, goal = [], self.worst_ledger, self.promise.goal.goal
        if self.ruling is Ruling.FAIL and worst is not None:
            alone = worst.first_trial == worst.last_trial and len(self.trials) == 1
            lines.append(("" if alone else f"{trials_text(worst)}, ") + where_lost(worst))
        if self.ruling is Ruling.FAIL and self.why.explanation:
            lines += self.why.explanation.lines
        lines.append(self.requirement.clocks_text(self.promise.link_bps))
        odds, (reached, needed) = "", self.evidence or (0.0, math.inf)
        # where no further trials could make up for it, the evidence need not suffice
        if self.ruling is not Ruling.INCONCLUSIVE and reached >= needed:
            odds = f", evidence {odds_text(reached)}, needed {odds_text(needed)}"
        own = len(self.trials) - sum(self.runs.values())
        of = f" ({', '.join(f'{count} of run {run}' for run, count in self.runs.items())}, {own} of this one)"
        lines.append(f"goal '{goal}', {counted(len(self.trials), 'trial')}{of if self.runs else ''}{odds}")
        lines.append(f"evidence begins at 1: {self.begins_at_1}" if self.begins_at_1 else "")
        lines.append(self._tries_text())
        if goal == RFC2544_GOAL and self.deviations:
            lines.append("deviations from RFC 2544 section 23 and RFC 9971 are declared in its record")
        if goal == RFC2544_GOAL and self.rests_on_host_counts:
            lines.append("no RFC 2544 throughput: the host that sends counted its frames itself, and no switch did")
        return list(filter(None, lines))

    def _tries_text(self) -> str:
        missed = [item for item in self.tries if item.verdict != Ruling.PASS.value]
        if not missed:
            return ""
        worst = next((item for item in reversed(missed) if item.verdict == Ruling.FAIL.value), missed[-1])
        day = datetime.fromtimestamp(worst.ended, UTC)
        own = self.evidence[0] if self.evidence else 1.0
        same = [item for item in self.tries if not item.apart]
        odds = math.prod([item.odds for item in same]) * (1 / own if self.ruling is Ruling.FAIL else own)
        together = "both" if len(same) == 1 else f"all {len(same) + 1}"
        together += " on the router as it is now" * (len(same) < len(self.tries))
        named = {"FAIL": "a FAIL", ENDED_EARLY: "a run that was ended in it"}.get(worst.verdict, f"an {worst.verdict}")
        text = f"try {len(self.tries) + 1} of this sentence, after {named} of {day.day} {day:%B}"
        if not same:
            return f"{text}; evidence begins at 1: {self.tries[-1].apart}"
        runs = [*self.runs, *(run for item in same for run in (item.run, *item.runs))]
        # trials that two of them share must not count twice
        return f"{text}; evidence over {together}: {odds_text(odds)}" if len(set(runs)) == len(runs) else text

    @property
    def rests_on_host_counts(self) -> bool:
        """Return whether a trial's frames were counted by the sending host alone, by no generator and no switch."""
        return any(trial.outcome.readings.get(HOST_COUNTS, 0.0) > 0 for trial in self.trials)

    def looked_at(self, reading: str) -> int:
        """Return the fewest frames of a direction that were looked at in one trial; *reading*: EXAMINED or _SLOWLY."""
        trials = (
            [int(trial.outcome.readings.get(f"{reading}{row.rx_port}", 0)) for row in trial.outcome.directions]
            for trial in self.trials
        )
        return max((min(counts, default=0) for counts in trials), default=0)

    @property
    def is_rfc2544_throughput(self) -> bool:
        """Return whether this is RFC 2544 throughput (26.1): a PASS of one frame size in trials of 60 s without loss.

        The whole load of the sentence must have been offered, even if the sending ended as late as it can have, and
        frames that came back must have been looked at (section 10). The router must have counted no dropped frame:
        frames of other origin may stand in for as many. The caller must know whether the testbed is real.
        """
        requirement, promise = self.requirement, self.promise
        if self.ruling is not Ruling.PASS or not promise.goal.is_strict or not promise.quantity.threshold_is_load:
            return False
        if self.rests_on_host_counts or any((self.router_drops or {}).values()) or len(requirement.profile.frames) > 1:
            return False
        if not (self.looked_at(EXAMINED) or self.looked_at(EXAMINED_SLOWLY)):
            return False
        needed = requirement.threshold_load(promise.link_bps).pps
        return all(
            trial.outcome.duration >= 60
            and not row.foreign
            and not row.lost
            and row.offered + 1 >= needed * trial.seconds.high
            for trial in self.trials
            for row in trial.outcome.directions
        )


def weighing_trials(promise: Promise, trials: Sequence[Trial], ruling: Ruling) -> Sequence[Trial]:
    """Return those of *trials* that have ended; of a FAIL without those that may have lost any number by the testbed.

    These are left out where the others miss the limit by themselves.
    """
    ended = [trial for trial in trials if trial.has_ended] or trials
    clear = [trial for trial in ended if not any(math.isinf(trial.cost(row)) for row in trial.outcome.directions)]
    if ruling is not Ruling.FAIL or not clear:
        return ended
    return ended if promise.limit.keeps(promise.limit.better_end(promise.worst(clear))) else clear


def figures_of(promise: Promise, trials: Sequence[Trial]) -> dict[str, float]:
    """Return the rates of *trials*, and the figures of the quantity, by name."""
    return {**rate_figures(promise, trials), **promise.quantity.named_figures(promise, trials)}


def verdict_of(decision: Decision, promise: Promise, requirement: Requirement) -> Verdict:
    """Return the verdict of *decision*, with its words. Trials that decide nothing are INCONCLUSIVE."""
    ruling, trials, rule = decision.ruling or Ruling.INCONCLUSIVE, decision.trials, decision.rule
    weighing = weighing_trials(promise, trials, ruling)
    reason = promise.quantity.reason(promise, ruling, weighing)
    if ruling is Ruling.INCONCLUSIVE:
        reason = Reason(reason.summary, (_open_words(promise, rule, trials), *reason.details))
    elif ruling is Ruling.FAIL and rule.better.is_hopeless:
        reason = reason.with_details("no further trials could make up for it")
    if ruling is Ruling.FAIL:
        changed = changed_words(weighing)
        reason = reason.with_details("" if changed in reason.summary else changed)
        readings = (reading for trial in weighing for reading in trial.outcome.readings.items())
        late = math.fsum(frames for name, frames in readings if name.startswith(LATE))
        too_late = f"{late:,.0f} of them came more than {DRAIN:g} s after the last one was sent (RFC 2544 23)"
        reason = reason.with_details(too_late if late else "")
        busy = max((trial.outcome.readings.get("cpu_util", 0.0) for trial in weighing), default=0.0)
        if busy > BUSY_CPU_PERCENT:
            reason = reason.with_details(f"the generator's CPU was {busy:.0f} % busy, which may be a cause")
    reason = reason.with_details(*widened_by(promise, trials, ruling))
    figures = figures_of(promise, weighing)
    return Verdict(requirement, promise, ruling, reason, trials, figures, rule.evidence(ruling))


def widened_by(promise: Promise, trials: Sequence[Trial], ruling: Ruling) -> list[str]:
    """Return a line for each thing that moved the end of a figure which matters to *ruling*, the most frames first."""
    weights: dict[Fault, list[float]] = defaultdict(list)
    lines: dict[Fault, str] = {}
    counts = Counter(fault for trial in trials for fault in {problem.fault for problem in trial.problems})
    ends = {"better": promise.limit.better_end, "worse": promise.limit.worse_end}
    for trial in trials:
        exact = promise.figures([replace(trial, problems=())])
        for fault in dict.fromkeys(problem.fault for problem in trial.problems):
            problems = tuple(problem for problem in trial.problems if problem.fault is fault)
            pairs = list(zip(exact, promise.figures([replace(trial, problems=problems)]), strict=True))
            moved = {name for name, end in ends.items() if any(end(one) != end(other) for one, other in pairs)}
            # what was not read has no figure, so there is none that it could widen; frames that changed are lost ones
            is_loss = fault is Fault.CHANGED and ruling is Ruling.FAIL
            matters = (moved or fault is Fault.READING) and (ruling is Ruling.INCONCLUSIVE or _ASKED[ruling] in moved)
            if is_loss or matters:
                frames = max(problem.most_frames for problem in problems)
                if frames > max(weights[fault], default=-1.0):
                    effects = set() if is_loss else moved
                    lines[fault] = _effect(promise.quantity, trial, problems, effects, counts[fault] > 1)
                weights[fault].append(frames)
    most = sorted(lines, key=lambda fault: -sum(weights[fault]))
    several = len(trials) > 1
    return [
        f"in {f'{counts[fault]} of {len(trials)} trials' if several else 'the trial'} {lines[fault]}"
        for fault in most[:MOST_DOUBTS]
    ]


_ASKED = {Ruling.PASS: "worse", Ruling.FAIL: "better"}
"""The ends that a ruling rests on."""


def _effect(quantity: Quantity, trial: Trial, problems: Sequence[Problem], moved: set[str], is_of_several: bool) -> str:
    """Return what *problems* of one fault may have done to *trial*, with the details of the one of most frames."""
    most = max(problems, key=lambda problem: problem.most_frames)
    ends = {"explain": (most.fault.may_cost, "better"), "hide": (most.fault.may_hide, "worse")}
    effects = [effect for effect, (may, end) in ends.items() if may and end in moved and most.frames != 0]
    if not effects or not quantity.doubts:
        return f"{most.fault.value}: {most.detail}"
    several = most.most_frames < trial.intended
    noun = "lost or late frame" if "probes" in quantity.needs else "lost frame"
    frames = f"up to {counted(round(most.most_frames), noun)}" if several else f"any {noun}"
    where = " of its direction" if most.directions and len(trial.outcome.directions) > 1 else ""
    in_each = " in each" if several and is_of_several else ""
    return f"{most.fault.value}, which may {' or '.join(effects)} {frames}{where}{in_each}: {most.detail}"


def _open_words(promise: Promise, rule: Rule, trials: Sequence[Trial]) -> str:
    """Return why the rule decided nothing."""
    worst, best, evidence = rule.worse.answer, rule.better.answer, odds_text(rule.evidence(Ruling.INCONCLUSIVE)[0])
    if rule.is_incomplete:
        return f"run {rule.runs} of {rule.shares.runs}, evidence {evidence}"
    if 2 * sum(map(_is_generator_slow, trials)) >= len(trials):
        return "the testbed could not prove either: use a faster generator, or state a load that it can send"
    better, worse = ("undecided" if end in (None, Ruling.INCONCLUSIVE) else end.value for end in (best, worst))
    if better != worse:
        own = ask(promise, [replace(trial, problems=()) for trial in trials]).ruling
        is_sample = "probes" in promise.quantity.needs and own in (None, Ruling.INCONCLUSIVE)
        cause = "the probe frames" if is_sample else "the testbed"
        return f"{cause} could not prove either: {better} at the better ends of its figures, {worse} at the worse ends"
    if rule.own is not None:
        return f"{rule.runs} runs have ended and decide nothing together, evidence {evidence}"
    return "the budget did not suffice: the router is too close to the limit"


def _is_generator_slow(trial: Trial) -> bool:
    """Return whether the generator sent too little, and nothing else was wrong by which it might have."""
    faults = {problem.fault for problem in trial.problems}
    others = {Fault.PAUSED, Fault.COUNTERS, Fault.LINK_DOWN, Fault.ROUTER, Fault.NEIGHBOUR, Fault.SET_UP, Fault.CLOCK}
    return any(fault.generator_too_slow for fault in faults - {Fault.UNTIMED}) and not faults & others


def odds_text(odds: float) -> str:
    """Return evidence for the router as people say it: ``37 to 1``, and against it ``1 to 4``."""
    if odds < 1:
        return f"1 to {_rounded(1 / odds)}" if odds > 1e-6 else "1 to more than a million"
    return f"{_rounded(odds)} to 1" if odds < 1e6 else "more than a million to 1"


def _rounded(odds: float) -> str:
    return f"{float(f'{odds:.3g}'):,g}"


NAMED_CAUSES = 2
"""Causes that a phrase names; it adds up the others."""


def trials_text(ledger: Ledger) -> str:
    """Return the trials that the account covers: ``in trial 11``, or ``in trials 4 to 11 together``."""
    if ledger.first_trial == ledger.last_trial:
        return f"in trial {ledger.last_trial}"
    return f"in trials {ledger.first_trial} to {ledger.last_trial} together"


def where_lost(ledger: Ledger) -> str:
    """Return ``of 1,234,567 lost frames the router counts 1,234,560 rx-miss at eth1 (…); 7 unexplained``."""
    lost, rest = ledger.whole.lost, ledger.whole.unexplained
    why = ledger.missing
    if wrong := ledger.contradiction:
        why = f"counters contradict each other: {wrong}; the router's are of other interfaces, stand still or count"
        why += " other frames; compare them while frames flow"
    if why:
        # where counters contradict each other, more may have come back in one direction than were lost in another
        lost_each_way = sum(max(0, row.lost) for row in ledger.directions)
        return f"where {lost_each_way:,} frames were lost is not known: {why}"
    drops = _merged_by_name(ledger)
    counts, named = [], drops[:NAMED_CAUSES]
    for index, drop in enumerate(named):
        repeated = drop.meaning in [other.meaning for other in named[index + 1 :]]
        meaning = f" ({drop.meaning})" if drop.meaning and not repeated else ""
        counts.append(f"{drop.frames:,} {drop.label}{meaning}")
    if others := sum(drop.frames for drop in drops[NAMED_CAUSES:]):
        counts.append(f"{others:,} by other causes")
    text = f"of {lost:,} lost frames the router counts {', '.join(counts)}"
    if not drops:
        text = f"the router's counters show none of {lost:,} lost frames"
    anew = [drop.label for drop in ledger.drops if drop.began_anew]
    if anew and rest > 0:
        more = f" and {counted(len(anew) - 1, 'other')}" if anew[1:] else ""
        return f"{text}; where {rest:,} were lost is not known: the counter {anew[0]}{more} began anew"
    if not drops:
        # frames that came back changed are in no ledger
        return f"{text}{_place_of_unexplained(ledger)}" if lost > 0 else "no frame is missing"
    if rest < 0:
        return f"{text}; that is {-rest:,} more than were lost, of other traffic or counted twice"
    if rest > lost / 2:
        return f"{text}; {rest:,} unexplained{_place_of_unexplained(ledger)}"
    return f"{text}; {f'{rest:,}' if rest else 'none'} unexplained"


def _merged_by_name(ledger: Ledger) -> tuple[Drop, ...]:
    """Return the known drops; where they are too many to name, those of one name at several interfaces together."""
    drops = tuple(drop for drop in ledger.drops if not drop.began_anew)
    if len(drops) <= NAMED_CAUSES:
        return drops
    merged: dict[str, Drop] = {}
    for drop in drops:
        known = merged.get(drop.name)
        if known is None:
            merged[drop.name] = drop
            continue
        interfaces = " and ".join(dict.fromkeys(filter(None, (*known.interface.split(" and "), drop.interface))))
        merged[drop.name] = replace(known, interface=interfaces, frames=known.frames + drop.frames)
    return tuple(sorted(merged.values(), key=lambda drop: -drop.frames))


def _place_of_unexplained(ledger: Ledger) -> str:
    """Where most unexplained frames were lost, if the counters show it, and where to look."""
    rest = ledger.whole.unexplained
    cables, filters = "look at cables and the generator's ports", "look at its filters, blackhole routes and queues"
    places = (
        f": its count of received frames did not rise by them (its card may lose some uncounted); {cables}",
        f": it received them and did not send them; {filters}",
        f": it counts them as sent; {cables}",
    )
    gaps = zip(ledger.whole.gaps, places, strict=True)
    fitting = [words for count, words in gaps if count is not None and 0.9 * rest <= count <= 1.1 * rest]
    return fitting[0] if len(fitting) == 1 else f"; {cables}"


# -- deviations from the method that a measurement is named after: part of the result, and printed with it


@dataclass(frozen=True, slots=True)
class Deviation:
    """``source``: the method and its section; ``asks``: what it asks for; ``done``: what was done instead."""

    source: str
    asks: str
    done: str

    def __str__(self) -> str:
        return f"{self.source} asks for {self.asks}; here: {self.done}"


TRIALS_OF_SECTION_23 = (
    Deviation(
        "RFC 2544 23",
        "routing updates and learning frames before each trial",
        "routes and neighbours are static, and no frames are sent before a trial to learn them",
    ),
    Deviation(
        "RFC 2544 23",
        "pauses of 2 s before a trial, 2 s after it for residual frames, and 5 s until the next one",
        "at most 0.2 s before a trial; 2 s after it, or until no frame is missing; no pause until the next one",
    ),
)
"""The deviations of every method that follows RFC 2544."""

LOSS_OF_OFFERED_FRAMES = Deviation(
    "RFC 9971 (trial loss ratio)",
    "the ratio of the frames that the router was intended to get, all directions together",
    "the ratio of the offered frames, of the worst direction unless a sentence says 'in total'",
)


NOT_LOOKED_AT = Deviation(
    "RFC 2544 10",
    "only those received frames that are the frames that were sent",
    "all are counted; what is in them was not looked at",
)


def deviations_of_verdict(verdict: Verdict) -> tuple[str, ...]:
    """Return what *verdict* declares: RFC 9971's loss ratio where loss is judged, RFC 2544's trials with its goal."""
    deviations: list[Deviation] = []
    if verdict.requirement.quantity.judges_loss:
        deviations.append(LOSS_OF_OFFERED_FRAMES)
    if verdict.promise.goal.goal == RFC2544_GOAL or verdict.is_rfc2544_throughput:
        deviations += TRIALS_OF_SECTION_23
    is_pass = verdict.ruling is Ruling.PASS
    if is_pass and verdict.requirement.quantity.doubts and (done := list(_not_looked_at(verdict))):
        deviations.append(replace(NOT_LOOKED_AT, done="; ".join(done)))
    return tuple(map(str, deviations))


def _not_looked_at(verdict: Verdict) -> Iterator[str]:
    """Yield what would have shown frames that are not the ones sent, and was not done."""
    if not verdict.looked_at(EXAMINED):
        slowly = verdict.looked_at(EXAMINED_SLOWLY)
        done = f"{slowly} frames of slow traffic were compared with what was sent, none at the load" if slowly else ""
        yield done or NOT_LOOKED_AT.done
    if not any(trial.outcome.latency for trial in verdict.trials):
        yield "no probe frames were among them, whose numbers show loss, copies and order"
    elif verdict.requirement.profile.flows.count == 1:
        yield "copies of the one flow in the place of lost frames are seen among probe frames alone"
