"""Confidence intervals of a verdict's rates, for the record. No verdict depends on them."""

from __future__ import annotations

from ..core.phrases import mean_rate
from ..core.verdict import Verdict
from ..stats import interval
from .rates import is_set_aside


def rate_intervals(verdict: Verdict) -> dict[str, float]:
    """``offered_pps_low`` … ``forwarded_pps_high``: intervals of the mean rates, frames/s as the sentence counts them.

    At the goal's confidence, over the trials that are not set aside: Student's t, or the bootstrap where they are not
    normal (:func:`.stats.interval`). Empty for fewer than two such trials.
    """
    promise, telling = verdict.promise, [trial for trial in verdict.trials if not is_set_aside(trial)]
    found: dict[str, float] = {}
    if promise is None or len(telling) < 2:
        return found
    for name in ("offered", "forwarded"):
        between = interval([mean_rate([trial], promise, name) for trial in telling], verdict.goal.confidence)
        if between.low is not None and between.high is not None:
            found |= {f"{name}_pps_low": between.low, f"{name}_pps_high": between.high}
    return found
