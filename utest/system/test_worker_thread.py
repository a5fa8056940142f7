from __future__ import annotations

import signal
import threading
import time

import pytest

from lineproof.errors import TestbedError
from lineproof.system.worker_thread import run_in_worker_thread


def test_the_result_or_the_error_of_the_call_is_passed_on():
    assert run_in_worker_thread(lambda: 42, 5, "counting") == 42
    with pytest.raises(ZeroDivisionError):
        run_in_worker_thread(lambda: 1 // 0, 5, "dividing")


def test_a_call_that_takes_too_long_is_named():
    with pytest.raises(TestbedError, match=r"sleeping did not end within 0\.05 s"):
        run_in_worker_thread(lambda: time.sleep(2), 0.05, "sleeping")


def test_an_interrupt_does_not_leave_a_lock_held():
    """An exception from a signal handler reaches the waiting main thread, not the code that holds a lock."""
    event, stop = threading.Event(), threading.Event()

    def busy() -> None:
        while not stop.is_set():
            event.wait(0)

    def interrupt(*_: object) -> None:
        raise InterruptedError("stop")

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(20):
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            with pytest.raises(InterruptedError):
                run_in_worker_thread(busy, 5, "waiting")
            assert run_in_worker_thread(lambda: event.set() is None, 2, "setting")
            event.clear()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        stop.set()


def test_a_thread_that_cannot_begin_is_an_error_of_the_call(monkeypatch: pytest.MonkeyPatch):
    """From Python 3.12 on, while the interpreter ends."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(TestbedError, match="waiting cannot begin: can't create new thread"):
        run_in_worker_thread(lambda: None, 5, "waiting")
