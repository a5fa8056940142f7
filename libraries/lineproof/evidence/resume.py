"""Going on with an earlier run: its recorded trials count first, live ones after, by the same judge.

The old folder is only read. Its trials are copied into the new run's folder, which is complete by itself; each names
the run that measured it. Only trials of the same sentence, goal, router and generator are evidence together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..core.deciding import OPEN
from ..core.trial import Fault, Problem, unended
from ..core.verdict import ENDED_EARLY, Try
from ..errors import BREAKDOWN_ERRORS, ConfigError
from ..session.plan import Plan
from ..units import si
from .inputs import input_files
from .records import EnvironmentRecord, RequirementRecord, TrialRecord
from .run import RecordedRun, find_runs, read_run
from .run_files import ENVIRONMENT_FILE, sha256_of

UNREAD = Problem(Fault.ROUTER, "the run was interrupted, and it was not read afterwards")

_NAMES = ("platform", "software", "testbed", "clock_speed", "simulated", "host_key")
_INCIDENTAL = (
    *("about", "notes", "routes", "unread", "differences", "seen", "unchecked", "there", "afterwards"),
    *("generator.leftover", "generator.force", "generator.promiscuous"),
)
"""Names of goal, configuration, facts and versions that say nothing of how a router forwards, or is judged."""


def fingerprints(plan: Plan) -> dict[str, str]:
    """Return the SHA-256 of each file that defines the test, by ``file KIND/NAME``, whichever folder it is in."""
    files = {f"file {path.parent.name}/{path.name}": path for path in input_files(plan).values()}
    files |= {f"file {path}": path for _, path in plan.catalogue.files.values()}
    return {name: sha256_of(path) for name, path in files.items()}


class EarlierRun:
    """The trials of an earlier run's suite, sentence by sentence, each given out once, in order."""

    def __init__(self, run: RecordedRun) -> None:
        self.run, self.environment = run, run.environment
        self._left = defaultdict[tuple[str, str], list[list[TrialRecord]]](list)
        records = {record.number: record for record in run.requirements}
        numbers = sorted({*records, *run.trials_by_number})
        for number in numbers:
            record, measured = records.get(number), run.trials_by_number.get(number, ())
            # what was not judged is a warm-up, or of a search
            trials = [trial for trial in measured if trial.evidence]
            was_interrupted = record.breakdown is not None if record else number == numbers[-1]
            if was_interrupted and measured and not (last := measured[-1]).trial.run:
                # whoever ends a run in each bad trial must not be the only one to know of them
                trials.append(replace(last, trial=unended(last.trial), evidence=OPEN, step_down=None))
            if record or was_interrupted:
                named, run_id = record or measured[-1], self.environment.run
                self._left[named.test, named.sentence].append([_weighed(one, record, run_id) for one in trials])

    @classmethod
    def find(cls, results: Path, run_id: str, suite: str) -> EarlierRun | None:
        """Return *suite* in run *run_id*; None: it was ended before this one, of the same folder.

        Raises ConfigError, which names what was altered in it if anything was.
        """
        altered, suites = list[ConfigError](), set[str]()
        for folder in find_runs(run_id, results):
            try:
                run = read_run(folder)
            except ConfigError as error:  # nobody knows which suite it was
                altered.append(error)
                continue
            if run.environment.suite == suite:
                return cls(run)
            suites.add(run.environment.suite.partition(".")[0])
        if altered:
            raise altered[-1]
        if suite.partition(".")[0] in suites:
            return None
        raise ConfigError(f"run '{run_id}' has no suite '{suite}'; resume it with the suite that it ran", results)

    def take(self, test: str, sentence: str) -> list[TrialRecord]:
        """Return the trials of *sentence* of *test*; a second call returns those of the second such sentence."""
        left = self._left[test, sentence]
        return left.pop(0) if left else []


