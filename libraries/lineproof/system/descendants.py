"""Processes that a run began: those that descend from this one, also by a double fork and a session of their own."""

from __future__ import annotations

import contextlib
import ctypes
import sys

import psutil

_SET_CHILD_SUBREAPER = 36


def environment_variable(process: psutil.Process, name: str) -> str | None:
    """What the variable *name* was when *process* began: it marks all that a run started. None: unset, or not ours."""
    with contextlib.suppress(psutil.Error, OSError):
        return process.environ().get(name)
    return None


def become_subreaper() -> None:
    """Become the parent of every descendant whose own parent ends (prctl(2), Linux). For a whole process."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
