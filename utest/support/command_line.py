"""Runs a command of Lineproof as a user would, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from support import robot_run
from support.paths import LIBRARIES

PROGRAM = [sys.executable, "-m", "lineproof"]


def environment(folder: Path) -> dict[str, str]:
    """Return that of such a process, with a runtime folder below *folder*."""
    return {**robot_run.environment(folder), "PYTHONPATH": str(LIBRARIES)}


def lineproof(
    folder: Path, *words: str, cwd: Path | None = None, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``lineproof WORDS`` in *cwd* (*folder*), with more environment *variables*, to its end."""
    env = {**environment(folder), **(variables or {})}
    return robot_run.programs().run(["lineproof", *words], env, cwd or folder, limit=100)
