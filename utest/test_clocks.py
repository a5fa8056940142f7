"""No time limit is measured with a clock that a person, NTP or a virtual machine's host can set."""

from __future__ import annotations

import ast
import itertools

import pytest

from support import patience
from support.paths import LIBRARIES
from support.patience import undisturbed, unsent
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


# -- another try is only for a machine that others use: a quiet one has no excuse


@pytest.mark.parametrize(
    ("taken", "counts", "outcome", "says"),
    [
        (0.0, [1, 0], AssertionError, r"1 frames unsent; others had 0\.00"),
        (0.2, [3, 2, 0], None, ""),
        (0.2, [1] * 3, pytest.fail.Exception, "had no time for it"),
        (1.5, [1] * 3, pytest.skip.Exception, "had no time for it"),
        # more than was asked for is never excused
        (1.5, [-1], AssertionError, "1 frames more"),
    ],
)
def test_frames_unsent_are_tried_again_only_where_others_had_the_cpu(
    monkeypatch: pytest.MonkeyPatch, taken: float, counts: list[int], outcome: type[Exception] | None, says: str
) -> None:
    """Each reading of the clock is a second later, of which others had *taken* CPU seconds."""
    monkeypatch.setattr("support.patience.time.monotonic", itertools.count(1.0).__next__)
    monkeypatch.setattr(patience, "taken_away", itertools.count(taken, taken).__next__)
    monkeypatch.setattr("support.patience.os.cpu_count", lambda: 2)
    tries = iter(counts)
    if outcome is None:
        assert undisturbed(lambda: next(tries), unsent) == 0
    else:
        with pytest.raises(outcome, match=says):
            undisturbed(lambda: next(tries), unsent, tries=3)
    assert len(list(tries)) == (counts == [1, 0])


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


def test_the_check_finds_a_catch() -> None:
    text = "def f():\n    try:\n        g()\n    except Exception:\n        pass\n"
    assert catches(ast.parse(text)) == [("f", 4)]
    assert catches(ast.parse(text.replace("pass", "raise"))) == []
