"""The CPU time of other processes: what they used, and nothing of others."""

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
from lineproof.system.cpu_clock import cpu_seconds, frames_sent, soft_interrupts_apart, with_children


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
