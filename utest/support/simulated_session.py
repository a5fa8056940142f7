"""A session, by default on the simulated Netgate 6100, and how a sentence is judged on it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from lineproof.core.verdict import Verdict
from lineproof.errors import TestbedError
from lineproof.project import Project
from lineproof.session.judging import Listener, judge, nobody
from lineproof.session.plan import Plan
from lineproof.session.session import Session
from lineproof.system.network_namespace import inside
from support.paths import ROOT

NETGATE = ("netgate6100", "vpp", "simulated")
"""Platform, software, testbed."""

SSH_LIMIT = 2.0
"""Seconds that it waits for a silent router; a suite waits 10."""


@contextmanager
def started(
    folder: Path,
    words: tuple[str, str, str] = NETGATE,
    bypass: bool = False,
    home: Path = ROOT,
    goal: str = "quick",
    **keys: Any,
) -> Iterator[Session]:
    """Provide a session without connections. ``words``: as NETGATE; ``keys``: in place of the testbed file's."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME"):
            patch.setenv(name, str(folder))
        plan = Plan.read(Project.find(home), *words, goal)
        assert keys.keys() <= type(plan.testbed).model_fields.keys()  # others would be kept, and do nothing
        session = Session.start(replace(plan, testbed=plan.testbed.model_copy(update=keys)), bypass=bypass)
        try:
            yield session
        finally:
            session.close()


@contextmanager
def opened(folder: Path, words: tuple[str, str, str] = NETGATE, **keys: Any) -> Iterator[Session]:
    """Provide a session as a suite's set-up opens it, step by step, with its runtime folder in *folder*."""
    with started(folder, words, **keys) as session:
        session.generator.connect()
        shell = session.router.log_in()
        session.router.connect(lambda command, limit: shell(command, min(limit, SSH_LIMIT)))
        session.router.configure()
        session.traffic.check_reachability()
        try:
            yield session
        finally:
            session.release_generator()
            with suppress(TestbedError):
                session.router.restore()


def made_ready(session: Session) -> Session:
    """Return *session* as a suite's set-up leaves it."""
    session.generator.connect()
    session.router.connect()
    session.router.configure()
    session.traffic.check_reachability()
    return session


def owed(session: Session, sentence: str) -> Verdict:
    """Judge *sentence*, as the keyword of a sentence does it."""
    return judge(session, session.plan.requirement(sentence))


def judged(session: Session, sentence: str, hear: Listener = nobody) -> Verdict:
    """Judge *sentence* without a warm-up, so that its first trial is the first start of traffic."""
    with mock.patch.object(session.traffic, "warm_up", lambda requirement: None):
        return judge(session, session.plan.requirement(sentence), hear)


@contextmanager
def kernel_session(runtime: Path) -> Iterator[Session]:
    """Provide one of network namespaces with its router configured; *runtime*: its runtime folder."""
    with started(runtime, ("linux_router", "linux", "netns")) as session:
        yield made_ready(session)


def run_in_router(session: Session, *command: str) -> str:
    """Return what *command* prints in the router's namespace. Raises CalledProcessError."""
    argv = (*inside(session.testbed.facts.namespaces[-1]), *command)
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout
