"""Outcomes of one direction, as tests of the rule want them."""

from __future__ import annotations

from lineproof.core.trial import DirectionCount, Fault, Load, Outcome, Problem


def outcome(
    load: float = 1000.0, duration: float = 1.0, loss: float = 0.0, sent: float = 1.0, faults: tuple[Fault, ...] = ()
) -> Outcome:
    asked = round(load * duration)
    offered = round(asked * sent)
    count = DirectionCount(0, 1, asked, offered, offered - round(offered * loss))
    problems = tuple(Problem(fault, "for a test") for fault in faults)
    return Outcome(Load(load), duration, duration, 0.0, (count,), problems)
