"""The death of the process that started this one, as a signal."""

from __future__ import annotations

import ctypes
import signal
import sys

_SET_PARENT_DEATH_SIGNAL = 1  # prctl(2)


def end_with_parent() -> None:
    """Ask for SIGTERM when the thread ends that started this process: so when its process is killed (Linux).

    To be called once SIGTERM is handled. The end of standard input says the same, unless another process keeps it open.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
