"""The testbed of network namespaces with its router configured, for tests that look inside it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from linerate.project import Project
from linerate.session.plan import Plan
from linerate.session.session import Session
from support.paths import ROOT


@contextmanager
def configured(runtime: Path) -> Iterator[Session]:
    """The testbed, with *runtime* as its runtime folder. Fails if the router cannot be restored afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(runtime))
        session = Session.start(Plan.read(Project(ROOT), "linux_router", "linux", "netns", "quick"))
        try:
            session.generator.connect()
            session.router.connect()
            session.router.configure()
            yield session
        finally:
            session.close()


def run_in_router(session: Session, *command: str) -> str:
    """What *command* prints in the router's namespace. Raises CalledProcessError."""
    folder = session.testbed.facts.runtime
    assert folder is not None
    argv = ("ip", "netns", "exec", f"lr-{folder.name}-dut", *command)
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=10).stdout
