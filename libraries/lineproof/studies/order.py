"""The order of a study's measurements: blocks, each with the baseline first and last, the rest drawn from the seed.

What drifts (a machine that warms up, a neighbour who begins to work) then falls on all variants alike, and the two
measurements of the baseline in each block show it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean
from typing import Literal

from .study import Study

Turn = Literal["first", "", "last"]
"""The baseline's two places in a block; "": another variant."""


@dataclass(frozen=True, slots=True)
class Step:
    """One measurement: *row* of *variant*, in *block* 1, 2 …"""

    block: int
    turn: Turn
    variant: str
    row: str

    def __str__(self) -> str:
        place = f", {self.turn}" if self.turn else ""
        return f"block {self.block}{place}: {self.variant}, {self.row}"


@dataclass(frozen=True, slots=True)
class Visit:
    """The *rows* of a *variant* that are measured one after another, once it is set up."""

    block: int
    turn: Turn
    variant: str
    rows: tuple[str, ...]

    @property
    def steps(self) -> Iterator[Step]:
        """Yield its measurements."""
        return (Step(self.block, self.turn, self.variant, row) for row in self.rows)


def visits_of(study: Study) -> tuple[Visit, ...]:
    """All visits of *study* in their order, the same each time.

    A row with fewer ``repeats`` is left out of later blocks; one with a single repeat has no second baseline, which
    nothing could be compared with.
    """
    return tuple(visit for block in range(1, study.repeats + 1) for visit in _block(study, block) if visit.rows)


def _block(study: Study, block: int) -> Iterator[Visit]:
    def visit(variant: str, turn: Turn) -> Visit:
        rows = [row for row in study.rows_of(variant) if block <= study.repeats_of(row)]
        if turn == "last":
            rows = [row for row in rows if study.repeats_of(row) > 1]
        return Visit(block, turn, variant, tuple(rows))

    others = [name for name in study.variants if name != study.baseline]
    # a text as the seed gives the same order on every Python
    random.Random(f"{study.seed}/{block}").shuffle(others)  # noqa: S311  (nothing secret depends on it)
    if study.baseline is not None:
        yield visit(study.baseline, "first")
    yield from (visit(name, "") for name in others)
    if study.baseline is not None and others:
        yield visit(study.baseline, "last")


def mean_places(study: Study) -> dict[str, float]:
    """The mean place of each variant in its blocks, 1: right after the first baseline, if there is one.

    A seed may put one variant early and another late, so that what drifts within the blocks falls on them unequally.
    """
    places: dict[str, list[int]] = {}
    for _, block in groupby((visit for visit in visits_of(study) if not visit.turn), lambda visit: visit.block):
        for place, visit in enumerate(block, 1):
            places.setdefault(visit.variant, []).append(place)
    return {name: fmean(places[name]) for name in study.variants if name in places}


def left_of(visits: Sequence[Visit], done: frozenset[Step]) -> tuple[Visit, ...]:
    """*visits* without the measurements that are *done*."""
    found = (
        Visit(visit.block, visit.turn, visit.variant, tuple(step.row for step in visit.steps if step not in done))
        for visit in visits
    )
    return tuple(visit for visit in found if visit.rows)
