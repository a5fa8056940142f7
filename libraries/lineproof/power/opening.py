"""The meters that a testbed's file can name: a command, or a file that another program appends figures to."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from ..command_values import json_value, pattern_value
from ..errors import TestbedError
from ..system.local_command import run_here
from ..system.login import ENVIRONMENT, Secrets
from ..visible import shortened
from .meter import CommandMeterSettings, CsvMeterSettings, Meter, NextFigure, PowerSettings, power

MOST_BYTES = 4096
"""Of the file's end; a line is shorter."""

FRESH = 3.0
"""The last figure may be as old as so many intervals."""

AHEAD = 1.0
"""Seconds that the last figure may be of the future: more, and the clocks differ, so that an old one would look new."""


def time_of_day() -> float:
    """Unix time in s: the clock by which other programs stamp their figures."""
    return time.time()


class CsvMeter:
    """The last line of a file. *now*: Unix time in s, as the other program's clock shows it."""

    covers = "what the external meter measures"

    def __init__(self, settings: CsvMeterSettings, now: Callable[[], float] = time_of_day) -> None:
        self._settings, self._now = settings, now
        self.interval, self.settle = settings.interval, settings.settle
        self.text = f"csv at {settings.file}"

    def begin(self) -> NextFigure:
        """Only lines that are added from now on count, each once, with a time of their own that is not before now.

        The one does not follow from the other: a program may write late, and its clock may be ahead. Raises
        TestbedError, also if the last line is old: nobody adds any.
        """
        counted, _ = self._last_figure()
        since = self._now()

        def watts() -> float | None:
            nonlocal counted
            stamp, found = self._last_figure()
            if stamp <= counted or stamp < since:
                return None
            counted = stamp
            return found

        return watts

    def _last_figure(self) -> tuple[float, float]:
        """Time and power of the last whole line. Raises TestbedError, also if it is old or of the future."""
        cells = self._last_line().split(",")
        if len(cells) < self._settings.column:
            raise TestbedError(f"the meter {self.text}: its last line has no column {self._settings.column}")
        stamp = _seconds(cells[0].strip(), self.text)
        age, allowed = self._now() - stamp, FRESH * self.interval
        if age < -AHEAD:
            raise TestbedError(
                f"the meter {self.text}: its last figure is of {-age:.0f} s in the future; expected clocks that agree"
                " within 1 s: set both by NTP"
            )
        if not age <= allowed:
            raise TestbedError(
                f"the meter {self.text}: its last figure is {age:.0f} s old, at most {allowed:g} s are allowed; does"
                " its program still run, does it write each line at once, and do both clocks agree? Else fix 'interval'"
                f" ({self.interval:g} s between two lines)"
            )
        return stamp, power(cells[self._settings.column - 1].strip(), self.text)

    def _last_line(self) -> str:
        path: Path = self._settings.file.expanduser()
        try:
            with path.open("rb") as file:
                file.seek(max(0, file.seek(0, 2) - MOST_BYTES))
                text = file.read(MOST_BYTES).decode("utf-8", "replace")
        except OSError as error:
            raise TestbedError(
                f"the meter {self.text}: {error.strerror}; expected the file that its program appends to"
            ) from None
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


Run = Callable[[str], str]
"""Runs a command on the router and returns its standard output. Raises TestbedError, also if it fails."""


class CommandMeter:
    """A command whose output has the watts. *on_router* runs it there; *secrets*: those that it names."""

    def __init__(self, settings: CommandMeterSettings, on_router: Run, secrets: Secrets) -> None:
        self._settings, self._on_router, self._secrets = settings, on_router, secrets
        self.interval, self.settle, self.covers = settings.interval, settings.settle, settings.covers
        where = "on the router" if settings.runs_on == "router" else "here"
        self.text = f"'{shortened(settings.run, 80)}' {where}"

    def begin(self) -> NextFigure:
        """Return what runs the command for each figure."""
        return self.watts

    def watts(self) -> float:
        """Run the command once. Raises TestbedError."""
        settings, who = self._settings, f"the meter {self.text}"
        if settings.runs_on == "router":
            output = self._on_router(settings.run)
        else:
            output = run_here(settings.run, settings.secrets, self._secrets, who)
        if settings.json_path is not None:
            value = json_value(output, settings.json_path, who)
        else:
            value = pattern_value(output, settings.pattern, who)
        return power(value, self.text, settings.factor)

    def close(self) -> None:
        """Do nothing: no command runs between two figures."""


def open_meter(
    settings: PowerSettings,
    on_router: Run,
    secrets: Secrets = ENVIRONMENT,
    now: Callable[[], float] = time_of_day,
) -> Meter:
    """Return the meter of *settings*; *on_router* runs a command there. *secrets*: those that a command here names.

    *now*: Unix time in s, for figures that bear their own.
    """
    if isinstance(settings, CsvMeterSettings):
        return CsvMeter(settings, now)
    return CommandMeter(settings, on_router, secrets)
