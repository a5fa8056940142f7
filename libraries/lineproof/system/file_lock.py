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


def is_locked(descriptor: int) -> bool:
    """Return whether another process has the open file locked. Those who ask are not in each other's way."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
