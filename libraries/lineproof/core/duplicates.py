"""Frames received twice, or sent by others: the generator's counts compared with the router's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from .telemetry import Telemetry
from .trial import Trial

SLACK_RATIO = 0.0005
"""Ratio by which a router's counters may differ, because they are read one after the other."""

SLACK_FRAMES = 100
"""Frames that the router may send by itself, or count late."""

SETTLE_SECONDS = 2.5
"""Seconds in which drivers that update their counters periodically (Linux: every 2 s) have done so."""


def copied_frames(
    trials: Iterable[Trial], before: Telemetry, after: Telemetry, interfaces: Mapping[int, str]
) -> dict[int, tuple[int, str]]:
    """Return by receiving port how many frames more came than the router sent to it, and that in words.

    Those that came beyond the frames offered in a trial are in nobody's place, and are left out.
    *interfaces*: the router's, by the generator's port. One that counted less than half does not count forwarded frames
    (hardware offload) and proves nothing.
    """
    received, beyond = Counter[int](), Counter[int]()
    for trial in trials:
        for direction in trial.outcome.directions:
            received[direction.rx_port] += direction.received
            beyond[direction.rx_port] += direction.surplus
    copied = {}
    for port, count in received.items():
        name = interfaces.get(port, "")
        if name not in before.interfaces or name not in after.interfaces:
            continue
        sent = after.interfaces[name].tx_packets - before.interfaces[name].tx_packets
        copies = count - sent - beyond[port]
        if sent > count / 2 and copies > count * SLACK_RATIO + SLACK_FRAMES:
            copied[port] = (
                copies,
                f"port {port} received {count} frames, the router counted only {sent} that {name} sent: frames come"
                " twice on the way, others send some (spanning tree, LLDP: 'lineproof doctor --listen 60' shows them),"
                " or the router's counters were reset",
            )
    return copied
