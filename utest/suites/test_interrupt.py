"""A testbed of network namespaces that is interrupted at random moments: after the next start nothing of it is left.

``test_kills.py`` does it on the simulated testbed, by each signal to each process.

``LINEPROOF_INTERRUPTS=50 pytest utest/suites/test_interrupt.py`` does it fifty times; the default is a sample.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from lineproof.testbed import leases
from support import leftovers, robot_run

TIMES = int(os.environ.get("LINEPROOF_INTERRUPTS", "3"))
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


def interrupted(folder: Path, suite: Path, signal_: signal.Signals, after: float) -> None:
    """Start the suite, send *signal_* after *after* s, and wait until Robot itself is gone."""
    run = robot_run.start(folder, suite, forked=False)
    try:
        run.wait(after)
    except subprocess.TimeoutExpired:
        if signal_ is signal.SIGINT:
            # as a terminal does it: the whole group hears it
            os.killpg(run.pid, signal_)
        else:
            run.send_signal(signal_)
    run.wait(60)


def gone(folder: Path, limit: float = 15.0) -> list[str]:
    """What still runs of the test after *limit* s."""
    end = time.monotonic() + limit
    left = robot_run.processes_of(folder)
    while left and time.monotonic() < end:
        time.sleep(0.1)
        left = robot_run.processes_of(folder)
    return left


@pytest.mark.netns
def test_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", robot_run.environment(tmp_path)["XDG_RUNTIME_DIR"])
    suite = robot_run.ROOT / "tests" / "linux_router.robot"
    chance = random.Random(4500)
    with leftovers.tags_of(tmp_path / "runtime") as tags:
        for number in range(TIMES):
            signal_ = SIGNALS[number % len(SIGNALS)]
            after = chance.uniform(0.3, 9.0)
            interrupted(tmp_path, suite, signal_, after)
            assert gone(tmp_path) == [], f"run {number}, {signal_.name} after {after:.2f} s"
    leases.clear_leftovers()
    assert tags
    assert leftovers.namespaces_of(tags) == set()
