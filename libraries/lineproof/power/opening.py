"""The meter that a testbed's file names."""

from __future__ import annotations

from collections.abc import Callable

from ..system.secrets import ENVIRONMENT, Secrets
from .csv_meter import CsvMeter, time_of_day
from .http_meter import HttpMeter
from .meter import Meter
from .settings import CsvMeterSettings, HttpMeterSettings, MeterSettings, ShellMeterSettings, SnmpMeterSettings
from .shell_meter import IpmiMeter, RaplMeter, Run
from .snmp_meter import SnmpMeter


def open_meter(
    settings: MeterSettings, run: Run, secrets: Secrets = ENVIRONMENT, now: Callable[[], float] = time_of_day
) -> Meter:
    """The meter of *settings*; *run* runs a command on the router, for those inside it. *secrets*: of its login.

    *now*: Unix time in s, for figures that bear their own.
    """
    match settings:
        case HttpMeterSettings():
            return HttpMeter(settings, secrets)
        case SnmpMeterSettings():
            return SnmpMeter(settings, secrets)
        case CsvMeterSettings():
            return CsvMeter(settings, now)
        case ShellMeterSettings(kind="rapl"):
            return RaplMeter(settings, run)
        case ShellMeterSettings():
            return IpmiMeter(settings, run)
    raise TypeError(f"{type(settings).__name__} is no meter")
