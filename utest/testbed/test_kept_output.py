"""What a kept process writes: its log and its lines may be larger than the memory."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from lineproof.testbed import kept_process
from lineproof.testbed.keeper_plan import ProcessPlan
from lineproof.testbed.kept_logs import LENGTH, read_log
from lineproof.testbed.kept_process import KeptProcess, SetupFailed
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [
        "print('{' * 3000000, flush=True); time.sleep(60)",
        "print('[' * 100000, flush=True); time.sleep(60)",
        "print('{\"ready\": ' + '[' * 5000 + ']' * 5000 + '}', flush=True); time.sleep(60)",
        "sys.stdout.buffer.write(b'\\xff\\xfe\\n'); sys.stdout.flush(); time.sleep(60)",
    ],
)
def test_a_first_line_of_anything_is_one_sentence(tmp_path: Path, program: str) -> None:
    argv = (sys.executable, "-c", f"import sys, time; {program}")
    process = KeptProcess(ProcessPlan(name="child", argv=argv, log=str(tmp_path / "log"), spec={}), {})
    try:
        until = time.monotonic() + 30
        with pytest.raises(SetupFailed, match="'child' wrote something that is no ready line") as caught:
            while process.ready() is None and time.monotonic() < until:
                process.read()
        assert len(str(caught.value)) < 500
    finally:
        process.popen.kill()
        process.popen.wait()
        for end in (process.popen.stdin, process.popen.stdout):
            if end is not None:
                end.close()


@pytest.mark.slow
def test_the_end_of_a_too_long_line_is_no_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_process, "LONGEST_LINE", 1000)
    request = '{"again": {"after": 0, "specification": {}}}'
    code = f"print('{{}}'); print(' ' * 200000 + {request!r}, flush=True)"
    process = KeptProcess(
        ProcessPlan(name="child", argv=(sys.executable, "-c", code), log=str(tmp_path / "log"), spec={}), {}
    )
    while process.descriptor is not None:
        process.read()
    process.popen.wait(30)
    assert process.restart is None
    assert process.popen.stdin is not None
    process.popen.stdin.close()
