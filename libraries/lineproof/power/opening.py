"""The meter that a testbed's file names."""

from __future__ import annotations

from collections.abc import Callable

from ..command_values import json_value, pattern_value
from ..system.local_command import run_here
from ..system.secrets import ENVIRONMENT, Secrets
from ..visible import shortened
from .csv_meter import CsvMeter, time_of_day
from .meter import Meter, NextFigure, power
from .settings import CommandMeterSettings, CsvMeterSettings, PowerSettings

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
