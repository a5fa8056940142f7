"""The meter that a testbed's file names."""

from __future__ import annotations

from collections.abc import Callable

from ..system.secrets import ENVIRONMENT, Secrets
from .command_meter import CommandMeter, Run
from .csv_meter import CsvMeter, time_of_day
from .meter import Meter
from .settings import CsvMeterSettings, PowerSettings


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
