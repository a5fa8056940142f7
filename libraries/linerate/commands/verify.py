"""``linerate verify RUN``: is a run's folder as the run left it?"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..evidence.derived import derived_alterations, derived_note
from ..evidence.integrity import Alteration, Integrity, check_integrity
from ..evidence.record_schemas import schema_problems
from .arguments import add_json, print_json


@dataclass(frozen=True)
class VerifiedRun:
    """What was found of one folder; ``problems``: alterations, and records that do not fit their schemas."""

    found: Integrity
    problems: tuple[Alteration, ...]

    @property
    def records(self) -> int:
        """How many lines the files of records have together."""
        return sum(map(len, self.found.lines.values()))


def verify(folder: Path) -> VerifiedRun:
    """Compare the run in *folder* with its own sums and schemas. Raises ConfigError."""
    found = check_integrity(folder)
    if note := derived_note(folder):
        found = replace(found, notes=(*found.notes, note))
    return VerifiedRun(found, (*found.altered, *derived_alterations(folder), *schema_problems(found)))


def report(run: VerifiedRun) -> str:
    """A line for the run, then everything that was found."""
    found, problems = run.found, run.problems
    state = f"ALTERED, findings: {len(problems)}" if problems else "as the run left it"
    lines = [f"{found.path}: {state} ({found.files} files, {run.records} records)"]
    lines += [f"  {item}" for item in problems] + [f"  note: {note}" for note in found.notes]
    if found.manifest and not problems:
        lines.append(f"  SHA-256 of manifest.json: {found.manifest}; the run's console and log.html have it too")
    return "\n".join(lines)


def document(runs: list[VerifiedRun]) -> dict[str, Any]:
    """The same as data for ``--json``."""
    return {"runs": [_run_document(run) for run in runs], "altered": sum(bool(run.problems) for run in runs)}


def _run_document(run: VerifiedRun) -> dict[str, Any]:
    found = run.found
    return {
        "run": str(found.path),
        "closed": found.manifest is not None,
        "manifest_sha256": found.manifest,
        "files": found.files,
        "records": run.records,
        "altered": [{"file": item.file, "line": item.line, "finding": item.words} for item in run.problems],
        "notes": list(found.notes),
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.description = (
        "Compare the folder of a run with its own sums, the chain of its records and their JSON Schemas: what was"
        " altered, added or removed since. A run that was never closed is checked as far as it went. Exit status 1 if"
        " anything was altered."
    )
    parser.add_argument("run_folders", metavar="RUN", type=Path, nargs="+", help="folder of a run: results/<run id>")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print it. 0: all are as their runs left them, 1: something was altered. Raises ConfigError for what is no run."""
    found, refused = [], []
    for folder in arguments.run_folders:
        try:
            found.append(verify(folder))
        except ConfigError as error:
            refused.append(str(error))
    if arguments.json and found:
        print_json(document(found))
    elif found:
        print("\n".join(map(report, found)))
    if refused:
        raise ConfigError("; ".join(refused))
    return int(any(run.problems for run in found))
