"""The simulated routers that rules are tried on: the same for each rule, drawn from one seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from lineproof.core.goal import Goal, read_goal
from lineproof.core.sentence import parse
from lineproof.core.verdict import Ruling
from lineproof.generators.trex.client.drain import QUIET_TIME
from lineproof.methods.budget import WALL_SECONDS_PER_TRIAL
from lineproof.project import Project
from lineproof.traffic.catalogue import Catalogue

from .decision_rules import Rule, RuleTask, bisection_rule, fixed_rule, goal_rule, mlrsearch_rule, ndr_bench_rule
from .noisy_router import PERFECT, GeneratorNoise, NoisyDirection, NoisyRouter, RouterNoise

RATE = 5e6
"""Frames/s of the SLA on a line of 10 Gbit/s; other rates are on a line that is as much faster or slower."""

LINE = 10e9 / 672
"""64-byte frames/s on that line."""

SPREAD = 0.02
"""SLAs lie within this ratio of the rate, so that no rule's steps lie well or badly by chance."""

FAST = 0.05
"""How much faster than its SLA a router is that only loses bursts."""

NOISE = RouterNoise()

SET_UP = 1.0
"""Seconds of real time per sentence outside its trials, about: streams, links, the router's counters before and after
(0.2 to 0.9 s on the simulated testbed)."""


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
    return (*ours, fixed_rule(goals.standard), mlrsearch_rule(), bisection_rule(), ndr_bench_rule())


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """One rule's verdict on one router of capacity / SLA *ratio*; the seconds of traffic and of real time it took."""

    ratio: float
    ruling: Ruling
    traffic: float
    real: float

    @property
    def passed(self) -> bool:
        """Whether it is a PASS."""
        return self.ruling is Ruling.PASS


@dataclass(frozen=True, slots=True)
class RouterKind:
    """What routers have in common: noise, generator, number of ``directions``.

    ``sound``: capacity above the SLA (ratio) of all directions but the first, which then have NOISE (None: they are
    like the first).
    """

    noise: RouterNoise = NOISE
    directions: int = 1
    sound: float | None = None
    generator: GeneratorNoise = PERFECT

    def router(self, sla: float, ratio: float, seed: str) -> NoisyRouter:
        """A router with *ratio* of *sla* as capacity."""
        found = [NoisyDirection(sla * ratio, seed, self.noise)]
        for number in range(1, self.directions):
            own = f"{seed} direction {number}"
            if self.sound is None:
                found.append(NoisyDirection(sla * ratio, own, self.noise))
            else:
                found.append(NoisyDirection(sla * (1 + self.sound), own, NOISE))
        return NoisyRouter(found, self.generator)

    @property
    def words(self) -> str:
        """The directions in a sentence."""
        pairs = f" on {self.directions // 2} pairs" if self.directions > 2 else ""
        return f"{'bi' if self.directions > 1 else 'uni'}directional{pairs}"


class RouterPopulation:
    """Routers by number, each with an SLA and noise of its own. *rate*: frames/s of the SLA, within SPREAD."""

    def __init__(self, catalogue: Catalogue, seed: int, rate: float = RATE, kind: RouterKind | None = None) -> None:
        self._catalogue, self._seed, self._kind = catalogue, seed, kind or RouterKind()
        self._rate = rate
        self._tasks: dict[int, RuleTask] = {}

    def task(self, number: int) -> RuleTask:
        """The SLA of router *number*."""
        if number not in self._tasks:
            chance = random.Random(f"{self._seed} {number} sla")
            sla = round(self._rate * (1 + chance.uniform(-SPREAD, SPREAD)))
            scale = self._rate / RATE
            each = " each way" if self._kind.directions > 1 else ""
            sentence = f"64b {self._kind.words} ≥ {sla} pps{each}"
            self._tasks[number] = RuleTask(parse(sentence, self._catalogue), sla, LINE * scale, 10e9 * scale)
        return self._tasks[number]

    def judge(self, rule: Rule, number: int, ratio: float) -> RuleVerdict:
        """The verdict of *rule* on router *number* with a capacity of *ratio* times its SLA."""
        task = self.task(number)
        router = self._kind.router(task.sla, ratio, f"{self._seed} {number}")
        ruling = rule.judge(router, task)
        # what is in a buffer comes at once; the other missing frames never do
        waits = SET_UP + WALL_SECONDS_PER_TRIAL * router.trials + QUIET_TIME * router.lossy
        return RuleVerdict(ratio, ruling, router.traffic, router.traffic + waits)


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
