"""The testbed of network namespaces with its router configured, for tests that look inside it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lineproof.session.session import Session
from lineproof.system.network_namespace import inside
from support import robot_run
from support.paths import ROOT
from support.simulated_session import made_ready, started

SHORT = {"final_trial_duration: 1\n": "final_trial_duration: 0.5\n", "warm_up: 1\n": "warm_up: 0.2\n"}
"""Of the goal ``quick``: what is made so loses many frames in half a second."""


def _project(folder: Path) -> Path:
    """One whose goal ``quick`` has short trials."""
    goal = robot_run.project(folder) / "variables" / "goals" / "quick.yaml"
    text = goal.read_text(encoding="utf-8")
    for former, new in SHORT.items():
        assert former in text
        text = text.replace(former, new)
    goal.write_text(text, encoding="utf-8")
    return folder / "project"


@contextmanager
def configured(runtime: Path, short: bool = False) -> Iterator[Session]:
    """The testbed, with *runtime* as its runtime folder. Fails if the router cannot be restored afterwards.

    *short*: with short trials.
    """
    with started(runtime, ("linux_router", "linux", "netns"), home=_project(runtime) if short else ROOT) as session:
        yield made_ready(session)


def run_in_router(session: Session, *command: str) -> str:
    """Return what *command* prints in the router's namespace. Raises CalledProcessError."""
    argv = (*inside(session.testbed.facts.namespaces[-1]), *command)
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout
