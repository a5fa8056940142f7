"""The record of a margin: how much more than its sentence a router carries, from a bounded search upwards."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .json_fields import field_data, read_fields
from .records import MARGIN

FILE_ENDING = "-margin.json"
"""Of ``characterisation/003-margin.json``; the number is that of the search's own trials."""


@dataclass(frozen=True, slots=True)
class MarginRecord:
    """The search after ``requirement``: loads carried as ratios to the threshold, 1.08 is 108 %.

    ``low``: the highest load that was carried within the goal; ``high``: the lowest that was not, None: all that was
    asked for was carried. ``finished``: they are as close as asked; if not, ``reason`` says what ended the search.
    ``seconds`` of traffic.
    """

    run: str
    simulated: bool
    requirement: int
    test: str
    sentence: str
    low: float
    high: float | None
    finished: bool
    reason: str
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """The record as JSON data (schema ``lineproof.margin/1``)."""
        return {"schema": MARGIN, **field_data(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> MarginRecord:
        """The record that *data* holds. Raises ValueError saying what is missing or wrong."""
        return read_fields(cls, data)

    def __str__(self) -> str:
        """``carries 108.2 % to 109.1 % of it``; never more than was found, so the ends are rounded outwards."""
        low, unfinished = _percent(self.low, math.floor), ""
        if not self.finished:
            unfinished = "; the search is unfinished" + (f": {self.reason}" if self.reason else "")
        if self.high is None:
            all_sent = ": all that the ports can send" if self.finished else ""
            return f"carries at least {low} of it{all_sent}{unfinished}"
        high = _percent(self.high, math.ceil)
        return f"carries {low}{'' if high == low else f' to {high}'} of it{unfinished}"


def _percent(ratio: float, rounded: Callable[[float], int]) -> str:
    return f"{rounded(round(1000 * ratio, 6)) / 10:g} %"
