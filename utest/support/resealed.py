"""A run that somebody altered who knows how runs are sealed: chain, list of files and manifest agree with it again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lineproof.evidence.chain import first_link, sealed
from lineproof.evidence.integrity import sums_content
from lineproof.evidence.records import Manifest
from lineproof.evidence.run_files import FILES, MANIFEST_FILE, SUMS, sha256_of, summed_files

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
    run = run or json.loads((folder / "environment.json").read_text(encoding="utf-8"))["run"]
    present = set(summed_files(folder))
    kept = [row for row in rows(folder / FILES) if row["name"] in present]
    for row in kept:
        content = (folder / row["name"]).read_bytes()
        row.update(bytes=len(content), content_sha256=hashlib.sha256(content).hexdigest())
    write_rows(folder / FILES, kept, run)
    listed = {name: sha256_of(folder / name) for name in summed_files(folder)}
    (folder / MANIFEST_FILE).write_text(json.dumps(Manifest(run, "sha256", listed).to_json()))
    (folder / SUMS).write_bytes(sums_content(listed, sha256_of(folder / MANIFEST_FILE)))


def change_records(file: Path, edit: Callable[[list[dict[str, Any]]], object]) -> None:
    """*edit* the records of a file of a closed run, and seal the run again."""
    folder = file.parent
    run = json.loads((folder / "environment.json").read_text(encoding="utf-8"))["run"]
    found = rows(file)
    edit(found)
    write_rows(file, found, run)
    reseal(folder)
