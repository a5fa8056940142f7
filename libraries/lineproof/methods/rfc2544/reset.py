"""RFC 2544 26.6 reset, as detailed by RFC 6201: how long a router forwards nothing after a reset.

Measured twice: by the times at which forwarding stopped and began again, and by the frames lost divided by the rate
offered (RFC 6201's frame-loss method), which does not depend on the sampling interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ...core.live_traffic import LiveTraffic, Sample
from ...core.trial import Load
from ...errors import BREAKDOWN_ERRORS
from ..deviations import TRIALS_OF_SECTION_23, DeviatingResult, Deviation
from ..trials import breakdown_text

SILENT_SHARE = 0.01
"""If less than this share of the frames sent in an interval came back, the interval is silent."""

SETTLE = 2.0
"""Seconds of traffic before the reset."""

INTERVAL, QUIET = 0.1, 5.0
"""Seconds between two readings of the counts, and for which a router that is back loses nothing."""

SLACK = 0.001
"""The router is back while it loses no more than this share of the frames."""


@dataclass(frozen=True, slots=True)
class ResetResult(DeviatingResult):
    """``by_loss``: seconds of traffic lost; ``by_time``: seconds between the last frame and the next.

    Both are None if the router did not come back (``recovered`` False), ``by_time`` also if no interval was silent.
    ``interval``: the longest time between two readings of the counts, in s.
    """

    kind: str
    size: int
    load: Load
    recovered: bool
    by_loss: float | None
    by_time: float | None
    lost: int
    interval: float
    ended: str
    deviations: tuple[Deviation, ...]

    @property
    def found(self) -> str:
        """Return what was found, in words, without the deviations."""
        if not self.recovered:
            found = self.ended or "it did not forward again within the time given"
        else:
            time = "too short to see a silent interval" if self.by_time is None else f"{self.by_time:.3g} s"
            found = f"{self.by_loss:.4g} s by {self.lost} frames lost; {time} by time (known to {self.interval:.2g} s)"
        return f"{self.kind} reset, {self.size} bytes: {found}"


def reset(
    live: LiveTraffic,
    cause: Callable[[], None],
    kind: str,
    size: int,
    throughput: Load,
    limit: float = 600.0,
) -> ResetResult:
    """Send at *throughput* (of the smallest frames, *size* bytes), *cause* the reset, and wait until frames come again.

    *kind*: ``hardware``, ``software`` or ``power`` (the RFC wants each). *cause* returns when the reset has begun. The
    router is back when it lost no more than SLACK of the frames for QUIET s; at most *limit* s are waited.
    """
    ended, samples, lossy_until = "", list[Sample](), math.inf
    try:
        live.start(throughput)
        live.wait(SETTLE)
        samples.append(live.sample())
        cause()
        while samples[-1].time - samples[0].time < limit and samples[-1].time - lossy_until < QUIET:
            live.wait(INTERVAL)
            samples.append(live.sample())
            if _lost(*samples[-2:]) > SLACK * _offered(*samples[-2:]):
                lossy_until = samples[-1].time
    except BREAKDOWN_ERRORS as error:
        ended = breakdown_text(error)
    finally:
        live.stop()
    is_back = not ended and samples[-1].time - lossy_until >= QUIET
    lost = max(0, _lost(samples[0], samples[-1])) if samples else 0
    by_loss, by_time = None, None
    if is_back:
        by_loss = lost * (samples[-1].time - samples[0].time) / _offered(samples[0], samples[-1])
        by_time = _silence(samples)
    elif not ended and not lost:
        ended = f"nothing was lost within {limit:g} s: the reset had no effect, or was not seen"
    known = max([INTERVAL, *(after.time - before.time for before, after in pairwise(samples))])
    times = Deviation(
        "RFC 2544 26.6",
        "the times of the last frame before and the first frame after the reset",
        f"the ends of intervals of {known:.2g} s, beside the loss divided by the rate (RFC 6201)",
    )
    return ResetResult(
        kind, size, throughput, is_back, by_loss, by_time, lost, known, ended, (times, *TRIALS_OF_SECTION_23)
    )


def _silence(samples: Sequence[Sample]) -> float | None:
    """Return the s from the beginning of the first silent interval to the next frame after the last; None: none is."""
    silent = [
        place
        for place, (before, after) in enumerate(pairwise(samples))
        if after.forwarded - before.forwarded < SILENT_SHARE * _offered(before, after)
    ]
    if not silent:
        return None
    later = pairwise(samples[silent[-1] + 1 :])
    resumed = next((after.time for before, after in later if after.forwarded > before.forwarded), None)
    return None if resumed is None else resumed - samples[silent[0]].time


def _offered(before: Sample, after: Sample) -> int:
    return after.offered - before.offered


def _lost(before: Sample, after: Sample) -> int:
    """Return the frames sent less frames received; negative while a buffer drains."""
    return _offered(before, after) - (after.forwarded - before.forwarded)
