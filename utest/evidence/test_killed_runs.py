"""What a run leaves that is killed, or interrupted with Ctrl-C, at any moment: records that are whole."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lineproof.evidence.integrity import check_integrity
from lineproof.evidence.run import RunFolder
from lineproof.evidence.summary import summarise
from support.evidence_builders import ENVIRONMENT, RUN, written


def check_summary(run: Path) -> None:
    """The summary has what is on the disk: each whole verdict with its trials, and what is not finished."""
    trials, verdicts = (whole_rows(run / f"{name}.jsonl") for name in ("trials", "requirements"))
    for row in verdicts:
        known = {trial["number"] for trial in trials if trial["requirement"] == row["number"]}
        assert {*row["trials"]} <= known
    found = summarise(run)
    assert [(row.record.number, len(row.record.trials)) for row in found.rows] == [
        (row["number"], len(row["trials"])) for row in verdicts
    ]
    ended = json.loads((run / "environment.json").read_bytes())["ended"] is not None
    assert ("incomplete: run did not end" in found.incomplete) is not ended
    lone = [trial for trial in trials if trial["requirement"] > len(verdicts)]
    assert any(text.startswith(f"unfinished: {len(lone)} trial") for text in found.incomplete) is bool(lone)


def whole_rows(path: Path) -> list[Any]:
    """The lines of *path* that have their end."""
    text = path.read_bytes() if path.exists() else b""
    return [json.loads(line) for line in text[: text.rfind(b"\n") + 1].splitlines()]


class Killed(BaseException):
    """No handler of errors sees it, as none sees a SIGKILL."""


def test_a_run_that_is_killed_before_any_step_is_as_it_left_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Killed at each call that changes the disk, and within each line; the summary has each finished sentence."""
    steps = 0

    def killing(real: Any, at: int, torn: bool) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps < at:
                return real(*args, **options)
            if steps == at and torn:
                real(args[0], args[1][: len(args[1]) // 2])
            raise Killed

        return call

    for torn in (False, True):
        for at in range(1, 1000):
            steps, results = 0, tmp_path / f"{at}-{torn}"
            with monkeypatch.context() as patch:
                calls = {"write": os.write, "open": os.open, "replace": os.replace, "mkdir": os.mkdir, "fsync": int}
                for name in ("write",) if torn else calls:
                    patch.setattr(os, name, killing(calls[name], at, torn))
                try:
                    written(results)
                except Killed:
                    pass
                else:
                    break
            run = results / RUN
            if any(run.glob("*.jsonl")):
                found = check_integrity(run)
                assert found.altered == (), f"killed before step {at}: {found}"
                assert found.manifest is None or not found.notes
            if (run / "environment.json").exists():
                check_summary(run)
            shutil.rmtree(results, ignore_errors=True)
        assert at > (20 if torn else 100)


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
