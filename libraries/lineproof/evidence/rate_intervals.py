"""Confidence intervals of a verdict's rates, for the record. No verdict depends on them."""

from __future__ import annotations

from ..core.verdict import Verdict, forwarded_pps, offered_pps
from ..stats import interval


def rate_intervals(verdict: Verdict) -> dict[str, float]:
    """``offered_pps_low`` … ``forwarded_pps_high``: intervals of the mean rates, frames/s as the sentence counts them.

    At the goal's confidence, over the trials that say something of the router: Student's t, or the bootstrap where they
    are not normal (:func:`.stats.interval`). Empty for fewer than two such trials.
    """
    telling = [trial for trial in verdict.trials if trial.blames_router]
    found: dict[str, float] = {}
    if len(telling) < 2:
        return found
    for name, rate in (("offered", offered_pps), ("forwarded", forwarded_pps)):
        between = interval([rate(trial, verdict.requirement) for trial in telling], verdict.goal.confidence)
        if between.low is not None and between.high is not None:
            found |= {f"{name}_pps_low": between.low, f"{name}_pps_high": between.high}
    return found
