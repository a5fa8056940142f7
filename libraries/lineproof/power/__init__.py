"""Power meters: how many watts a router draws, and how surely the meter knows it."""

from __future__ import annotations

from .meter import Meter, PowerReading, open_meter, take_figures, time_of_day

__all__ = ["Meter", "PowerReading", "open_meter", "take_figures", "time_of_day"]
