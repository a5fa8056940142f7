"""The interface of a power meter, and what several of its readings come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Protocol

MOST_WATTS = 1e6
"""A larger reading is no router's."""


class Meter(Protocol):
    """A power meter. ``text``: what it is and where, for reports; ``covers``: what of the router it measures.

    ``interval``: s between two new figures of it; ``settle``: s of constant power until a figure shows it alone.
    """

    text: str
    covers: str
    interval: float
    settle: float

    def watts(self) -> float:
        """The power now. Raises TestbedError where the meter does not answer, or not with a power."""
        ...

    def close(self) -> None:
        """Release what it holds."""
        ...


@dataclass(frozen=True, slots=True)
class PowerReading:
    """Several figures of a meter at one load: their mean, extremes and number, in W.

    ``uncertainty``: W by which the mean may be wrong, by the meter's own statement.
    """

    watts: float
    least: float
    most: float
    figures: int
    uncertainty: float

    @classmethod
    def of(cls, figures: Sequence[float], accuracy: float, resolution: float) -> PowerReading:
        """*accuracy*: ratio of the reading; *resolution*: the meter's smallest step in W."""
        mean = fmean(figures)
        return cls(mean, min(figures), max(figures), len(figures), accuracy * mean + resolution / 2)
