"""Programs: how they are started, and ended by signals; a thread for calls that may hang; CPU time."""

from __future__ import annotations

import gzip
import os
import platform
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from lineproof.commands.main import INTERRUPTED, finish
from lineproof.errors import TestbedError
from lineproof.system import children
from lineproof.system.cpu_clock import (
    cpu_seconds,
    cpu_times,
    soft_interrupts_apart,
    steal_percent,
    with_children,
)
from lineproof.system.signals import ENDING, Interrupted, let_go_of_terminal, termination_as_interrupt
from lineproof.system.ssh import run_in_worker_thread


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["ROUTER_PASSWORD", "TREX_PASSWORD", "LINEPROOF_SECRET", "AWS_SECRET_ACCESS_KEY"])
def test_what_is_not_known_to_be_harmless_is_not_handed_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "not for everybody")
    assert name not in children.environment()
    assert children.environment({name: "needed"})[name] == "needed"


@pytest.mark.parametrize(("libraries", "path"), [(str(children.LIBRARIES), "/mine"), ("/other", None)])
def test_this_package_is_found_and_an_installed_one_not_before_the_standard_library(
    monkeypatch: pytest.MonkeyPatch, libraries: str, path: str | None
) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda _: libraries)
    monkeypatch.setenv("PYTHONPATH", "/mine")
    for found in (children.environment(), children.users_environment()):
        assert found["PYTHONPATH"] == (path or f"{children.LIBRARIES}:/mine")


def test_programs_of_the_current_folder_are_not_found(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (here, here / "bin"):
        folder.mkdir(exist_ok=True)
        (folder / "ls").write_text("#!/bin/sh\necho mine\n")
        (folder / "ls").chmod(0o755)
    monkeypatch.setenv("PATH", ":.:bin:/usr/bin:/bin")
    assert children.find_program("ls") in ("/usr/bin/ls", "/bin/ls")


@pytest.mark.slow
def test_a_program_starts_outside_of_the_current_folder(here: Path) -> None:
    (here / "random.py").write_text("raise SystemExit('mine')")
    done = children.run([*children.python("timeit"), "-n1", "-r1", "import os, random; print(os.getcwd())"], 20)
    assert done.stdout.splitlines()[0] == "/"


# -- a thread of its own for calls that may hang


def test_a_call_that_takes_too_long_is_named():
    with pytest.raises(TestbedError, match=r"sleeping did not end within 0\.05 s"):
        run_in_worker_thread(lambda: time.sleep(2), 0.05, "sleeping")


def test_an_interrupt_does_not_leave_a_lock_held():
    """An exception from a signal handler reaches the waiting main thread, not the code that holds a lock."""
    event = threading.Event()

    def interrupt(*_: object) -> None:
        raise Interrupted("stop")

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(20):
            stop = threading.Event()

            def busy(stop: threading.Event = stop) -> None:
                while not stop.is_set():
                    event.wait(0)

            signal.setitimer(signal.ITIMER_REAL, 0.01)
            with pytest.raises(Interrupted):
                run_in_worker_thread(busy, 20, "waiting")
            assert run_in_worker_thread(lambda: event.set() is None, 20, "setting")
            event.clear()
            stop.set()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        stop.set()


def test_a_thread_that_cannot_begin_is_an_error_of_the_call(monkeypatch: pytest.MonkeyPatch):
    """From Python 3.12 on, while the interpreter ends."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(TestbedError, match="waiting cannot begin: can't create new thread"):
        run_in_worker_thread(lambda: None, 5, "waiting")


# -- CPU time: that of other processes, and what others took from this machine


@pytest.mark.slow
def test_the_clock_of_a_process_is_that_which_it_reads_itself() -> None:
    words = "import time\nwhile time.process_time() < 0.2: pass\nprint(time.process_time(), flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", words], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        own = float(process.stdout.readline())
        time.sleep(0.05)  # it waits, and that costs nothing
        read = cpu_seconds([process.pid])
        assert own <= read < own + 0.03
        assert process.pid in with_children(os.getpid())
        process.stdin.close()
        process.wait(10)
    with pytest.raises(TestbedError, match="cannot be read"):
        cpu_seconds([process.pid])


@pytest.mark.parametrize(("text", "apart"), [("y", True), ("n", False)])
def test_a_kernels_configuration_says_whether_interrupts_are_apart(tmp_path: Path, text: str, apart: bool) -> None:
    lines = f"CONFIG_HZ=250\nCONFIG_IRQ_TIME_ACCOUNTING={text}\nCONFIG_SMP=y\n".encode()
    assert soft_interrupts_apart(tmp_path) is None
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot" / f"config-{platform.release()}").write_bytes(lines)
    assert soft_interrupts_apart(tmp_path) is apart
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "config.gz").write_bytes(gzip.compress(b"# CONFIG_IRQ_TIME_ACCOUNTING is not set\n"))
    assert soft_interrupts_apart(tmp_path) is False


def test_steal_is_a_share_of_all_cpu_time_and_unknown_where_it_is_not_reported(monkeypatch: pytest.MonkeyPatch):
    before = {"user": 10.0, "idle": 80.0, "steal": 0.0, "guest": 5.0}
    after = {"user": 20.0, "idle": 160.0, "steal": 10.0, "guest": 9.0}
    assert steal_percent(before, after) == pytest.approx(10)
    now = cpu_times()
    assert steal_percent(now, now) is steal_percent({"user": 1.0}, {"user": 2.0}) is None
    # a container without times
    monkeypatch.setattr("psutil.cpu_times", Mock(side_effect=FileNotFoundError("/proc/stat")))
    assert cpu_times() == {} and steal_percent(cpu_times(), cpu_times()) is None


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in ENDING}
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # pytest itself may run under nohup
    yield
    assert {number: signal.getsignal(number) for number in ENDING} == {**before, signal.SIGHUP: signal.SIG_DFL}
    signal.signal(signal.SIGHUP, before[signal.SIGHUP])


def test_an_ignored_hang_up_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with termination_as_interrupt():
        signal.raise_signal(signal.SIGHUP)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.mark.parametrize(
    ("number", "by"),
    [
        (signal.SIGINT, "Ctrl-C"),
        (signal.SIGTERM, "SIGTERM"),
        (signal.SIGHUP, "a hang-up (SIGHUP)"),
        (signal.SIGQUIT, "SIGQUIT"),
    ],
)
def test_a_command_ends_with_one_sentence(number: int, by: str, capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> int:
        signal.raise_signal(number)
        return 0

    with pytest.raises(SystemExit) as ended:
        finish(work)
    assert ended.value.code == INTERRUPTED
    assert capsys.readouterr().err == f"lineproof: interrupted by {by}\n"


def test_a_closed_terminal_is_written_to_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    master, slave = pty.openpty()
    with os.fdopen(slave, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "__stderr__", terminal)
        let_go_of_terminal()
        assert os.isatty(slave)
        os.close(master)
        let_go_of_terminal()
        terminal.write("nobody reads this\n")
        terminal.flush()
