"""Fixtures of routers' tests: a folder of journals of their own, and a real kernel in a network namespace."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lineproof.routers.base import Result, Shell
from lineproof.system.network_namespace import Namespace, configure, inside


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the journals."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "lineproof" / "routers"


@pytest.fixture
def kernel() -> Iterator[Shell]:
    """A shell in a network namespace with ``eth1`` and ``eth2``. Needs root."""
    with closing(Namespace.start()) as namespace:

        def shell(command: str, limit: float) -> Result:
            argv = [*inside(namespace.path), "sh", "-c", command]
            done = subprocess.run(argv, capture_output=True, text=True, timeout=limit, check=False)
            return Result(done.stdout, done.stderr, done.returncode, 0.0)

        configure(namespace.path, *(f"link add eth{index} type veth peer name peer{index}" for index in (1, 2)))
        yield shell
