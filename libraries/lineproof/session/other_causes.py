"""Whether a FAIL stands although something beside the router's forwarding may have cost frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..core.requirement import Quantity
from ..core.trial import Problem, Trial
from ..core.verdict import Ruling, Verdict, forwarding_rule, loss_rule, weigh


def fails_all_the_same(verdict: Verdict, problems_of: Callable[[Trial], Sequence[Problem]]) -> bool:
    """Return whether *verdict* is a FAIL by what the further problems of its trials do not explain.

    *problems_of*: those of a trial. Of quantities that no loss decides it is not known: False.
    """
    requirement, goal = verdict.requirement, verdict.goal
    trials = [replace(trial, problems=(*trial.problems, *problems_of(trial))) for trial in verdict.trials]
    match requirement.quantity:
        case Quantity.THROUGHPUT | Quantity.LOSS:
            rule = loss_rule(goal, requirement.in_total)
        case Quantity.FORWARDING_RATE:
            rule = forwarding_rule(requirement, verdict.link_bps)
        case _:
            return False
    return weigh(goal, trials, rule).ruling is Ruling.FAIL
