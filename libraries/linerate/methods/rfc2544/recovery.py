"""RFC 2544 26.5 system recovery: how long a router goes on losing frames after an overload has ended."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean

from ...counts.step_down import LEAST, Span, StepDown
from ...counts.trial import Load, Outcome, Trial
from ...units import si
from ..deviations import Deviation, declared
from ..recovery import REDUCED, StepsDown, unproven, worst
from ..trials import Ended, Terms, Trials
from . import shorter

OVERLOAD = 1.1
"""Times the throughput, or the maximum rate of the medium where that is less."""


@dataclass(frozen=True, slots=True)
class RecoveryResult:
    """``times``: recovery time of each repetition; without an upper bound where frames were lost to the end.

    ``overload`` and ``reduced`` are loads of each port. ``after``: s that the reduced load lasted.
    """

    size: int
    overload: Load
    reduced: Load
    times: tuple[Span, ...]
    after: float
    trials: tuple[Trial, ...]
    ended: str
    deviations: tuple[Deviation, ...]

    @property
    def mean(self) -> Span | None:
        """The reported figure; None where a repetition did not recover, or there is none."""
        if not self.times or any(math.isinf(time.high) for time in self.times):
            return None
        return Span(fmean(time.low for time in self.times), fmean(time.high for time in self.times))

    def __str__(self) -> str:
        return declared(self.found, self.deviations)

    @property
    def found(self) -> str:
        """What was found, in words, without the deviations."""
        mean = f"{self.mean} in the mean" if self.mean is not None else "no mean"
        words = [
            f"{self.size} bytes: recovery from {si(self.overload.pps, 'pps')} to {si(self.reduced.pps, 'pps')}"
            f" each port in {mean} ({', '.join(map(str, self.times)) or 'not measured'})",
            self.ended,
        ]
        return "; ".join(word for word in words if word)


def recovery(
    step_down: StepsDown,
    size: int,
    throughput: Load,
    line_pps: float,
    terms: Terms,
    repeats: int = 3,
    overload_for: float = 60.0,
    after: float = 20.0,
    interval: float = 0.1,
) -> RecoveryResult:
    """Overload for *overload_for* s at 110 % of *throughput*, halve the load, and see when the last frame is lost.

    Counts are read every *interval* s of the *after* s that the lower load lasts. *line_pps*: frames/s that fill the
    line. A router that the overload does not make lose frames, as one that carries line rate, has nothing to recover
    from: the result says so.
    """
    if min(repeats, overload_for, interval) <= 0 or after < LEAST * interval:
        raise ValueError(f"recovery needs repetitions, times of more than nothing, and {LEAST} looks at least")
    overload = Load(min(throughput.pps * OVERLOAD, line_pps))
    reduced = Load(overload.pps * REDUCED)
    trials = Trials(lambda load, duration: once(), terms)
    seen: list[StepDown] = []

    def once() -> Outcome:
        seen.append(step_down(overload, overload_for, reduced, after, interval))
        return seen[-1].outcome

    times: list[Span] = []
    ended = ""
    try:
        while len(times) < repeats and not ended:
            trials.take(
                once, overload_for + after, lambda trial: trial.valid and worst(seen[-1], terms.tolerance) is not None
            )
            span = worst(seen[-1], terms.tolerance)
            if span is not None:
                ended = unproven(seen[-1], span, overload, terms.tolerance)
                times += [] if ended else [span]
    except Ended as reason:
        ended = str(reason)
    known = [found for found in seen if worst(found, terms.tolerance)]
    blur = max((found.blur(direction) for found in known for direction in range(len(found.after.offered))), default=0.0)
    deviations = (
        Deviation(
            "RFC 2544 26.5",
            "the time of the last frame lost",
            f"bounds of it, from counts of every {interval:g} s or so; loss of less than {blur:.0f} frames is not seen",
        ),
        *shorter(overload_for, "RFC 2544 26.5", 60.0),
    )
    return RecoveryResult(size, overload, reduced, tuple(times), after, tuple(trials.done), ended, deviations)
