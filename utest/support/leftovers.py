"""Remains of a killed run: processes, and files of its runtime folder. A namespace lasts as its processes do."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

from lineproof.system.children import environment
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


@contextlib.contextmanager
def owner(code: str, *words: object, **variables: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A program that runs *code* in a session of its own, and the first line that it prints. To be ended inside."""
    env = environment({**variables, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    argv = [sys.executable, "-c", code, *map(str, words)]
    settings: dict[str, Any] = {"text": True, "env": env, "cwd": "/", "start_new_session": True}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **settings) as program:
        assert program.stdout is not None
        yield program, program.stdout.readline().strip()
