"""Robot, forked from a process that has imported it, the keyword library and matplotlib: half of a short run's time."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from support import yaml_once

MODULES = (
    *("robot", "robot.run", "robot.running.suiterunner", "allure_robotframework", "linerate.robot"),
    *("linerate.testbed.simulated", "matplotlib.figure", "matplotlib.backends.backend_svg"),
)


def preload() -> None:
    """Import what a run imports, and draw once: the first plot reads the fonts."""
    for name in MODULES:
        importlib.import_module(name)
    yaml_once.install()
    yaml_once.read_all()
    with importlib.import_module("linerate.evidence.drawing").drawing("a title", simulated=True) as picture:
        picture.label_axes("x", "y")


def main(argv: Sequence[str]) -> None:
    """As ``python -m robot``; ends with Robot's exit status."""
    sys.path.insert(0, "")
    importlib.import_module("robot").run_cli(list(argv))
