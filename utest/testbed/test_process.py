"""A process of the testbed: ready, refused, ended, asked; none outlives its owner."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from lineproof.errors import TestbedError
from lineproof.testbed import process as processes
from lineproof.testbed.process import TestbedProcess

pytestmark = pytest.mark.slow

READY = 'print(\'{"ready": true, "port": 7}\', flush=True)'


def started(folder: Path, code: str, **more: object) -> TestbedProcess:
    argv = (sys.executable, "-c", f"import json, sys, time; line = sys.stdin.readline(); {code}")
    return TestbedProcess("child", argv, folder / "log", {"a": 1}, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ('print(\'{"error": "no card"}\', flush=True)', "^no card$"),
        ("sys.exit('it went wrong')", "ended with status 1 before it was ready; its log ends: it went wrong"),
        ("time.sleep(60)", "was not ready within 1 s"),
    ],
)
def test_a_process_that_does_not_become_ready_is_one_sentence_and_ends(tmp_path: Path, code: str, said: str) -> None:
    before = psutil.Process().children()
    with pytest.raises(TestbedError, match=said) as caught:
        started(tmp_path, code, limit=1.0, grace=0.2)
    assert len(str(caught.value)) < 700
    assert psutil.Process().children() == before


def test_it_lives_until_it_is_closed(tmp_path: Path) -> None:
    process = started(tmp_path, f"{READY}; sys.stdin.read()")
    assert process.facts["port"] == 7 and process.runs and process.problems() == ()
    assert process.close() == process.close() == ""
    assert not process.runs and process.problems() == ()


def test_one_that_does_not_end_is_killed_and_named(tmp_path: Path) -> None:
    process = started(tmp_path, f"{READY}; time.sleep(60)", grace=0.2)
    assert process.close() == "'child' had to be killed"
    assert not process.runs


def test_an_end_by_itself_is_a_problem_with_the_last_words_of_its_log(tmp_path: Path) -> None:
    process = started(tmp_path, f"{READY}; sys.exit('it went wrong')")
    while process.runs:
        time.sleep(0.01)
    assert process.problems() == ("the testbed's process 'child' ended with status 1; its log ends: it went wrong",)
    process.close()


@pytest.mark.parametrize(("answer", "said"), [('{"ok": true}', ""), ('{"error": "no port 7"}', "no port 7")])
def test_a_request_is_answered_or_refused(tmp_path: Path, answer: str, said: str) -> None:
    process = started(tmp_path, f"{READY}; sys.stdin.readline(); print({answer!r}, flush=True); sys.stdin.read()")
    try:
        if said:
            with pytest.raises(TestbedError, match=said):
                process.ask({"fault": {}})
        else:
            process.ask({"fault": {}})
    finally:
        process.close()


def test_only_the_main_thread_starts_what_ends_with_its_parent(tmp_path: Path) -> None:
    """prctl(2), PR_SET_PDEATHSIG, follows the thread: in another one the process would end with that."""
    asks = "from lineproof.system.signals import end_with_parent; asked = json.loads(line)['ends_with_parent']"
    code = f"{asks}; asked and end_with_parent(); {READY}; sys.stdin.read()"
    found, direct = list[TestbedProcess](), list[subprocess.Popen[bytes]]()

    def begin() -> None:
        found.append(started(tmp_path, code))
        direct.append(subprocess.Popen(("setpriv", "--pdeathsig", "TERM", "--", "sleep", "60")))
        while Path(f"/proc/{direct[0].pid}/comm").read_text() != "sleep\n":
            time.sleep(0.01)

    thread = threading.Thread(target=begin)
    thread.start()
    thread.join()
    assert direct[0].wait(10) == -signal.SIGTERM
    assert found[0].runs and found[0].close() == ""


# -- logs may be larger than the memory: an end is read, and one copy is kept


def log(runtime: Path, lease: str, text: bytes) -> Path:
    path = runtime / lease / "server.log"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text)
    return path


def test_a_copy_is_bounded_and_private(tmp_path: Path) -> None:
    own = log(tmp_path, "run", b"x" * (3 << 20) + b"\xff the end\n")
    copy = processes.keep_log(own)
    assert copy == tmp_path / "logs" / "server.log"
    assert processes.log_end(own).endswith("the end") and len(processes.log_end(own)) < 700
    assert copy.stat().st_size <= (1 << 20) + 10 and copy.parent.stat().st_mode & 0o077 == 0


def test_a_copy_that_cannot_be_made_is_no_other_error(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file")
    assert processes.keep_log(log(tmp_path, "run", b"it failed\n")) is None
