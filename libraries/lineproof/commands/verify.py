"""``lineproof verify RUN``: is a run's folder as the run left it?"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..documents.document import Code, Document, Items, Section
from ..errors import ConfigError
from ..evidence.run_files import ENVIRONMENT_FILE, Integrity
from ..evidence.signoff.signature import Signed, read_public_key, verify
from ..units import counted
from ..visible import one_line
from .arguments import add_json, add_run, print_document, runs_of


def verified(runs: Sequence[tuple[Integrity, Signed | None]]) -> Document:
    """Return a section for each of *runs*, with every finding."""
    data = {"altered": sum(bool(run.altered) for run, _ in runs), "runs": [_run_document(*run) for run in runs]}
    simulated = any(b'"simulated": true' in line for run, _ in runs for line in run.lines[ENVIRONMENT_FILE])
    title = f"{data['altered']} of {counted(len(runs), 'run')} altered"
    return Document(title, [_section(*run) for run in runs], simulated, data)


def _section(run: Integrity, signed: Signed | None) -> Section:
    is_signed = signed is not None and signed.checked
    fits = "as it was signed" if is_signed else f"consistent with its own {'manifest' if run.manifest else 'chains'}"
    state = f"ALTERED, findings: {len(run.altered)}" if run.altered else fits
    findings = [*map(str, run.altered), *(f"note: {note}" for note in run.notes)]
    findings += [] if signed is None else [str(signed)]
    if run.manifest and not run.altered:
        findings.append(f"SHA-256 of the records: {run.sum_of_records}; the run's console and log.html have it too")
    shown = f"{one_line(run.path)}: {state} ({len(run.sums)} files, {run.records} records)"
    return Section("", [Code(shown), Items(findings)])


def _run_document(run: Integrity, signed: Signed | None) -> dict[str, Any]:
    return {
        "run": str(run.path),
        "closed": run.manifest is not None,
        "records_sha256": run.sum_of_records,
        "files": len(run.sums),
        "records": run.records,
        "altered": [{"file": one.file, "line": one.line, "finding": one.finding} for one in run.altered],
        "notes": list(run.notes),
        "signature": signed and {"key": signed.key_id, "checked": signed.checked, "comment": signed.comment},
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that the command takes."""
    parser.description = (
        "Compare the folder of a run with its own sums, the chain of its records and their JSON Schemas: what was"
        " altered, added or removed since; and its signature with a public key. A run that was never closed is checked"
        " as far as it went. Exit status 1 if anything was altered, or if the key did not sign it."
    )
    add_run(parser, several=True)
    parser.add_argument(
        "--public-key", metavar="KEY", help="minisign's public key, or its file: that manifest.json must be signed with"
    )
    parser.add_argument(
        "--signature", metavar="FILE", type=Path, help="of one RUN; default manifest.json.minisig in its folder"
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what was altered. Returns 1 if anything was, else 0. Raises ConfigError for what is no run."""
    key = None if arguments.public_key is None else read_public_key(arguments.public_key)
    if arguments.signature is not None and len(arguments.run_names) > 1:
        raise ConfigError("--signature is of one run; expected one RUN with it")
    checked, refused = dict[Path, tuple[Integrity, Signed | None]](), []
    for name in arguments.run_names:
        try:
            checked |= {folder.resolve(): verify(folder, key, arguments.signature) for folder in runs_of(name)}
        except ConfigError as error:
            refused.append(str(error))
    if checked:
        print_document(verified([*checked.values()]), arguments)
    if refused:
        raise ConfigError("; ".join(refused))
    return int(any(run.altered for run, _ in checked.values()))
