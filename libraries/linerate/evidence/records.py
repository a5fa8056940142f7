"""The records of a run: one per trial, one per requirement, one of the environment. Plain data, to JSON and back.

Every record has its schema (``linerate.trial/1`` …), its run and whether it was simulated. The JSON Schema files are in
``schemas/`` beside this module. Times are Unix time in s; rates are frames/s of one direction; sizes are bytes with
FCS. A number that is not finite is written as ``null`` and read back as NaN.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args, get_type_hints

from ..counts.latency import LatencyCount
from ..counts.trial import DirectionCount, Fault, Load, Outcome, Problem, Trial
from ..units import Rate

TRIAL = "linerate.trial/1"
REQUIREMENT = "linerate.requirement/1"
ENVIRONMENT = "linerate.environment/1"
MANIFEST = "linerate.manifest/1"
CHARACTERISATION = "linerate.characterisation/1"

VerdictWord = Literal["PASS", "FAIL", "INCONCLUSIVE"]
VERDICTS: tuple[str, ...] = get_args(VerdictWord)


def schema(name: str) -> dict[str, Any]:
    """The published JSON Schema (draft 2020-12) of a record, as ``schema(TRIAL)``."""
    short = name.removeprefix("linerate.").split("/")[0]
    text = (files(__package__) / "schemas" / f"{short}.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


@dataclass(frozen=True, slots=True)
class RateFigures:
    """A rate in every unit: frames/s, L1 bit/s, L2 bit/s, per cent of one direction's line rate."""

    pps: float
    l1_bps: float
    l2_bps: float
    percent: float

    @classmethod
    def of(cls, rate: Rate) -> RateFigures:
        """The figures of a :class:`Rate`."""
        return cls(rate.pps, rate.l1_bps, rate.l2_bps, rate.percent)


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """One line of ``trials.jsonl``: a trial and all that is needed to judge it again without the testbed.

    ``requirement``: the number of the requirement within the run. ``mean_size`` in bytes with FCS; ``link_bps``: link
    speed of one direction; ``clock_speed``: seconds of the testbed's clock per second of real time.
    """

    run: str
    simulated: bool
    requirement: int
    test: str
    sentence: str
    profile: str
    mean_size: float
    link_bps: float
    trial: Trial
    clock_speed: float = 1.0

    def to_json(self) -> dict[str, Any]:
        """The record as JSON data (schema ``linerate.trial/1``)."""
        outcome = self.trial.outcome
        return {
            "schema": TRIAL,
            **_field_data(self, without="trial"),
            "number": self.trial.number,
            "valid": self.trial.valid,
            "sent_for": self.trial.sent_for,
            "load_pps": outcome.load.pps,
            "duration": outcome.duration,
            "elapsed": _finite(outcome.elapsed),
            "started": outcome.started,
            "directions": [_field_data(direction) for direction in outcome.directions],
            "seen_by_generator": [_problem(problem) for problem in outcome.problems],
            "problems": [_problem(problem) for problem in self.trial.problems],
            "readings": {name: _finite(value) for name, value in outcome.readings.items()},
            "latency": [_latency(item) for item in outcome.latency],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TrialRecord:
        """The record that *data* holds. Raises ValueError saying what is missing or wrong."""
        take = _Fields(data, TRIAL)
        readings = take("readings", dict)
        outcome = Outcome(
            Load(take.number("load_pps")),
            take.number("duration"),
            take.number("elapsed"),
            take.number("started"),
            tuple(_read_direction(item) for item in take("directions", list)),
            tuple(_read_problem(item) for item in take("seen_by_generator", list)),
            {name: _read_figure(name, value) for name, value in readings.items()},
            # written since 0.2; older records have none
            tuple(_read_latency(item) for item in data.get("latency", ())),
        )
        problems = tuple(_read_problem(item) for item in take("problems", list))
        return cls(
            **take.fields(cls, without="trial"),
            trial=Trial(take("number", int), outcome, problems, take("sent_for", float, int, type(None))),
        )


@dataclass(frozen=True, slots=True)
class RequirementRecord:
    """One line of ``requirements.jsonl``: an SLA sentence and its verdict.

    ``goal_terms``: the goal's figures, as in its file. ``threshold``: in words, in every unit. ``measured``: the rate
    found, or None. ``trials``: the numbers of its trials in ``trials.jsonl``. ``extra``: JSON data of special
    quantities (cycles per packet, latency, findings from telemetry).
    """

    run: str
    simulated: bool
    number: int
    test: str
    sentence: str
    verdict: VerdictWord
    message: str
    goal: str
    goal_terms: Mapping[str, Any]
    profile: str
    mean_size: float
    link_bps: float
    threshold: str
    measured: RateFigures | None
    trials: tuple[int, ...]
    started: float
    ended: float
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"a verdict is one of {', '.join(VERDICTS)}, not '{self.verdict}'")

    def to_json(self) -> dict[str, Any]:
        """The record as JSON data (schema ``linerate.requirement/1``)."""
        return {"schema": REQUIREMENT, **_field_data(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RequirementRecord:
        """The record that *data* holds. Raises ValueError saying what is missing or wrong."""
        found = _Fields(data, REQUIREMENT).fields(cls)
        if found["measured"] is not None:
            found["measured"] = RateFigures(**_Fields(found["measured"]).fields(RateFigures))
        return cls(**{**found, "trials": tuple(found["trials"])})


@dataclass(frozen=True, slots=True)
class EnvironmentRecord:
    """``environment.json``: testbed, host and versions.

    ``versions``: generator, client, server, router, as each reports it: ``{"generator.server": "v3.08"}``.
    ``packages``: Python distributions. ``cpu_steal_percent``: CPU time that the hypervisor withheld from this machine
    during the run, in per cent of all CPU time; None before the end and if the system does not report it. ``ended``
    None: the run did not finish.
    """

    run: str
    simulated: bool
    testbed: str
    platform: str
    software: str
    clock_speed: float
    started: float
    ended: float | None = None
    host: Mapping[str, Any] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    cpu_steal_percent: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The record as JSON data (schema ``linerate.environment/1``)."""
        return {"schema": ENVIRONMENT, **_field_data(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> EnvironmentRecord:
        """The record that *data* holds. Raises ValueError saying what is missing or wrong."""
        return cls(**_Fields(data, ENVIRONMENT).fields(cls))


def dumps(data: Mapping[str, Any]) -> str:
    """One record as one line of JSON. Raises ValueError if a number is not finite or something is not JSON data."""
    try:
        return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(", ", ": "))
    except (TypeError, ValueError) as error:
        raise ValueError(f"a {data.get('schema', 'record')} record cannot be written as JSON: {error}") from None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _field_data(record: Any, without: str = "") -> dict[str, Any]:
    """The fields of a dataclass as JSON data, in their order."""
    return {item.name: _json_data(getattr(record, item.name)) for item in fields(record) if item.name != without}


def _json_data(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if is_dataclass(value):
        return _field_data(value)
    return list(value) if isinstance(value, tuple) else value


def _read_direction(data: Any) -> DirectionCount:
    return DirectionCount(**_Fields(data).fields(DirectionCount))


_LATENCY_KEYS = {
    key.removesuffix("_us"): key
    for key in (
        *("tx_port", "rx_port", "sent", "received", "mean_us", "minimum_us", "maximum_us"),
        *("histogram_us", "out_of_order", "duplicates", "elsewhere"),
    )
}
"""The fields of a latency count -> their keys, in the order of the file."""


def _latency(count: LatencyCount) -> dict[str, Any]:
    found = {key: getattr(count, name) for name, key in _LATENCY_KEYS.items()}
    return {**found, "histogram_us": {str(key): frames for key, frames in count.histogram.items()}}


def _read_latency(data: Any) -> LatencyCount:
    # records of 0.1 lack a key
    found = _Fields({"elsewhere": 0, **data}).fields(LatencyCount, keys=_LATENCY_KEYS)
    histogram = {int(key): int(_read_figure(key, frames)) for key, frames in found["histogram"].items()}
    return LatencyCount(**{**found, "histogram": histogram})


def _problem(problem: Problem) -> dict[str, Any]:
    found: dict[str, Any] = {"fault": problem.fault.name, "detail": problem.detail}
    if problem.frames is not None:
        found["frames"] = problem.frames
    if problem.directions:
        found["directions"] = [list(pair) for pair in problem.directions]
    return found


def _read_problem(data: Any) -> Problem:
    take = _Fields(data)
    fault = take("fault", str)
    if fault not in Fault.__members__:
        raise ValueError(f"'fault' is '{fault}'; known: {', '.join(Fault.__members__)}")
    frames = take("frames", int) if "frames" in data else None
    directions = tuple((int(tx), int(rx)) for tx, rx in data.get("directions", ()))
    return Problem(Fault[fault], take("detail", str), frames, directions)


def _read_figure(name: str, value: Any) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"'{name}' is {value!r}; expected a number or null")
    return float(value)


_JSON_TYPES: dict[Any, tuple[type, ...]] = {
    str: (str,),
    bool: (bool,),
    int: (int,),
    float | None: (float, int, type(None)),
    VerdictWord: (str,),
    Mapping[str, Any]: (dict,),
    Mapping[str, str]: (dict,),
    Mapping[int, int]: (dict,),
    tuple[int, ...]: (list,),
    RateFigures | None: (dict, type(None)),
}
"""The type of a field -> the types of its value in JSON. A float may be null, see :meth:`_Fields.number`."""

_types_of_fields = cache(get_type_hints)


class _Fields:
    """Takes keys from JSON data, checking their types."""

    def __init__(self, data: Any, schema_name: str | None = None) -> None:
        if not isinstance(data, Mapping):
            raise ValueError(f"is {type(data).__name__}; expected a mapping")
        self._data = data
        if schema_name is not None and data.get("schema") != schema_name:
            raise ValueError(f"'schema' is {data.get('schema')!r}; expected '{schema_name}'")

    def __call__(self, key: str, *types: type) -> Any:
        if key not in self._data:
            raise ValueError(f"the key '{key}' is missing")
        value = self._data[key]
        # JSON's true is an int to Python, but never a count
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            expected = " or ".join("null" if kind is type(None) else kind.__name__ for kind in types)
            raise ValueError(f"'{key}' is {value!r}; expected {expected}")
        return value

    def number(self, key: str) -> float:
        if key not in self._data:
            raise ValueError(f"the key '{key}' is missing")
        return _read_figure(key, self._data[key])

    def fields(self, record: type, without: str = "", keys: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The fields of the dataclass *record*; *keys*: their keys in the data where they have other names."""
        found = {}
        for name, kind in _types_of_fields(record).items():
            if name != without:
                key = keys[name] if keys else name
                found[name] = self.number(key) if kind is float else self(key, *_JSON_TYPES[kind])
        return found
