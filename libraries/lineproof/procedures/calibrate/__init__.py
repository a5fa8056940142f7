"""The generator's own ceilings: how much it sends and receives, measured with the router bypassed.

The first trial asks for line rate. If that is too much, a short search finds each ceiling: the highest load that is
*offered* as asked (within the trials' tolerance), and the highest *lossless* one: whatever was offered came back.
Loads are of each sending port; of two directions the worse one counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...core.trial import Fault, Load, Trial
from ...errors import TestbedError
from ...units import si
from ..trials import CharacterisationEnded, TrialSeries, is_measured

SEARCH_WIDTH, MOST_SEARCH_TRIALS = 0.01, 24
"""Relative width of a search, and its most trials; the ceiling is what they showed."""

LOWEST_SHARE = 1e-3
"""The lowest load searched, as a share of line rate: a testbed that fails there is broken, not slow."""

TOO_SLOW = (Fault.UNSENT, Fault.STRETCHED, Fault.CPU_BOUND)
"""Faults of a generator whose cores are too slow for the load."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Measured rates in frames/s of each sending port.

    ``line``: line rate. ``offered``: the highest intended load that was sent in full. ``lossless``: the highest rate
    sent without loss, whatever was intended. ``received``: the rate received while ``line`` was intended.
    """

    line: float
    offered: float
    lossless: float
    received: float
    trials: tuple[Trial, ...]


def find_ceiling(trials: TrialSeries, line: float, duration: float = 1.0) -> Ceiling:
    """The ceilings of the generator that *trials* drive, on ports that carry *line* frames/s; each of *duration* s.

    Raises TestbedError if the testbed spoils its trials or breaks down, and if not even LOWEST_SHARE is carried.
    """
    try:
        return _ceiling(trials, line, duration)
    except CharacterisationEnded as error:
        raise TestbedError(f"the generator could not be calibrated: {error}") from error


def _ceiling(trials: TrialSeries, line: float, duration: float) -> Ceiling:
    least, offered_at = LOWEST_SHARE * line, dict[float, float]()

    def run(pps: float) -> Trial:
        # what the generator reports as not sent or not received is the ceiling, not a spoilt trial
        return trials.run(Load(pps), duration, is_measured)

    def is_lossless(pps: float, *done: Trial) -> bool:
        # what comes back is what was offered, which may be less than was asked for
        mine = list(done)
        # one trial without loss may be luck
        while all(map(_came_back_whole, mine)) and len(mine) < 2:
            mine.append(run(pps))
        offered_at[pps] = min(map(_offered_rate, mine))
        return all(map(_came_back_whole, mine))

    def is_offered(trial: Trial) -> bool:
        # the clock's uncertainty is no ceiling; rounding may cost one frame
        needed = (1 - trials.tolerance.under) * trial.outcome.load.pps * trial.seconds.low - 1
        is_slow = any(problem.fault in TOO_SLOW for problem in trial.problems)
        return not is_slow and all(row.offered >= needed for row in trial.outcome.directions)

    first = run(line)
    lossless = offered = line
    if not is_lossless(line, first):
        lossless = _highest(trials, is_lossless, line, _received_rate(first), least)
    if not lossless:
        raise TestbedError(f"with the router bypassed frames are lost even at {si(least, 'pps')}; fix cables and ports")
    if not is_offered(first):
        offered = _highest(trials, lambda pps: is_offered(run(pps)), line, _offered_rate(first), least)
    if not offered:
        last = trials.done[-1]
        seen = [
            *map(str, last.problems),
            f"{si(_offered_rate(last), 'pps')} were sent of {si(last.outcome.load.pps, 'pps')}",
        ]
        raise TestbedError(f"the generator does not offer even {si(least, 'pps')}: {'; '.join(seen)}")
    whole, received = min(offered_at[lossless], lossless), min(_received_rate(first), line)
    return Ceiling(line, offered, whole, received, tuple(trials.done))


def _highest(trials: TrialSeries, holds: Callable[[float], bool], high: float, guess: float, least: float) -> float:
    """The highest load below *high* that *holds* (*high* does not); 0 if none from *least* on does.

    In growing steps from *guess* until a load that holds and one that does not are known, then by halves.
    """
    low, step, pps = 0.0, SEARCH_WIDTH, min(guess, high * (1 - SEARCH_WIDTH))
    most_trials = len(trials.done) + MOST_SEARCH_TRIALS
    while pps >= least and len(trials.done) < most_trials:
        if holds(pps):
            low, pps = pps, pps * (1 + step)
        else:
            high, pps = pps, pps * (1 - step)
        if low and high - low <= SEARCH_WIDTH * high * (1 + 1e-9):
            break
        middle, step = (low + high) / 2, 2 * step
        pps = min(pps, middle) if low and pps > low else max(pps, middle)
    return low


def _came_back_whole(trial: Trial) -> bool:
    return not trial.lost and all(problem.fault is not Fault.GENERATOR for problem in trial.problems)


def _offered_rate(trial: Trial) -> float:
    return min(direction.offered for direction in trial.outcome.directions) / trial.seconds.high


def _received_rate(trial: Trial) -> float:
    return min(direction.forwarded for direction in trial.outcome.directions) / trial.seconds.high
