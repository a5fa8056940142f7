"""Power meters: their keys, ``power`` of a testbed file, and how each of the two kinds gives its figures."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from ..command_values import GroupPattern, JsonPath, json_value, pattern_value
from ..config import Config, FilePath
from ..errors import TestbedError
from ..system.login import ENVIRONMENT, Command, Secrets, Variable, run_here
from ..visible import shortened

FIGURES = 3
"""Figures whose mean is a power."""

POLL = 0.2
"""Seconds of the testbed's clock between two looks for a figure that is not there yet."""

MOST_BYTES = 4096
"""Bytes of the end of a meter's file; a line is shorter."""

FRESH = 3.0
"""The last figure of a file may be as old as so many intervals."""

AHEAD = 1.0
"""Seconds that the last figure may be of the future: more, and the clocks differ, so that an old one would look new."""

NextFigure = Callable[[], float | None]
"""A power in W; None: there is no new figure yet. Raises TestbedError."""


@dataclass(frozen=True, slots=True)
class MeterAccess:
    """The ways to read a meter: ``on_router`` runs a command there and raises TestbedError if it fails.

    ``secrets``: those that a command here names. ``now``: Unix time in s, for figures that bear their own.
    """

    on_router: Callable[[str], str]
    secrets: Secrets = ENVIRONMENT
    now: Callable[[], float] = time.time


class MeterSettings(Config):
    """Settings of every meter. ``accuracy``: per cent of the reading, by its data sheet; there is no default.

    ``resolution``: its smallest step in W. ``interval``: s between two new figures; ``settle``: s until a figure shows
    a new load alone (meters average); no less than an interval counts. ``covers``: what of the router it measures, for
    messages.
    """

    is_login: ClassVar[bool] = True

    accuracy: Annotated[float, Field(gt=0, le=50)]
    resolution: Annotated[float, Field(ge=0, le=1000)] = 0.1
    interval: Annotated[float, Field(gt=0, le=60)] = 1.0
    settle: Annotated[float, Field(ge=0, le=300)] = 2.0
    covers: Annotated[str, Field(min_length=1, max_length=100)] = "what it measures"

    @property
    def settling(self) -> float:
        """Seconds until a figure shows a new load alone: the figure of a meter may be the mean of an interval."""
        return max(self.settle, self.interval)

    @property
    def text(self) -> str:
        """The meter and where it is, for reports."""
        raise NotImplementedError

    def begin(self, access: MeterAccess) -> NextFigure:
        """Return its figures from now on: none is a mean over time before this call but for what ``settle`` bounds.

        What was begun before is of no use here: between two trials the router idles, and that would lower the first
        figure. Raises TestbedError where the meter does not answer, or not with a power, as the figures do.
        """
        raise NotImplementedError

    def figures(self, access: MeterAccess, wait: Callable[[float], None], count: int = FIGURES) -> list[float]:
        """Return *count* figures in W from now on, an interval apart. *wait*: so many s. Raises TestbedError.

        The first one is an interval from now: a meter that renews its figure once in an interval shows an older one
        before.
        """
        next_figure, figures = self.begin(access), list[float]()
        for _ in range(count):
            wait(self.interval)
            while (figure := next_figure()) is None:
                wait(POLL)
            figures.append(figure)
        return figures

    def idle_seconds(self) -> float:
        """Return about how many seconds a power without traffic takes, of the testbed's clock."""
        return self.settling + FIGURES * self.interval

    def trial_seconds(self, clock_speed: float) -> float:
        """Return the seconds of the testbed's clock that a trial lasts at least. *clock_speed*: per real second."""
        # beginning and each figure may take a second of real time, and one more is room
        return float(math.ceil(self.idle_seconds() + (FIGURES + 2) * clock_speed))

    def power(self, value: str, factor: float = 1.0) -> float:
        """Return *value* times *factor* in W. Raises TestbedError where it is no power."""
        try:
            watts = factor * float(value)
        except ValueError:
            watts = math.nan
        if not 0 <= watts <= 1e6:  # a larger reading is no router's
            raise self.error(f"reports '{value[:40]}', expected a power in W")
        return watts

    def error(self, problem: str) -> TestbedError:
        """Return an error that names the meter."""
        return TestbedError(f"the meter {self.text}: {problem}")


