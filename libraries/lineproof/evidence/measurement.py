"""The record of one measurement of a study: a line of ``measurements.jsonl``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .json_fields import field_data, finite, read_fields, read_figure
from .records import MEASUREMENT


@dataclass(frozen=True, slots=True)
class MeasurementRecord:
    """*row* of *variant* in *block*; *turn*: ``first``, ``last`` of the baseline, else "".

    ``value`` in ``unit``; None: a gap, and ``reason`` says why. ``requirement``: the number of its trials in
    ``trials.jsonl``. ``line``: one direction's line rate in ``unit``, None where that is no rate. ``curve``: of a ramp,
    offered and forwarded at each step, in ``unit``. ``carried_from``: the run that measured it, "" for this one.
    ``excused``: a gap that is no failure, because the variant is not here, or cannot do what the row asks for.
    """

    run: str
    simulated: bool
    study: str
    block: int
    turn: str
    variant: str
    row: str
    platform: str
    software: str
    sentence: str
    value: float | None
    unit: str
    reason: str
    requirement: int
    started: float
    ended: float
    line: float | None = None
    curve: tuple[tuple[float, float], ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    carried_from: str = ""
    excused: bool = False

    def to_json(self) -> dict[str, Any]:
        """The record as JSON data (schema ``lineproof.measurement/1``)."""
        data = field_data(self)
        data["figures"] = {name: finite(value) for name, value in self.figures.items()}
        return {"schema": MEASUREMENT, **data}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> MeasurementRecord:
        """The record that *data* holds. Raises ValueError saying what is missing or wrong."""
        figures = {name: read_figure(value) for name, value in data["figures"].items()}
        return read_fields(cls, {**data, "figures": figures})
