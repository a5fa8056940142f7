"""How long to wait, after the last frame was sent, for frames that are still under way. Knows nothing of TRex."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

LEAST = 0.1
"""Seconds of the wall clock that a drain with frames missing lasts at least, however fast the testbed's clock."""

STEADY = 0.1
"""Seconds of the testbed's clock for which counters must stand still where too little was sent but nothing is missing:
the sender's counters may lag behind."""


def drained(
    first: Mapping[str, Any],
    count: Callable[[], Mapping[str, Any]],
    before: Mapping[str, Any],
    directions: Sequence[tuple[int, int]],
    intended: Mapping[int, int],
    drain: float,
    clock_speed: float = 1.0,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[Mapping[str, Any], float]:
    """The counters once nothing is under way any more, and the wall s that this took.

    *first* were read when sending was over, *before* when it had not begun, *count* reads them anew (totals per port
    number, as text). *directions* are pairs of a sending and a receiving port; *intended* frames per sending port.

    As long as a frame of any way is missing, all of *drain* is waited for (s of the testbed's clock; RFC 2544 23: 2 s
    for residual frames), at least LEAST: standing counters do not show that no frame will come, and a surplus of one
    way does not make good what another misses. Where none is missing there is nothing to wait for.
    """
    began = changed = clock()
    limit, steady = max(drain / clock_speed, LEAST), max(STEADY / clock_speed, 0.005)
    now = first
    last: tuple[tuple[int, int], ...] = ()
    while True:
        found = tuple(
            (_passed(before, now, tx, "opackets"), _passed(before, now, rx, "ipackets")) for tx, rx in directions
        )
        moment = clock()
        if found != last:
            last, changed = found, moment
        if all(came >= sent for sent, came in found) and (
            # one frame less than intended is how durations round
            all(sent >= intended[tx] - 1 for (tx, _), (sent, _) in zip(directions, found, strict=True))
            or moment - changed >= steady
        ):
            break
        if moment - began >= limit:
            break
        sleep(min(steady / 5, limit - (moment - began)))
        now = count()
    return now, clock() - began


def _passed(before: Mapping[str, Any], now: Mapping[str, Any], port: int, name: str) -> int:
    return int(now[str(port)][name]) - int(before[str(port)][name])
