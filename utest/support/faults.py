"""The verdict of the acceptance procedure at a fault of the simulated bench.

Every fault is caused on a bench of its own while the Netgate 6100 of the forwarding model is judged, by one sentence
that is verified (loss at a load), one that saturates (forwarding rate at maximum offered load) and one on latency.
Without the fault the router keeps all three.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from lineproof.errors import TestbedError
from lineproof.project import Project
from lineproof.session.judging import Judge
from lineproof.session.plan import Plan
from lineproof.session.session import Session
from lineproof.simulation.faults import parse_fault
from lineproof.sla.verdict import Verdict
from support.fault_cases import SENTENCES, FaultCase

PLATFORM, SOFTWARE, TESTBED, GOAL = "netgate6100", "vpp", "simulated", "quick"

SSH_LIMIT = 2.0
"""Seconds that the study waits for a silent router; a suite waits 10."""


@dataclass(frozen=True)
class FaultOutcome:
    """A verdict. ``text``: the verdict in words and all problems of its trials; ``spoilt``: trials with problems."""

    verdict: Verdict
    text: str
    spoilt: int

    def as_expected(self, case: FaultCase, method: str) -> bool:
        """Whether it is."""
        ruling, cause = case.expected_for(method)
        return self.verdict.ruling.value == ruling and bool(re.search(cause, self.text))


def run(case: FaultCase, method: str, project: Project) -> FaultOutcome:
    """Judge the sentence of *method* on a new bench, with the fault. Raises TestbedError if it does not start."""
    plan = Plan.read(project, PLATFORM, SOFTWARE, TESTBED, GOAL)
    with opened(plan) as session:
        requirement = plan.requirement(case.sentences[method])
        session.traffic.put_for(requirement)
        more = case.saturate if method == "saturate" else {}
        session.cause_fault(parse_fault(case.kind, **{**case.details, **more}))
        session.traffic.warm_up(requirement)
        verdict = Judge(session).judge(requirement)
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
    """A case in the matrix; *outcomes* by method."""
    causes = {cause for method in SENTENCES for cause in case.expected_for(method)[1].split("|") if cause}
    return case.name, case.about, *outcomes.values(), " or ".join(f"“{cause}”" for cause in sorted(causes)) or "none"
