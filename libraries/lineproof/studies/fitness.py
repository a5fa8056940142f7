"""The fitness of a generator for the line rate of 1 and 10 Gbit/s: by the interval of its repeats in a study's records.

A sender that other programs, or a hypervisor, kept from its CPU is not judged unfit if it might have been fit with it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median

from ..stats import mean_interval
from ..units import Layer, bits, line_rate_pps
from .measuring import CORE_SHARE, CPU, DIRECTIONS, FRAME, LINK, OFFERED, RECEIVED, STEAL
from .results import CONFIDENCE, StudyResults
from .study import PAST_ROUTER

LINES = {"1 Gbit/s": 1e9, "10 Gbit/s": 10e9}
"""The lines that are asked about, bit/s of L1."""

FULL = 0.99
"""The least share of line rate that fills a line: a clock may be a little slow, and a measurement, too."""

ARRIVED = 0.99
"""The least share of the offered frames that is received: what a port only counts as sent fills no line."""

REPEATS = 3
"""The least measurements of a verdict: two that are equal by chance have an interval of 0."""

BUSY = 0.85
"""The least share of its cores that a sender takes which nothing keeps from them; iperf3 waits a little."""


class Fitness(Enum):
    """A verdict on a generator, a size and a line."""

    FIT = "fit"
    UNFIT = "not fit"
    OPEN = "not proven"


@dataclass(frozen=True)
class SenderFigures:
    """The medians of what one variant sent of one row. ``fits``: by line. All rates are of the worse direction."""

    row: str
    variant: str
    n: int
    frame: float
    directions: int
    offered: float
    """Frames/s."""
    received: float
    """Share of the offered frames, 0..1."""
    cpu: float | None
    """CPU seconds of the sender for a million frames; None: it does not say."""
    fits: Mapping[str, Fitness]

    def gbps(self, layer: Layer) -> float:
        """Gbit/s at *layer*."""
        return self.offered * bits(self.frame, layer) / 1e9


def senders_of(found: StudyResults) -> list[SenderFigures]:
    """Return what generators sent, in the order of rows and variants; nothing of a study with a router."""
    senders = []
    for cell in found.cells.values():
        if found.study.measures[cell.row].kind not in PAST_ROUTER or not cell.values:
            continue
        own = [record for record in found.records if (record.row, record.variant) == (cell.row, cell.variant)]
        figures = [record.figures for record in own if record.value is not None]
        costs = [each[CPU] for each in figures if CPU in each]
        senders.append(
            SenderFigures(
                row=cell.row,
                variant=cell.variant,
                n=len(figures),
                frame=figures[0][FRAME],
                directions=round(figures[0][DIRECTIONS]),
                offered=median(each[OFFERED] for each in figures),
                received=median(each[RECEIVED] / each[OFFERED] if each[OFFERED] else 0.0 for each in figures),
                cpu=median(costs) if costs else None,
                fits={name: fit(figures, link) for name, link in LINES.items()},
            )
        )
    return senders


def fit(figures: Sequence[Mapping[str, float]], link_bps: float) -> Fitness:
    """The verdict on the repeats' *figures* for a line of *link_bps*."""
    if len(figures) < REPEATS:
        return Fitness.OPEN
    needed = FULL * line_rate_pps(link_bps, figures[0][FRAME])
    offered = mean_interval([each[OFFERED] for each in figures], CONFIDENCE)
    if offered.low is None or offered.high is None:
        return Fitness.OPEN
    if offered.low >= needed:
        return Fitness.FIT if all(each[RECEIVED] >= ARRIVED * each[OFFERED] for each in figures) else Fitness.OPEN
    might = offered.high >= needed or any(each[LINK] < link_bps or _possible(each) >= needed for each in figures)
    return Fitness.OPEN if might else Fitness.UNFIT


def _possible(figures: Mapping[str, float]) -> float:
    """Frames/s that the sender might have offered with the CPU that others took from it; infinite if not known."""
    pps = figures[OFFERED] / max(1e-9, 1 - figures.get(STEAL, 0.0) / 100)
    share = figures.get(CORE_SHARE)
    if share is None:
        return math.inf
    return pps if share >= BUSY else pps / share
