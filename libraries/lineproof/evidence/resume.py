"""Resuming an interrupted run: its verdicts are carried over, and the other sentences are judged now.

The old folder is only read. A carried verdict is copied, with its trials, into the new run's folder, which is complete
by itself and names the run that each of them comes from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..ceilings.cards import CardFile
from ..errors import ConfigError, TestbedError
from ..files import read_file
from ..json_text import parse_json
from ..session.plan import Plan
from .margin import MarginRecord
from .readings import ReadingRecord
from .records import EnvironmentRecord, RequirementRecord, TrialRecord
from .run import RecordedRun, read_margins, read_run
from .run_files import ENVIRONMENT_FILE

DECIDED = ("PASS", "FAIL")
FINGERPRINTS = "fingerprints"
"""Key of :func:`fingerprints` in the environment record's extra data."""
SUITE_OPTIONS: Mapping[str, str] = {"testbed": "-v TESTBED:{}", "goal": "-v GOAL:{}"}
"""How a suite is told what an earlier run had."""
NO_FILE = "none"
"""In place of the SHA-256 of a missing file: adding the file later is a change too."""


def fingerprints(plan: Plan) -> dict[str, str]:
    """SHA-256 of the files that define the test: platform, testbed, goal, profiles, calibration, generator cards."""
    project = plan.project
    profiles = sorted(project.profiles.glob("*.yaml"), key=lambda path: path.name)
    named = {
        "platform file": [project.platforms / f"{plan.platform.platform}.yaml"],
        "testbed file": [project.testbeds / f"{plan.testbed.testbed}.yaml"],
        "goal file": [project.goals / f"{plan.goal.goal}.yaml"],
        "profile files": [*profiles, *plan.catalogue.files()],
    }
    return {
        **{name: _digest(paths) for name, paths in named.items()},
        "calibration file": plan.calibration.sha256 if plan.calibration else NO_FILE,
        "set of generator card files": _cards_digest(plan.cards),
    }


def _cards_digest(cards: Sequence[CardFile]) -> str:
    text = "\n".join(f"{file.path.name} {file.sha256}" for file in cards)
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest() if cards else NO_FILE


def _digest(paths: Iterable[Path]) -> str:
    found = hashlib.sha256()
    for path in paths:
        found.update(read_file(path))
    return found.hexdigest()


@dataclass(frozen=True)
class CarriedVerdict:
    """A verdict of run ``run`` in ``folder`` with its trials, warm-up included, readings, and margin if it has one."""

    run: str
    folder: Path
    record: RequirementRecord
    trials: tuple[TrialRecord, ...]
    readings: tuple[ReadingRecord, ...] = ()
    margin: MarginRecord | None = None

    def copy_to(self, run: str, number: int) -> CarriedVerdict:
        """The same as requirement *number* of *run*, with the run it comes from."""
        origin = self.record.extra.get("carried_from", self.run)
        return CarriedVerdict(
            self.run,
            self.folder,
            replace(self.record, run=run, number=number, extra={**self.record.extra, "carried_from": origin}),
            tuple(replace(trial, run=run, requirement=number) for trial in self.trials),
            tuple(replace(reading, run=run, requirement=number) for reading in self.readings),
            None if self.margin is None else replace(self.margin, run=run, requirement=number),
        )


