"""What trials counted beside what the router counted meanwhile: where some frames came twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from .telemetry import Telemetry
from .trial import Trial

TOLERANCE = 0.0005
"""Share by which a router's counters may lag behind, read one after the other."""

FEW = 100
"""Frames that the router may send of its own accord, or count late."""

SETTLE = 2.5
"""Seconds after which drivers that bring their counters up now and then (Linux: 2 s) have done so."""


def received_too_many(
    trials: Iterable[Trial], before: Telemetry, after: Telemetry, interfaces: Mapping[int, str]
) -> str | None:
    """A sentence where a generator's port received more than the router sent towards it; None where all is well.

    *interfaces*: the router's, by the generator's port. One that counted less than half is not counting forwarded
    frames at all (an offload) and proves nothing.
    """
    came: Counter[int] = Counter()
    for trial in trials:
        for direction in trial.outcome.directions:
            came[direction.rx_port] += direction.forwarded
    for port, count in came.items():
        name = interfaces.get(port, "")
        if name not in before.interfaces or name not in after.interfaces:
            continue
        sent = after.interfaces[name].tx_packets - before.interfaces[name].tx_packets
        if count / 2 < sent < count * (1 - TOLERANCE) - FEW:
            return (
                f"the generator's port {port} received {count} frames, the router counted only {sent} that {name} sent:"
                " frames come twice on the way, or the router's counters were reset; fix the testbed and run again"
            )
    return None
