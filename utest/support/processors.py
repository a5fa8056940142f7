"""Which processors the processes of a test may use."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


def keep_to(cpu: int) -> None:
    """The processes that this one has started, and theirs: what sends is among them."""
    _place(os.getpid(), {cpu})


@contextlib.contextmanager
def anywhere_afterwards() -> Iterator[None]:
    """Afterwards :func:`keep_to` is undone."""
    try:
        yield
    finally:
        _place(os.getpid(), os.sched_getaffinity(0))


def _place(parent: int, cpus: set[int]) -> None:
    for listed in Path(f"/proc/{parent}/task").glob("*/children"):
        for pid in map(int, listed.read_text().split()):
            # a process may end meanwhile
            with contextlib.suppress(OSError):
                for thread in Path(f"/proc/{pid}/task").iterdir():
                    os.sched_setaffinity(int(thread.name), cpus)
            with contextlib.suppress(OSError):
                _place(pid, cpus)
