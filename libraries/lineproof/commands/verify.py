"""``lineproof verify RUN``: is a run's folder as the run left it?"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..evidence.document import Code, Document, Items, Section
from ..evidence.signoff.signature import read_public_key
from ..evidence.verification import VerifiedRun, verify
from ..visible import one_line
from .arguments import add_json, print_document


def verified(runs: Sequence[VerifiedRun]) -> Document:
    """Return a section for each of *runs*, with everything that was found."""
    data = {"altered": sum(bool(run.problems) for run in runs), "runs": [_run_document(run) for run in runs]}
    return Document("", [_section(run) for run in runs], data=data)


def _section(run: VerifiedRun) -> Section:
    found, problems = run.found, run.problems
    is_signed = run.signed is not None and run.signed.checked
    fits = "as it was signed" if is_signed else f"consistent with its own {'manifest' if found.manifest else 'chains'}"
    state = f"ALTERED, findings: {len(problems)}" if problems else fits
    items = [*map(str, problems), *(f"note: {note}" for note in found.notes)]
    items += [] if run.signed is None else [str(run.signed)]
    if found.manifest and not problems:
        items.append(f"SHA-256 of the records: {found.sum_of_records}; the run's console and log.html have it too")
    shown = f"{one_line(found.path)}: {state} ({len(found.sums)} files, {run.records} records)"
    return Section("", [Code(shown), Items(items)])


def _run_document(run: VerifiedRun) -> dict[str, Any]:
    found, signed = run.found, run.signed
    return {
        "run": str(found.path),
        "closed": found.manifest is not None,
        "records_sha256": found.sum_of_records,
        "files": len(found.sums),
        "records": run.records,
        "altered": [{"file": item.file, "line": item.line, "finding": item.words} for item in run.problems],
        "notes": list(found.notes),
        "signature": signed and {"key": signed.key_id, "checked": signed.checked, "comment": signed.comment},
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that the command takes."""
    parser.description = (
        "Compare the folder of a run with its own sums, the chain of its records and their JSON Schemas: what was"
        " altered, added or removed since; and its signature with a public key. A run that was never closed is checked"
        " as far as it went. Exit status 1 if anything was altered, or if the key did not sign it."
    )
    parser.add_argument("run_folders", metavar="RUN", type=Path, nargs="+", help="folder of a run: results/<run id>")
    parser.add_argument(
        "--public-key", metavar="KEY", help="minisign's public key, or its file: that manifest.json must be signed with"
    )
    parser.add_argument(
        "--signature", metavar="FILE", type=Path, help="of one RUN; default manifest.json.minisig in its folder"
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print it. 0: all are as their runs left them, 1: something was altered. Raises ConfigError for what is no run."""
    key = None if arguments.public_key is None else read_public_key(arguments.public_key)
    if arguments.signature is not None and len(arguments.run_folders) > 1:
        raise ConfigError("--signature is of one run; expected one RUN with it")
    found, refused = [], []
    for folder in arguments.run_folders:
        try:
            found.append(verify(folder, key, arguments.signature))
        except ConfigError as error:
            refused.append(str(error))
    if found:
        print_document(verified(found), arguments)
    if refused:
        raise ConfigError("; ".join(refused))
    return int(any(run.problems for run in found))
