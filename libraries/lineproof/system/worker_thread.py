"""Calls of other libraries in a worker thread, where a signal cannot interrupt them.

Robot stops a run by an exception from its signal handler in the main thread, between any two instructions. Inside
paramiko that leaves a lock held, and closing the connection never returns. Here the main thread only waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeVar

from ..errors import TestbedError

T = TypeVar("T")


class NotInTime(TestbedError):
    """The wait took too long."""


def run_in_worker_thread(function: Callable[[], T], limit: float, what: str) -> T:
    """The result of *function*, called in a worker thread, within *limit* s.

    Raises what *function* raised, or NotInTime where *what* took too long; the thread then goes on by itself.
    """
    # SimpleQueue is written in C: an exception between two Python instructions cannot leave it locked
    answers: SimpleQueue[tuple[T] | BaseException] = SimpleQueue()

    def work() -> None:
        try:
            answers.put((function(),))
        except BaseException as error:
            answers.put(error)

    try:
        threading.Thread(target=work, daemon=True, name=f"worker: {what}").start()
    except RuntimeError as error:  # from Python 3.12 on, while the interpreter ends
        raise TestbedError(f"{what} cannot begin: {error}") from None
    try:
        answer = answers.get(timeout=limit)
    except Empty:
        raise NotInTime(f"{what} did not end within {limit:g} s") from None
    if isinstance(answer, BaseException):
        raise answer
    return answer[0]
