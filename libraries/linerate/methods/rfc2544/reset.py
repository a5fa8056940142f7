"""RFC 2544 26.6 reset, as detailed by RFC 6201: how long a router forwards nothing after it was reset.

Told in two ways: by the times at which frames ceased and came again, and by the frames lost divided by the rate at
which they were sent (RFC 6201's frame-loss method), which the interval of sampling does not blur.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...counts.trial import Load
from ..deviations import Deviation, declared
from ..trials import BREAKDOWNS, broke_down
from .live import LiveTraffic, Sample, SampleInterval

SILENT = 0.01
"""An interval in which less than this share of the frames sent came back counts as silent."""


@dataclass(frozen=True, slots=True)
class ResetResult:
    """``by_loss``: seconds of traffic lost; ``by_time``: seconds between the last frame and the next, or None.

    None also where the router did not come back (``recovered`` False), or where no interval was silent. ``interval``: s
    between two looks at the counts, at most.
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

    def __str__(self) -> str:
        return declared(self.found, self.deviations)

    @property
    def found(self) -> str:
        """What was found, in words, without the deviations."""
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
    interval: float = 0.1,
    settle: float = 2.0,
    quiet: float = 5.0,
    limit: float = 600.0,
    slack: float = 0.001,
) -> ResetResult:
    """Send at *throughput* (of the smallest frames, *size* bytes), *cause* the reset, and wait until frames come again.

    *kind*: ``hardware``, ``software`` or ``power`` (the RFC wants each). *cause* returns once the reset is under way.
    The router is back when *quiet* s in a row lost no more than *slack* of the frames; *limit* s are waited.
    """
    if min(interval, quiet) <= 0 or settle < 0 or limit < quiet or not 0 <= slack < 1:
        raise ValueError("a reset needs times of more than nothing, and a limit of at least 'quiet'")
    ended, seen = "", _Seen()
    begin: Sample | None = None
    try:
        live.start(throughput)
        live.wait(settle)
        begin = live.sample()
        cause()
        seen.watch(live, begin, interval, quiet, limit, slack)
    except BREAKDOWNS as error:
        ended = broke_down(error)
    finally:
        live.stop()
    whole = SampleInterval(begin, seen.last) if begin and seen.last else None
    lost = max(0, whole.lost) if whole else 0
    by_loss = lost * whole.seconds / whole.offered if seen.recovered and whole and whole.offered else None
    by_time = seen.again - seen.ceased if seen.again is not None and seen.ceased is not None else None
    if not seen.recovered and not ended and not lost:
        ended = f"nothing was lost within {limit:g} s: the reset had no effect, or was not seen"
    known = max(interval, seen.widest)
    deviations = (
        Deviation(
            "RFC 2544 26.6",
            "the times of the last frame before and the first frame after the reset",
            f"the ends of intervals of {known:.2g} s, beside the loss divided by the rate (RFC 6201)",
        ),
    )
    return ResetResult(
        kind,
        size,
        throughput,
        seen.recovered,
        by_loss,
        by_time if seen.recovered else None,
        lost,
        known,
        ended,
        deviations,
    )


class _Seen:
    """What the samples show: when frames ceased, when they came again, whether they stayed."""

    def __init__(self) -> None:
        self.ceased: float | None = None
        self.again: float | None = None
        self.last: Sample | None = None
        self.recovered = False
        self.widest = 0.0
        """s between two looks, at most."""

    def watch(
        self, live: LiveTraffic, begin: Sample, interval: float, quiet: float, limit: float, slack: float
    ) -> None:
        """Sample until the router is back, or *limit* s have passed."""
        before, last_lost = begin, None
        while before.time - begin.time < limit:
            live.wait(interval)
            now = live.sample()
            passed = SampleInterval(before, now)
            self.widest = max(self.widest, passed.seconds)
            if passed.loses(slack):
                last_lost = now.time
            if passed.offered and passed.forwarded < SILENT * passed.offered:
                # the last of several silences ends it
                self.ceased = before.time if self.ceased is None else self.ceased
                self.again = None
            elif self.ceased is not None and self.again is None and passed.forwarded:
                self.again = now.time
            before = self.last = now
            if last_lost is not None and now.time - last_lost >= quiet:
                self.recovered = True
                return
