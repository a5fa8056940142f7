"""Two processors, for what sends and for the router's packets; and settings of the whole machine, for a while."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

WAIT = 600.0
"""Seconds that another run may have the machine's settings, or other tests may send real frames."""

BACKLOG = Path("/proc/sys/net/core/netdev_max_backlog")
"""A setting of the whole machine. Who has its lock may change the priority of the kernel's threads."""

FRAMES, GATE = Path("/proc/sys/net/core/dev_weight"), Path("/proc/sys/net/core/netdev_budget")
"""Their locks: of all who send real frames together, or of one who changes BACKLOG; of who waits for the first."""


@contextlib.contextmanager
def packets_first(backlog: int | None = None) -> Iterator[None]:
    """The kernel's threads that handle packets go before this machine's programs, other tests' too; of one run a time.

    *backlog*: frames that may wait for a processor (``netdev_max_backlog``). Both are those of the whole machine: they
    are undone by a process of its own, also where this one is killed meanwhile.
    """
    found = subprocess.run(["pgrep", "-d", " ", "^ksoftirqd/"], capture_output=True, text=True, check=False)
    if not (pids := found.stdout.strip()):
        pytest.skip("this machine shows no ksoftirqd: its kernel's threads are in another namespace of processes")
    do, undo = f"renice -n -20 -p {pids} >&2", f"renice -n 0 -p {pids} >&2"
    with contextlib.ExitStack() as stack:
        locks = [stack.enter_context(nobody_sends())] if backlog is not None else []
        locks.append(stack.enter_context(_locked(BACKLOG, fcntl.LOCK_EX)))
        former = BACKLOG.read_text().strip()
        if backlog is not None:
            do, undo = f"{do}; echo {backlog} > {BACKLOG}", f"{undo}; echo {former} > {BACKLOG}"
        # it has the locks until it ends, and ends when its input does
        with subprocess.Popen(
            ["sh", "-c", f"trap '' HUP INT TERM; {do}; echo done; read _; {undo}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=locks,
            start_new_session=True,
        ) as keeper:
            assert keeper.stdin is not None and keeper.stdout is not None
            try:
                assert keeper.stdout.readline() == b"done\n"
                yield
            finally:
                keeper.stdin.close()
                keeper.wait(10)
        assert BACKLOG.read_text().strip() == former


_sending: list[int] = []
"""The lock of FRAMES that this process shares."""


@contextlib.contextmanager
def frames_are_safe() -> Iterator[None]:
    """Nobody changes meanwhile how many frames may wait for a processor: a test of real frames would lose some."""
    with _locked(GATE, fcntl.LOCK_EX):
        sending = contextlib.ExitStack()
        _sending.append(sending.enter_context(_locked(FRAMES, fcntl.LOCK_SH)))
    with sending:
        try:
            yield
        finally:
            _sending.pop()


_alone: list[int] = []
"""The lock of FRAMES that this process has for itself."""


@contextlib.contextmanager
def nobody_sends() -> Iterator[int]:
    """No other test that sends real frames; those that come wait at the gate. The lock that says so."""
    if _alone:
        yield _alone[-1]
        return
    with contextlib.ExitStack() as stack:
        stack.enter_context(_locked(GATE, fcntl.LOCK_EX))
        if _sending:
            # what this process shares would be in its own way; it is changed, and is shared again afterwards
            lock = _sending[-1]
            stack.callback(_lock, lock, fcntl.LOCK_SH)
            _lock(lock, fcntl.LOCK_EX)
        else:
            lock = stack.enter_context(_locked(FRAMES, fcntl.LOCK_EX))
        _alone.append(lock)
        stack.callback(_alone.pop)
        yield lock


@contextlib.contextmanager
def _locked(path: Path, kind: int) -> Iterator[int]:
    with path.open() as held:
        _lock(held.fileno(), kind)
        yield held.fileno()


def _lock(held: int, kind: int) -> None:
    """Another run, or what is left of one, may have it for a while."""
    limit = time.monotonic() + WAIT
    while True:
        try:
            return fcntl.flock(held, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > limit:
                pytest.skip(f"another run has had the machine's settings for {WAIT:g} s")
            time.sleep(0.05)


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
