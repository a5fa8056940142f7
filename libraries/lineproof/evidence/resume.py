"""Going on with an earlier run: its recorded trials count first, live ones after, by the same judge.

The old folder is only read. Its trials are copied into the new run's folder, which is complete by itself; each names
the run that measured it. Only trials of the same sentence, goal, router and generator are evidence together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..core.deciding import OPEN
from ..core.trial import Fault, Problem, unended
from ..core.verdict import ENDED_EARLY, Try
from ..errors import BREAKDOWN_ERRORS, ConfigError
from ..session.plan import Plan
from .inputs import input_files
from .recorder import HOST_KEY, ROUTER_CONFIGURATION
from .records import EnvironmentRecord, RequirementRecord, TrialRecord
from .run import RecordedRun, read_run
from .run_files import ENVIRONMENT_FILE, sha256_of

FINGERPRINTS = "fingerprints"
"""Key of :func:`fingerprints` in the environment record's extra data."""
GOAL_FILE = "file goals/"
"""Begins the name of a goal's file, whose keys are compared one by one."""
UNREAD = Problem(Fault.ROUTER, "the run was interrupted, and it was not read afterwards")


def fingerprints(plan: Plan) -> dict[str, str]:
    """Return the SHA-256 of each file that defines the test, by ``file KIND/NAME``, whichever folder it is in."""
    files = {f"file {path.parent.name}/{path.name}": path for path in input_files(plan).values()}
    files |= {f"file {path}": path for path in plan.catalogue.files()}
    return {name: sha256_of(path) for name, path in files.items()}


class EarlierRun:
    """The trials of an earlier run's suite, sentence by sentence, each given out once, in order."""

    def __init__(self, run: RecordedRun) -> None:
        self.run, self.environment = run, run.environment
        self._left = list(_sentences(run, self.environment.run))

    @classmethod
    def find(cls, results: Path, run_id: str, suite: str) -> EarlierRun:
        """Return *suite* in run *run_id*.

        Raises ConfigError naming the last runs if there is no such run, and what was altered in it if anything was.
        """
        known = [path.parent for path in sorted(results.glob(f"*/{ENVIRONMENT_FILE}"))]
        runs = [folder for folder in known if folder.name == run_id or folder.name.startswith(f"{run_id}-")]
        if not runs or not run_id:
            last = ", ".join(folder.name for folder in known[-5:])
            raise ConfigError(
                f"there is no run '{run_id}' to resume; the last runs are {last or 'none'}; give the folder of results"
                " that it was started with (-d, or -v RESULTS:)",
                results,
            )
        error = ConfigError(f"run '{run_id}' has no suite '{suite}'; resume it with the suite that it ran", results)
        for folder in runs:
            try:
                run = read_run(folder)
            except ConfigError as altered:  # nobody knows which suite it was
                error = altered
                continue
            if run.environment.extra.get("suite") == suite:
                return cls(run)
        raise error

    def take(self, test: str, sentence: str) -> list[TrialRecord]:
        """Return the trials of *sentence* of *test*; a second call returns those of the second such sentence."""
        for place, (names, trials) in enumerate(self._left):
            if names == (test, sentence):
                del self._left[place]
                return trials
        return []


def _sentences(run: RecordedRun, run_id: str) -> Iterator[tuple[tuple[str, str], list[TrialRecord]]]:
    """Yield test and sentence with its trials, as they are weighed: with all that was known of them in the end."""
    records = {record.number: record for record in run.requirements}
    measured = {**dict.fromkeys(records, ()), **run.trials_by_number}
    for number, of_sentence in sorted(measured.items()):
        # what was not judged is a warm-up, or of a search
        record, trials = records.get(number), [item for item in of_sentence if item.evidence]
        was_interrupted = record.breakdown is not None if record else number == max(measured)
        if was_interrupted and of_sentence and not (last := of_sentence[-1]).trial.run:
            # whoever ends a run in each bad trial must not be the only one to know of them
            trials.append(replace(last, trial=unended(last.trial), evidence=OPEN, frame_sizes=(), step_down=None))
        if record is not None or (trials and was_interrupted):
            named = record or trials[0]
            yield (named.test, named.sentence), [_weighed(item, record, run_id) for item in trials]