class Resumption:
    """The verdicts of an earlier run's suite, each carried over once, in order."""

    def __init__(self, run: RecordedRun) -> None:
        if run.environment is None:
            raise ConfigError("has no environment.json, so nothing can be carried over from it", run.path)
        self.run_id = run.environment.run
        self._environment = run.environment
        margins = {item.requirement: item for item in read_margins(run.path)}
        self._left = [
            CarriedVerdict(
                self.run_id,
                run.path,
                record,
                tuple(trial for trial in run.trials if trial.requirement == record.number),
                tuple(reading for reading in run.readings if reading.requirement == record.number),
                margins.get(record.number),
            )
            for record in run.requirements
            if record.verdict in DECIDED
        ]
        self.decided = len(self._left)

    @classmethod
    def find(cls, results: Path, run_id: str, suite: str) -> Resumption:
        """The verdicts of *suite* in run *run_id*.

        Raises ConfigError naming the last runs if there is no such run, and what was altered in it if anything was.
        """
        known = {path.parent: _suite(path) for path in sorted(results.glob(f"*/{ENVIRONMENT_FILE}"))}
        runs = [folder for folder in known if folder.name == run_id or folder.name.startswith(f"{run_id}-")]
        if not runs or not run_id:
            last = ", ".join(folder.name for folder in list(known)[-5:])
            raise ConfigError(
                f"there is no run '{run_id}' to resume; the last runs are {last or 'none'}; give the folder of results"
                " that it was started with (-d, or -v RESULTS:)",
                results,
            )
        for folder in runs:
            # the other suites' folders are no concern of this one
            if known[folder] == suite:
                return cls(read_run(folder))
        raise ConfigError(f"run '{run_id}' has no suite '{suite}'; resume it with the suite that it ran", results)

    def check(self, now: EnvironmentRecord) -> None:
        """Raise TestbedError naming what has changed: the carried verdicts would not be about this testbed."""
        before, differences = self._environment, []
        if given := given_otherwise(before, now, SUITE_OPTIONS):
            raise TestbedError(f"run '{self.run_id}' cannot be resumed: {given}")
        names = ["clock_speed"]
        if before.versions and now.versions:  # generator and router have said whether they are simulated
            names.append("simulated")
        for name in names:
            differences += _difference(name.replace("_", " "), getattr(before, name), getattr(now, name))
        differences += _differences(before.extra.get(FINGERPRINTS, {}), now.extra.get(FINGERPRINTS, {}), "changed")
        # a run that ended before it had read them has no versions
        differences += _differences(before.versions, now.versions if before.versions else {})
        if differences:
            raise TestbedError(
                f"run '{self.run_id}' cannot be resumed: {'; '.join(differences)}; run the suite again, without RESUME"
            )

    def take(self, test: str, sentence: str) -> CarriedVerdict | None:
        """The verdict on *sentence* of *test*, if there is one; a second call returns the second such verdict."""
        for place, carried in enumerate(self._left):
            if (carried.record.test, carried.record.sentence) == (test, sentence):
                return self._left.pop(place)
        return None


def _suite(path: Path) -> str | None:
    """The suite that an environment.json names, altered or not; None if it names none."""
    try:
        return str(parse_json(path.read_bytes(), own=True)["extra"]["suite"])
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _differences(before: Mapping[str, Any], now: Mapping[str, Any], words: str | None = None) -> list[str]:
    found = []
    for name in sorted(before.keys() & now.keys()):
        if before[name] != now[name]:
            found += [f"the {name} has {words}"] if words else _difference(name, before[name], now[name])
    return found


def given_otherwise(before: EnvironmentRecord, now: EnvironmentRecord, options: Mapping[str, str]) -> str:
    """What the start of the run *now* names other than that of *before*, both values, and what to give; "": nothing.

    *options*: of the testbed and the goal. What follows from these, as another file, is not named.
    """
    rows = [(name, getattr(before, name), getattr(now, name)) for name in ("platform", "software", "testbed")]
    rows.append(("goal", _goal(before), _goal(now)))
    different = [row for row in rows if row[1] and row[2] and row[1] != row[2]]
    if not different:
        return ""
    had = [f"the run had {name} '{then}', this one has '{mine}'" for name, then, mine in different]
    give = [options[name].format(then) for name, then, _ in different if name in options]
    files = [f"{name} '{then}'" for name, then, _ in different if name not in options]
    ways = ([f"go on with {' '.join(give)}"] if give else []) + (
        [f"expected {' and '.join(files)} in 'Open Testbed For'"] if files else []
    )
    return "; ".join([*had, *ways])


def _goal(record: EnvironmentRecord) -> str:
    goal = record.extra.get("goal")
    return str(goal.get("goal", "")) if isinstance(goal, Mapping) else ""


def _difference(name: str, before: object, now: object) -> list[str]:
    return [] if before == now else [f"{name} was '{before}' and is '{now}'"]
