"""Processes of a testbed, of which none outlives its owner, and its locks, for which others wait for a time."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from lineproof.errors import TestbedError
from lineproof.testbed import process as processes
from lineproof.testbed.opening import HeldTestbed
from lineproof.testbed.process import TestbedProcess
from lineproof.testbed.settings import HardwareSettings
from lineproof.testbed.waiting_time import PROGRESS_INTERVAL, WaitProgress

pytestmark = pytest.mark.slow

READY = 'print(\'{"ready": true, "port": 7}\', flush=True)'


def started(code: str, **more: Any) -> TestbedProcess:
    argv = (sys.executable, "-c", f"import json, sys, time; line = sys.stdin.readline(); {code}")
    return TestbedProcess("child", argv, {"a": 1}, **more)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ('print(\'{"error": "no card"}\', flush=True)', "^no card$"),
        ("sys.exit('it went wrong')", "ended with status 1 before it was ready; its log ends: it went wrong"),
        ("time.sleep(60)", "was not ready within 1 s"),
    ],
)
def test_a_process_that_does_not_become_ready_is_one_sentence_and_ends(code: str, said: str) -> None:
    before = psutil.Process().children()
    with pytest.raises(TestbedError, match=said) as caught:
        started(code, limit=1.0, grace=0.2)
    assert len(str(caught.value)) < 700
    assert psutil.Process().children() == before


def test_one_that_does_not_end_is_killed_and_named() -> None:
    process = started(f"{READY}; time.sleep(60)", grace=0.2)
    assert process.close() == "'child' had to be killed"
    assert process.status() == -signal.SIGKILL


def test_an_end_by_itself_is_a_problem_with_the_last_words_of_its_log() -> None:
    process = started(f"{READY}; sys.exit('it went wrong')")
    while process.status() is None:
        time.sleep(0.01)
    assert process.problems() == ("the testbed's process 'child' ended with status 1; its log ends: it went wrong",)
    process.close()


@pytest.mark.parametrize(
    ("answer", "said"),
    [('{"ok": true}', None), ('{"error": "no port 7"}', "refused: no port 7"), ("", "refused: it gave no answer")],
)
def test_a_request_is_answered_or_refused(answer: str, said: str | None) -> None:
    code = f"{READY}; sys.stdin.readline(); print({answer!r}, flush=True) if {answer!r} else None"
    refused = contextlib.nullcontext() if said is None else pytest.raises(TestbedError, match=said)
    with contextlib.closing(started(f"{code}; sys.stdin.read()")) as process, refused:
        process.ask({"fault": {}})


def test_only_the_main_thread_starts_what_ends_with_its_parent() -> None:
    """prctl(2), PR_SET_PDEATHSIG, follows the thread: in another one the process would end with that."""
    asks = "from lineproof.system.signals import end_with_parent; asked = json.loads(line)['ends_with_parent']"
    code = f"{asks}; asked and end_with_parent(); {READY}; sys.stdin.read()"
    found, direct = list[TestbedProcess](), list[subprocess.Popen[bytes]]()

    def begin() -> None:
        found.append(started(code))
        direct.append(subprocess.Popen(("setpriv", "--pdeathsig", "TERM", "--", "sleep", "60")))
        while Path(f"/proc/{direct[0].pid}/comm").read_text() != "sleep\n":
            time.sleep(0.01)

    thread = threading.Thread(target=begin)
    thread.start()
    thread.join()
    assert direct[0].wait(10) == -signal.SIGTERM
    assert found[0].status() is None and found[0].close() == ""


def test_of_a_log_that_is_larger_than_the_memory_an_end_is_read() -> None:
    belongings = processes.Belongings()
    code = f"sys.stderr.write('x' * (3 << 20) + ' the end'); sys.stderr.flush(); {READY}; sys.stdin.read()"
    process = belongings.keep(started(code))
    (log,) = belongings.logs().values()
    assert len(log) == 1 << 20 and processes.log_end(log).endswith("the end") and len(processes.log_end(log)) < 700
    assert belongings.close() == () and process.status() == 0


@pytest.fixture(autouse=True)
def _own_runtime_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def testbed(wait: object = 0, ports: tuple[int, ...] = (0, 1), address: str = "192.0.2.1") -> HardwareSettings:
    generator = {"address": address, "ports": ports}
    return HardwareSettings.model_validate(
        {"testbed": "lab", "kind": "hardware", "generator": generator, "wait_for_testbed": wait}
    )


testbed.__test__ = False  # type: ignore[attr-defined]


def test_a_run_that_waits_gets_it_when_the_other_has_given_it_back() -> None:
    first, lines = HeldTestbed(testbed()), list[str]()
    threading.Timer(0.5, first.close).start()
    began = time.monotonic()
    second = HeldTestbed(testbed("10 s"), lines.append)
    assert 0.3 < time.monotonic() - began < 8
    assert lines == [
        "waiting for testbed 'lab', at most 10 s: port 0 of 192.0.2.1:4501 is in use by another run on this machine"
    ]
    second.close()
    second.close()


def test_the_wait_has_a_limit() -> None:
    first = HeldTestbed(testbed())
    with pytest.raises(TestbedError, match=r"was in use for [0-9.]+ s: port 0 of .* on this machine; run later"):
        HeldTestbed(testbed(0.3))
    # who waits for nobody goes on, and the generator refuses the ports
    HeldTestbed(testbed()).close()
    first.close()


def test_other_ports_and_other_generators_are_other_testbeds() -> None:
    held = [
        HeldTestbed(testbed(0.1, ports, address)) for ports, address in (((0, 1), "a"), ((2, 3), "a"), ((0, 1), "b"))
    ]
    with pytest.raises(TestbedError, match="port 1 of a:4501"):
        HeldTestbed(testbed(0.1, (1, 4), "a"))
    # nothing of the refused one stays
    HeldTestbed(testbed(0.1, (4, 5), "a")).close()
    for each in held:
        each.close()


def test_a_wait_is_announced_at_once_when_its_reason_changes_and_from_time_to_time() -> None:
    clock, lines = [0.0], list[str]()
    progress = WaitProgress("testbed 'lab'", 600, lines.append, lambda: clock[0])
    for moment, why in (
        (0, "alice has it"),
        (1, "alice has it"),
        (2, "bob has it"),
        (PROGRESS_INTERVAL + 3, "bob has it"),
    ):
        clock[0] = moment
        progress.note(why)
    assert lines == [
        "waiting for testbed 'lab', at most 10 min: alice has it",
        "waiting for testbed 'lab', 2 s of at most 10 min: bob has it",
        f"waiting for testbed 'lab', {PROGRESS_INTERVAL + 3:.0f} s of at most 10 min: bob has it",
    ]
    assert not progress.is_over
    clock[0] = 600
    assert progress.is_over
