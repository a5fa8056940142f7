"""Remains of a killed run: processes, and files of its runtime folder. A namespace lasts as its processes do."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

LIMIT = 10.0
"""Seconds in which everything has to be gone."""


def runs(process: psutil.Process) -> bool:
    """A zombie has ended: who should collect it may be slow."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def left(runtime: Path, processes: Sequence[psutil.Process] = ()) -> list[object]:
    """Return what is left after LIMIT s of *runtime* (but copies of logs, and locks of hardware) and *processes*."""
    until = time.monotonic() + LIMIT
    while True:
        files = [path for path in runtime.glob("*") if path.name != "logs" and path.suffix != ".in-use"]
        found = [*files, *filter(runs, processes)]
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.02)
