"""A ramp as the JSON that trex-loadtest-viz draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..methods.ramp import RampPhase, RampResult, RampStep
from ..units import si
from .rates import TrafficFigures

_ROUNDING = 1e-6
"""Seconds by which rounding may change a sum."""


def loadtest_data(
    result: RampResult, traffic: TrafficFigures, bidirectional: bool, simulated: bool = False
) -> dict[str, Any]:
    """The ramp as JSON data. Ports are numbered from 0, in the order in which the testbed uses them.

    ``profile_file`` is the traffic in words: results with the same words come into the same graph. An entry is one
    second, however long a step is: its rates are the means of the steps in it, weighted by time.
    """
    plan = result.plan
    ports = _ports(result.steps)
    seconds = {str(number): _entry(parts, ports, plan.line_pps) for number, parts in enumerate(_seconds(result.steps))}
    return {
        "vars": {
            "profile_file": traffic.name,
            "unidirectional": not bidirectional,
            "warmup_mult": si(plan.warm_up_pps, "pps").replace(" ", ""),
            "warmup_duration": plan.warm_up,
            "rampup_target": plan.target,
            "rampup_duration": plan.steps * plan.step,
            "hold_duration": plan.hold,
            "simulated": simulated,
            "deviations": [str(item) for item in result.deviations],
        },
        "stats": seconds,
    }


def _ports(steps: Sequence[RampStep]) -> dict[int, int]:
    """The testbed's port numbers -> 0, 1, and so on."""
    directions = next((step.trial.outcome.directions for step in steps if step.trial.outcome.directions), ())
    found: dict[int, int] = {}
    for port in (port for direction in directions for port in (direction.tx_port, direction.rx_port)):
        found.setdefault(port, len(found))
    return found


Part = tuple[RampStep, float]
"""A step, and its seconds within one second."""


def _seconds(steps: Sequence[RampStep]) -> list[list[Part]]:
    """The parts of each second of the ramp; the last second may be shorter."""
    found: list[list[Part]] = []
    now = 0.0
    for step in steps:
        ends = now + step.trial.outcome.duration
        while ends - now > _ROUNDING:
            at = int(now + _ROUNDING)
            until = min(ends, at + 1.0)
            while len(found) <= at:
                found.append([])
            found[at].append((step, until - now))
            now = until
        now = ends
    return found


def _entry(parts: Sequence[Part], ports: dict[int, int], line_pps: float) -> dict[str, Any]:
    sent, received = [0.0] * len(ports), [0.0] * len(ports)
    whole = math.fsum(lasting for _, lasting in parts)
    for step, lasting in parts:
        for direction in step.trial.outcome.directions:
            weight = lasting / whole / step.trial.seconds.high
            sent[ports[direction.tx_port]] += direction.offered * weight
            received[ports[direction.rx_port]] += direction.forwarded * weight
    longest, _ = max(parts, key=lambda part: part[1])
    found: dict[str, Any] = {
        str(port): {
            "tx_pps": sent[port],
            "rx_pps": received[port],
            "tx_util": 100 * sent[port] / line_pps,
            "rx_util": 100 * received[port] / line_pps,
        }
        for port in ports.values()
    }
    found["phase"] = longest.phase.value if longest.phase is not RampPhase.RISE else "rampup"
    return found
