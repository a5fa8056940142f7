"""The record of a margin: how much more than its sentence a router carries, from a bounded search upwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .json_fields import Fields, field_data
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
        """The record as JSON data (schema ``linerate.margin/1``)."""
        return {"schema": MARGIN, **field_data(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> MarginRecord:
        """The record that *data* holds. Raises ValueError saying what is missing or wrong."""
        return cls(**Fields(data, MARGIN).fields(cls))

    def __str__(self) -> str:
        """``carries 108.2 % to 109.1 % of it``."""
        low = f"{100 * self.low:.4g} %"
        if self.high is None:
            return f"carries at least {low} of it"
        return f"carries {low} to {100 * self.high:.4g} % of it{'' if self.finished else ', the search is unfinished'}"
