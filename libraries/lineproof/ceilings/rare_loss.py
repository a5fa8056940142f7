"""Rare loss and a verdict: a generator may lose a burst now and then itself, so a FAIL needs to know that it does not.

A FAIL stands if the router's own counters explain the loss, or if the generator was watched with the router bypassed
for at least as long and lost nothing, or lost clearly less often. Else it becomes INCONCLUSIVE; nothing else changes.
"""

from __future__ import annotations

from dataclasses import replace

from ..core.goals import FORGIVEN
from ..core.requirement import Quantity
from ..core.verdict import Evidence, Ruling, Verdict, loss_rule, on_the_whole, whole_loss_ratio
from ..stats import more_often
from .calibration import Watch
from .headroom import MeasuredLimits

EXPLAINED_SHARE = 0.9
"""The share of the lost frames that the router's own counters must explain."""


def apply_rare_loss(verdict: Verdict, limits: MeasuredLimits | None) -> Verdict:
    """*verdict*, or INCONCLUSIVE in place of a FAIL by rare loss that may be the generator's own.

    *limits*: what was measured of it without the router; None: it was not calibrated.
    """
    requirement = verdict.requirement
    if verdict.ruling is not Ruling.FAIL or requirement.quantity not in (Quantity.THROUGHPUT, Quantity.LOSS):
        return verdict
    rule = loss_rule(verdict.goal, requirement.in_total)
    kinds = [(trial, on_the_whole(rule(trial))) for trial in verdict.trials]
    bad = [trial for trial, kind in kinds if kind.against_router]
    weighed = [trial for trial, kind in kinds if kind.against_router or kind is Evidence.GOOD]
    is_rare = len(bad) <= len(weighed) / 2 or len(weighed) == 1
    if not is_rare or whole_loss_ratio(weighed, requirement.in_total) > FORGIVEN or _is_explained(verdict):
        return verdict
    found = None
    if limits is not None:
        found = limits.ceiling(requirement.profile, requirement.bidirectional, requirement.pairs)
    watched = None if found is None else found.watched
    why = _why_unsure(watched, len(bad), len(weighed), sum(trial.seconds for trial in weighed), verdict.goal.goal)
    if not why:
        return verdict
    reason = (
        f"loss as rare as this may be the generator's own: {why}, and the router's counters do not explain it; what was"
        f" measured: {verdict.reason}"
    )
    return replace(verdict, ruling=Ruling.INCONCLUSIVE, reason=reason)


def _is_explained(verdict: Verdict) -> bool:
    """Return whether the router's own counters explain nearly all frames lost in the bad trials."""
    lost = sum(ledger.lost for ledger in verdict.ledgers)
    unexplained = sum(abs(ledger.unexplained) for ledger in verdict.ledgers)
    known = bool(verdict.ledgers) and not any(ledger.missing for ledger in verdict.ledgers)
    return known and unexplained <= (1 - EXPLAINED_SHARE) * lost


def _why_unsure(watched: Watch | None, bad: int, trials: int, seconds: float, goal: str) -> str:
    """Why the generator may have lost these frames, in words; "" if it did not. *seconds* of all *trials*."""
    if watched is None:
        return f"it was not watched without the router (lineproof calibrate --goal {goal})"
    if watched.seconds < seconds:
        return (
            f"it was watched without the router for {watched.seconds:g} s, less than these {seconds:g} s of trials"
            f" (lineproof calibrate --goal {goal})"
        )
    if not watched.lossy or more_often(bad, trials, watched.lossy, watched.trials):
        return ""
    return f"it lost frames in {watched.lossy} of {watched.trials} trials without the router too"
