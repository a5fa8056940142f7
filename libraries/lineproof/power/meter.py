"""Power meters: their interface, the key ``power`` of a testbed file, and the two kinds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, ClassVar, Literal, Protocol

from pydantic import Field, model_validator

from ..command_values import GroupPattern, JsonPath, json_value, pattern_value
from ..config import Config
from ..errors import TestbedError
from ..system.local_command import Command, Variable, run_here
from ..system.login import ENVIRONMENT, Secrets
from ..visible import shortened

MOST_WATTS = 1e6
"""A larger reading is no router's."""

FIGURES = 3
"""Figures that make a reading."""

POLL = 0.2
"""Seconds of the testbed's clock between two looks for a figure that is not there yet."""

NextFigure = Callable[[], float | None]
"""A power in W; None: there is no new figure yet. Raises TestbedError."""


class Meter(Protocol):
    """A power meter. ``text``: what it is and where, for reports; ``covers``: what of the router it measures.

    ``interval``: s between two new figures of it; ``settle``: s of constant power until a figure shows it alone.
    """

    text: str
    covers: str
    interval: float
    settle: float

    def begin(self) -> NextFigure:
        """Return its figures from now on: none is a mean over time before this call but for what ``settle`` bounds.

        So a meter that counts energy reads its counters here, and one that keeps figures forgets those that it has.
        What was begun before is of no use here: between two trials the router idles, and that would lower the first
        figure. Raises TestbedError where the meter does not answer, or not with a power, as the figures do.
        """
        ...

    def close(self) -> None:
        """Release what it holds."""
        ...


@dataclass(frozen=True, slots=True)
class PowerReading:
    """Several figures of a meter at one load: their mean, extremes and number, in W.

    ``uncertainty``: W by which the mean may be wrong, by the meter's own statement. ``began``, ``ended``: Unix time in
    s, from which on the figures count, and of the last one.
    """

    watts: float
    least: float
    most: float
    figures: int
    uncertainty: float
    began: float
    ended: float

    @classmethod
    def of(
        cls, figures: Sequence[float], accuracy: float, resolution: float, began: float, ended: float
    ) -> PowerReading:
        """*accuracy*: ratio of the reading; *resolution*: the meter's smallest step in W."""
        mean = fmean(figures)
        uncertainty = accuracy * mean + resolution / 2
        return cls(mean, min(figures), max(figures), len(figures), uncertainty, began, ended)


def take_figures(meter: Meter, wait: Callable[[float], None], count: int = FIGURES) -> list[float]:
    """*count* figures in W from now on, an interval apart. *wait*: so many s. Raises TestbedError.

    The first one is an interval from now: a meter that renews its figure once in an interval shows an older one before.
    """
    next_figure, found = meter.begin(), list[float]()
    for _ in range(count):
        wait(meter.interval)
        while (figure := next_figure()) is None:
            wait(POLL)
        found.append(figure)
    return found


def power(value: str, text: str, factor: float = 1.0) -> float:
    """Return *value* times *factor* in W. Raises TestbedError that names the meter (*text*) where it is no power."""
    try:
        watts = factor * float(value)
    except ValueError:
        watts = math.nan
    if not 0 <= watts <= MOST_WATTS:
        raise TestbedError(f"the meter {text}: reports '{value[:40]}', expected a power in W")
    return watts


USUAL_SETTLE = 2.0
"""Seconds until a figure shows a new load alone, where the file does not say it."""


class MeterSettings(Config):
    """What every meter says of itself. ``accuracy``: per cent of the reading, by its data sheet; there is no default.

    ``resolution``: its smallest step in W. ``interval``: s between two new figures; ``settle``: s until a figure shows
    a new load alone (meters average), at least an interval, and :data:`USUAL_SETTLE` if it is not said.
    """

    is_login: ClassVar[bool] = True

    accuracy: Annotated[float, Field(gt=0, le=50)]
    resolution: Annotated[float, Field(ge=0, le=1000)] = 0.1
    interval: Annotated[float, Field(gt=0, le=60)] = 1.0
    settle: Annotated[float, Field(ge=0, le=300)] = USUAL_SETTLE

    @model_validator(mode="before")
    @classmethod
    def _settle_for_an_interval(cls, data: Any) -> Any:
        """Without ``settle``, that of a meter with longer intervals is an interval: its figure may be their mean."""
        if isinstance(data, dict) and "settle" not in data:
            interval = data.get("interval")
            # one that is too long is its own error
            longer = isinstance(interval, int | float) and 60 >= interval > USUAL_SETTLE
            return {**data, "settle": interval if longer else USUAL_SETTLE}
        return data

    @model_validator(mode="after")
    def _check_settle(self) -> MeterSettings:
        if self.settle < self.interval:
            raise ValueError(
                f"'settle' is {self.settle:g} s and 'interval' {self.interval:g} s, so that a figure may be of time"
                f" before the traffic; expected 'settle: {self.interval:g}' or more, or a shorter 'interval'"
            )
        return self

    def idle_seconds(self) -> float:
        """Seconds of a reading without traffic, about; of the testbed's clock."""
        return self.settle + FIGURES * self.interval

    def trial_seconds(self, clock_speed: float) -> float:
        """Seconds of the testbed's clock that a trial lasts at least. *clock_speed*: of these per real second."""
        # beginning and each figure may take a second of real time, and one more is room
        return float(math.ceil(self.settle + FIGURES * self.interval + (FIGURES + 2) * clock_speed))


class CommandMeterSettings(MeterSettings):
    """``run``: a command that prints the watts, at the first group of ``pattern`` or at ``json_path`` of its JSON.

    ``runs_on``: this machine or the router. ``secrets``: environment variables of this machine that the command gets.
    ``factor``: W for each unit of what it prints. ``covers``: what of the router the meter measures, for messages.
    """

    kind: Literal["command"]
    run: Command
    runs_on: Literal["here", "router"] = "here"
    secrets: tuple[Variable, ...] = ()
    pattern: GroupPattern = r"\A\s*([-+.\d]+)\s*\Z"
    json_path: JsonPath | None = None
    factor: Annotated[float, Field(gt=0)] = 1.0
    covers: Annotated[str, Field(min_length=1, max_length=100)] = "what it measures"

    @model_validator(mode="after")
    def _check_keys(self) -> CommandMeterSettings:
        if self.json_path is not None and "pattern" in self.model_fields_set:
            raise ValueError("has both 'pattern' and 'json_path'; expected one of them")
        if self.secrets and self.runs_on == "router":
            raise ValueError("'secrets' are for a command that runs here; expected none, or 'runs_on: here'")
        return self


class CsvMeterSettings(MeterSettings):
    """A file that another program appends to: a line per figure, time (Unix seconds or ISO 8601) and W, by commas.

    ``column``: of the power, counted from 1; the time is the first. Lines that are older than the traffic do not count.
    """

    kind: Literal["csv"]
    file: Path
    column: Annotated[int, Field(ge=2, le=1000)] = 2


PowerSettings = Annotated[CommandMeterSettings | CsvMeterSettings, Field(discriminator="kind")]


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
