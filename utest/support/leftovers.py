"""Remains of a killed run: processes, and files of its runtime folder. A namespace lasts as its processes do."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

import psutil

from support.patience import wait_until

LIMIT = 10.0
"""Seconds in which everything has to be gone."""


def runs(process: psutil.Process) -> bool:
    """Return whether it has ended, as a zombie has: who should collect it may be slow."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def await_end(runtime: Path, processes: Sequence[psutil.Process] = ()) -> None:
    """Wait until nothing is left of *runtime* (but locks of hardware) and *processes*."""

    def left() -> list[object]:
        files = [path for path in runtime.glob("*") if path.suffix != ".in-use"]
        return [*files, *filter(runs, processes)]

    wait_until(lambda: not left(), lambda: f"{left()} are left", LIMIT)
