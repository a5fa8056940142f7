"""Dataclasses as JSON data, and back. The schema of a record is compared before."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter

from ..core.latency import LatencyCount
from ..core.step_down import StepDown
from ..core.trial import Fault, Load, Outcome, Problem

T = TypeVar("T")


def finite(value: float) -> float | None:
    """*value*, or None (``null``) if it is not finite."""
    return value if math.isfinite(value) else None


def read_figure(value: float | None) -> float:
    """The inverse of :func:`finite`: NaN for ``null``."""
    return math.nan if value is None else value


def field_data(record: Any, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """The fields of a dataclass as JSON data, in their order."""
    return {item.name: _plain(getattr(record, item.name)) for item in fields(record) if item.name not in without}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if is_dataclass(value):
        return field_data(value)
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


def read_fields(kind: type[T], data: Any) -> T:
    """The dataclass *kind* with the fields that *data* holds; other keys are left out. Raises ValueError."""
    adapter: TypeAdapter[T] = _adapter(kind)  # type: ignore[arg-type]  # a class is hashable
    return adapter.validate_python(data)


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


_LATENCY_KEYS = {
    key.removesuffix("_us"): key
    for key in (
        *("tx_port", "rx_port", "sent", "received", "mean_us", "minimum_us", "maximum_us"),
        *("histogram_us", "out_of_order", "duplicates", "elsewhere", "resolution", "doubt"),
    )
}
"""The fields of a latency count -> their keys, in the order of the file."""


def outcome_data(outcome: Outcome) -> dict[str, Any]:
    """*outcome* as JSON data."""
    return {
        "load_pps": outcome.load.pps,
        "duration": outcome.duration,
        "elapsed": finite(outcome.elapsed),
        "started": outcome.started,
        "directions": [field_data(direction) for direction in outcome.directions],
        "seen_by_generator": problems_data(outcome.problems),
        "readings": {name: finite(value) for name, value in outcome.readings.items()},
        "latency": [_latency_data(item) for item in outcome.latency],
        "counters": {moment: dict(counts) for moment, counts in outcome.counters.items()},
    }


def read_outcome(data: Mapping[str, Any]) -> Outcome:
    """The outcome that *data* holds. Raises ValueError."""
    own = {
        "load": Load(data["load_pps"]),
        "elapsed": read_figure(data["elapsed"]),
        "problems": read_problems(data["seen_by_generator"]),
        "readings": {name: read_figure(value) for name, value in data["readings"].items()},
        "latency": [{name: item[key] for name, key in _LATENCY_KEYS.items()} for item in data["latency"]],
    }
    return read_fields(Outcome, {**data, **own})


def problems_data(problems: Sequence[Problem]) -> list[dict[str, Any]]:
    """*problems* as JSON data."""
    return [_problem_data(problem) for problem in problems]


def _problem_data(problem: Problem) -> dict[str, Any]:
    found: dict[str, Any] = {"fault": problem.fault.name, "detail": problem.detail}
    if problem.frames is not None:
        found["frames"] = problem.frames
    if problem.directions:
        found["directions"] = [list(pair) for pair in problem.directions]
    if problem.delay:
        found["delay_us"] = problem.delay
    return found


def read_problems(data: Sequence[Any]) -> tuple[Problem, ...]:
    """The problems that *data* holds. Raises ValueError."""
    return tuple(_read_problem(item) for item in data)


def _read_problem(data: Any) -> Problem:
    fault, delay = Fault[data["fault"]], data.get("delay_us", 0.0)
    return read_fields(Problem, {**data, "fault": fault, "delay": delay})


def _latency_data(count: LatencyCount) -> dict[str, Any]:
    found = {key: getattr(count, name) for name, key in _LATENCY_KEYS.items()}
    histogram = {str(key): frames for key, frames in count.histogram.items()}
    return {**found, "histogram_us": histogram, "resolution": count.resolution.value}


def step_down_data(found: StepDown) -> dict[str, Any]:
    """Return what a repetition of an overload has besides its outcome. ``sent_pps``: ``null`` is infinite."""
    return {
        "second_load_pps": found.second.pps,
        "before": field_data(found.before),
        "after": field_data(found.after),
        "samples": [field_data(sample) for sample in found.samples],
        "sent_pps": [finite(rate) for rate in found.sent],
    }


def read_step_down(data: Mapping[str, Any], outcome: Outcome) -> StepDown:
    """The repetition with *outcome* that *data* holds. Raises ValueError."""
    low, high = (math.inf if rate is None else rate for rate in data["sent_pps"])
    own = {"outcome": outcome, "second": Load(data["second_load_pps"]), "sent": (low, high)}
    return read_fields(StepDown, {**data, **own})
