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
from ..units import Layer, bits, counted, line_rate_pps
from .measuring import CORE_SHARE, CPU, DIRECTIONS, FRAME, IDLE, LINK, OFFERED, RECEIVED, STEAL
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

SPARE_CPUS = 0.5
"""Idle CPUs of this machine with which a sender whose CPU time is not known had what it needed."""


class Fitness(Enum):
    """A verdict on a generator, a size and a line."""

    FIT = "fit"
    UNFIT = "not fit"
    OPEN = "not decided"


@dataclass(frozen=True, slots=True)
class Fit:
    """The verdict on one line, and the ``reason`` of one that is not decided."""

    verdict: Fitness
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.verdict.value}: {self.reason}" if self.reason else self.verdict.value


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
    l1_bps: float
    l2_bps: float
    received: float
    """Share of the offered frames, 0..1."""
    cpu: float | None
    """CPU seconds of the sender for a million frames; None: it does not say."""
    fits: Mapping[str, Fit]


def senders_of(found: StudyResults) -> list[SenderFigures]:
    """Return what generators sent, in the order of rows and variants; nothing of a study with a router."""
    senders = []
    for cell in found.cells.values():
        if found.study.measures[cell.row].kind not in PAST_ROUTER or not cell.values:
            continue
        own = [record for record in found.records if (record.row, record.variant) == (cell.row, cell.variant)]
        figures = [record.figures for record in own if record.value is not None]
        costs = [each[CPU] for each in figures if CPU in each]
        frame, offered = figures[0][FRAME], median(each[OFFERED] for each in figures)
        senders.append(
            SenderFigures(
                row=cell.row,
                variant=cell.variant,
                n=len(figures),
                frame=frame,
                directions=round(figures[0][DIRECTIONS]),
                offered=offered,
                l1_bps=offered * bits(frame, Layer.L1),
                l2_bps=offered * bits(frame, Layer.L2),
                received=median(each[RECEIVED] / each[OFFERED] if each[OFFERED] else 0.0 for each in figures),
                cpu=median(costs) if costs else None,
                fits={name: fit(figures, link) for name, link in LINES.items()},
            )
        )
    return senders


def fit(figures: Sequence[Mapping[str, float]], link_bps: float) -> Fit:
    """The verdict on the repeats' *figures* for a line of *link_bps*."""
    if len(figures) < REPEATS:
        return Fit(Fitness.OPEN, f"{counted(len(figures), 'measurement')}, a verdict needs {REPEATS}")
    needed = FULL * line_rate_pps(link_bps, figures[0][FRAME])
    found = mean_interval([each[OFFERED] for each in figures], CONFIDENCE)
    if found.low is None or found.high is None:
        return Fit(Fitness.OPEN, "no interval")
    if found.low >= needed:
        arrived = min(each[RECEIVED] / each[OFFERED] for each in figures)
        if arrived < ARRIVED:
            return Fit(Fitness.OPEN, f"only {100 * arrived:.4g} % of what was offered were received")
        return Fit(Fitness.FIT)
    if any(each[LINK] < link_bps for each in figures):
        return Fit(Fitness.OPEN, f"its port has {figures[0][LINK] / 1e9:g} Gbit/s")
    if found.high >= needed:
        return Fit(Fitness.OPEN, f"the interval at {100 * CONFIDENCE:g} % has the line rate in it")
    if any(_possible(each) >= needed for each in figures):
        return Fit(Fitness.OPEN, _starved(figures))
    return Fit(Fitness.UNFIT)


def _possible(figures: Mapping[str, float]) -> float:
    """Frames/s that the sender might have offered with the CPU that others took from it."""
    pps = figures[OFFERED] / max(1e-9, 1 - figures.get(STEAL, 0.0) / 100)
    share = figures.get(CORE_SHARE)
    if share is None:
        return math.inf if figures.get(IDLE, math.inf) < SPARE_CPUS else pps
    return pps if share >= BUSY else pps / share


def _starved(figures: Sequence[Mapping[str, float]]) -> str:
    shares = [each[CORE_SHARE] for each in figures if CORE_SHARE in each]
    steal = max(each.get(STEAL, 0.0) for each in figures)
    left = f"it got {100 * min(shares):.0f} % of its core" if shares else "no CPU was idle beside it"
    return left + (f", and {steal:.1f} % of CPU time was stolen" if steal >= 0.05 else "")


def sentences(senders: Sequence[SenderFigures]) -> list[str]:
    """For each variant and line, with which rows it is fit, with which not, and with which that is not decided."""
    found = []
    for variant in dict.fromkeys(sender.variant for sender in senders):
        own = [sender for sender in senders if sender.variant == variant]
        for line in LINES:
            parts = []
            for verdict in Fitness:
                rows = [sender.row for sender in own if sender.fits[line].verdict is verdict]
                reasons = dict.fromkeys(sender.fits[line].reason for sender in own if sender.row in rows)
                why = f" ({'; '.join(filter(None, reasons))})" if any(reasons) else ""
                if rows:
                    named = "every row" if len(rows) == len(own) else ", ".join(rows)
                    parts.append(f"{verdict.value} with {named}{why}")
            found.append(f"{variant}, line rate of {line}: {'; '.join(parts)}")
    return found
