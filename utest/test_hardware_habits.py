"""Every row of docs/hardware-habits.md names a test that exists."""

from __future__ import annotations

import ast
import re

import pytest

from support.paths import ROOT

TABLE = ROOT / "docs" / "hardware-habits.md"
ROWS = [
    [cell.strip() for cell in line.strip().strip("|").split(" | ")]
    for line in TABLE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| habit ", "| --- "))
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:60])
def test_a_habit_has_a_test(row: list[str]) -> None:
    assert len(row) == 4, row
    named = re.findall(r"`(?:utest/)?([\w/]+\.py)::(\w+)`", row[3])
    assert named and row[0] and row[2], row
    for file, name in named:
        tree = ast.parse((ROOT / "utest" / file).read_text(encoding="utf-8"))
        functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert name in functions, f"{file} has no {name}"
