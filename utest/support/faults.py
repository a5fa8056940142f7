"""The faults of the simulated bench, and the verdict of the acceptance procedure at each of them.

Every fault is caused on a bench of its own while the Netgate 6100 of the forwarding model is judged, by a sentence of
throughput, one of the forwarding rate at maximum load and one of latency. Without the fault the router keeps all three.
The cases are in ``utest/data/fault_cases.yaml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import yaml

from lineproof.core.trial import Fault as Problem
from lineproof.core.verdict import Verdict
from lineproof.errors import TestbedError
from lineproof.project import Project
from lineproof.session.judging import judge
from lineproof.session.plan import Plan
from lineproof.session.session import Session
from lineproof.simulation.faults import parse_fault
from support.paths import DATA

SENTENCES: Mapping[str, str] = {
    "throughput": "64b 1-flow unidirectional ≥ 1 Mpps",
    "forwards": "64b 1-flow unidirectional forwards ≥ 1 Mpps",
    "latency": "64b 1-flow unidirectional latency p99 ≤ 1 ms at 1 Mpps",
}
"""By quantity; all are kept with a wide margin."""


@dataclass(frozen=True)
class FaultCase:
    """A fault with its keys, and ruling and cause that are expected, by quantity. ``about``: what happens, in words."""

    name: str
    about: str
    kind: str
    details: Mapping[str, Any]
    forwards: Mapping[str, Any]
    expected: Mapping[str, tuple[str, str]]
    bidirectional: bool

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> FaultCase:
        """Return the case that *data* of the file describes."""
        details = dict(data["fault"])
        found = {quantity: data.get("others", {}).get(quantity, data["expected"]) for quantity in SENTENCES}
        return cls(
            data["name"],
            data["about"],
            details.pop("kind"),
            details,
            data.get("forwards", {}),
            {quantity: (ruling, _pattern(cause)) for quantity, (ruling, cause) in found.items()},
            data.get("bidirectional", False),
        )

    def sentence(self, quantity: str) -> str:
        """Return the sentence of *quantity* that it meets."""
        if not self.bidirectional:
            return SENTENCES[quantity]
        return SENTENCES[quantity].replace("unidirectional", "bidirectional").replace("1 Mpps", "1 Mpps each way")


def _pattern(cause: str) -> str:
    """Return *cause* with the words of trials' faults in place of their names."""
    names = Problem.__members__
    return "|".join(names[word].value if word in names else word for word in cause.split("|"))


CASES = tuple(FaultCase.of(data) for data in yaml.safe_load((DATA / "fault_cases.yaml").read_text(encoding="utf-8")))

PLATFORM, SOFTWARE, TESTBED, GOAL = "netgate6100", "vpp", "simulated", "quick"

SSH_LIMIT = 2.0
"""Seconds that the study waits for a silent router; a suite waits 10."""


@dataclass(frozen=True)
class FaultOutcome:
    """A verdict. ``text``: the verdict in words and all problems of its trials; ``spoilt``: trials with problems."""

    verdict: Verdict
    text: str
    spoilt: int

    def as_expected(self, case: FaultCase, quantity: str) -> bool:
        """Return whether it is."""
        ruling, cause = case.expected[quantity]
        return self.verdict.ruling.value == ruling and bool(re.search(cause, self.text))


def run(case: FaultCase, quantity: str, project: Project) -> FaultOutcome:
    """Judge the sentence of *quantity* on a new bench, with the fault. Raises TestbedError if it does not start."""
    plan = Plan.read(project, PLATFORM, SOFTWARE, TESTBED, GOAL)
    with opened(plan) as session:
        requirement = plan.requirement(case.sentence(quantity))
        session.traffic.put_for(requirement)
        more = case.forwards if quantity == "forwards" else {}
        session.cause_fault(parse_fault(case.kind, **{**case.details, **more}))
        verdict = judge(session, requirement)
    problems = [str(problem) for trial in verdict.trials for problem in trial.problems]
    spoilt = sum(1 for trial in verdict.trials if trial.problems)
    return FaultOutcome(verdict, "; ".join([verdict.message, *problems]), spoilt)


@contextmanager
def opened(plan: Plan) -> Iterator[Session]:
    """A bench as a suite's set-up opens it, step by step."""
    session = Session.start(plan)
    try:
        session.generator.connect()
        shell = session.router.log_in()
        session.router.connect(lambda command, limit: shell(command, min(limit, SSH_LIMIT)))
        session.router.configure()
        session.traffic.check_reachability()
        yield session
    finally:
        try:
            session.release_generator()
            with suppress(TestbedError):
                session.router.restore()
        finally:
            session.close()


def table(rows: Sequence[tuple[str, ...]]) -> str:
    """Markdown."""
    head = ("fault", "what happens", *SENTENCES, "cause named")
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ("---",) * len(head), *rows])


def row(case: FaultCase, outcomes: Mapping[str, str]) -> tuple[str, ...]:
    """A case in the matrix; *outcomes* by quantity."""
    causes = {cause for quantity in SENTENCES for cause in case.expected[quantity][1].split("|") if cause}
    return case.name, case.about, *outcomes.values(), " or ".join(f"“{cause}”" for cause in sorted(causes)) or "none"
