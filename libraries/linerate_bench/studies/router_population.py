"""The simulated routers that rules are tried on: the same for each rule, drawn from one seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from linerate.project import Project
from linerate.sla.goals import Goal, read_goal
from linerate.sla.sentence import parse
from linerate.traffic.catalogue import Catalogue

from .decision_rules import Rule, RuleTask, bisection_rule, goal_rule, mlrsearch_rule, ndr_bench_rule
from .noisy_router import NoisyRouter, RouterNoise

RATE = 5e6
"""Frames/s of the SLA on a line of 10 Gbit/s; other rates are on a line that is as much faster or slower."""

LINE = 10e9 / 672
"""64-byte frames/s on that line."""

SPREAD = 0.02
"""SLAs lie within this ratio of the rate, so that no rule's steps lie well or badly by chance."""

FAST = 0.05
"""How much faster than its SLA a router is that only loses bursts."""

SLOW_RULE_SHARE = 5
"""A rule that is slow to simulate is tried on every n-th router."""

NOISE = RouterNoise()


@dataclass(frozen=True, slots=True)
class Goals:
    """The goals of this project."""

    quick: Goal
    standard: Goal
    rfc2544: Goal

    @classmethod
    def read(cls, project: Project) -> Goals:
        """From their files."""
        return cls(*(read_goal(project.goals, name) for name in ("quick", "standard", "rfc2544")))


def all_rules(goals: Goals) -> tuple[Rule, ...]:
    """Every rule that is compared, ours first."""
    ours = tuple(goal_rule(goal) for goal in (goals.quick, goals.standard, goals.rfc2544))
    return (*ours, bisection_rule(), mlrsearch_rule(), mlrsearch_rule(from_line=False), ndr_bench_rule())


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """One rule's verdict on one router, and the seconds of traffic that it took."""

    ratio: float
    passed: bool
    traffic: float


class RouterPopulation:
    """Routers by number, each with an SLA and noise of its own. *rate*: frames/s of the SLA, within SPREAD."""

    def __init__(self, catalogue: Catalogue, seed: int, rate: float = RATE, noise: RouterNoise = NOISE) -> None:
        self._catalogue, self._seed, self._noise = catalogue, seed, noise
        self._rate = rate
        self._tasks: dict[int, RuleTask] = {}

    def task(self, number: int) -> RuleTask:
        """The SLA of router *number*."""
        if number not in self._tasks:
            chance = random.Random(f"{self._seed} {number} sla")  # noqa: S311
            sla = round(self._rate * (1 + chance.uniform(-SPREAD, SPREAD)))
            scale = self._rate / RATE
            sentence = f"64b unidirectional ≥ {sla} pps"
            self._tasks[number] = RuleTask(parse(sentence, self._catalogue), sla, LINE * scale, 10e9 * scale)
        return self._tasks[number]

    def judge(self, rule: Rule, number: int, ratio: float) -> RuleVerdict:
        """The verdict of *rule* on router *number* with a capacity of *ratio* times its SLA."""
        task = self.task(number)
        router = NoisyRouter(task.sla * ratio, f"{self._seed} {number}", self._noise)
        passed = rule.judge(router, task)
        return RuleVerdict(ratio, passed, router.traffic)


def routers_for(rule: Rule, routers: int) -> int:
    """The number of *routers* that the rule is tried on."""
    return max(1, routers // SLOW_RULE_SHARE) if rule.slow else routers


def count_passes(population: RouterPopulation, rule: Rule, ratio: float, routers: int) -> int:
    """How many of the first *routers* pass with a capacity of *ratio* times their SLA."""
    return sum(population.judge(rule, number, ratio).passed for number in range(routers))


def table(head: Sequence[str], rows: Sequence[Sequence[str]], markdown: bool) -> str:
    """A table as text, or as Markdown; the first column is words, the others are figures."""
    if markdown:
        lines = [head, ("---", *["---:"] * (len(head) - 1)), *rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)
    plain = [[cell.replace("`", "") for cell in line] for line in (head, *rows)]
    widths = [max(len(line[column]) for line in plain) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in plain
    )
