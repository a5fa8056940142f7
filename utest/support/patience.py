"""A machine that others use at the same time: what it took away, and exact behaviour that needs a moment of it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from typing import TypeVar

import psutil
import pytest

from lineproof.system.cpu_clock import cpu_times

T = TypeVar("T")

TRIES = 12
LATE = 0.05
"""Seconds that a sender may be late at its end, by its own account: less than that taken away is no excuse."""
MUCH = 0.25
"""The part of all processors' time that others had: above it, this machine had no time."""


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


def settled(reading: Callable[[], T], still: float = 0.2, limit: float = 60.0) -> T:
    """Return what *reading* says once it has said the same for *still* seconds."""
    until, found = time.monotonic() + limit, reading()
    while True:
        time.sleep(still)
        former, found = found, reading()
        if former == found:
            return found
        assert time.monotonic() < until, f"still changing after {limit:g} s: {found}"


def taken_away() -> float:
    """CPU seconds since boot of others' programs, or of the hypervisor (steal): not of this process and its children.

    User time only: what a kernel does for the network is counted to whoever is at work at that moment.
    """
    times, own, here = cpu_times(), 0.0, psutil.Process()
    for process in (here, *here.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            used = process.cpu_times()
            own += used.user + used.children_user
    return sum(times.get(kind, 0.0) for kind in ("user", "nice", "steal")) - own


def undisturbed(attempt: Callable[[], T], lacks: Callable[[T], str], tries: int = TRIES) -> T:
    """The first result of *attempt* that lacks nothing; one that had no time on this machine is made again.

    *lacks*: what the machine had no time for, as the generator tells it ("": nothing). What a result says of the
    product otherwise is for the caller to check: it is no reason for another try. Fails if something is missing
    though nobody else had the processors; skips, with the figures, if others had them for much of every try.
    """
    told, least = [], 1.0
    for _ in range(tries):
        before, begin = taken_away(), time.monotonic()
        found = attempt()
        if not (missing := lacks(found)):
            return found
        away, elapsed = taken_away() - before, time.monotonic() - begin
        told.append(f"{missing}; others had {away:.2f} CPU seconds in {elapsed:.2f} s")
        assert away >= LATE, told[-1]
        least = min(least, away / elapsed / (os.cpu_count() or 1))
    (pytest.skip if least > MUCH else pytest.fail)("this machine had no time for it: " + "\n".join(told))
