"""Times in testbed files, and waiting for what others have: with a limit, and with a line that says what for."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from ..units import duration_text

PROGRESS_INTERVAL = 30.0
"""Seconds between two lines about the same wait."""

_TIME = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s*(s|min|h)")
_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}

Say = Callable[[str], None]
"""Prints a line for a person."""


def silent(text: str) -> None:
    """Say nothing."""


def _seconds(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    match = _TIME.fullmatch(value.strip())
    if match is None:
        raise ValueError("is not a time; expected for example '10 min', '2 h' or '30 s'")
    return float(match[1]) * _UNITS[match[2]]


Seconds = Annotated[float, BeforeValidator(_seconds), Field(ge=0, le=7 * 86400)]
"""A time in s; in a file a number of seconds, or text as ``30 min``. At most a week."""


class WaitProgress:
    """Lines about a wait of at most *limit* s: one at once, and one for each new reason or some time.

    *subject*: what is waited for, ``testbed 'lab'``.
    """

    def __init__(self, subject: str, limit: float, say: Say, now: Callable[[], float] = time.monotonic) -> None:
        self._subject, self._limit, self._say, self._now = subject, limit, say, now
        self._began = now()
        self._last, self._next = "", self._began

    @property
    def waited(self) -> float:
        """Seconds since it began."""
        return self._now() - self._began

    @property
    def noted(self) -> bool:
        """Return whether anything was waited for."""
        return bool(self._last)

    @property
    def is_over(self) -> bool:
        """Return whether the limit is reached."""
        return self.waited >= self._limit

    def note(self, why: str) -> None:
        """Say why the run waits, if that is new or the last time was long ago."""
        if why == self._last and self._now() < self._next:
            return
        self._last, self._next = why, self._now() + PROGRESS_INTERVAL
        part = f"{self.waited:.0f} s of " if self.waited >= 1 else ""
        self._say(f"waiting for {self._subject}, {part}at most {duration_text(self._limit)}: {why}")
