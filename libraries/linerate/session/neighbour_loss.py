"""A FAIL under which the router had lost the address of the generator's port: not its forwarding was tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..counts.telemetry import Telemetry
from ..counts.trial import Fault, Problem
from ..sla.requirement import Quantity
from ..sla.verdict import Ruling, Verdict, forwarding_rule, loss_rule, weigh


def why_unaddressed(verdict: Verdict, after: Telemetry, interfaces: Mapping[int, str]) -> str:
    """Why *verdict*, a FAIL, proves nothing about the router: *after* it lacks a neighbour. "" if the FAIL stands.

    *interfaces*: the router's, by the generator's port. What is lost in other directions still counts.
    """
    gone = {found.interface: found for found in after.neighbours if found.problem}
    if verdict.ruling is not Ruling.FAIL or not gone:
        return ""
    rows = {(row.tx_port, row.rx_port) for trial in verdict.trials for row in trial.outcome.directions}
    spared = {row for row in rows if interfaces.get(row[1]) in gone}
    if not spared or (spared != rows and _fails_without(verdict, spared)):
        return ""
    found = [gone[name] for name in dict.fromkeys(interfaces[port] for _, port in sorted(spared))]
    words = "; ".join(each.problem for each in found)
    remedy = "; ".join(each.remedy for each in found if each.remedy)
    return (
        f"{words}: frames that cannot be addressed are not lost by its forwarding; {remedy or 'set it for good'}, then"
        " run again"
    )


def _fails_without(verdict: Verdict, spared: set[tuple[int, int]]) -> bool:
    """Whether *verdict* is a FAIL by the directions alone that are not *spared*."""
    requirement, goal = verdict.requirement, verdict.goal
    problem = Problem(Fault.ROUTER, "a neighbour entry went", directions=tuple(sorted(spared)))
    trials = [replace(trial, problems=(*trial.problems, problem)) for trial in verdict.trials]
    match requirement.quantity:
        case Quantity.THROUGHPUT | Quantity.LOSS:
            rule = loss_rule(goal, requirement.in_total)
        case Quantity.FORWARDING_RATE:
            rule = forwarding_rule(requirement, verdict.link_bps)
        case _:
            return False
    return weigh(goal, trials, rule).ruling is Ruling.FAIL
