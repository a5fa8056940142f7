"""Commands that hold a testbed give it back however they are ended."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def signals_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP end like Ctrl-C, by KeyboardInterrupt: traffic stopped, ports released."""
    before = {number: signal.signal(number, _end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
