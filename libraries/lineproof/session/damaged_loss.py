"""Frames that a router's card took for damaged: they are the cable's loss."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ..core.causes import Stage
from ..core.telemetry import Telemetry

_DAMAGED = re.compile(r"crc|fcs|symbol_?err|illegal_?byte|align", re.IGNORECASE)
"""Names of counters of frames whose check sum (IEEE 802.3 3.2.9) or line code was wrong, and of nothing else."""


def damaged_since(before: Telemetry, after: Telemetry, interfaces: Iterable[str]) -> Mapping[str, int]:
    """By interface the frames that its card took for damaged between two readings; only where there were any.

    Drivers repeat a count by another name, so the largest counts. Counters that began anew give none.
    """
    old = {(cause.name, cause.interface): cause.count for cause in before.causes if cause.stage is Stage.ARRIVING}
    found = dict.fromkeys(interfaces, 0)
    for cause in after.causes:
        if cause.stage is Stage.ARRIVING and cause.interface in found and _DAMAGED.search(cause.name):
            new = cause.count - old.get((cause.name, cause.interface), 0)
            found[cause.interface] = max(found[cause.interface], new)
    return {name: count for name, count in found.items() if count}


def damage_text(damaged: Mapping[str, int]) -> str:
    """Return what to know of *damaged*, and what to do."""
    rows = ", ".join(f"{name} {count}" for name, count in damaged.items())
    return f"frames that arrived damaged, by the router's own count of CRC errors: {rows}; change the cable or modules"
