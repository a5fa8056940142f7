"""Run a call of somebody else's library beside the main thread, so that an interrupt cannot break it half way.

Robot stops a run by raising an exception from its signal handler in the main thread, between any two instructions. In
the middle of paramiko's events that leaves a lock held for ever, and the next call, the one that closes the connection,
never returns. Here the main thread only waits; the library's own thread is never interrupted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeVar

from ..errors import TestbedError

T = TypeVar("T")


def uninterrupted(function: Callable[[], T], limit: float, what: str) -> T:
    """The result of *function*, called in a thread of its own, within *limit* s.

    Raises what *function* raised, or TestbedError saying that *what* took too long; the thread is then left to itself.
    """
    # SimpleQueue is one piece of C: an exception between two instructions cannot leave it locked
    answers: SimpleQueue[tuple[T] | BaseException] = SimpleQueue()

    def work() -> None:
        try:
            answers.put((function(),))
        except BaseException as error:
            answers.put(error)

    threading.Thread(target=work, daemon=True, name=f"aside: {what}").start()
    try:
        answer = answers.get(timeout=limit)
    except Empty:
        raise TestbedError(f"{what} did not end within {limit:g} s") from None
    if isinstance(answer, BaseException):
        raise answer
    return answer[0]
