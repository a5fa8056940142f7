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
    assert process.facts["port"] == 7 and process.status() is None and process.problems() == ()
    assert process.close() == process.close() == ""
    assert process.status() is not None and process.problems() == ()


def test_one_that_does_not_end_is_killed_and_named(tmp_path: Path) -> None:
    process = started(tmp_path, f"{READY}; time.sleep(60)", grace=0.2)
    assert process.close() == "'child' had to be killed"
    assert process.status() == -signal.SIGKILL


def test_an_end_by_itself_is_a_problem_with_the_last_words_of_its_log(tmp_path: Path) -> None:
    process = started(tmp_path, f"{READY}; sys.exit('it went wrong')")
    while process.status() is None:
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
    assert found[0].status() is None and found[0].close() == ""


def test_of_a_log_that_is_larger_than_the_memory_an_end_is_read(tmp_path: Path) -> None:
    belongings = processes.Belongings()
    code = f"sys.stderr.write('x' * (3 << 20) + ' the end'); sys.stderr.flush(); {READY}; sys.stdin.read()"
    process = belongings.keep(started(tmp_path, code))
    (log,) = belongings.logs().values()
    assert len(log) == 1 << 20 and processes.log_end(log).endswith("the end") and len(processes.log_end(log)) < 700
    assert belongings.close() == () and process.status() == 0
