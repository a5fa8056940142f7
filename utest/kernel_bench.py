"""The bench of network namespaces, its router configured, for tests that look at it from within."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from linerate.plan import Plan
from linerate.project import Project
from linerate.session import Session
from RouterShell import RouterShell
from TrafficGenerator import TrafficGenerator


@contextmanager
def configured(runtime: Path) -> Iterator[tuple[Session, RouterShell]]:
    """The bench, with *runtime* for what it keeps while it runs. What cannot be put back afterwards is a failure."""
    root = Path(__file__).parents[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(runtime))
        session = Session.start(Plan.read(Project(root), "linux_router", "linux", "netns", "quick"))
        shell = RouterShell()
        try:
            TrafficGenerator().connect_generator(session)
            shell.connect_router(session)
            session.configure_router()
            yield session, shell
        finally:
            try:
                session.release_generator()
                shell.restore_router(session)
            finally:
                session.close()
