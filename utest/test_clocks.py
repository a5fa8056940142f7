"""No time limit is measured with a clock that a person, NTP or a virtual machine's host can set."""

from __future__ import annotations

import ast

from support.paths import LIBRARIES
from support.source_trees import nodes_of, tree_of

WALL_CLOCKS = {"time.time", "datetime.now", "datetime.utcnow", "datetime.today", "time.time_ns"}
COMPARED = {
    "lineproof/generators/programs/driver.py": "finds out that the clock was set during a trial",
    "lineproof/generators/trex/client/running_traffic.py": "finds out that the clock was set during a trial",
    "lineproof/generators/trex/client/answers.py": "begins at the time of day",
    "lineproof/power/meter.py": "another program stamps its figures with it",
    "lineproof_bench/wire/capture.py": "the kernel stamps frames with it",
}
"""Modules that may compute with it, and why."""


def reads(tree: ast.AST) -> list[ast.Call]:
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [node for node in found if ast.unparse(node.func) in WALL_CLOCKS]


def test_nothing_is_computed_or_compared_with_the_time_of_day() -> None:
    wrong = []
    for path in sorted(LIBRARIES.rglob("*.py")):
        name = str(path.relative_to(LIBRARIES))
        text = path.read_text(encoding="utf-8")
        if name not in COMPARED and any(clock in text for clock in WALL_CLOCKS):
            sums = [node for node in nodes_of(path) if isinstance(node, ast.BinOp | ast.Compare)]
            wrong += [f"{name}:{call.lineno}" for node in sums for call in reads(node)]
        imported = [node for node in nodes_of(path) if isinstance(node, ast.ImportFrom) and node.module == "time"]
        wrong += [f"{name}:{node.lineno}" for node in imported if any(alias.name == "time" for alias in node.names)]
    assert wrong == []


def test_the_exceptions_exist() -> None:
    for name in COMPARED:
        assert reads(tree_of(LIBRARIES / name)), name
