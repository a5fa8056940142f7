"""No time limit is measured with a clock that a person, NTP or a virtual machine's host can set."""

from __future__ import annotations

import ast

from support.paths import LIBRARIES
from support.source_trees import nodes_of, tree_of

WALL_CLOCKS = {"time.time", "datetime.now", "datetime.utcnow", "datetime.today", "time.time_ns"}
COMPARED = {
    "lineproof/ceilings/headroom.py": "a calibration of another month is stale",
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


# -- robot ends a run by an exception, raised wherever its main thread is: nothing there may keep it from Robot


HOME = LIBRARIES / "lineproof"
OTHER_PROCESSES = ("generators/trex/client/", "testbed/trex/")
IN_WORKER_THREADS = {"_open", "execute", "log_in", "work", "run"}
"""Functions that only worker threads run, where no signal arrives."""


def broad(handler: ast.ExceptHandler) -> bool:
    """Return whether it catches everything, and does not raise it again."""
    caught = "" if handler.type is None else ast.unparse(handler.type)
    if caught not in ("", "Exception", "BaseException"):
        return False
    return not any(isinstance(node, ast.Raise) and node.exc is None for node in ast.walk(handler))


def catches(tree: ast.AST, function: str = "") -> list[tuple[str, int]]:
    """Handlers that keep an interrupt, each with its function and line."""
    found = []
    for node in ast.iter_child_nodes(tree):
        inner = node.name if isinstance(node, ast.FunctionDef) else function
        if isinstance(node, ast.Try):
            earlier = " ".join(ast.unparse(item.type) for item in node.handlers[:-1] if item.type)
            saved = "RobotError" in earlier or "ExecutionFailed" in earlier
            found += [(inner, item.lineno) for item in node.handlers if broad(item) and not saved]
        found += catches(node, inner)
    return found


def test_no_interrupt_is_caught() -> None:
    wrong = []
    for path in sorted(HOME.rglob("*.py")):
        name = str(path.relative_to(HOME))
        if not name.startswith(OTHER_PROCESSES):
            found = catches(tree_of(path))
            wrong += [f"{name}:{line}" for function, line in found if function not in IN_WORKER_THREADS]
    assert wrong == []
