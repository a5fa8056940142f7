"""An external meter's figures, in a file that another program appends to."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

from ..errors import TestbedError
from .figures import power
from .meter import NextFigure
from .settings import CsvMeterSettings

MOST_BYTES = 4096
"""Of the file's end; a line is shorter."""

FRESH = 3.0
"""A figure may be as old as so many intervals."""


class CsvMeter:
    """The last line of a file."""

    covers = "what the external meter measures"

    def __init__(self, settings: CsvMeterSettings) -> None:
        self._settings = settings
        self.interval, self.settle = settings.interval, settings.settle
        self.text = f"the file {settings.file}"

    def begin(self) -> NextFigure:
        """The last line, at each call."""
        return self.watts

    def watts(self) -> float:
        """The last whole line. Raises TestbedError, also if it is old."""
        cells = self._last_line().split(",")
        if len(cells) < self._settings.column:
            raise TestbedError(f"the meter {self.text}: its last line has no column {self._settings.column}")
        age = time.time() - _seconds(cells[0].strip(), self.text)
        allowed = FRESH * self.interval
        if not -allowed <= age <= allowed:
            raise TestbedError(
                f"the meter {self.text}: its last figure is {age:.0f} s old, at most {allowed:g} s are allowed; does"
                " its program still run, and do both clocks agree?"
            )
        return power(cells[self._settings.column - 1].strip(), self.text)

    def _last_line(self) -> str:
        path: Path = self._settings.file.expanduser()
        try:
            with path.open("rb") as file:
                file.seek(max(0, file.seek(0, 2) - MOST_BYTES))
                text = file.read(MOST_BYTES).decode("utf-8", "replace")
        except OSError as error:
            raise TestbedError(f"the meter {self.text}: {error.strerror}") from None
        # what follows the last line feed is still being written
        lines = [line for line in text.split("\n")[:-1] if line.strip()]
        if not lines:
            raise TestbedError(f"the meter {self.text}: has no whole line; expected time and W, by commas")
        return lines[-1]

    def close(self) -> None:
        """Nothing is held between two readings."""


def _seconds(text: str, meter: str) -> float:
    """Unix time in s, of itself or of ISO 8601. Raises TestbedError."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise TestbedError(f"the meter {meter}: '{text[:40]}' is no time; expected Unix seconds or ISO 8601") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
