"""Headroom: how much the generator itself sends and receives, measured with the router bypassed.

First everything that fits on the link is asked for; where that is too much, a short search finds each ceiling: the
highest load that is really *offered* when it is asked for (within the trials' tolerance), and the highest *lossless*
one, sent and come back whole, be it less than was asked for. Loads are of each sending port; of two directions the
worse one counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..counts.ceiling import Ceiling, OwnLatency
from ..counts.latency import Statistic
from ..counts.trial import Fault, Load, Measure, Outcome, Trial
from ..errors import TestbedError
from ..units import si
from .trials import Ended, Terms, Trials

WIDTH = 0.01
"""Relative width of the search."""

REPEATS = 2
"""So many trials in a row must come back whole: one may have been lucky."""

MOST = 24
"""Trials of one search at most; what is shown by then is the ceiling."""

LEAST = 1e-3
"""Share of line rate below which nothing is looked for: a testbed that fails there is broken, not slow."""


def headroom(
    measure: Measure,
    line: float,
    terms: Terms,
    duration: float = 1.0,
    *,
    width: float = WIDTH,
    repeats: int = REPEATS,
    most: int = MOST,
) -> Ceiling:
    """The ceilings of the generator that *measure* drives, on ports that carry *line* frames/s. Trials of *duration* s.

    Raises TestbedError where the testbed spoils its trials or breaks down, and where not even LEAST of the line comes back.
    """
    search = _Search(Trials(measure, terms), duration, most)
    try:
        return search.ceiling(line, width, repeats)
    except Ended as error:
        raise TestbedError(f"the generator could not be calibrated: {error}") from error


class _Search:
    def __init__(self, trials: Trials, duration: float, most: int) -> None:
        self._trials, self._duration, self._most = trials, duration, most

    def ceiling(self, line: float, width: float, repeats: int) -> Ceiling:
        least = LEAST * line
        first = self._run(line)
        shown: dict[float, float] = {}

        def whole(pps: float, *done: Trial) -> bool:
            # what was sent is what came back whole, be it less than was asked for
            trials = list(done)
            while all(map(_whole, trials)) and len(trials) < repeats:
                trials.append(self._run(pps))
            shown[pps] = min(map(_sent, trials))
            return all(map(_whole, trials))

        lossless = line if whole(line, first) else self._highest(whole, line, _received(first), width, least)
        if not lossless:
            raise TestbedError(
                f"with the router bypassed frames are lost even at {si(least, 'pps')}; fix cables and ports"
            )
        offered = line
        if not _offered(first):
            offered = self._highest(lambda pps: _offered(self._run(pps)), line, _sent(first), width, least)
        if not offered:
            raise TestbedError(
                f"the generator does not offer even {si(least, 'pps')}; look at the TRex server's console"
            )
        return Ceiling(
            line, offered, min(shown[lossless], lossless), min(_received(first), line), tuple(self._trials.done)
        )

    def _highest(self, holds: Callable[[float], bool], high: float, guess: float, width: float, least: float) -> float:
        """The highest load below *high*, which does not hold, that does; 0 where none of at least *least* does.

        From the *guess* in growing steps until both sides are known, then by halves.
        """
        low, step, at, end = 0.0, width, min(guess, high * (1 - width)), len(self._trials.done) + self._most
        while at >= least and len(self._trials.done) < end:
            if holds(at):
                low, at = at, at * (1 + step)
            else:
                high, at = at, at * (1 - step)
            if low and high - low <= width * high * (1 + 1e-9):
                break
            middle, step = (low + high) / 2, 2 * step
            at = min(at, middle) if low and at > low else max(at, middle)
        return low

    def _run(self, pps: float) -> Trial:
        return self._trials.run(Load(pps), self._duration, _tells)


def _tells(trial: Trial) -> bool:
    # what the generator itself says that it failed to send or to receive is what is looked for here
    return all(problem.fault.too_slow or problem.fault is Fault.GENERATOR for problem in trial.problems)


def _offered(trial: Trial) -> bool:
    return not any(problem.fault.too_slow for problem in trial.problems)


def _whole(trial: Trial) -> bool:
    return not trial.lost and all(problem.fault.too_slow for problem in trial.problems)


def _sent(trial: Trial) -> float:
    """Frames/s offered in the worse direction."""
    return min(direction.offered for direction in trial.outcome.directions) / trial.seconds


def _received(trial: Trial) -> float:
    """Frames/s that came back in the worse direction."""
    return min(direction.forwarded for direction in trial.outcome.directions) / trial.seconds


def own_latency(outcome: Outcome) -> OwnLatency | None:
    """What the probe frames of *outcome* tell; None where none came back or the generator tells nothing."""
    found = []
    for count in outcome.latency:
        bounds = count.bounds(Statistic("p99"))
        if bounds is None or not math.isfinite(count.mean):
            return None
        found.append(OwnLatency(outcome.load.pps, count.received, count.mean, bounds.low, bounds.high, count.minimum))
    return max(found, key=lambda item: item.mean, default=None)
