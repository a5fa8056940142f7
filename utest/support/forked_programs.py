"""Robot and ``lineproof``, forked from a process that has imported them: half of a short run's time."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

MODULES = (
    *("robot", "robot.run", "robot.running.suiterunner", "allure_robotframework", "lineproof.robot"),
    *("lineproof.commands.main", "lineproof.testbed.opening"),
)


def preload() -> None:
    """Import what a run imports."""
    for name in MODULES:
        importlib.import_module(name)


def main(argv: Sequence[str]) -> None:
    """Run as ``python -m`` does, with the program's name and its words; ends with its exit status."""
    program, *words = argv
    if program == "robot":
        sys.path.insert(0, "")
        importlib.import_module("robot").run_cli(words)
    sys.argv = [program, *words]
    importlib.import_module("lineproof.commands.main").command_line()
