"""A session, by default on the simulated Netgate 6100, and how a sentence is judged on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lineproof.core.verdict import Verdict
from lineproof.errors import TestbedError
from lineproof.project import Project
from lineproof.session.judging import Judge
from lineproof.session.plan import Plan
from lineproof.session.session import Session
from support import faults
from support.paths import ROOT


@contextmanager
def started(
    folder: Path,
    words: tuple[str, str, str] = (faults.PLATFORM, faults.SOFTWARE, faults.TESTBED),
    bypass: bool = False,
    home: Path = ROOT,
    goal: str = faults.GOAL,
    **keys: Any,
) -> Iterator[Session]:
    """A session that is connected to nothing yet. ``words``: platform, software, testbed; ``keys``: of its file."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME"):
            patch.setenv(name, str(folder))
        plan = Plan.read(Project.find(home), *words, goal)
        session = Session.start(replace(plan, testbed=plan.testbed.model_copy(update=keys)), bypass=bypass)
        try:
            yield session
        finally:
            session.close()


@contextmanager
def opened(folder: Path, **keys: Any) -> Iterator[Session]:
    """The session, with its runtime folder in *folder*. *keys*: in place of the testbed file's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        plan = Plan.read(Project.find(ROOT), faults.PLATFORM, faults.SOFTWARE, faults.TESTBED, faults.GOAL)
        with faults.opened(replace(plan, testbed=plan.testbed.model_copy(update=keys))) as found:
            yield found


def made_ready(session: Session) -> Session:
    """The same, as a suite's set-up leaves it."""
    session.generator.connect()
    session.router.connect()
    session.router.configure()
    session.traffic.check_reachability()
    return session


def owed(session: Session, sentence: str) -> Verdict:
    """Judge as the keyword `The Router Owes` does: an error of the testbed is INCONCLUSIVE."""
    requirement, judge = session.plan.requirement(sentence), Judge(session)
    try:
        session.traffic.put_for(requirement)
        return judge.judge(requirement, session.traffic.warm_up(requirement))
    except TestbedError as error:
        return judge.inconclusive(requirement, str(error))


def judged(session: Session, sentence: str, **watched: Any) -> Verdict:
    """Judge *sentence* with its traffic. ``watched``: what :class:`Judge` calls meanwhile."""
    requirement = session.plan.requirement(sentence)
    session.traffic.put_for(requirement)
    return Judge(session, **watched).judge(requirement)
