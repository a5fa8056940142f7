"""RFC 2544 26.1 throughput: the highest rate without loss, by the RFC's binary search.

Each load is tried once; loss of one frame in one direction sends the search lower. The search of
:mod:`lineproof.methods.search` needs less traffic and allows for a rare burst of loss; this one follows the RFC.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...core.trial import Load, Measure, Trial
from ...units import si
from ..deviations import TRIALS_OF_SECTION_23, DeviatingResult, Deviation
from ..trials import CharacterisationEnded, CharacterisationTerms, TrialSeries, is_decided, per_direction
from . import TRIAL_SECONDS, deviation_of_short_trials


@dataclass(frozen=True, slots=True)
class ThroughputResult(DeviatingResult):
    """Throughput of one frame size. Loads are of each sending port.

    ``throughput``: the highest load without loss (None: every load lost frames); ``beyond``: the lowest load with loss,
    or during which queues grew (None: there is none). ``line_pps``: line rate in frames/s.
    """

    size: int
    line_pps: float
    throughput: Load | None
    beyond: Load | None
    resolution: float
    duration: float
    trials: tuple[Trial, ...]
    ended: str
    deviations: tuple[Deviation, ...]

    @property
    def percent(self) -> float | None:
        """Throughput in per cent of line rate."""
        return None if self.throughput is None else 100 * self.throughput.pps / self.line_pps

    @property
    def found(self) -> str:
        """Return what was found, in words, without the deviations."""
        scope = per_direction(self.trials)
        if self.throughput is None:
            least = f" down to {si(self.beyond.pps, 'pps')}{scope}" if self.beyond else ""
            found = f"frames were lost at every load{least}" if self.beyond else "not measured"
        else:
            found = f"throughput {si(self.throughput.pps, 'pps', 6)}{scope} ({self.percent:.4g} % line rate)"
        trials = f"{len(self.trials)} trial{'s' * (len(self.trials) != 1)} of {self.duration:g} s"
        return "; ".join(filter(None, (f"{self.size} bytes: {found}", trials, self.ended)))


def throughput(
    measure: Measure,
    size: int,
    line_pps: float,
    terms: CharacterisationTerms,
    highest: Load | None = None,
    duration: float = TRIAL_SECONDS,
    resolution: float = 0.001,
) -> ThroughputResult:
    """Search between 0 and *highest* (None: *line_pps*) until loss and no loss are *resolution* of line rate apart.

    *size* in bytes with FCS; *duration* of each trial in s (below the RFC's 60 s it is a declared deviation).
    """
    if not 0 < resolution < 1 or not duration > 0:
        raise ValueError(f"the resolution is a ratio of line rate, and trials take time: not {resolution}, {duration}")
    load = highest or Load(line_pps)
    deviations = (*TRIALS_OF_SECTION_23, *deviation_of_short_trials(duration))
    if load.pps < line_pps * (1 - 1e-9):
        done = f"at most {100 * load.pps / line_pps:.4g} % of it is asked of the generator"
        deviations += (Deviation("RFC 2544 20", "a generator that sends the maximum rate of the medium", done),)
    trials = TrialSeries(measure, terms)
    good: Load | None = None
    bad: Load | None = None
    ended = ""
    try:
        while True:
            # a load is good only if it is certain that nothing was lost, also in queues
            if trials.loss(trials.run(load, duration, lambda trial: is_decided(trials.loss(trial), 0.0))).high > 0:
                bad = load
            else:
                good = load
            least = good.pps if good else 0.0
            if bad is None or bad.pps - least <= resolution * line_pps * (1 + 1e-9):
                break
            load = Load((bad.pps + least) / 2)
    except CharacterisationEnded as reason:
        ended = str(reason)
    return ThroughputResult(size, line_pps, good, bad, resolution, duration, tuple(trials.done), ended, deviations)
