"""CPU time: that of other processes, and what others took from this machine."""

from __future__ import annotations

import gzip
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lineproof.errors import TestbedError
from lineproof.system.cpu_clock import (
    cpu_seconds,
    cpu_times,
    frames_sent,
    soft_interrupts_apart,
    steal_percent,
    steal_text,
    with_children,
)


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


def test_frames_of_this_namespace_are_counted() -> None:
    assert frames_sent(os.getpid()) >= 0
    with pytest.raises(TestbedError, match="interfaces of process"):
        frames_sent(2**22 + 1)


def test_steal_is_a_share_of_all_cpu_time():
    before = {"user": 10.0, "idle": 80.0, "steal": 0.0, "guest": 5.0}
    after = {"user": 20.0, "idle": 160.0, "steal": 10.0, "guest": 9.0}
    assert steal_percent(before, after) == pytest.approx(10)
    assert steal_text(steal_percent(before, after)) == "10.0 %"


def test_steal_that_is_not_reported_is_unknown_and_not_zero():
    now = cpu_times()
    assert steal_percent(now, now) is None
    assert steal_percent({"user": 1.0}, {"user": 2.0}) is None
    assert steal_text(None) == "not known"


def test_a_container_without_times_has_no_steal_and_no_error(monkeypatch: pytest.MonkeyPatch):
    def missing() -> None:
        raise FileNotFoundError("/proc/stat")

    monkeypatch.setattr("psutil.cpu_times", missing)
    assert cpu_times() == {} and steal_percent(cpu_times(), cpu_times()) is None
