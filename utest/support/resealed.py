"""A run that somebody altered who knows how runs are sealed: chains and manifest agree with it again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lineproof.evidence.chain import first_link, sealed
from lineproof.evidence.records import Manifest
from lineproof.evidence.run import single_line
from lineproof.evidence.run_files import ENVIRONMENT_FILE, MANIFEST_FILE, sums_of

SEALS = ("previous", "sha256")


def rows(file: Path) -> list[dict[str, Any]]:
    """The records of *file*, without their links."""
    found = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [{key: value for key, value in row.items() if key not in SEALS} for row in found]


def write_rows(file: Path, records: list[dict[str, Any]], run: str) -> None:
    """*records* as the lines of *file*, chained."""
    link, lines = first_link(run), []
    for row in records:
        line, link = sealed(row, link)
        lines.append(line)
    file.write_bytes(b"".join(lines))


def reseal(folder: Path, run: str | None = None) -> None:
    """Make everything in *folder* agree with its present files. *run*: its id, where the environment is gone."""
    path = folder / ENVIRONMENT_FILE
    run = run or str(rows(path)[0]["run"])
    if path.exists():
        write_rows(path, rows(path), run)
    (folder / MANIFEST_FILE).write_bytes(single_line(Manifest(run, sums_of(folder))))


def change_records(file: Path, edit: Callable[[list[dict[str, Any]]], object]) -> None:
    """*edit* the records of a file of a closed run, and seal the run again."""
    run = str(rows(file.parent / ENVIRONMENT_FILE)[0]["run"])
    found = rows(file)
    edit(found)
    write_rows(file, found, run)
    reseal(file.parent)
