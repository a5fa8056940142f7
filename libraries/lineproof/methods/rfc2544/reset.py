"""RFC 2544 26.6 reset, as detailed by RFC 6201: how long a router forwards nothing after a reset.

Measured twice: by the times at which forwarding stopped and began again, and by the frames lost divided by the rate
offered (RFC 6201's frame-loss method), which does not depend on the sampling interval.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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
class SampleInterval:
    """The traffic between two samples. ``lost`` may be negative while a buffer drains."""

    begins: Sample
    ends: Sample

    @property
    def seconds(self) -> float:
        """Length in s."""
        return self.ends.time - self.begins.time

    @property
    def offered(self) -> int:
        """Frames sent."""
        return self.ends.offered - self.begins.offered

    @property
    def forwarded(self) -> int:
        """Frames received."""
        return self.ends.forwarded - self.begins.forwarded

    @property
    def lost(self) -> int:
        """Frames sent less frames received."""
        return self.offered - self.forwarded

    @property
    def is_lossy(self) -> bool:
        """Return whether more than SLACK of the frames sent were lost."""
        return self.lost > SLACK * self.offered


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
    ended, outage = "", _OutageWatch()
    begin: Sample | None = None
    try:
        live.start(throughput)
        live.wait(SETTLE)
        begin = live.sample()
        cause()
        outage.watch(live, begin, limit)
    except BREAKDOWN_ERRORS as error:
        ended = breakdown_text(error)
    finally:
        live.stop()
    whole = SampleInterval(begin, outage.last) if begin and outage.last else None
    lost = max(0, whole.lost) if whole else 0
    by_loss = lost * whole.seconds / whole.offered if outage.recovered and whole and whole.offered else None
    by_time: float | None = None
    if outage.recovered and outage.resumed_at is not None and outage.stopped_at is not None:
        by_time = outage.resumed_at - outage.stopped_at
    if not outage.recovered and not ended and not lost:
        ended = f"nothing was lost within {limit:g} s: the reset had no effect, or was not seen"
    known = max(INTERVAL, outage.widest)
    times = Deviation(
        "RFC 2544 26.6",
        "the times of the last frame before and the first frame after the reset",
        f"the ends of intervals of {known:.2g} s, beside the loss divided by the rate (RFC 6201)",
    )
    deviations = (times, *TRIALS_OF_SECTION_23)
    return ResetResult(kind, size, throughput, outage.recovered, by_loss, by_time, lost, known, ended, deviations)


class _OutageWatch:
    """When forwarding stopped, when it began again, and whether it went on, from samples."""

    def __init__(self) -> None:
        self.stopped_at: float | None = None
        self.resumed_at: float | None = None
        self.last: Sample | None = None
        self.recovered = False
        self.widest = 0.0
        """The longest time between two samples in s."""

    def watch(self, live: LiveTraffic, begin: Sample, limit: float) -> None:
        """Sample until the router is back, or *limit* s have passed."""
        before, last_lost = begin, None
        while before.time - begin.time < limit:
            live.wait(INTERVAL)
            now = live.sample()
            passed = SampleInterval(before, now)
            self.widest = max(self.widest, passed.seconds)
            if passed.is_lossy:
                last_lost = now.time
            if passed.offered and passed.forwarded < SILENT_SHARE * passed.offered:
                # of several silences, the last one ends the outage
                self.stopped_at = before.time if self.stopped_at is None else self.stopped_at
                self.resumed_at = None
            elif self.stopped_at is not None and self.resumed_at is None and passed.forwarded:
                self.resumed_at = now.time
            before = self.last = now
            if last_lost is not None and now.time - last_lost >= QUIET:
                self.recovered = True
                return
