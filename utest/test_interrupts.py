"""Robot ends a run by an exception, raised wherever its main thread is: nothing there may keep it from Robot."""

from __future__ import annotations

import ast

from support.paths import LIBRARIES
from support.source_trees import tree_of

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


def test_the_check_finds_a_catch() -> None:
    text = "def f():\n    try:\n        g()\n    except Exception:\n        pass\n"
    assert catches(ast.parse(text)) == [("f", 4)]
    assert catches(ast.parse(text.replace("pass", "raise"))) == []
