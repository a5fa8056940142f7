"""Power meters: how many watts a router draws, and how surely the meter knows it."""

from __future__ import annotations

from .csv_meter import time_of_day
from .meter import Meter, PowerReading, take_figures
from .opening import open_meter

__all__ = ["Meter", "PowerReading", "open_meter", "take_figures", "time_of_day"]
