"""Ruling and number of trials of made-up routers, half of them near a PASS. Rows: seed, ruling's letter, trials."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any
from unittest import mock

from golden import net
from golden.scripted import LINK_BPS, ScriptedBench, T
from lineproof.core.deciding import TrialConditions, decide
from lineproof.core.doubts import OwnPart
from lineproof.core.sentence import parse
from lineproof.core.trial import ABOVE_IDLE_UNCERTAINTY, IDLE_POWER, POWER, UNCERTAINTY, Fault, Load, Problem
from lineproof.generators.trex.outcomes import probe_counts
from lineproof.quantities import cycles
from lineproof.session.judging import nobody
from support.catalogue import CATALOGUE
from support.made_testbeds import goal_named, probe_group

SEEDS = 40_000

FAULTS = (
    *("UNDER_OFFERED", "STRETCHED", "CPU_BOUND", "OVER_OFFERED", "SURPLUS", "FOREIGN", "LINK_DOWN", "QUEUES"),
    *("COUNTERS", "MISCOUNTED", "READING", "PAUSED", "PAUSING", "GENERATOR", "ROUTER", "CLOCK"),
)
"""Faults of the testbeds; in this order, so that a seed stays the same router."""

SENTENCES: Mapping[str, tuple[str, tuple[float, ...]]] = {
    "throughput": ("≥ {} Mpps{scope}", (0.01, 1, 5, 7.44, 14.88)),
    "loss": ("loses ≤ {}%{scope} at 1 Mpps{each}", (0.1, 0.5, 2)),
    "forwards": ("forwards ≥ {} Mpps{scope}", (0.01, 0.99, 1, 5)),
    "energy": ("costs ≤ {} µJ/packet{at}", (8, 20, 25)),
    "energy above idle": ("costs ≤ {} µJ/packet above idle{at}", (8, 20, 25)),
    "latency": ("latency {statistic} ≤ {} µs at 1 Mpps{each}", (30, 70, 100, 150, 300, 700)),
    "pdv": ("pdv {statistic} ≤ {} µs at 1 Mpps{each}", (30, 70, 100, 150, 300, 700)),
    "cycles": ("costs ≤ {} cycles/packet{without}{at}", (300,)),
    "soak": ("≥ {} Mpps{scope} for {time} s", (1, 5)),
    "recovery": ("recovers in ≤ {} s at 6 Mpps{each}", (0.5, 1, 2)),
}
"""By kind: the words of its sentences after the direction, and their limits."""

ORDER = (*list(SENTENCES)[:-1], "throughput", "loss", "forwards", "latency", "soak", *SENTENCES)
"""The kinds of the seeds, in turn."""


class Router:
    """A made-up router, with its testbed. *limit*: that of its sentence, per direction or of all together."""

    def __init__(self, r: random.Random, kind: str, limit: float, pps: float, directions: int) -> None:
        near = r.random() < 0.5
        self.random, self.kind, self.directions, self.limit = r, kind, directions, limit

        def pick(usual: Any, *others: Any) -> Any:
            return usual if r.random() < (0.85 if near else 0.5) else r.choice(others)

        allowed = limit / 100 if kind == "loss" else 0.0
        self.loss = (
            r.choice((0, 0.9, 0.99, 1, 1.002)) * allowed if near else pick(0, 1e-7, 1e-4, 4e-3, 0.006, 0.06, 0.3)
        )
        self.spread = pick(0, 0.5, 3) * (self.loss != allowed or not near)
        self.bursts = r.choice((0, 0.03, 0.1, 0.2, 0.3)) if near else r.choice((0, 0, 0.05, 0.2, 0.6))
        self.burst = allowed + r.choice((1e-6, 0.05, 0.0501, 0.5, *(r.uniform(0.002, 0.02) for _ in range(4))))
        self.share, self.together, self.bad = r.choice((0.1, 0.3, 1)), r.random() < 0.4, False
        """How often a trial has what is wrong with the testbed, or whether just those have it that lose a burst."""
        self.sent = pick(1, 0.9999, 0.9985, 0.997, 0.9, 0.4, 1.001, 1.004, 1.02)
        self.slow, self.uncertain = pick(1, 1.0005, 1.002, 1.02, 1.3, 0.9), pick(0, 0.0005, 0.001, 0.003, 0.01)
        self.fault = pick(None, *FAULTS)
        self.foreign, self.backlog = pick(0, 10, 900, 5000), pick(0, None, 1000, 9000, 40_000)
        if kind == "forwards" and near:
            self.backlog = r.choice((0, 0, 500, 2000, 4000))
        self.hidden, self.cpu = pick(0, 3, 4000), pick(0, 50, 96)
        near_limit = r.choice((0.9, 0.997, 0.9999, 1, 1.0001, 1.001, 1.003, 1.1) if near else (0.4, 0.8, 1.2, 3))
        self.capacity = limit * near_limit if kind == "forwards" else 15e6
        self.idle = 9.0
        self.watts = limit * 1e-6 * pps * directions * near_limit + self.idle * (kind == "energy above idle")
        self.jitter, self.watts_uncertain = pick(0, 0.02, 0.1), pick(0, 0.02, 0.2) * self.watts
        self.late, self.reordered = r.choice((20, 60, 90, 100, 200)), pick(0, 2)
        self.probes, self.probes_lost = pick(20_000, 50, 3000), pick(0, 1, 40)
        self.cycles, self.silent, self.late_answer = round(limit * near_limit), pick(False, True), pick(0.0, 3.0)
        self.overload = pick(0.2, 0.001)

    def _now(self, wrong: Any, usual: Any) -> Any:
        return wrong if wrong != usual and (self.bad if self.together else self.random.random() < self.share) else usual

    def trial(self, number: int, load: Load, seconds: float) -> T:
        """Return what this trial of *seconds* shows."""
        r, ways, intended = self.random, range(self.directions), round(load.pps * seconds)
        overload = self._after_overload() if self.kind == "recovery" else (0.0, 0.0, 0.0)
        self.bad = r.random() < self.bursts
        sent = self._now(self.sent, 1)
        capacity = round(self.capacity * (1 + self.jitter / 20 * (r.random() - 0.5)) * seconds)
        rows = [self._way(round(intended * sent), capacity) for _ in ways]
        lost, backlog, foreign = zip(*rows, strict=True)
        faults: tuple[Problem, ...] = ()
        if fault := self._now(self.fault, None):
            frames, first = r.choice((None, None, 5, 9000)), r.random() < 0.5
            faults = (Problem(Fault[fault], "made up", frames, ((0, 1),) if first else ()),)
        watts = self.watts * (1 + self.jitter * (2 * r.random() - 1))
        groups = [self._probes(way) for way in ways] if self.kind in ("latency", "pdv") else []
        slow = self._now(self.slow, 1)
        readings = {POWER: watts, UNCERTAINTY: self.watts_uncertain, IDLE_POWER: self.idle, "cpu_util": float(self.cpu)}
        readings |= {ABOVE_IDLE_UNCERTAINTY: 1.5 * self.watts_uncertain, "elapsed_uncertainty": self.uncertain}
        runtime = self._runtime() if self.kind == "cycles" else {"readings": readings}
        probes = probe_counts(groups, max(seconds, seconds * slow))
        return T(lost, sent, slow, faults, backlog, foreign, probes=probes, overload=overload, **runtime)

    def _way(self, offered: int, capacity: int) -> tuple[int, int | None, int]:
        """Return the frames of a direction that are lost, held, and of other origin."""
        r = self.random
        loss = self.loss * (1 + self.spread * (2 * r.random() - 1))
        lost = max(0, round(offered * (self.burst if self.bad and r.random() < 0.7 else loss)))
        more = 3 if r.random() < 0.02 else 0
        backlog = r.randrange(self.backlog + 1) if self.backlog else self.backlog
        return offered - min(offered - lost, capacity) - more, backlog, self._now(self.foreign, 0)

    def _probes(self, way: int) -> dict[str, Any]:
        r = self.random
        sent = self._now(self.probes, 20_000)
        received = sent - self._now(self.probes_lost, 0)
        late = min(received, r.choice((1, 20, 200, 400)) if self.bad else 0)
        early = (received - late) // 2 if self.spread else 0
        shown = {20: early, self.late: received - early - late, 500: late}
        ends = {"tx_port": way, "rx_port": 1 - way, "out_of_order": self.reordered}
        return probe_group(shown, sent, received, max(shown), **ends)

    def _runtime(self) -> dict[str, Any]:
        """Return packets and cycles of a worker, and the seconds by which its answer is late."""
        cost = round(self.cycles * (1 + self.jitter * (2 * self.random.random() - 1) + 10 * self.burst * self.bad))
        packets = self.random.choice((1_000_000, 999_000, 500_000))
        packets = 0 if self._now(self.silent, False) else packets
        return {"packets": packets, "cycles": (cost,), "polled": 100, "late": self._now(self.late_answer, 0.0)}

    def _after_overload(self) -> tuple[float, float, float]:
        """Return the seconds that a tenth is lost after an overload, the ratio lost always, and the overload's."""
        lag = self.limit * self.random.choice((0, 0.5, 0.9, 0.98, 1.02, 1.5) if self.bursts else (0, 0.5))
        return lag, self._now(self.burst / 4, self.loss / 100), self._now(self.overload, 0.2)


