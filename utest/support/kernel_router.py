"""The testbed of network namespaces with its router configured, for tests that look inside it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lineproof.session.session import Session
from lineproof.system.network_namespace import inside
from support.simulated_session import made_ready, started


@contextmanager
def configured(runtime: Path) -> Iterator[Session]:
    """The testbed, with *runtime* as its runtime folder. Fails if the router cannot be restored afterwards."""
    with started(runtime, ("linux_router", "linux", "netns")) as session:
        yield made_ready(session)


def run_in_router(session: Session, *command: str) -> str:
    """Return what *command* prints in the router's namespace. Raises CalledProcessError."""
    argv = (*inside(session.testbed.facts.namespaces[-1]), *command)
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout
