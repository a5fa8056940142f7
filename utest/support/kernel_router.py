"""The testbed of network namespaces, its router configured, for tests that look at it from within."""

from __future__ import annotations

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
    """The testbed, with *runtime* for what it keeps while it runs. What cannot be put back afterwards is a failure."""
    root = ROOT
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(runtime))
        session = Session.start(Plan.read(Project(root), "linux_router", "linux", "netns", "quick"))
        try:
            session.generator.connect()
            session.router.connect()
            session.router.configure()
            yield session
        finally:
            session.close()