def _weighed(item: TrialRecord, record: RequirementRecord | None, run_id: str) -> TrialRecord:
    trial, known = item.trial, record.known_afterwards if record else ()
    problems = [problem for part in known if trial.number in part.trials for problem in part.problems]
    if not trial.run and (record is None or record.breakdown is not None):
        problems = [UNREAD]
    return replace(item, trial=replace(trial, run=trial.run or run_id, problems=(*trial.problems, *problems)))


def why_apart(before: EnvironmentRecord, now: EnvironmentRecord) -> list[str]:
    """Return why trials of the run *before* are no evidence together with those of *now*; empty: they are."""
    return differences(_identity(before), _identity(now))


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return what is not *now* as it was *then*, in words; of what is long, as sums of files, that it has changed."""
    lines = []
    for name in [name for name in {**then, **now} if then.get(name) != now.get(name)]:
        both = then.get(name, "unknown"), now.get(name, "unknown")
        is_short = all(isinstance(value, str | float | int) and len(str(value)) < 50 for value in both)
        lines.append(f"{name} was '{both[0]}' and is '{both[1]}'" if is_short else f"{name} has changed")
    return lines


def _identity(record: EnvironmentRecord) -> dict[str, Any]:
    """Return all by which goal, router and generator are the same ones, by what people call it."""
    data = record.to_json()
    extra = data["extra"]
    known = {name: data[name] for name in ("platform", "software", "testbed", "clock_speed", "simulated")}
    parts = (
        ("goal", extra.get("goal")),
        ("", {HOST_KEY: extra.get(HOST_KEY, "unknown")}),
        ("", extra.get(FINGERPRINTS)),
        ("router's", extra.get(ROUTER_CONFIGURATION)),
        ("router's", data["router_facts"]),
        ("", data["versions"]),
    )
    for of, values in parts:
        known |= {
            (name if name == of else f"{of} {name}".strip()): value
            for name, value in (values or {}).items()
            if name not in _INCIDENTAL and not name.startswith(GOAL_FILE)
        }
    return known


_INCIDENTAL = (
    *("about", "notes", "routes", "unread", "differences"),
    *("generator.leftover", "generator.force", "generator.promiscuous"),
)
"""Of goal, files, configuration, facts and versions: what says nothing of how a router forwards, or is judged."""


def earlier_tries(results: Path, now: EnvironmentRecord) -> dict[str, list[Try]]:
    """Return the verdicts of other runs in *results* on the same goal, router and generator, by sentence, in order."""
    tries: list[tuple[str, Try]] = []
    gone_on_with: set[tuple[str, str]] = set()
    for path in sorted(results.glob(f"*/{ENVIRONMENT_FILE}")):
        try:
            then = EnvironmentRecord.from_json(path.read_bytes())
            if then.run == now.run or _router(then) != _router(now):
                continue
            run = read_run(path.parent)
        except BREAKDOWN_ERRORS:  # a folder that cannot be read says nothing
            continue
        tries += ((record.sentence, record.tries[-1]) for record in run.requirements)
        gone_on_with |= {(other, record.sentence) for record in run.requirements for other in record.runs}
        last, judged = run.trials[-1] if run.trials else None, {record.number for record in run.requirements}
        if last is not None and last.evidence and last.requirement not in judged:
            tries.append((last.sentence, Try(then.run, ENDED_EARLY, last.trial.outcome.started, 1.0)))
    by_sentence: dict[str, list[Try]] = {}
    for sentence, item in sorted(tries, key=lambda pair: pair[1].ended):
        if (item.run, sentence) not in gone_on_with:
            by_sentence.setdefault(sentence, []).append(item)
    return by_sentence


def _router(record: EnvironmentRecord) -> tuple[object, ...]:
    """Return what names goal and router, whatever was set or changed on them between two tries."""
    key, goal = record.extra.get(HOST_KEY), record.extra.get("goal", {}).get("goal")
    return record.platform, record.software, record.testbed, record.simulated, goal, key
