"""A ramp as the JSON that trex-loadtest-viz draws."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

from ..core.quantity import TrafficWords
from ..units import si
from .ramp import RampPhase, RampResult, RampStep

_ROUNDING = 1e-6
"""Seconds by which rounding may change a sum."""


def loadtest_data(result: RampResult, traffic: TrafficWords, simulated: bool = False) -> dict[str, Any]:
    """Return the ramp as JSON data. Ports are numbered from 0, in the order in which the testbed uses them.

    ``profile_file`` is the name of the *traffic*: results with the same words come into the same graph. An entry is one
    second, however long a step is: its rates are the means of the steps in it, weighted by time.
    """
    plan, steps = result.plan, result.steps
    ports: dict[int, int] = {}
    for direction in next((step.trial.outcome.directions for step in steps if step.trial.outcome.directions), ()):
        for port in (direction.tx_port, direction.rx_port):
            ports.setdefault(port, len(ports))
    edges = [0.0, *accumulate(step.trial.outcome.duration for step in steps)]
    seconds = {}
    for at in range(math.ceil(edges[-1] - _ROUNDING)):
        lasting = [min(end, at + 1.0) - max(start, at) for start, end in pairwise(edges)]
        parts = [(step, time) for step, time in zip(steps, lasting, strict=True) if time > _ROUNDING]
        seconds[str(at)] = _entry(parts, ports, plan.line_pps)
    return {
        "vars": {
            "profile_file": traffic.profile.name,
            "unidirectional": not traffic.bidirectional,
            "warmup_mult": si(plan.warm_up_pps, "pps").replace(" ", ""),
            "warmup_duration": plan.warm_up,
            "rampup_target": plan.target,
            "rampup_duration": plan.steps * plan.step,
            "hold_duration": plan.hold,
            "simulated": simulated,
            "deviations": list(map(str, result.deviations)),
        },
        "stats": seconds,
    }


def _entry(parts: Sequence[tuple[RampStep, float]], ports: Mapping[int, int], line_pps: float) -> dict[str, Any]:
    """Return the rates of one second by port. *parts*: its steps, and how much of it each takes."""
    sent, received = [0.0] * len(ports), [0.0] * len(ports)
    whole = math.fsum(lasting for _, lasting in parts)
    for step, lasting in parts:
        for direction in step.trial.outcome.directions:
            weight = lasting / whole / step.trial.seconds.high
            sent[ports[direction.tx_port]] += direction.offered * weight
            received[ports[direction.rx_port]] += direction.forwarded * weight
    entry: dict[str, Any] = {}
    for port, (out, back) in enumerate(zip(sent, received, strict=True)):
        utils = {"tx_util": 100 * out / line_pps, "rx_util": 100 * back / line_pps}
        entry[str(port)] = {"tx_pps": out, "rx_pps": back, **utils}
    longest, _ = max(parts, key=lambda part: part[1])
    entry["phase"] = longest.phase.value if longest.phase is not RampPhase.RISE else "rampup"
    return entry
