"""The records of a run: one per trial, one per requirement, one of the environment. Plain data, to JSON and back.

Every record has its schema (``linerate.trial/1`` …), its run and whether it was simulated. The JSON Schema files are in
``schemas/`` beside this module. Times are Unix time in s; rates are frames/s of one direction; sizes are bytes with
FCS. A number that is not finite is written as ``null`` and read back as NaN.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Literal, get_args

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
            "run": self.run,
            "simulated": self.simulated,
            "requirement": self.requirement,
            "test": self.test,
            "sentence": self.sentence,
            "profile": self.profile,
            "mean_size": self.mean_size,
            "link_bps": self.link_bps,
            "clock_speed": self.clock_speed,
            "number": self.trial.number,
            "valid": self.trial.valid,
            "sent_for": self.trial.sent_for,
            "load_pps": outcome.load.pps,
            "duration": outcome.duration,
            "elapsed": _finite(outcome.elapsed),
            "started": outcome.started,
            "directions": [_direction(direction) for direction in outcome.directions],
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
            run=take("run", str),
            simulated=take("simulated", bool),
            requirement=take("requirement", int),
            test=take("test", str),
            sentence=take("sentence", str),
            profile=take("profile", str),
            mean_size=take.number("mean_size"),
            link_bps=take.number("link_bps"),
            clock_speed=take.number("clock_speed"),
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
        measured = self.measured
        return {
            "schema": REQUIREMENT,
            "run": self.run,
            "simulated": self.simulated,
            "number": self.number,
            "test": self.test,
            "sentence": self.sentence,
            "verdict": self.verdict,
            "message": self.message,
            "goal": self.goal,
            "goal_terms": dict(self.goal_terms),
            "profile": self.profile,
            "mean_size": self.mean_size,
            "link_bps": self.link_bps,
            "threshold": self.threshold,
            "measured": measured
            and {
                "pps": measured.pps,
                "l1_bps": measured.l1_bps,
                "l2_bps": measured.l2_bps,
                "percent": measured.percent,
            },
            "trials": list(self.trials),
            "started": self.started,
            "ended": self.ended,
            "extra": dict(self.extra),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RequirementRecord:
        """The record that *data* holds. Raises ValueError saying what is missing or wrong."""
        take = _Fields(data, REQUIREMENT)
        figures = take("measured", dict, type(None))
        return cls(
            run=take("run", str),
            simulated=take("simulated", bool),
            number=take("number", int),
            test=take("test", str),
            sentence=take("sentence", str),
            verdict=take("verdict", str),
            message=take("message", str),
            goal=take("goal", str),
            goal_terms=take("goal_terms", dict),
            profile=take("profile", str),
            mean_size=take.number("mean_size"),
            link_bps=take.number("link_bps"),
            threshold=take("threshold", str),
            measured=None if figures is None else _read_figures(figures),
            trials=tuple(take("trials", list)),
            started=take.number("started"),
            ended=take.number("ended"),
            extra=take("extra", dict),
        )


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
        return {
            "schema": ENVIRONMENT,
            "run": self.run,
            "simulated": self.simulated,
            "testbed": self.testbed,
            "platform": self.platform,
            "software": self.software,
            "clock_speed": self.clock_speed,
            "started": self.started,
            "ended": self.ended,
            "host": dict(self.host),
            "packages": dict(self.packages),
            "versions": dict(self.versions),
            "cpu_steal_percent": self.cpu_steal_percent,
            "extra": dict(self.extra),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> EnvironmentRecord:
        """The record that *data* holds. Raises ValueError saying what is missing or wrong."""
        take = _Fields(data, ENVIRONMENT)
        return cls(
            run=take("run", str),
            simulated=take("simulated", bool),
            testbed=take("testbed", str),
            platform=take("platform", str),
            software=take("software", str),
            clock_speed=take.number("clock_speed"),
            started=take.number("started"),
            ended=take("ended", float, int, type(None)),
            host=take("host", dict),
            packages=take("packages", dict),
            versions=take("versions", dict),
            cpu_steal_percent=take("cpu_steal_percent", float, int, type(None)),
            extra=take("extra", dict),
        )


def dumps(data: Mapping[str, Any]) -> str:
    """One record as one line of JSON. Raises ValueError if a number is not finite or something is not JSON data."""
    try:
        return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(", ", ": "))
    except (TypeError, ValueError) as error:
        raise ValueError(f"a {data.get('schema', 'record')} record cannot be written as JSON: {error}") from None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _direction(count: DirectionCount) -> dict[str, int]:
    return {
        "tx_port": count.tx_port,
        "rx_port": count.rx_port,
        "intended": count.intended,
        "offered": count.offered,
        "forwarded": count.forwarded,
        "offered_bytes": count.offered_bytes,
        "forwarded_bytes": count.forwarded_bytes,
    }


def _read_direction(data: Any) -> DirectionCount:
    take = _Fields(data, None)
    names = ("tx_port", "rx_port", "intended", "offered", "forwarded", "offered_bytes", "forwarded_bytes")
    return DirectionCount(*(take(name, int) for name in names))


def _latency(count: LatencyCount) -> dict[str, Any]:
    return {
        "tx_port": count.tx_port,
        "rx_port": count.rx_port,
        "sent": count.sent,
        "received": count.received,
        "mean_us": count.mean,
        "minimum_us": count.minimum,
        "maximum_us": count.maximum,
        "jitter_us": count.jitter,
        "histogram_us": {str(key): frames for key, frames in count.histogram.items()},
        "out_of_order": count.out_of_order,
        "duplicates": count.duplicates,
    }


def _read_latency(data: Any) -> LatencyCount:
    take = _Fields(data, None)
    histogram = take("histogram_us", dict)
    return LatencyCount(
        tx_port=take("tx_port", int),
        rx_port=take("rx_port", int),
        sent=take("sent", int),
        received=take("received", int),
        mean=take.number("mean_us"),
        maximum=take.number("maximum_us"),
        jitter=take.number("jitter_us"),
        minimum=take("minimum_us", float, int, type(None)),
        histogram={int(key): int(_read_figure(key, frames)) for key, frames in histogram.items()},
        out_of_order=take("out_of_order", int),
        duplicates=take("duplicates", int),
    )


def _problem(problem: Problem) -> dict[str, str]:
    return {"fault": problem.fault.name, "detail": problem.detail}


def _read_figures(data: Any) -> RateFigures:
    take = _Fields(data, None)
    return RateFigures(*(take.number(name) for name in ("pps", "l1_bps", "l2_bps", "percent")))


def _read_problem(data: Any) -> Problem:
    take = _Fields(data, None)
    fault = take("fault", str)
    if fault not in Fault.__members__:
        raise ValueError(f"'fault' is '{fault}'; known: {', '.join(Fault.__members__)}")
    return Problem(Fault[fault], take("detail", str))


def _read_figure(name: str, value: Any) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"'{name}' is {value!r}; expected a number or null")
    return float(value)


class _Fields:
    """Takes keys from JSON data, checking their types."""

    def __init__(self, data: Any, schema_name: str | None) -> None:
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
