"""Entering a network namespace, in a new thread or in the calling one."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ..errors import TestbedError

T = TypeVar("T")

NAMESPACES = Path("/run/netns")
"""Where ``ip netns add`` puts the handles of named namespaces."""

_CLONE_NEWNET = 0x40000000  # linux/sched.h


def enter_namespace(netns: str | None) -> None:
    """Move the calling thread to namespace *netns* (None: stay). Needs CAP_SYS_ADMIN. Raises TestbedError."""
    if netns is None:
        return
    path = NAMESPACES / netns
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise TestbedError(f"there is no network namespace '{netns}' at {path} ({error.strerror})") from error
    try:
        _setns(handle)
    except OSError as error:
        raise TestbedError(f"may not enter the network namespace '{netns}': {error.strerror}; run as root") from error
    finally:
        os.close(handle)


def _setns(handle: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)  # os.setns exists only since Python 3.12
    if libc.setns(handle, _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def run_in_namespace(netns: str | None, work: Callable[[], T]) -> T:
    """The result of *work*, called in a thread inside *netns*: its sockets belong there, the caller does not move."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            enter_namespace(netns)
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name=f"inside-{netns}")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
