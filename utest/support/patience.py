"""Waiting on a machine that others use at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(happened: Callable[[], object], what: Callable[[], object] | str = "it", limit: float = 60.0) -> None:
    """Wait for a state. *limit* is in seconds, and only for one that never comes: AssertionError, with *what*."""
    until = time.monotonic() + limit
    while True:
        begin = time.monotonic()
        if happened():
            return
        now = time.monotonic()
        assert now < until, f"not within {limit:g} s: {what() if callable(what) else what}"
        # to look must not take a processor for itself
        time.sleep(max(0.005, now - begin))
