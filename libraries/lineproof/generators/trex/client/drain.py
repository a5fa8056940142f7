"""The wait for frames that are still in transit after the last frame was sent. Independent of TRex."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

MIN_WAIT = 0.1
"""Minimum in s of the wall clock of a drain with missing frames, for every clock speed."""

QUIET_TIME = 1.6
"""Seconds of the testbed's clock without a further frame after which none is expected: longer than the second in which
cards and servers update their counters."""

STEADY_TIME = 0.1
"""Seconds of the testbed's clock without a change of counters, if fewer frames than intended were sent and none is
missing: the sender's counters may lag."""


def wait_for_drain(
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
    """The counters when no frame is in transit any more, and the wall s of the wait.

    *first*: counters after sending, *before*: counters before it, *count* reads them again (totals by port number, as
    text). *directions*: pairs of a sending and a receiving port; *intended*: frames by sending port.

    If a frame of any direction is missing, the wait lasts as long as frames come, until QUIET_TIME without any; at most
    *drain* (s of the testbed's clock; RFC 2544 23: 2 s for residual frames), at least MIN_WAIT. Extra frames of one
    direction do not replace missing ones of another. If none is missing there is no wait.
    """
    began = changed = clock()
    limit, steady = max(drain / clock_speed, MIN_WAIT), max(STEADY_TIME / clock_speed, 0.005)
    quiet = max(QUIET_TIME / clock_speed, MIN_WAIT)
    now = first
    last: tuple[tuple[int, int], ...] = ()
    while True:
        found = tuple(
            (_increase(before, now, tx, "opackets"), _increase(before, now, rx, "ipackets")) for tx, rx in directions
        )
        moment = clock()
        if found != last:
            last, changed = found, moment
        complete = all(received >= sent for sent, received in found) and (
            # rounding of durations may cost one frame
            all(sent >= intended[tx] - 1 for (tx, _), (sent, _) in zip(directions, found, strict=True))
            or moment - changed >= steady
        )
        if complete or moment - began >= limit or moment - changed >= quiet:
            return now, clock() - began
        # the longer nothing comes, the less often it is looked for
        still = moment - changed
        sleep(min(max(steady, still) / 5, quiet - still, limit - (moment - began)))
        now = count()


def _increase(before: Mapping[str, Any], now: Mapping[str, Any], port: int, name: str) -> int:
    return int(now[str(port)][name]) - int(before[str(port)][name])
