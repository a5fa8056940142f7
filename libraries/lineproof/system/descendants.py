"""Processes that a run began: those that descend from this one, also by a double fork and a session of their own."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time

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


def kill_descendants(limit: float) -> bool:
    """Kill all descendants of this process, a :func:`become_subreaper`, and collect them; False: some left at *limit*.

    They are stopped first, so that none forks while others are killed.
    """
    until = time.monotonic() + limit
    while found := psutil.Process().children(recursive=True):
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for process in found:
                with contextlib.suppress(OSError):
                    os.kill(process.pid, number)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if time.monotonic() > until:
            return False
        time.sleep(0.002)
    return True
