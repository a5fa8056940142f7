"""Decision rules on the same noisy routers: the goals of this project, through the code that judges, and others' rules.

A rule that searches passes a router when its result is at least the SLA. The rules of others are written here from
what they publish:

* plain bisection: the throughput test of RFC 2544 26.1 as it is mostly automated, trials of 30 s without a lost frame;
* MLRsearch: FD.io CSIT's settings for NDR (csit, docs/content/methodology/measurements/data_plane_throughput,
  mlr_search.md: trials of 1 s, duration sum 21 s, loss ratio 0, exceed ratio 0.5, width 0.5 %; half a second between
  trials, which counts as trial time), run by CSIT's own library;
* ndr_bench: TRex's (trex-core, scripts/automation/trex_control_plane/interactive/trex/examples/stl/ndr_bench.py, with
  the defaults of its command).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from linerate.counts.trial import Load
from linerate.methods.sequential import TrialConditions
from linerate.methods.verify import verify
from linerate.sla.goals import Goal
from linerate.sla.requirement import Requirement
from linerate.sla.verdict import Ruling

from .noisy_router import NoisyRouter


@dataclass(frozen=True, slots=True)
class RuleTask:
    """The SLA of a router as a sentence and in frames/s, on a line of so many frames/s."""

    requirement: Requirement
    sla: float
    line: float
    link_bps: float


RuleJudge = Callable[[NoisyRouter, RuleTask], bool]


@dataclass(frozen=True, slots=True)
class Rule:
    """A procedure for a verdict. ``slow``: it takes long to simulate and is tried on fewer routers."""

    name: str
    judge: RuleJudge
    slow: bool = False


def goal_rule(goal: Goal, name: str | None = None) -> Rule:
    """The verdict of this project under *goal*, its warm-up included."""

    def judge(router: NoisyRouter, task: RuleTask) -> bool:
        load = task.requirement.threshold_load(task.link_bps)
        if goal.warm_up:
            router.measure(load, goal.warm_up)
        verdict = verify(task.requirement, load, goal, router.measure, task.link_bps, TrialConditions())
        return verdict.ruling is Ruling.PASS

    return Rule(name or f"`{goal.goal}`", judge)


def bisection_rule(duration: float = 30.0, width: float = 0.005) -> Rule:
    """Halve from nothing to the line rate until what is left is *width* (ratio of the line rate)."""

    def judge(router: NoisyRouter, task: RuleTask) -> bool:
        low, high = 0.0, task.line
        while high - low > width * task.line:
            middle = (low + high) / 2
            if router.measure(Load(middle), duration).directions[0].lost:
                high = middle
            else:
                low = middle
        return low >= task.sla

    return Rule(f"bisection, {duration:g} s", judge)


_TRIAL_DELAY = 0.5
"""Seconds between the trials of FD.io CSIT, which its search counts as trial time."""

_LEAST_LOAD = 9001.0
"""Frames/s: MLRsearch's own default for the lowest load."""


class _Measurer:
    def __init__(self, router: NoisyRouter) -> None:
        self._router = router

    def measure(self, intended_duration: float, intended_load: float) -> Any:
        from MLRsearch import MeasurementResult

        count = self._router.measure(Load(intended_load), intended_duration).directions[0]
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=count.offered,
            loss_count=count.lost,
            duration_with_overheads=intended_duration + _TRIAL_DELAY,
        )


def mlrsearch_rule(from_line: bool = True) -> Rule:
    """FD.io CSIT's search for NDR, from the line rate; else one that goes no higher than the SLA."""

    def judge(router: NoisyRouter, task: RuleTask) -> bool:
        from MLRsearch import Config, MultipleLossRatioSearch, SearchGoal

        goal = SearchGoal(
            loss_ratio=0.0,
            exceed_ratio=0.5,
            relative_width=0.005,
            initial_trial_duration=1.0,
            final_trial_duration=1.0,
            duration_sum=21.0,
            fail_fast=False,
        )
        highest = task.line if from_line else task.sla
        config = Config(
            goals=[goal],
            min_load=min(_LEAST_LOAD, highest / 2),
            max_load=highest,
            search_duration_max=1e9,
            warmup_duration=1.0,
        )
        found = MultipleLossRatioSearch(config=config).search(measurer=_Measurer(router), debug=lambda text: None)
        throughput = found[goal].conditional_throughput
        # it rounds loads to integers
        return throughput is not None and float(throughput) >= math.floor(task.sla)

    return Rule("MLRsearch, CSIT's NDR" if from_line else "MLRsearch, up to the SLA", judge, slow=True)


def ndr_bench_rule(
    seconds: float = 20.0, allowed: float = 0.001, resolution: float = 1.0, most_iterations: int = 10
) -> Rule:
    """TRex's benchmark: halve until a rate is within *resolution* (per cent of the highest) of the best so far.

    It stops each run at half of its *seconds*, and allows a loss ratio *allowed*. What it asks of the generator's own
    queue is met here always.
    """

    def judge(router: NoisyRouter, task: RuleTask) -> bool:
        def good(percent: float) -> bool:
            # it sends 1 % instead of nothing
            load = Load(task.line * (percent or 1.0) / 100)
            return router.measure(load, seconds / 2).directions[0].loss_ratio <= allowed

        if good(100.0):
            return task.line >= task.sla
        best, low, high, iteration = 0.0, 0.0, 100.0, 0
        while True:
            rate = (low + high) / 2
            near = abs(rate - best) <= resolution
            if good(rate):
                best = max(best, rate)
                low = rate
            else:
                high = rate
            if near:
                break
            iteration += 1
            if iteration == most_iterations:
                # it takes the last rate for the best, lossless or not
                best = rate
                break
        return task.line * best / 100 >= task.sla

    return Rule("TRex ndr_bench", judge)
