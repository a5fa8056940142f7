"""Runs a command of Linerate as a user would, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from support import robot_run
from support.paths import LIBRARIES

PROGRAM = [sys.executable, "-m", "linerate"]


def environment(folder: Path) -> dict[str, str]:
    """That of such a process, with a runtime folder below *folder*."""
    return {**robot_run.environment(folder), "PYTHONPATH": str(LIBRARIES)}


def linerate(
    folder: Path, *words: str, cwd: Path | None = None, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """``linerate WORDS`` in *cwd* (*folder*), with more environment *variables*, to its end."""
    return subprocess.run(
        [*PROGRAM, *words],
        cwd=cwd or folder,
        env={**environment(folder), **(variables or {})},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
