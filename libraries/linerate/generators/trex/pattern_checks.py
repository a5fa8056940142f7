"""Streams of a user's own file that come in bursts or by turns: what a trial holds of them, and what it cannot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ...counts.trial import Load
from ...errors import TestbedError
from ...traffic.profiles import Profile
from ...units import Layer
from ..base import Direction

ROUNDS = 200
"""So often a trial must hold a pattern to be of its load whatever part of a round is left over: to 0.5 %, as much as
the tolerance of a trial is by default."""


def due(profile: Profile | None, direction: Direction, pps: float, duration: float) -> int:
    """Frames that *direction* is to send of *profile* in *duration* s at *pps*."""
    program = profile.program if profile else None
    return round(pps * duration) if program is None else program.intended(direction.swapped, pps, duration)


def is_steady(profile: Profile | None) -> bool:
    """Whether all streams are sent all the time."""
    return profile is None or profile.program is None or profile.program.steady


def check_steady(profile: Profile | None) -> None:
    """Raise TestbedError where the streams are not all sent all the time: their load cannot change while they are."""
    if profile is not None and not is_steady(profile):
        raise TestbedError(
            f"'{profile.name}' comes in bursts or by turns, with one load a trial; this sentence changes the load, or"
            " has bursts of its own: expected streams that are sent all the time (STLTXCont)"
        )


def check_pattern(
    profile: Profile | None, directions: Sequence[Direction], load: Load, duration: float, speeds: Mapping[int, float]
) -> None:
    """Raise TestbedError where a trial would not hold the load, or a burst not fit on the line.

    *speeds* in bit/s by port number.
    """
    program = profile.program if profile else None
    if program is None or profile is None or program.steady:
        return
    for direction in directions:
        asked, found = load.pps * duration, due(profile, direction, load.pps, duration)
        pattern = program.patterns[direction.swapped]
        if pattern is not None and abs(found - asked) > max(asked / ROUNDS, 1):
            raise TestbedError(
                f"a trial of {duration:g} s holds {found} frames of the pattern of '{profile.name}' at {load.pps:g}"
                f" frames/s, and {round(asked)} would be that load; expected a load of at least"
                f" {ROUNDS * pattern.round / duration:.4g} frames/s, or trials (and scouts) of at least"
                f" {ROUNDS * pattern.round / load.pps:.4g} s: in these the pattern comes {ROUNDS} times"
            )
        speed, crest = speeds.get(direction.tx_port), program.crests[direction.swapped]
        need = crest * load.pps * profile.bits(Layer.L1)
        if math.isinf(crest):
            raise TestbedError(
                f"'{profile.name}' has frames that are to be sent at the same moment, and no line carries that; right"
                " would be an 'isg' or 'ibg' that keeps them apart"
            )
        if speed and need > speed * (1 + 1e-9):
            raise TestbedError(
                f"in its bursts '{profile.name}' sends {crest:.4g} times its average rate, which at this load is"
                f" {100 * need / speed:.4g} % line rate of port {direction.tx_port}; expected a load of at most"
                f" {100 / crest:.4g} % line rate"
            )
