"""What a person sees when something is wrong: one paragraph, before any traffic, with file, line and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import robot_run


@pytest.mark.slow
def test_a_sentence_that_cannot_be(tmp_path: Path):
    suite = robot_run.write_suite(tmp_path, "No Operation", "64b unidirectional ≥ 101% line rate")
    found = robot_run.run(tmp_path, suite)
    assert found.status == 1, found.console
    # Robot's own frame around a message of a suite's setup
    frame, message = found.message.split("\n", 1)
    assert frame == "Parent suite setup failed:" and "\n\n" not in message
    assert f"{suite}:9: " in message and "more than the ports can carry" in message, message
    assert "Traceback" not in found.console + message
    assert not any(path.read_text() for path in (tmp_path / "results").rglob("trials.jsonl"))
    assert robot_run.processes_of(tmp_path) == []