def made_up(seed: int) -> tuple[str, str, str, float, Router]:
    """Return kind of sentence, sentence, goal, load (frames/s into each port) and router of *seed*."""
    r, kind = random.Random(seed), ORDER[seed % len(ORDER)]
    both = r.random() < 0.5
    form, limits = SENTENCES[kind]
    limit, each, scope = r.choice(limits), " each way" * both, r.choice((" each way", " in total")) if both else ""
    parts = {
        "scope": scope,
        "each": each,
        "at": r.choice(("", f" at 1 Mpps{each}")),
        "without": r.choice(("", " without input")),
        "time": r.choice((30, 60, 90)),
        "statistic": r.choice(("p50", "p99", "p99.9", "max", "mean")),
    }
    goal = r.choices(("quick", "standard", "rfc2544"), (10, 10, 2))[0]
    directions = 1 + both
    rate = limit * 1e6 / (directions if scope == " in total" else 1)
    pps = {"throughput": rate, "soak": rate, "forwards": rate * r.choice((1, 1.0001, 1.02, 3)), "recovery": 6e6}
    load = pps.get(kind, 1e6)
    router = Router(r, kind, rate if kind == "forwards" else limit, load, directions)
    return kind, f"64b {'bi' if both else 'uni'}directional {form.format(limit, **parts)}", goal, load, router


