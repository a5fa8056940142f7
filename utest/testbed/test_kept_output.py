"""Logs of a testbed may be larger than the memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from lineproof.testbed.kept_logs import LENGTH, read_log
from lineproof.testbed.trex import started_server
from lineproof.testbed.trex.started_server import LOG_FULL, ServerOutput


def test_only_the_end_of_a_log_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as file:
        file.truncate(20 << 30)  # without taking room on the disk
        file.seek(0, 2)
        file.write(b"\xff the last words")
    text = read_log(log)
    assert text.endswith("\ufffd the last words") and len(text) <= LENGTH
    log.write_text("short")
    assert read_log(log) == "short"


def test_a_server_that_writes_without_end_does_not_fill_the_disk(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr(started_server, "LONGEST_LOG", 1000)
    output = ServerOutput()
    for _ in range(50):
        output.add(b"a line of thirty letters, less\n" * 10)
    output.add(b"\xff\xfe the last words")
    written = capfdbinary.readouterr().err
    assert written.endswith(LOG_FULL) and written.count(LOG_FULL) == 1 and len(written) == 1000 + len(LOG_FULL)
    assert output.last_lines().endswith("\ufffd\ufffd the last words")
