from __future__ import annotations

import signal
import threading
import time

import pytest

from linerate.errors import TestbedError
from linerate.system.uninterrupted import uninterrupted


def test_the_result_or_the_error_comes_back():
    assert uninterrupted(lambda: 42, 5, "counting") == 42
    with pytest.raises(ZeroDivisionError):
        uninterrupted(lambda: 1 // 0, 5, "dividing")


def test_what_takes_too_long_is_said():
    with pytest.raises(TestbedError, match=r"sleeping did not end within 0\.05 s"):
        uninterrupted(lambda: time.sleep(2), 0.05, "sleeping")


def test_an_interrupt_leaves_the_librarys_locks_alone():
    """An exception out of a signal handler reaches the waiting main thread, not the code that holds a lock."""
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
                uninterrupted(busy, 5, "waiting")
            assert uninterrupted(lambda: event.set() is None, 2, "setting")
            event.clear()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        stop.set()