class CommandMeterSettings(MeterSettings):
    """``run``: a command that prints the watts, at the first group of ``pattern`` or at ``json_path`` of its JSON.

    ``runs_on``: this machine or the router. ``secrets``: environment variables of this machine that the command gets.
    ``factor``: W for each unit of what it prints.
    """

    kind: Literal["command"]
    run: Command
    runs_on: Literal["here", "router"] = "here"
    secrets: tuple[Variable, ...] = ()
    pattern: GroupPattern = r"\A\s*([-+.\d]+)\s*\Z"
    json_path: JsonPath | None = None
    factor: Annotated[float, Field(gt=0)] = 1.0

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        if self.json_path is not None and "pattern" in self.model_fields_set:
            raise ValueError("has both 'pattern' and 'json_path'; expected one of them")
        if self.secrets and self.runs_on == "router":
            raise ValueError("'secrets' are for a command that runs here; expected none, or 'runs_on: here'")
        return self

    @property
    def text(self) -> str:
        """The command and where it runs."""
        return f"'{shortened(self.run, 80)}' {'on the router' if self.runs_on == 'router' else 'here'}"

    def begin(self, access: MeterAccess) -> NextFigure:
        """Return what runs the command for each figure."""
        who = f"the meter {self.text}"

        def watts() -> float:
            if self.runs_on == "router":
                output = access.on_router(self.run)
            else:
                output = run_here(self.run, self.secrets, access.secrets, who)
            if self.json_path is not None:
                return self.power(json_value(output, self.json_path, who), self.factor)
            return self.power(pattern_value(output, self.pattern, who), self.factor)

        return watts


class CsvMeterSettings(MeterSettings):
    """A file that another program appends to: a line per figure, time (Unix seconds or ISO 8601) and W, by commas.

    ``column``: of the power, counted from 1; the time is the first. Lines that are older than the traffic do not count.
    """

    kind: Literal["csv"]
    file: FilePath
    column: Annotated[int, Field(ge=2, le=1000)] = 2
    covers: str = "what the external meter measures"

    @property
    def text(self) -> str:
        """The file."""
        return f"csv at {self.file}"

    def begin(self, access: MeterAccess) -> NextFigure:
        """Begin to read: only lines that are added from now on count, each once, with a time that is not before now.

        The one does not follow from the other: a program may write late, and its clock may be ahead. Raises
        TestbedError, also if the last line is old: nobody adds any.
        """
        counted, _ = self._last_figure(access.now())
        since = access.now()

        def watts() -> float | None:
            nonlocal counted
            stamp, figure = self._last_figure(access.now())
            if stamp <= counted or stamp < since:
                return None
            counted = stamp
            return figure

        return watts

    def _last_figure(self, now: float) -> tuple[float, float]:
        """Time and power of the last whole line. Raises TestbedError, also if it is old or of the future."""
        line = self._last_line()
        cells = [cell.strip() for cell in line.split(",")]
        try:
            stamp, value = _seconds(cells[0]), cells[self.column - 1]
        except (ValueError, IndexError):
            raise self.error(
                f"its last whole line is '{shortened(line, 80)}'; expected Unix seconds or ISO 8601, and a power in"
                f" column {self.column}, by commas"
            ) from None
        age, allowed = now - stamp, FRESH * self.interval
        if not -AHEAD <= age <= allowed:
            raise self.error(
                f"its last figure is {age:.0f} s old, expected {-AHEAD:g} to {allowed:g} s: its program must run, write"
                f" each line at once, every {self.interval:g} s ('interval'), and both clocks must agree (NTP)"
            )
        return stamp, self.power(value)

    def _last_line(self) -> str:
        try:
            with self.file.open("rb") as file:
                file.seek(max(0, file.seek(0, 2) - MOST_BYTES))
                text = file.read(MOST_BYTES).decode("utf-8", "replace")
        except OSError as error:
            raise self.error(f"{error.strerror}; expected the file that its program appends to") from None
        # what follows the last line feed is still being written
        return next((line for line in reversed(text.split("\n")[:-1]) if line.strip()), "")


def _seconds(text: str) -> float:
    """Return Unix time in s, of itself or of ISO 8601 (without a time zone: UTC). Raises ValueError."""
    with contextlib.suppress(ValueError):
        return float(text)
    stamp = datetime.fromisoformat(text)
    return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()


PowerSettings = Annotated[CommandMeterSettings | CsvMeterSettings, Field(discriminator="kind")]
