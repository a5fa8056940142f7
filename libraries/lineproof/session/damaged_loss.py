"""A FAIL of a router whose card took frames for damaged: those are the cable's, and others may be its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ..core.causes import Stage
from ..core.telemetry import Telemetry
from ..core.trial import Fault, Problem, Trial
from ..core.verdict import Ruling, Verdict
from .other_causes import fails_all_the_same

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
    """What to know of *damaged*, and what to do."""
    rows = ", ".join(f"{name} {count}" for name, count in damaged.items())
    return f"frames that arrived damaged, by the router's own count of CRC errors: {rows}; change the cable or modules"


def why_damaged(verdict: Verdict, damaged: Mapping[str, int], interfaces: Mapping[int, str]) -> str:
    """Why *verdict*, a FAIL, proves nothing about a router that received *damaged* frames. "" if the FAIL stands.

    *interfaces*: the router's, by the generator's port. This concerns the directions that enter by such an interface,
    and as many lost frames in all trials together.
    """
    if verdict.ruling is not Ruling.FAIL or not damaged:
        return ""
    rows = {(row.tx_port, row.rx_port) for trial in verdict.trials for row in trial.outcome.directions}
    budget = {row: damaged[interfaces[row[0]]] for row in rows if interfaces.get(row[0]) in damaged}
    # in which trials they came is not known: those that they excuse whole, or the worst
    by_loss = sorted(verdict.trials, key=lambda trial: trial.lost)
    shares = [_shared(budget, by_loss), _shared(budget, by_loss[::-1])]
    if not budget or all(fails_all_the_same(verdict, lambda trial, rows=each: rows[id(trial)]) for each in shares):  # type: ignore[misc]
        return ""
    return "whether the router lost any others is not known"


def _shared(budget: Mapping[tuple[int, int], int], trials: Sequence[Trial]) -> dict[int, list[Problem]]:
    """The damaged frames of each trial, by its ``id``, if those of the first *trials* are as many as can be."""
    left, found = dict(budget), dict[int, list[Problem]]()
    for trial in trials:
        problems = found.setdefault(id(trial), [])
        for row in trial.outcome.directions:
            pair = (row.tx_port, row.rx_port)
            frames = min(left.get(pair, 0), row.lost)
            if frames:
                left[pair] -= frames
                problems.append(Problem(Fault.GENERATOR, "damaged on the cable", frames, (pair,)))
    return found
