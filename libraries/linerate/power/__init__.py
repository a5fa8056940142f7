"""Power meters: how many watts a router draws, and how surely the meter knows it."""

from __future__ import annotations

from .meter import Meter, PowerReading
from .opening import open_meter

__all__ = ["Meter", "PowerReading", "open_meter"]
