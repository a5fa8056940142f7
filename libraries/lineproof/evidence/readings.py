"""Readings of the router's counters as records: one line of ``readings.jsonl`` each, failed ones too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..core.causes import Cause, Role, Stage
from ..core.neighbours import NeighbourEntry
from ..core.pause_names import Pauses
from ..core.telemetry import InterfaceCounters, NodeRuntime, Telemetry
from ..session.router_watch import Reading
from .json_fields import Fields, field_data
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
        take = Fields(data, READING)
        found = take("telemetry", dict, type(None))
        telemetry = None if found is None else _read_telemetry(Fields(found))
        reading = Reading(telemetry, take("error", str), take("restarted", bool))
        return cls(**take.fields(cls, without=("reading",)), reading=reading)


def _telemetry_data(telemetry: Telemetry) -> dict[str, Any]:
    causes = [{**field_data(item), "stage": item.stage.name, "role": item.role.name} for item in telemetry.causes]
    found = {**field_data(telemetry, without=("raw", "causes", "neighbours", "pauses")), "causes": causes}
    if telemetry.neighbours:
        found["neighbours"] = [field_data(item) for item in telemetry.neighbours]
    if any(item != Pauses() for item in telemetry.pauses.values()):
        found["pauses"] = {name: field_data(item) for name, item in telemetry.pauses.items()}
    return found


def _read_telemetry(take: Fields) -> Telemetry:
    def record(kind: type, data: Any) -> Any:
        return kind(**Fields(data).fields(kind))

    return Telemetry(
        uptime=None if take("uptime", int, float, type(None)) is None else take.number("uptime"),
        interfaces={name: record(InterfaceCounters, item) for name, item in take("interfaces", dict).items()},
        drops=dict(take("drops", dict)),
        runtime=tuple(record(NodeRuntime, item) for item in take("runtime", list)),
        since_clear=take.number("since_clear"),
        causes=tuple(_read_cause(Fields(item)) for item in take("causes", list)),
        neighbours=tuple(record(NeighbourEntry, item) for item in take.data.get("neighbours", ())),
        pauses={name: record(Pauses, item) for name, item in take.data.get("pauses", {}).items()},
    )


def _read_cause(take: Fields) -> Cause:
    stage, role = take("stage", str), take("role", str)
    if stage not in Stage.__members__ or role not in Role.__members__:
        raise ValueError(f"stage '{stage}' or role '{role}' is not known")
    found = take.fields(Cause, without=("stage", "role"))
    return Cause(**found, stage=Stage[stage], role=Role[role])
