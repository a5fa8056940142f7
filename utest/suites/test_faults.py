"""The verdict at each fault of the simulated testbed, and the ledger of a failure, which says where frames went.

Each kind of fault is caused once, under one of the three sentences in turn; ``LINEPROOF_MATRIX=whole`` (``tox -e
matrix``) takes every case under every sentence.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml

from lineproof.core.trial import Fault
from lineproof.errors import TestbedError
from lineproof.generators.site import GeneratorEndpoint
from lineproof.project import Project
from lineproof.session.judging import judge
from lineproof.session.plan import Plan
from lineproof.session.session import Session
from lineproof.simulation import parse_fault
from lineproof.testbed.opening import OpenTestbed
from lineproof.testbed.process import NO_ROUTER, TestbedFacts
from support.paths import DATA, ROOT
from support.simulated_session import opened

SENTENCES = {
    "throughput": "64b 1-flow unidirectional ≥ 1 Mpps",
    "forwards": "64b 1-flow unidirectional forwards ≥ 1 Mpps",
    "latency": "64b 1-flow unidirectional latency p99 ≤ 1 ms at 1 Mpps",
}
"""By quantity; without a fault all are kept with a wide margin."""

CASES = yaml.safe_load((DATA / "fault_cases.yaml").read_text(encoding="utf-8"))
SLOW = ("server restart",)
"""Kinds that a limit of many seconds ends, hence under ``LINEPROOF_MATRIX`` only; test_reconnection.py has the like."""


def cells() -> list[Any]:
    """Quantity and case: all of them, or the first case of each kind."""
    if os.environ.get("LINEPROOF_MATRIX") == "whole":
        pairs = [(quantity, case) for case in CASES for quantity in SENTENCES]
    else:
        firsts = {case["fault"]["kind"]: case for case in reversed(CASES) if case["fault"]["kind"] not in SLOW}
        pairs = [(tuple(SENTENCES)[place % 3], case) for place, case in enumerate(firsts.values())]
    return [pytest.param(*pair, id=f"{pair[0]}-{pair[1]['name']}") for pair in pairs]


@pytest.mark.slow
@pytest.mark.parametrize(("quantity", "case"), cells())
def test_what_becomes_of_a_fault(quantity: str, case: dict[str, Any], tmp_path: Path) -> None:
    sentence, fault = SENTENCES[quantity], case["fault"] | (case.get("forwards", {}) if quantity == "forwards" else {})
    if case.get("bidirectional"):
        sentence = sentence.replace("unidirectional", "bidirectional").replace("1 Mpps", "1 Mpps each way")
    with opened(tmp_path) as session:
        requirement = session.plan.requirement(sentence)
        session.traffic.put_for(requirement)
        session.cause_fault(parse_fault(**fault))
        verdict = judge(session, requirement)
    ruling, cause = case.get("others", {}).get(quantity, case["expected"])
    # the name of a trial's fault stands for its words
    cause = "|".join(Fault[word].value if word in Fault.__members__ else word for word in cause.split("|"))
    text = "; ".join([verdict.message, *(str(problem) for trial in verdict.trials for problem in trial.problems)])
    assert verdict.ruling.value == ruling, text
    assert re.search(cause, text), text


def test_a_testbed_that_is_not_simulated_takes_no_fault() -> None:
    plan = Plan.read(Project.find(ROOT), "netgate6100", "vpp", "simulated", "quick")
    testbed = OpenTestbed(TestbedFacts(GeneratorEndpoint((), mock.Mock()), NO_ROUTER, (), "for a test"))
    session = Session(plan, testbed)
    with pytest.raises(TestbedError, match="'link flap' can be caused on a simulated testbed only"):
        session.cause_fault(parse_fault("link flap", at=0.5))
