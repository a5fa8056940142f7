"""The outcome of a trial as JSON data, and back: all that a rule looks at."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.latency import LatencyCount
from ..core.step_down import CountSnapshot, StepDown
from ..core.trial import DirectionCount, Fault, Load, Outcome, Problem
from .json_fields import Fields, field_data, finite, read_figure

_LATENCY_KEYS = {
    key.removesuffix("_us"): key
    for key in (
        *("tx_port", "rx_port", "sent", "received", "mean_us", "minimum_us", "maximum_us"),
        *("histogram_us", "out_of_order", "duplicates", "elsewhere"),
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


def read_outcome(take: Fields) -> Outcome:
    """The outcome that *take* holds. Raises ValueError."""
    return Outcome(
        Load(take.number("load_pps")),
        take.number("duration"),
        take.number("elapsed"),
        take.number("started"),
        tuple(_read_direction(item) for item in take("directions", list)),
        read_problems(take("seen_by_generator", list)),
        {name: read_figure(name, value) for name, value in take("readings", dict).items()},
        tuple(read_latency(item) for item in take("latency", list)),
        {moment: _read_counters(counts) for moment, counts in take("counters", dict).items()},
    )


def _read_counters(data: Any) -> dict[str, int]:
    take = Fields(data)
    return {key: take(key, int) for key in take.data}


def _read_direction(data: Any) -> DirectionCount:
    return DirectionCount(**Fields(data).fields(DirectionCount))


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
    take = Fields(data)
    fault = take("fault", str)
    if fault not in Fault.__members__:
        raise ValueError(f"'fault' is '{fault}'; known: {', '.join(Fault.__members__)}")
    frames = take("frames", int, float) if "frames" in data else None
    directions = tuple((int(tx), int(rx)) for tx, rx in data.get("directions", ()))
    delay = take("delay_us", int, float) if "delay_us" in data else 0.0
    return Problem(Fault[fault], take("detail", str), frames, directions, delay)


def _latency_data(count: LatencyCount) -> dict[str, Any]:
    found = {key: getattr(count, name) for name, key in _LATENCY_KEYS.items()}
    return {**found, "histogram_us": {str(key): frames for key, frames in count.histogram.items()}}


def read_latency(data: Any) -> LatencyCount:
    """The latency count that *data* holds. Raises ValueError."""
    found = Fields(data).fields(LatencyCount, keys=_LATENCY_KEYS)
    counts = Fields(found["histogram"])
    histogram = {int(key): counts(key, int) for key in counts.data}
    return LatencyCount(**{**found, "histogram": histogram})


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
    take = Fields(data)
    low, high = (math.inf if rate is None else read_figure("sent_pps", rate) for rate in take("sent_pps", list))
    return StepDown(
        outcome,
        Load(take.number("second_load_pps")),
        _read_snapshot(take("before", dict)),
        _read_snapshot(take("after", dict)),
        tuple(_read_snapshot(item) for item in take("samples", list)),
        (low, high),
    )


def _read_snapshot(data: Any) -> CountSnapshot:
    found = Fields(data).fields(CountSnapshot)
    return CountSnapshot(tuple(map(int, found["offered"])), tuple(map(int, found["forwarded"])))
