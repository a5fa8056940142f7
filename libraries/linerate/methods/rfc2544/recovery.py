"""RFC 2544 26.5 system recovery: how long a router goes on losing frames after an overload has ended."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from ...trial import Load
from ...units import si
from ..deviations import Deviation, declared
from ..trials import BREAKDOWNS, broke_down
from . import shorter
from .live import Interval, LiveTraffic

OVERLOAD = 1.1
"""Times the throughput, or the maximum rate of the medium where that is less."""
REDUCED = 0.5
"""Times the overload, afterwards."""


@dataclass(frozen=True, slots=True)
class RecoveryResult:
    """``times``: recovery time of each repetition in s, None where it went on losing frames to the end.

    They are known to ``interval`` s. ``overload`` and ``reduced`` are loads of each port.
    """

    size: int
    overload: Load
    reduced: Load
    times: tuple[float | None, ...]
    interval: float
    ended: str
    deviations: tuple[Deviation, ...]

    @property
    def mean(self) -> float | None:
        """The reported figure in s; None where a repetition did not recover, or there is none."""
        known = [time for time in self.times if time is not None]
        return fmean(known) if known and len(known) == len(self.times) else None

    def __str__(self) -> str:
        return declared(self.found, self.deviations)

    @property
    def found(self) -> str:
        """What was found, in words, without the deviations."""
        told = ", ".join("not within the time given" if time is None else f"{time:.3g} s" for time in self.times)
        mean = f"{self.mean:.3g} s in the mean" if self.mean is not None else "no mean"
        words = [
            f"{self.size} bytes: recovery from {si(self.overload.pps, 'pps')} to {si(self.reduced.pps, 'pps')}"
            f" each port in {mean} ({told or 'not measured'}), known to {self.interval:g} s",
            self.ended,
        ]
        return "; ".join(word for word in words if word)


def recovery(
    live: LiveTraffic,
    size: int,
    throughput: Load,
    line_pps: float,
    repeats: int = 3,
    overload_for: float = 60.0,
    interval: float = 0.1,
    quiet: float = 2.0,
    limit: float = 60.0,
    slack: float = 0.001,
) -> RecoveryResult:
    """Overload for *overload_for* s at 110 % of *throughput*, halve the load, and see when the last frame is lost.

    Counts are read every *interval* s; an interval loses frames where more than *slack* of those sent are missing.
    The router has recovered when *quiet* s have passed without; *limit* s are waited for it. *line_pps*: frames/s that
    fill the line.
    """
    if min(repeats, overload_for, interval, quiet) <= 0 or limit < quiet or not 0 <= slack < 1:
        raise ValueError("recovery needs repetitions and times of more than nothing, and a limit of at least 'quiet'")
    overload = Load(min(throughput.pps * OVERLOAD, line_pps))
    reduced = Load(overload.pps * REDUCED)
    times: list[float | None] = []
    ended = ""
    for _ in range(repeats):
        try:
            live.start(overload)
            live.wait(overload_for)
            times.append(_once(live, reduced, interval, quiet, limit, slack))
        except BREAKDOWNS as error:
            ended = broke_down(error)
            break
        finally:
            live.stop()
    deviations = (
        Deviation(
            "RFC 2544 26.5",
            "the time of the last frame lost",
            f"the end of the last interval of {interval:g} s in which more than {100 * slack:g} % of the frames sent"
            " did not come back; loss while the buffer drains may be hidden by it",
        ),
        *shorter(overload_for, "RFC 2544 26.5", 60.0),
    )
    return RecoveryResult(size, overload, reduced, tuple(times), interval, ended, deviations)


def _once(live: LiveTraffic, reduced: Load, interval: float, quiet: float, limit: float, slack: float) -> float | None:
    changed = before = live.change(reduced)
    last_lost = changed.time
    while True:
        live.wait(interval)
        now = live.sample()
        if Interval(before, now).loses(slack):
            last_lost = now.time
        before = now
        if now.time - last_lost >= quiet:
            return last_lost - changed.time
        if now.time - changed.time >= limit:
            return None