def _weighed(one: TrialRecord, record: RequirementRecord | None, run_id: str) -> TrialRecord:
    """Return a trial of the run with all that was known of it in the end."""
    if not one.trial.run and (record is None or record.breakdown is not None):
        trial = replace(one.trial, problems=(*one.trial.problems, UNREAD))
    else:
        trial = record.known_of(one.trial) if record else one.trial
    return replace(one, trial=replace(trial, run=trial.run or run_id))


def why_apart(before: EnvironmentRecord, now: EnvironmentRecord) -> str:
    """Return why trials of the run *before* are no evidence together with those of *now*; "": they are."""
    lines = differences(identity(before), identity(now))
    return "; ".join(lines[:2]) + f" (and {len(lines) - 2} more)" * (len(lines) > 2)


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return what is not *now* as it was *then*, in words; of what is long, as sums of files, that it has changed."""
    lines = []
    changed = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    # another goal has other terms
    for name in [name for name in changed if "goal" not in changed or not name.startswith("goal ")]:
        both = then.get(name, "unknown"), now.get(name, "unknown")
        is_short = all(isinstance(value, str | float | int) and len(str(value)) < 50 for value in both)
        lines.append(f"{name} was '{both[0]}' and is '{both[1]}'" if is_short else f"{name} has changed")
    return lines


def identity(record: EnvironmentRecord) -> dict[str, Any]:
    """Return all by which goal, router and generator are the same ones, by what people call it."""
    data = record.to_json()
    # a goal's keys are compared one by one
    files = {name: value for name, value in record.fingerprints.items() if not name.startswith("file goals/")}
    ports = ", ".join(sorted(f"{port.driver} at {si(port.speed_bps, 'bit/s')}" for port in record.ports))
    parts = (
        ("", {name: data[name] for name in _NAMES}),
        ("goal", data["goal"]),
        ("", files),
        ("router's", data["router_configuration"]),
        ("router's", data["router_facts"]),
        ("generator's", {"port": ports, "card": record.generator_card.get("card") or "unknown"}),
        ("", data["versions"]),
    )
    known: dict[str, Any] = {}
    for of, values in parts:
        named = {name: value for name, value in (values or {}).items() if name not in _INCIDENTAL}
        known |= {name if name == of else f"{of} {name}".strip(): value for name, value in named.items()}
    return known


def earlier_tries(results: Path, now: EnvironmentRecord) -> dict[tuple[str, str], list[Try]]:
    """Return the verdicts of other runs in *results* on the same goal and router, by test and sentence, in order.

    Those before another firmware, configuration or generator too: their evidence is none of this run's.
    """
    tries, apart = list[tuple[tuple[str, str], Try]](), dict[str, str]()
    gone_on_with: set[tuple[tuple[str, str], str]] = set()
    for path in sorted(results.glob(f"*/{ENVIRONMENT_FILE}")):
        try:
            then = EnvironmentRecord.from_json(path.read_bytes())
            if then.run == now.run or _router(then) != _router(now):
                continue
            run = read_run(path.parent)
        except BREAKDOWN_ERRORS:  # a folder that cannot be read says nothing
            continue
        apart[then.run] = why_apart(then, now)
        tries += (((record.test, record.sentence), record.tries[-1]) for record in run.requirements)
        gone_on_with |= {((one.test, one.sentence), other) for one in run.requirements for other in one.runs}
        last, judged = run.trials[-1] if run.trials else None, {record.number for record in run.requirements}
        if last is not None and last.evidence and last.requirement not in judged:
            tries.append(((last.test, last.sentence), Try(then.run, ENDED_EARLY, last.trial.outcome.started, 1.0)))
    by_sentence = defaultdict[tuple[str, str], list[Try]](list)
    for sentence, one in sorted(tries, key=lambda pair: pair[1].ended):
        if (sentence, one.run) not in gone_on_with:
            by_sentence[sentence].append(replace(one, apart=apart[one.run]))
    return by_sentence


def _router(record: EnvironmentRecord) -> tuple[object, ...]:
    """Return what names goal and router, whatever was set or changed on them between two tries."""
    goal = record.goal and record.goal.goal
    return record.platform, record.software, record.testbed, record.simulated, goal, record.host_key
