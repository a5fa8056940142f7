"""A session on the simulated Netgate 6100, and how a sentence is judged on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lineproof.project import Project
from lineproof.session.judging import Judge
from lineproof.session.plan import Plan
from lineproof.session.session import Session
from lineproof.sla.verdict import Verdict
from support import faults
from support.paths import ROOT


@contextmanager
def opened(folder: Path, clock_speed: float | None = None) -> Iterator[Session]:
    """The session, with leases in *folder*. ``clock_speed``: in place of the testbed file's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        plan = Plan.read(Project.find(ROOT), faults.PLATFORM, faults.SOFTWARE, faults.TESTBED, faults.GOAL)
        if clock_speed is not None:
            plan = replace(plan, testbed=plan.testbed.model_copy(update={"clock_speed": clock_speed}))
        with faults.opened(plan) as found:
            yield found


def judged(session: Session, sentence: str, **watched: Any) -> Verdict:
    """Judge *sentence* with its traffic. ``watched``: what :class:`Judge` calls meanwhile."""
    requirement = session.plan.requirement(sentence)
    session.traffic.put_for(requirement)
    return Judge(session, **watched).judge(requirement)
