"""The parts of the net. Each gives text files by name; ``data/<part>/<name>`` holds them as they were last written."""

from __future__ import annotations

import difflib
import importlib
import shutil
from collections.abc import Mapping
from pathlib import Path

DATA = Path(__file__).parent / "data"

NAMES = ("decisions", "messages", "telemetry", "exchanges", "commands", "runs", "documents", "schemas", "studies")


def texts(part: str) -> Mapping[str, str]:
    """Return what a part gives now, by file name: one row a line, without times, ids and paths."""
    texts: Mapping[str, str] = importlib.import_module(f"golden.{part}").texts()
    return texts


def recorded(part: str) -> dict[str, str]:
    """Return the texts of a part as they were last written, by file name."""
    folder = DATA / part
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def write(part: str, texts: Mapping[str, str]) -> None:
    """Replace the recorded texts of a part."""
    shutil.rmtree(DATA / part, ignore_errors=True)
    for name, text in texts.items():
        path = DATA / part / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def changes(part: str, now: Mapping[str, str]) -> list[str]:
    """Return the rows that differ from the recorded ones, as lines ``file: - was`` and ``file: + is``."""
    before = recorded(part)
    rows = []
    for name in sorted(before.keys() | now.keys()):
        was, is_now = before.get(name, "").splitlines(), now.get(name, "").splitlines()
        if was != is_now:
            lines = difflib.unified_diff(was, is_now, lineterm="", n=0)
            rows += [
                f"{part}/{name}: {line[0]} {line[1:]}"
                for line in lines
                if line[0] in "+-" and line[:3] not in ("+++", "---")
            ]
    return rows
