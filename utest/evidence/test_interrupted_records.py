"""A run's records after Ctrl-C in the middle of writing one: the run goes on, and what it leaves is whole."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from linerate.evidence.integrity import check_integrity
from linerate.evidence.records import EnvironmentRecord
from linerate.evidence.run import RunFolder
from support.evidence_builders import RUN

ENVIRONMENT = EnvironmentRecord(RUN, True, "simulated", "netgate6100", "vpp", 10.0, 1_795_000_000.0)


@pytest.mark.parametrize("moment", range(12))
def test_an_interrupt_at_any_moment_leaves_a_chain_that_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """As Ctrl-C does: an exception after any of the calls that change the disk; the run goes on and is closed."""
    folder = RunFolder.create(tmp_path, "run")
    environment = replace(ENVIRONMENT, run=folder.run_id)
    folder.write_environment(environment)
    folder.add_telemetry(1, "before", "text")
    done = 0

    def interrupted(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*words: Any, **options: Any) -> Any:
            nonlocal done
            found = call(*words, **options)
            done += 1
            if done == moment + 1:
                raise KeyboardInterrupt
            return found

        return wrapper

    with monkeypatch.context() as patch:
        for name in ("write", "fsync", "close", "rename", "replace", "open"):
            patch.setattr(os, name, interrupted(getattr(os, name)))
        with contextlib.suppress(KeyboardInterrupt):
            folder.add_telemetry(1, "hit", "text")
            folder.add_telemetry(1, "hit again", "text")
    folder.add_telemetry(1, "after", "text")
    folder.write_environment(environment)
    folder.close()
    assert check_integrity(folder.path).altered == ()
