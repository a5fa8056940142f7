"""The interface of a power meter, and what several of its readings come to."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Protocol

from ..errors import TestbedError

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
