"""A router of a known capacity behind a known generator, and the verdict on it without a testbed."""

from __future__ import annotations

from lineproof.core.goal import Goal, read_goal
from lineproof.core.requirement import Quantity
from lineproof.core.rule import Ruling
from lineproof.core.sentence import parse
from lineproof.core.trial import DirectionCount, Load, Measure, Outcome
from lineproof.core.verdict import Verdict
from lineproof.methods.latency import latency
from lineproof.methods.saturate import saturate
from lineproof.methods.sequential import TrialConditions
from lineproof.methods.verify import verify
from support.catalogue import CATALOGUE as CATALOGUE
from support.paths import ROOT

GOALS = ROOT / "variables" / "goals"
LINK = 10e9
RANK = {Ruling.FAIL: 0, Ruling.INCONCLUSIVE: 1, Ruling.PASS: 2}


def run(sentence: str, measure: Measure, goal: Goal | str = "quick") -> Verdict:
    """The verdict on *sentence* of what *measure* measures, at 10 Gbit/s."""
    requirement = parse(sentence, CATALOGUE)
    terms = read_goal(GOALS, goal) if isinstance(goal, str) else goal
    if requirement.duration_sum is not None:
        terms = terms.as_soak(requirement.duration_sum)
    load, method = requirement.named_load(LINK), verify
    if requirement.quantity is Quantity.FORWARDING_RATE:
        load, method = load or Load(requirement.profile.line_rate_pps(LINK)), saturate
    elif requirement.quantity in (Quantity.LATENCY, Quantity.DELAY_VARIATION):
        method = latency
    elif requirement.quantity is Quantity.LOSS:
        terms = terms.with_loss_ratio(requirement.threshold.number / 100)
    return method(requirement, load or requirement.threshold_load(LINK), terms, measure, LINK, TrialConditions())


def router(capacity: float, ceiling: float = 1e9, directions: int = 1) -> Measure:
    """A router of a known capacity (frames/s, all directions) behind a generator with a ceiling (frames/s a port)."""

    def measure(load: Load, duration: float) -> Outcome:
        asked = round(load.pps * duration)
        offered = min(asked, round(ceiling * duration))
        share = min(1.0, capacity * duration / (offered * directions))
        counts = [DirectionCount(n, 1 - n, asked, offered, round(offered * share)) for n in range(directions)]
        return Outcome(load, duration, duration, 0.0, tuple(counts))

    return measure


def timed(elapsed: float, uncertainty: float = 0.0) -> Measure:
    """A generator that sends what is asked in *elapsed* times the trial's duration; its clock reads as uncertain."""

    def measure(load: Load, duration: float) -> Outcome:
        frames = round(load.pps * duration)
        readings = {"elapsed_uncertainty": uncertainty}
        return Outcome(
            load, duration, duration * elapsed, 0.0, (DirectionCount(0, 1, *[frames] * 3),), readings=readings
        )

    return measure
