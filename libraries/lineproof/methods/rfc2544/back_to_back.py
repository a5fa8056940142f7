"""RFC 2544 26.4 back-to-back frames, as updated by RFC 9004: the longest burst at line rate without loss.

The buffer time follows from it. RFC 9004 subtracts what the router forwarded while the burst arrived:
``corrected = implied - implied * throughput / maximum rate``, with ``implied = mean burst / maximum rate``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean, stdev

from ...core.doubts import OF_FRAMES
from ...core.trial import Outcome, Trial
from ..deviations import TRIALS_OF_SECTION_23, DeviatingResult, Deviation
from ..trials import CharacterisationTerms, TrialSeries, is_decided, loss_bounds, per_direction
from . import deviation_of_few_repetitions

REPETITIONS = 50
"""RFC 2544 26.4."""

SendBurst = Callable[[int], Outcome]
"""``send_burst(frames)``: so many frames at the maximum rate of the medium, then a pause in which buffers drain.

Its ``duration`` is frames / maximum rate. A generator that cannot time so short a burst reports the reading
``elapsed_uncertainty`` (s); without it such a burst counts as stretched and proves nothing.
"""


@dataclass(frozen=True, slots=True)
class BackToBackResult(DeviatingResult):
    """Bursts of one frame size. ``bursts``: the longest burst without loss of each repetition, in frames.

    ``unlimited``: a burst of ``longest`` frames passed, so the buffer's limit was not found.
    """

    size: int
    line_pps: float
    throughput_pps: float
    bursts: tuple[int, ...]
    longest: int
    unlimited: bool
    trials: tuple[Trial, ...]
    ended: str
    deviations: tuple[Deviation, ...]

    @property
    def mean(self) -> float | None:
        """The reported figure, in frames."""
        return fmean(self.bursts) if self.bursts else None

    @property
    def spread(self) -> float | None:
        """Standard deviation of the repetitions, in frames."""
        return stdev(self.bursts) if len(self.bursts) > 1 else None

    @property
    def implied_buffer_time(self) -> float | None:
        """The mean burst in seconds at line rate (RFC 9004). None if the limit was not found."""
        return None if self.mean is None or self.unlimited else self.mean / self.line_pps

    @property
    def corrected_buffer_time(self) -> float | None:
        """:attr:`implied_buffer_time` less what the router forwarded while the burst arrived (RFC 9004), in s."""
        implied = self.implied_buffer_time
        return None if implied is None else implied - implied * self.throughput_pps / self.line_pps

    @property
    def found(self) -> str:
        """Return what was found, in words, without the deviations."""
        scope = per_direction(self.trials)
        if self.mean is None:
            found = "not measured"
        elif self.unlimited:
            found = f"at least {self.longest} frames{scope} (no longer burst was sent)"
        else:
            found = (
                f"{self.mean:.0f} frames{scope} in the mean of {len(self.bursts)} ({min(self.bursts)} to"
                f" {max(self.bursts)}); buffer time {1e3 * (self.implied_buffer_time or 0):.4g} ms, corrected"
                f" {1e3 * (self.corrected_buffer_time or 0):.4g} ms"
            )
        return "; ".join(filter(None, (f"{self.size} bytes: back-to-back {found}", self.ended)))


def back_to_back(
    send_burst: SendBurst,
    size: int,
    line_pps: float,
    throughput_pps: float,
    terms: CharacterisationTerms,
    longest: int | None = None,
    resolution: int = 1,
    repeats: int = REPETITIONS,
) -> BackToBackResult:
    """Search the longest burst that passes, *repeats* times, each to *resolution* frames.

    *throughput_pps*: RFC 2544 26.1's for this *size*; if it is line rate, no buffer fills and nothing is found (RFC
    9004). *longest*: the longest burst to try, in frames (None: 2 s of line rate). A burst that loses frames is sent
    again before it counts, because loss may have another cause than a full buffer.
    """
    limit = longest if longest is not None else max(1, round(2 * line_pps))
    if limit < 1 or resolution < 1 or repeats < 1:
        raise ValueError(f"bursts are searched in frames: not {limit}, {resolution}, {repeats}")
    trials = TrialSeries(lambda load, duration: send_burst(round(load.pps * duration)), terms)
    bursts: list[int] = []
    unlimited = False
    with trials:
        while len(bursts) < repeats and not unlimited:
            found = _longest_lossless_burst(send_burst, trials, line_pps, limit, resolution)
            unlimited = found >= limit
            bursts.append(found)
    # if the longest burst passes, one repetition is enough
    deviations = TRIALS_OF_SECTION_23
    if not unlimited:
        deviations += deviation_of_few_repetitions(len(bursts), REPETITIONS, "RFC 2544 26.4")
    if throughput_pps >= line_pps * (1 - 1e-3):
        done = "throughput is line rate within 0.1 %: the figure says nothing about a buffer"
        deviations += (Deviation("RFC 9004", "frame sizes whose throughput is less than the maximum rate", done),)
    return BackToBackResult(
        size, line_pps, throughput_pps, tuple(bursts), limit, unlimited, tuple(trials.done), trials.ended, deviations
    )


def _longest_lossless_burst(
    send_burst: SendBurst, trials: TrialSeries, line_pps: float, limit: int, resolution: int
) -> int:
    """The longest burst up to *limit* that passes, to *resolution* frames; 0 if none does."""

    def decides(trial: Trial) -> bool:
        tolerance, outcome = trials.terms.tolerance, trial.outcome
        is_whole = all(row.offered >= row.intended for row in outcome.directions)
        is_fast = trial.seconds.low <= outcome.duration * (1 + tolerance.under)
        return is_whole and is_fast and is_decided(loss_bounds(trial), 0.0)

    def passes(frames: int) -> bool:
        for _ in range(2):
            trial = trials.run_measured(lambda: send_burst(frames), frames / line_pps, decides, OF_FRAMES)
            if not trial.lost:
                return True
        return False

    if passes(limit):
        return limit
    good, bad = 0, limit
    while bad - good > resolution:
        middle = (good + bad) // 2
        if passes(middle):
            good = middle
        else:
            bad = middle
    return good
