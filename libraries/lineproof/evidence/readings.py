"""Readings of the router's counters as records: one line of ``readings.jsonl`` each, failed ones too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..core.causes import Role, Stage
from ..core.pause_names import Pauses
from ..core.telemetry import Telemetry
from ..session.router_watch import Reading
from .json_fields import field_data, read_fields, read_figure
from .records import READING


@dataclass(frozen=True, slots=True)
class ReadingRecord:
    """A reading while requirement number ``requirement`` was judged, after ``after_trial`` of its trials.

    The router's raw output is in ``telemetry/``, not here.
    """

    run: str
    simulated: bool
    requirement: int
    after_trial: int
    reading: Reading

    def to_json(self) -> dict[str, Any]:
        """The record as JSON data (schema ``lineproof.reading/2``)."""
        found = self.reading
        return {
            "schema": READING,
            **field_data(self, without=("reading",)),
            "error": found.error,
            "restarted": found.restarted,
            "telemetry": None if found.telemetry is None else _telemetry_data(found.telemetry),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ReadingRecord:
        """The record that *data* holds. Raises ValueError saying what is missing or wrong."""
        found = data["telemetry"]
        if found is not None:
            causes = [{**item, "stage": Stage[item["stage"]], "role": Role[item["role"]]} for item in found["causes"]]
            found = {**found, "since_clear": read_figure(found["since_clear"]), "causes": causes}
        return read_fields(cls, {**data, "reading": {**data, "telemetry": found}})


def _telemetry_data(telemetry: Telemetry) -> dict[str, Any]:
    causes = [{**field_data(item), "stage": item.stage.name, "role": item.role.name} for item in telemetry.causes]
    found = {**field_data(telemetry, without=("raw", "causes", "neighbours", "pauses")), "causes": causes}
    if telemetry.neighbours:
        found["neighbours"] = [field_data(item) for item in telemetry.neighbours]
    if any(item != Pauses() for item in telemetry.pauses.values()):
        found["pauses"] = {name: field_data(item) for name, item in telemetry.pauses.items()}
    return found
