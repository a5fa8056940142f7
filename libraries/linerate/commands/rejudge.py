"""``linerate rejudge RUN``: a recorded run judged again, from its folder alone, by the rules of today."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..evidence.environment import code_identity
from ..evidence.rejudging import RejudgedRun, RejudgedSentence, rejudge
from ..units import counted
from .arguments import add_json, print_json


def report(found: RejudgedRun) -> str:
    """A line for each sentence, then what differs and why."""
    lines = [f"{found.run.path.name}, judged then by {_code(found.environment.code)}, now by {_code(code_identity())}"]
    if found.environment.simulated:
        lines.append("SIMULATED: nothing here is a measurement of a router")
    lines += [f"CHANGED: {words}" for words in found.changed] + [f"note: {note}" for note in found.notes]
    for item in found.sentences:
        lines.append(f"{_state(item):<8}  {item.record.sentence}  [{_verdicts(item)}]")
        lines += [f"          {words}" for words in (*item.problems, *item.notes)]
        if not item.same and item.verdict is not None and item.record.message != item.verdict.message:
            lines += [f"          then: {item.record.message}", f"          now:  {item.verdict.message}"]
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
        "simulated": found.environment.simulated,
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


def _state(item: RejudgedSentence) -> str:
    if item.same:
        return "same"
    if item.verdict is None:
        return "UNKNOWN"
    return "DIFFERS" if item.verdict.ruling.value != item.record.verdict else "SUSPECT"


def _verdicts(item: RejudgedSentence) -> str:
    then = item.record.verdict
    if item.verdict is None:
        return f"{then} → the records are not enough"
    now = item.verdict.ruling.value
    return then if now == then else f"{then} → {now}"


def _code(code: Any) -> str:
    dirty = " with changes" if code.get("dirty") is True else ""
    return f"Linerate {code.get('version', 'unknown')} (commit {str(code.get('commit', 'unknown'))[:12]}{dirty})"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.description = (
        "Judge a recorded run again, from its folder alone: no testbed, no project, no other file. Exit status 1 if a"
        " sentence comes to another verdict. A folder that was altered is refused (exit status 2)."
    )
    parser.add_argument("run_folder", metavar="RUN", type=Path, help="folder of the run: results/<run id>")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print it. 0: the same verdicts, 1: some differ or are missing. Raises LinerateError."""
    found = rejudge(arguments.run_folder)
    if arguments.json:
        print_json(document(found))
    else:
        print(report(found))
    return int(not found.same)
