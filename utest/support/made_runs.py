"""Runs with made figures: what a suite measured, without running it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from lineproof.core.bounds import Bounds
from lineproof.core.goal import Goal
from lineproof.core.latency import LatencyCount
from lineproof.core.packet_cost import PacketCost, cost_readings
from lineproof.core.trial import DirectionCount, Fault, Load, Outcome, Problem, Trial
from lineproof.evidence.records import EnvironmentRecord, MarginRecord
from lineproof.evidence.rejudge import SAME, RejudgedRun, RejudgedSentence
from lineproof.evidence.run import RecordedRun, RunFolder
from support.evidence_builders import requirement_record, trial_record
from support.made_testbeds import goal_named

LOAD = "64b unidirectional ≥ 5 Mpps"
FORWARDS = "64b 1-flow unidirectional forwards ≥ 5 Mpps"
LATENCY = "64b unidirectional latency mean ≤ 50 µs at 1 Mpps"
VARIATION = "64b unidirectional pdv mean ≤ 5 µs at 1 Mpps"
COSTS = "64b 1-flow unidirectional costs ≤ 400 cycles/packet at 1 Mpps"
RECOVERS = "64b unidirectional recovers in ≤ 2 s"
LOSES = "64b unidirectional loses ≤ 2 % at 1 Mpps"
EACH_KIND = (LOAD, FORWARDS, LATENCY, VARIATION, COSTS, RECOVERS, LOSES)

FRAMES = 10_000_000
PROBES = 1_000_000


@dataclass(frozen=True)
class Sentence:
    """A sentence of a run: the figures of its trials in its unit, its verdict, the ends of its margin.

    ``spoilt``: the numbers of trials in which a link was down.
    """

    words: str
    figures: Sequence[float] = (5e6,) * 5
    verdict: str = "PASS"
    margin: tuple[float, float | None] | None = None
    finished: bool = True
    test: str = "T"
    expected: str = "PASS"
    spoilt: Sequence[int] = ()


def around(mean: float, seed: int, spread: float = 0.002, count: int = 20) -> list[float]:
    """Return figures about *mean*; *spread*: their standard deviation as a ratio."""
    chance = random.Random(seed)
    return [mean * (1 + chance.gauss(0, spread)) for _ in range(count)]


few = partial(around, count=5)


def made_run(
    results: Path,
    name: str,
    *sentences: Sentence,
    simulated: bool = False,
    closed: bool = True,
    unjudged: str = "",
    goal: str | Goal = "quick",
    inputs: Mapping[str, bytes] | None = None,
    **environment: Any,
) -> Path:
    """Write a run with *sentences*. *unjudged*: one that it ended in; *environment*: fields of its record.

    *goal*: that which judged, or its name. *inputs*: by file name.
    """
    terms = goal if isinstance(goal, Goal) else goal_named(goal)
    fields: dict[str, Any] = {
        "testbed": "lab",
        "platform": "box",
        "software": "vpp",
        "clock_speed": 1.0,
        "started": 1_795_000_000.0,
        "versions": {"router.version": "24.10", "generator.server": "TRex v3.08"},
        "suite": "Box",
        "goal": terms,
    }
    known = EnvironmentRecord(name, simulated, **(fields | environment))
    folder = RunFolder.create(results, name)
    folder.write_environment(known)
    for named in (inputs or {}).items():
        folder.add_input(*named)
    for number, sentence in enumerate(sentences, 1):
        common: dict[str, Any] = {
            "run": folder.run_id,
            "simulated": simulated,
            "sentence": sentence.words,
            "test": sentence.test,
        }
        for place, figure in enumerate(sentence.figures, 1):
            trial = _trial(place, sentence.words, figure)
            if place in sentence.spoilt:
                trial = replace(trial, problems=(Problem(Fault.LINK_DOWN, "port 1"),))
            folder.add(replace(trial_record(), requirement=number, trial=trial, evidence="keeps", **common))
        times = {"started": known.started, "ended": known.started + 5.5}
        trials = tuple(range(1, len(sentence.figures) + 1))
        verdict = {"verdict": sentence.verdict, "expected": sentence.expected}
        changes = {"number": number, **verdict, "goal": terms, "trials": trials, **times, **common}
        if sentence.verdict != "PASS":
            changes["message"] = f"{sentence.verdict}: because <of> | that"
        folder.add(requirement_record(**changes))
        if sentence.margin is not None:
            reason = "" if sentence.finished else "its time was up"
            ends = (*sentence.margin, reason, 9.0)
            names = folder.run_id, simulated, number, sentence.test, sentence.words
            folder.add(MarginRecord(*names, *ends, 100 + number))
    if unjudged:
        last = replace(trial_record(), requirement=99, run=folder.run_id, sentence=unjudged, evidence="keeps")
        folder.add(last)
    if closed:
        folder.close(replace(known, ended=known.started + 100))
    return folder.path


def as_recorded(run: RecordedRun) -> RejudgedRun:
    """Stand for :func:`.rejudge`: made runs have too few records to be judged again."""
    verdicts: list[Any] = [SimpleNamespace(message=record.message) for record in run.requirements]
    both = zip(run.requirements, verdicts, strict=True)
    return RejudgedRun(run, tuple(RejudgedSentence(record, verdict, SAME) for record, verdict in both))


def _trial(place: int, sentence: str, figure: float) -> Trial:
    """Return a trial of 1 s that measured *figure*, and something else that must not be compared instead.

    Of sentences that are not of EACH_KIND the figure is the frames forwarded.
    """
    readings = {
        RECOVERS: {"recovery_low_s.0": 0.9 * figure, "recovery_high_s.0": figure, "overload_loss.0": 0.5, "timed": 1.0},
        COSTS: cost_readings((PacketCost("vpp_wk_0", 1000, 1000, 1000 * figure, 0.0, 1000, 10),)),
    }.get(sentence, {})
    offered, frames = FRAMES, FRAMES - place
    if sentence == COSTS:
        offered = frames = 1_000_000
    if sentence in (FORWARDS, LOAD) or sentence not in EACH_KIND:
        frames = round(figure)
        offered = frames if sentence == LOAD else FRAMES
    if sentence == LOSES:
        frames = round(FRAMES * (1 - figure / 100))
    late = sentence in (LATENCY, VARIATION)
    # the mean is that of the buckets' ends: 20 and 1000 µs
    slow = late * round(PROBES * ((figure - 20) / 980 if sentence == LATENCY else figure / 10))
    histogram = {10: PROBES - slow, 900 if sentence == LATENCY else 900_000: slow}
    probe = LatencyCount(0, 1, PROBES, PROBES, 20.0, 40.0, histogram=histogram)
    counts = (DirectionCount(0, 1, offered, offered, frames),)
    outcome = Outcome(Load(1e7), 1.0, 1.0, 0.0, counts, readings=readings, latency=(probe,) if late else ())
    return Trial(place, outcome, (), Bounds(1.0, 1.0))


SENTENCE = "64b unidirectional forwards ≥ 5 Mpps"
BEGIN = 1_790_000_000.0


def write_run(
    folder: Path,
    day: int,
    rates: Sequence[float],
    *,
    name: str = "",
    release: str = "24.02",
    sentence: str = SENTENCE,
    margin: tuple[float, float | None] | None = None,
    goal: str = "standard",
    **more: Any,
) -> Path:
    """Write a run, *day* days after BEGIN, whose trials forwarded *rates*, in frames/s. *more*: as of made_run."""
    versions = {"router.vpp": release, "generator.server": "3"}
    known: dict[str, Any] = {"started": BEGIN + day * 86_400, "versions": versions}
    judged = Sentence(sentence, rates, margin=margin)
    return made_run(folder, name or f"run-{day:04d}", judged, goal=goal, **known, **more)


def two_releases(folder: Path) -> list[Path]:
    """Write ten runs at 5.4 Mpps, then ten of another release at 5.2 Mpps."""
    before = [write_run(folder, day, few(5.4e6, day)) for day in range(10)]
    return before + [write_run(folder, day, few(5.2e6, day), release="24.06") for day in range(10, 20)]
