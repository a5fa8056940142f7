"""Folders of runs as a team collects them over months, for the tests of the history."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lineproof.core.bounds import Bounds
from lineproof.core.trial import DirectionCount, Load, Outcome, Trial
from lineproof.evidence.records import EnvironmentRecord, MarginRecord, TrialRecord
from lineproof.evidence.run import RunFolder
from support.evidence_builders import promised, requirement_record, trial_record

SENTENCE = "64b unidirectional forwards ≥ 5 Mpps"
DAY = 86_400.0
BEGIN = 1_790_000_000.0


def trial_of(number: int, pps: float, started: float) -> Trial:
    """A trial of a second that forwarded *pps*, of 10 million frames."""
    counts = (DirectionCount(0, 1, 10_000_000, 10_000_000, round(pps)),)
    return Trial(number, Outcome(Load(1e7), 1.0, 1.0, started, counts), (), Bounds(1.0, 1.0))


def trial_records(name: str, rates: Sequence[float], started: float, simulated: bool) -> list[TrialRecord]:
    """The trials of the first sentence of a run."""
    return [
        replace(
            trial_record(),
            run=name,
            requirement=1,
            sentence=SENTENCE,
            simulated=simulated,
            trial=trial_of(number, rate, started + number),
        )
        for number, rate in enumerate(rates, 1)
    ]


def write_run(
    folder: Path,
    day: int,
    rates: Sequence[float],
    *,
    name: str = "",
    release: str = "24.02",
    simulated: bool = False,
    margin: tuple[float, float | None] | None = None,
    close: bool = True,
    sentence: str = SENTENCE,
    platform: str = "box",
    goal: str = "standard",
) -> Path:
    """Write a run of one *sentence*, *day* days after BEGIN, whose trials forwarded *rates*, in frames/s."""
    started = BEGIN + day * DAY
    written = RunFolder.create(folder, name or f"run-{day:04d}")
    name = written.run_id
    versions = {"router.vpp": release, "generator.server": "3"}
    environment = EnvironmentRecord(name, simulated, "lab", platform, "vpp", 1.0, started, versions=versions)
    written.write_environment(environment)
    for record in trial_records(name, rates, started, simulated):
        written.add(replace(record, sentence=sentence))
    if margin is not None:
        written.add(MarginRecord(name, simulated, 1, "T", sentence, *margin, "", 12.0))
    fields = {"run": name, "simulated": simulated, "number": 1, "test": "T", **promised(sentence), "goal": goal}
    times = {"started": started, "ended": started + 9, "trials": tuple(range(1, len(rates) + 1))}
    written.add(requirement_record(**fields, **times))
    if close:
        written.close(replace(environment, ended=started + 10))
    return written.path


def around(mean: float, seed: int, count: int = 5, spread: float = 0.002) -> list[float]:
    """*count* figures about *mean*; *spread*: standard deviation as a ratio."""
    chance = random.Random(seed)
    return [chance.gauss(mean, spread * mean) for _ in range(count)]


def two_releases(folder: Path) -> list[Path]:
    """Write ten runs at 5.4 Mpps, then ten of another release at 5.2 Mpps."""
    before = [write_run(folder, day, around(5.4e6, day)) for day in range(10)]
    return before + [write_run(folder, day, around(5.2e6, day), release="24.06") for day in range(10, 20)]
