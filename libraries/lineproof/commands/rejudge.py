"""``lineproof rejudge RUN``: a recorded run judged again, from its folder alone, by the rules of today.

With ``--suite`` or ``--goal`` another SLA is judged by the run's trials.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from textwrap import indent
from typing import Any

from ..config import load_config
from ..core.goal import Goal, read_goal
from ..core.rule import Ruling
from ..errors import ConfigError
from ..evidence.another_sla import AskedSentence, judge_another_sla
from ..evidence.environment import code_identity
from ..evidence.rejudging import RejudgedRun, RejudgedSentence, rejudge
from ..project import Project
from ..units import counted
from ..visible import visible
from .arguments import add_json, add_variables, print_json
from .check import dry_run, failed, require_suites, temporary_folder

LISTENER = "lineproof.robot.sentence_listing.SentenceListing"

SIMULATED = "SIMULATED: nothing here is a measurement of a router"


def report(found: RejudgedRun) -> str:
    """A line for each sentence, then what differs and why."""
    lines = [f"{found.run.path.name}, judged then by {_code(found.environment.code)}, now by {_code(code_identity())}"]
    if found.run.simulated:
        lines.append(SIMULATED)
    lines += [f"CHANGED: {words}" for words in found.changed] + [f"note: {note}" for note in found.notes]
    for item in found.sentences:
        lines.append(f"{item.state:<8}  {item.record.sentence}  [{_verdicts(item)}]")
        lines += [f"          {words}" for words in (*item.problems, *item.notes)]
        if not item.same and item.verdict is not None and item.record.message != item.verdict.message:
            messages = (("then: ", item.record.message), ("now:  ", item.verdict.message))
            lines += [indent(f"{name}{message}", " " * 10) for name, message in messages]
    same, count = sum(item.same for item in found.sentences), len(found.sentences)
    lines.append(
        f"{same} of {counted(count, 'sentence')} come{'s' if count == 1 else ''} to the same verdict"
        if count
        else "no sentence was judged in this run"
    )
    return "\n".join(lines)


def document(found: RejudgedRun) -> dict[str, Any]:
    """The same as data for ``--json``."""
    return {
        "run": str(found.run.path),
        "simulated": found.run.simulated,
        "code": {"then": dict(found.environment.code), "now": code_identity()},
        "changed": list(found.changed),
        "notes": list(found.notes),
        "sentences": [_sentence_document(item) for item in found.sentences],
        "different": sum(not item.same for item in found.sentences),
    }


def _sentence_document(item: RejudgedSentence) -> dict[str, Any]:
    verdict = item.verdict
    return {
        "test": item.record.test,
        "sentence": item.record.sentence,
        "same": item.same,
        "then": {"verdict": item.record.verdict, "message": item.record.message},
        "now": None if verdict is None else {"verdict": verdict.ruling.value, "message": verdict.message},
        "problems": list(item.problems),
        "notes": list(item.notes),
    }


def _verdicts(item: RejudgedSentence) -> str:
    then = item.record.verdict
    if item.verdict is None:
        return f"{then} → the records are not enough"
    now = item.verdict.ruling.value
    return then if now == then else f"{then} → {now}"


def _code(code: Any) -> str:
    dirty = " with changes" if code.get("dirty") is True else ""
    return f"Lineproof {code.get('version', 'unknown')} (commit {str(code.get('commit', 'unknown'))[:12]}{dirty})"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that the command takes."""
    parser.description = (
        "Judge a recorded run again, from its folder alone: no testbed, no project, no other file. Exit status 1 if a"
        " sentence comes to another verdict. With --suite or --goal: judge another SLA by the run's trials; exit status"
        " 1 unless every sentence is a PASS. A folder that was altered is refused (exit status 2)."
    )
    parser.add_argument("run_folder", metavar="RUN", type=Path, help="folder of the run: results/<run id>")
    parser.add_argument(
        "--suite", type=Path, help="judge the sentences of this suite (a file or a folder) by the run's trials"
    )
    parser.add_argument(
        "--goal", metavar="NAME_OR_FILE", help="with this goal: a name, or a goal's file (default: the run's)"
    )
    add_variables(parser, "that suite")
    parser.add_argument("--project", type=Path, help="the folder with variables/ that has the goal (found from here)")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print it. 0: the same verdicts, of another SLA all PASS; 1: not so. Raises LineproofError."""
    if arguments.suite is not None or arguments.goal is not None:
        return _another_sla(arguments)
    if arguments.variable:
        raise ConfigError("-v is about the sentences of another suite; expected --suite too")
    found = rejudge(arguments.run_folder)
    if arguments.json:
        print_json(document(found))
    else:
        print(report(found))
    return int(not found.same)


def _another_sla(arguments: argparse.Namespace) -> int:
    asked = None if arguments.suite is None else sentences_of(arguments.suite, arguments.variable)
    goal = None if arguments.goal is None else _goal(arguments.goal, arguments.project)
    recorded, found = judge_another_sla(arguments.run_folder, asked, goal)
    counts = {ruling.value: sum(item.ruling is ruling for item in found) for ruling in Ruling}
    if arguments.json:
        rows = [
            {
                "test": item.asked.test,
                "sentence": item.asked.sentence,
                "verdict": item.ruling.value,
                "message": item.message,
                "rests_on": item.rests_on or None,
            }
            for item in found
        ]
        run = str(arguments.run_folder)
        print_json({"run": run, "simulated": recorded.simulated, "verdicts": counts, "sentences": rows})
    else:
        lines = [f"{arguments.run_folder.name}: another SLA, judged by its trials; nothing was measured now"]
        if recorded.simulated:
            lines.append(SIMULATED)
        for item in found:
            lines.append(f"{visible(item.asked.test)}\n{indent(visible(item.message), '    ')}")
            if item.rests_on:
                lines.append(f"    by {visible(item.rests_on)}")
        lines.append(", ".join(f"{count} {ruling}" for ruling, count in counts.items()))
        print("\n".join(lines))
    return int(any(item.ruling is not Ruling.PASS for item in found) or not found)


def _goal(name: str, project: Path | None) -> Goal:
    """The goal of a file, or of this name in the project. Raises ConfigError."""
    if "/" in name or name.endswith((".yaml", ".yml")):
        return load_config(Path(name), Goal)
    return read_goal(Project.find(project).goals, name)


def sentences_of(suite: Path, variables: Sequence[str]) -> list[AskedSentence]:
    """The sentences of *suite*, by a dry run. Raises ConfigError where ``lineproof check`` finds something wrong.

    Also if there are none, or they are known in a run only.
    """
    require_suites([suite])
    with temporary_folder() as folder:
        listing = folder / "sentences.jsonl"
        tree = dry_run([suite], variables, folder, "--listener", f"{LISTENER}:{listing}")
        if isinstance(tree, str):
            raise ConfigError(tree, suite)
        if problems := list(failed(tree)):
            raise ConfigError("is not right: " + "\n".join(problems), suite)
        rows = [json.loads(line) for line in listing.read_text().splitlines()] if listing.exists() else []
    if unknown := [f"{row['where']}: '{row['sentence']}'" for row in rows if row["unknown"]]:
        raise ConfigError(
            f"has sentences with variables that are set during a run only: {'; '.join(unknown)}; expected sentences"
            " whose figures are known",
            suite,
        )
    if not rows:
        raise ConfigError("has no sentence", suite)
    return [AskedSentence(row["test"], row["sentence"], row["where"]) for row in rows]
