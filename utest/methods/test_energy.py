"""Energy per packet: power by forwarding rate, with what the meter leaves open."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.goal import read_goal
from lineproof.core.sentence import parse
from lineproof.core.trial import DirectionCount, Load, Outcome
from lineproof.core.verdict import Ruling, Verdict
from lineproof.methods.energy import POWER, UNCERTAINTY, energy
from lineproof.methods.sequential import TrialConditions
from support.catalogue import CATALOGUE
from support.paths import VARIABLES


def judged(words: str, watts: list[float], uncertainty: float, rate: float) -> Verdict:
    """The verdict on a router that forwards *rate* frames/s at most. *watts*: of the trials, in turn."""
    meter = itertools.cycle(watts)

    def measure(load: Load, duration: float) -> Outcome:
        offered = round(load.pps * duration)
        counts = (DirectionCount(0, 1, offered, offered, round(min(rate, load.pps) * duration)),)
        return Outcome(load, duration, duration, 0.0, counts, (), {POWER: next(meter), UNCERTAINTY: uncertainty})

    requirement = parse(f"64b 1-flow unidirectional costs {words}", CATALOGUE)
    goal = read_goal(VARIABLES / "goals", "quick")
    return energy(requirement, Load(15.1e6), goal, measure, "a meter", 100e9, TrialConditions())


@given(
    watts=st.lists(st.floats(0.1, 1e4), min_size=1, max_size=5),
    uncertainty=st.floats(0, 50),
    rate=st.floats(1e3, 15e6),
    limit=st.floats(1e-3, 1e4),
    more=st.floats(1, 10),
)
def test_more_power_or_fewer_frames_never_help(
    watts: list[float], uncertainty: float, rate: float, limit: float, more: float
) -> None:
    words = f"≤ {limit:.6f} µJ/packet"
    first = judged(words, watts, uncertainty, rate)
    dearer = judged(words, [item * more for item in watts], uncertainty, rate)
    for worse in (dearer, judged(words, watts, uncertainty, rate / more)):
        assert (first.ruling, worse.ruling) != (Ruling.FAIL, Ruling.PASS)
    if first.ruling is Ruling.PASS:
        assert first.figures["energy_uj_high"] <= limit * 1.001
