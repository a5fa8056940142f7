"""``linerate``, forked from a process that has imported its commands: a second of CPU of each."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from support import yaml_once

MODULES = ("linerate.commands.main", "linerate.session.session", "robot.run", "linerate.robot")


def preload() -> None:
    """Import what most commands import."""
    for name in MODULES:
        importlib.import_module(name)
    yaml_once.install()
    yaml_once.read_all()


def main(argv: Sequence[str]) -> None:
    """As ``python -m linerate``; ends with the command's exit status."""
    sys.argv = ["linerate", *argv]
    importlib.import_module("linerate.commands.main").command_line()
