"""Units of thresholds, and values with their unit."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..units import Layer, bits, si
from .traffic.profiles import Profile


class Unit(Enum):
    """Units of a threshold."""

    PERCENT_LINE = "% line rate"
    PPS = "pps"
    PPS_PER_CORE = "pps per core"
    BPS_L1 = "bit/s L1"
    BPS_L2 = "bit/s L2"
    PERCENT = "%"
    CYCLES = "cycles/packet"
    CYCLES_WITHOUT_INPUT = "cycles/packet without input"
    VECTORS = "vectors/call"
    MICROJOULES = "µJ/packet"
    MICROJOULES_ABOVE_IDLE = "µJ/packet above idle"
    MICROSECONDS = "µs"
    SECONDS = "s"


RATE_UNITS = (Unit.PERCENT_LINE, Unit.PPS, Unit.PPS_PER_CORE, Unit.BPS_L1, Unit.BPS_L2)


@dataclass(frozen=True, slots=True)
class Value:
    """A figure with its unit. ``number`` is without SI prefix: ``5 Mpps`` is 5e6 of PPS."""

    number: float
    unit: Unit

    def pps(self, profile: Profile, link_bps: float) -> float:
        """Return the rate in frames/s of *profile*. Raises ValueError for a unit that is not a rate."""
        if self.unit is Unit.PPS:
            return self.number
        if self.unit is Unit.PERCENT_LINE:
            return self.number / 100 * profile.line_rate_pps(link_bps)
        if self.unit is Unit.BPS_L1:
            return self.number / bits(profile.mean_size, Layer.L1)
        if self.unit is Unit.BPS_L2:
            return self.number / bits(profile.mean_size, Layer.L2)
        raise ValueError(f"{self.unit.value} is not a rate")

    def __str__(self) -> str:
        if self.unit in RATE_UNITS and self.unit is not Unit.PERCENT_LINE:
            return si(self.number, self.unit.value, 9)
        if self.unit is Unit.MICROSECONDS and self.number >= 1000:
            return f"{self.number / 1000:.9g} ms"
        return f"{self.number:.9g}{'' if self.unit.value.startswith('%') else ' '}{self.unit.value}"