def row(seed: int) -> tuple[str, str]:
    """Return the kind of sentence of *seed*, and its row."""
    kind, sentence, goal, pps, router = made_up(seed)
    ruling, trials = _decided(sentence, kind, goal, pps, router)
    return kind, f"{seed} {ruling[0]} {trials}"


def texts() -> Mapping[str, str]:
    """Return a file for each kind of sentence."""
    rows: dict[str, list[str]] = {kind: [] for kind in SENTENCES}
    for kind, line in map(row, range(SEEDS)):
        rows[kind].append(f"{line}\n")
    return {f"{kind.replace(' ', '_')}.txt": "".join(lines) for kind, lines in rows.items()}


def differences(seeds: Iterable[int]) -> list[str]:
    """Return the rows of *seeds* that are not the recorded ones."""
    recorded = {line for text in net.recorded("decisions").values() for line in text.splitlines()}
    return [f"{kind}: {line}" for kind, line in map(row, seeds) if line not in recorded]


def _decided(sentence: str, kind: str, goal_name: str, pps: float, router: Router) -> tuple[str, int]:
    """Return ruling and number of trials."""
    requirement = parse(sentence, CATALOGUE)
    load = requirement.threshold_load(LINK_BPS) if kind in ("throughput", "soak") else Load(pps)
    promise = requirement.promise(goal_named(goal_name), load, LINK_BPS, OwnPart(trials=1000))
    measure = ScriptedBench(requirement, router.trial).measure_of(promise, nobody)
    line_pps = requirement.profile.line_rate_pps(LINK_BPS)
    with mock.patch.object(cycles, "time", SimpleNamespace(monotonic=lambda: 0.0)):
        decision = decide(promise, measure, TrialConditions(), line_pps)
    return decision.ruling.value if decision.ruling else "", len(decision.trials)
