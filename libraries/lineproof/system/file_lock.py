"""Locks on files: of one process at a time, and freed when it ends, however that ends."""

from __future__ import annotations

import fcntl
import time


def lock_within(descriptor: int, limit: float = 0.0) -> bool:
    """Lock the open file; False if another process has had it for *limit* s."""
    until = time.monotonic() + limit
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(0.02)
