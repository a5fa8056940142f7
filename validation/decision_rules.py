"""Decision rules on the same noisy routers: the goals of this project, through the code that judges, and others' rules.

A rule that searches passes a router when its result is at least the SLA. The rules of others are written here from
what they publish:

* plain bisection: the throughput test of RFC 2544 26.1 as it is mostly automated, trials of 30 s without a lost frame;
* MLRsearch at the SLA: trials at this one load until CSIT's own library classifies it, as a lower bound (PASS) or an
  upper bound (FAIL), with FD.io CSIT's settings for NDR (csit, docs/content/methodology/measurements/
  data_plane_throughput, mlr_search.md: trials of 1 s, duration sum 21 s, loss ratio 0, exceed ratio 0.5; half a second
  between trials, which counts as trial time). The search would go on to other loads; the task here ends before;
* ndr_bench: TRex's (trex-core, scripts/automation/trex_control_plane/interactive/trex/examples/stl/ndr_bench.py, with
  the defaults of its command).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from lineproof.core.goal import Goal
from lineproof.core.requirement import Requirement
from lineproof.core.trial import Load, Measure, Outcome, Tolerance
from lineproof.core.verdict import Ruling
from lineproof.methods.sequential import TrialConditions
from lineproof.methods.verify import verify

from .noisy_router import NoisyRouter


@dataclass(frozen=True, slots=True)
class RuleTask:
    """The SLA of a router as a sentence and in frames/s, on a line of so many frames/s."""

    requirement: Requirement
    sla: float
    line: float
    link_bps: float


RuleJudge = Callable[[NoisyRouter, RuleTask], Ruling]


@dataclass(frozen=True, slots=True)
class Rule:
    """A procedure for a verdict."""

    name: str
    judge: RuleJudge


def _pass_if(good: bool) -> Ruling:
    return Ruling.PASS if good else Ruling.FAIL


def goal_rule(
    goal: Goal, name: str | None = None, tolerance: Tolerance | None = None, backlog_known: bool = True
) -> Rule:
    """The verdict of this project under *goal*, its warm-up included.

    *backlog_known*: whether the generator can tell how many frames are under way when its sending ends.
    """
    conditions = TrialConditions(tolerance or Tolerance())

    def judge(router: NoisyRouter, task: RuleTask) -> Ruling:
        load = task.requirement.threshold_load(task.link_bps)
        if goal.warm_up:
            router.measure(load, goal.warm_up)
        measure = router.measure if backlog_known else _without_backlog(router.measure)
        return verify(task.requirement, load, goal, measure, task.link_bps, conditions).ruling

    return Rule(name or f"`{goal.goal}`{'' if backlog_known else ', backlog not known'}", judge)


def _without_backlog(measure: Measure) -> Measure:
    def measure_less(load: Load, duration: float) -> Outcome:
        outcome = measure(load, duration)
        return replace(outcome, directions=tuple(replace(row, backlog=None) for row in outcome.directions))

    return measure_less


def fixed_rule(goal: Goal) -> Rule:
    """*goal* without its plan: a fixed number of trials, from its duration sum and exceed ratio."""
    fixed = goal.model_copy(update={"plan": {}})
    plan = fixed.plan_for(1)
    return goal_rule(fixed, f"{plan.most_trials} trials, {plan.most_bad} may be bad")


def repeated_rule(rule: Rule, runs: int) -> Rule:
    """PASS if each of so many *runs* on different days is one."""

    def judge(router: NoisyRouter, task: RuleTask) -> Ruling:
        for number in range(runs):
            if number:
                router.begin_run()
            if (ruling := rule.judge(router, task)) is not Ruling.PASS:
                return ruling
        return Ruling.PASS

    return Rule(f"{rule.name} on {runs} days", judge)


def bisection_rule() -> Rule:
    """Trials of 30 s; halve from nothing to the line rate until 0.5 % of it is left."""
    duration, width = 30.0, 0.005

    def judge(router: NoisyRouter, task: RuleTask) -> Ruling:
        low, high = 0.0, task.line
        while high - low > width * task.line:
            middle = (low + high) / 2
            if router.measure(Load(middle), duration).directions[0].lost:
                high = middle
            else:
                low = middle
        return _pass_if(low >= task.sla)

    return Rule(f"bisection, {duration:g} s", judge)


_TRIAL_DELAY = 0.5
"""Seconds between the trials of FD.io CSIT, which its search counts as trial time."""


def mlrsearch_rule() -> Rule:
    """Trials at the SLA until FD.io CSIT's library classifies this load for its goal NDR."""

    def judge(router: NoisyRouter, task: RuleTask) -> Ruling:
        # imported here: it takes longer the more modules there are, seconds in a process that runs many tests
        from MLRsearch import MeasurementResult
        from MLRsearch.target_spec import TargetSpec
        from MLRsearch.target_stat import TargetStat

        duration, load = 1.0, Load(task.sla)
        target = TargetSpec(
            loss_ratio=0.0,
            exceed_ratio=0.5,
            trial_duration=duration,
            duration_sum=21.0,
            # of the search for other loads
            discrete_width=None,
            expansion_coefficient=2,
            fail_fast=False,
            preceding=None,
        )
        stat = TargetStat(target)
        router.measure(load, duration)
        while True:
            count = router.measure(load, duration).directions[0]
            result = MeasurementResult(
                intended_duration=duration,
                intended_load=load.pps,
                offered_count=count.offered,
                loss_count=count.lost,
                duration_with_overheads=duration + _TRIAL_DELAY,
            )
            stat.add(result)
            optimistic, pessimistic = stat.estimates()
            if optimistic == pessimistic:
                return _pass_if(optimistic)

    return Rule("MLRsearch at the SLA", judge)


def ndr_bench_rule() -> Rule:
    """TRex's benchmark: halve until a rate is within 1 % of the highest of the best so far, ten times at most.

    It stops each run of 20 s at half of it, and allows a loss ratio of 0.1 %. What it asks of the generator's own
    queue is met here always.
    """

    def judge(router: NoisyRouter, task: RuleTask) -> Ruling:
        def good(percent: float) -> bool:
            # it sends 1 % instead of nothing
            load = Load(task.line * (percent or 1.0) / 100)
            return router.measure(load, 10.0).directions[0].loss_ratio <= 0.001

        if good(100.0):
            return _pass_if(task.line >= task.sla)
        best, low, high, iteration = 0.0, 0.0, 100.0, 0
        while True:
            rate = (low + high) / 2
            near = abs(rate - best) <= 1.0
            if good(rate):
                best = max(best, rate)
                low = rate
            else:
                high = rate
            if near:
                break
            iteration += 1
            if iteration == 10:
                # it takes the last rate for the best, lossless or not
                best = rate
                break
        return _pass_if(task.line * best / 100 >= task.sla)

    return Rule("TRex ndr_bench", judge)
