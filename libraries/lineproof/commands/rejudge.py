"""``lineproof rejudge RUN``: judge a recorded run again, from its folder alone, by today's rules.

With ``--suite`` or ``--goal`` another SLA is judged by the run's trials.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..config import load_config
from ..core.goal import Goal, read_goal
from ..core.rule import Ruling
from ..documents.document import Cell, Column, Document, Facts, Folded, Items, Part, Section, Table, verdict_cell
from ..errors import ConfigError
from ..evidence.recorder import code_identity
from ..evidence.records import code_text
from ..evidence.rejudge import SAME, AnotherVerdict, AskedSentence, RejudgedRun, judge_another_sla, rejudge
from ..evidence.run import RecordedRun, read_run
from ..project import Project
from ..units import counted
from .arguments import add_json, add_run, add_variables, print_document, run_of, say
from .check import dry_run, failed, require_suites

LISTENER = "lineproof.robot.sentences.SentenceListing"


def rejudged(judged: RejudgedRun, now: Mapping[str, Any]) -> Document:
    """Return each sentence with its verdict then and now, and why they differ. *now*: of which code."""
    run, count, then = judged.run, len(judged.sentences), judged.run.environment.code
    title = f"{judged.same} of {counted(count, 'sentence')} come{'s' if count == 1 else ''} to the same verdict"
    facts = Facts({"run": run.path.name, "then": f"Lineproof {code_text(then)}", "now": f"Lineproof {code_text(now)}"})
    notes = Items([*(f"CHANGED: {change}" for change in judged.changed), *(f"note: {note}" for note in run.notes)])
    cells, reasons, sentences = list[Mapping[Column, Cell | str]](), list[Part](), list[dict[str, object]]()
    for sentence in judged.sentences:
        record, verdict = sentence.record, sentence.verdict
        ruling, message = (verdict.ruling.value, verdict.message) if verdict else (None, None)
        cells.append(
            {
                Column("sentence", left=True): record.sentence,
                Column("then", left=True): verdict_cell(record.verdict),
                Column("now", left=True): verdict_cell(ruling or "the records are not enough"),
            }
        )
        parts: list[Part] = [Items(sentence.remarks)]
        if sentence.state != SAME and message and record.message != message:
            parts += [Folded.of(f"then: {record.message}"), Folded.of(f"now: {message}")]
        if sentence.state != SAME or sentence.remarks:
            reasons.append(Folded(f"{sentence.state}: {record.sentence}", parts))
        texts = {"test": record.test, "sentence": record.sentence, "state": sentence.state, "then": record.verdict}
        messages = {"message_then": record.message, "message_now": message}
        sentences.append({**texts, "now": ruling, **messages, "remarks": list(sentence.remarks)})
    data = {
        "run": str(run.path),
        "code": {"then": dict(then), "now": dict(now)},
        "changed": list(judged.changed),
        "notes": list(run.notes),
        "different": count - judged.same,
        "sentences": sentences,
    }
    sections = [Section("", [facts, notes, Table.of(cells)]), Section("", reasons)]
    return Document(title if count else "no sentence was judged in this run", sections, run.simulated, data)


def another_sla(run: RecordedRun, verdicts: Sequence[AnotherVerdict]) -> Document:
    """Return what the trials of *run* say of each sentence of another SLA, and by which of them."""
    counts = {ruling.value: sum(verdict.ruling is ruling for verdict in verdicts) for ruling in Ruling}
    sentence, ruling = Column("sentence", left=True), Column("verdict", left=True)
    table = Table.of(
        [{sentence: judged.asked.sentence, ruling: verdict_cell(judged.ruling.value)} for judged in verdicts]
    )
    about = f"{run.path.name}: another SLA, judged by its trials; nothing was measured now"
    sections, sentences = [Section(about, [table])], list[dict[str, object]]()
    for verdict in verdicts:
        asked, by = verdict.asked, [f"by {verdict.rests_on}"] if verdict.rests_on else []
        sections.append(Section(asked.test, [Folded.of(verdict.message, *by)]))
        texts = {"test": asked.test, "message": verdict.message, "rests_on": verdict.rests_on or None}
        sentences.append({**texts, "sentence": asked.sentence, "verdict": verdict.ruling.value})
    data = {"run": str(run.path), "verdicts": counts, "sentences": sentences}
    title = ", ".join(f"{count} {ruling}" for ruling, count in counts.items())
    return Document(title, sections, run.simulated, data)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that the command takes."""
    parser.description = (
        "Judge a recorded run again, from its folder alone: no testbed, no project, no other file. Exit status 1 if a"
        " sentence comes to another verdict. With --suite or --goal: judge another SLA by the run's trials; exit status"
        " 1 unless every sentence is a PASS. A folder that was altered is refused (exit status 2)."
    )
    add_run(parser)
    parser.add_argument(
        "--suite", type=Path, help="judge the sentences of this suite (a file or a folder) by the run's trials"
    )
    parser.add_argument(
        "--goal", metavar="NAME_OR_FILE", help="with this goal: a name, or a goal's file (default: the run's)"
    )
    add_variables(parser, "that suite")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the verdicts. Returns 0 if they are the same (of another SLA: all PASS), else 1."""
    if arguments.suite is not None or arguments.goal is not None:
        return _another_sla(arguments)
    if arguments.variable:
        raise ConfigError("-v is about the sentences of another suite; expected --suite too")
    judged = rejudge(read_run(run_of(arguments.run_name)))
    print_document(rejudged(judged, code_identity()), arguments)
    return int(bool(judged.changed) or judged.same < len(judged.sentences))


def _another_sla(arguments: argparse.Namespace) -> int:
    asked = None if arguments.suite is None else sentences_of(arguments.suite, arguments.variable)
    goal = None if arguments.goal is None else _goal(arguments.goal)
    run, verdicts = judge_another_sla(run_of(arguments.run_name), asked, goal)
    print_document(another_sla(run, verdicts), arguments)
    return int(any(verdict.ruling is not Ruling.PASS for verdict in verdicts) or not verdicts)


def _goal(name: str) -> Goal:
    """Return the goal of a file, or of this name in the project. Raises ConfigError."""
    if "/" in name or name.endswith((".yaml", ".yml")):
        return load_config(Path(name), Goal)
    return read_goal(Project.find().goals, name)


def sentences_of(suite: Path, variables: Sequence[str]) -> list[AskedSentence]:
    """Return the sentences of *suite*, by a dry run. Raises ConfigError for problems in it.

    Also if there are none, or a variable in them is only set in a run.
    """
    require_suites([suite])
    with tempfile.TemporaryDirectory(prefix="lineproof-") as folder:
        listing = Path(folder) / "sentences.jsonl"
        tree = dry_run([suite], variables, Path(folder), "--listener", f"{LISTENER}:{listing}")
        if isinstance(tree, str):
            raise ConfigError(tree, suite)
        if problems := list(failed(tree)):
            raise ConfigError("is not right: " + "\n".join(problems), suite)
        listed = [json.loads(line) for line in listing.read_text().splitlines()] if listing.exists() else []
    promises = [sentence for sentence in listed if not sentence["expects_another"]]
    if others := len(listed) - len(promises):
        say(f"{counted(others, 'sentence')} left out: with 'expect=' it is no promise")
    if unknown := [f"{promise['where']}: '{promise['sentence']}'" for promise in promises if promise["unknown"]]:
        raise ConfigError(
            f"has sentences with variables that are set during a run only: {'; '.join(unknown)}; expected sentences"
            " whose figures are known",
            suite,
        )
    if not promises:
        raise ConfigError("has no sentence that promises something", suite)
    return [AskedSentence(promise["test"], promise["sentence"], promise["where"]) for promise in promises]
