"""Logs of a testbed may be larger than the memory: an end is read, and one copy is kept."""

from __future__ import annotations

from pathlib import Path

from lineproof.testbed import process
from lineproof.testbed.process import LENGTH, read_log


def log(runtime: Path, lease: str, text: bytes) -> Path:
    path = runtime / lease / "server.log"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text)
    return path


def test_a_copy_is_bounded_and_private(tmp_path: Path) -> None:
    own = log(tmp_path, "run", b"x" * (3 << 20) + b"\xff the end\n")
    copy = process.keep_log(own)
    assert copy == tmp_path / "logs" / "server.log"
    assert process.log_end(own).endswith("the end") and len(process.log_end(own)) < 700
    assert copy.stat().st_size <= (1 << 20) + 10 and copy.parent.stat().st_mode & 0o077 == 0


def test_a_copy_that_cannot_be_made_is_no_other_error(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file")
    assert process.keep_log(log(tmp_path, "run", b"it failed\n")) is None


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
