"""A testbed of hardware that another run has in use is waited for, if its file says so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lineproof.errors import TestbedError
from lineproof.testbed.in_use import InUse
from lineproof.testbed.settings import HardwareSettings


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
    first, lines = InUse.mark(testbed()), list[str]()
    threading.Timer(0.5, first.close).start()
    began = time.monotonic()
    second = InUse.mark(testbed("10 s"), lines.append)
    assert 0.3 < time.monotonic() - began < 8
    assert lines == [
        f"waiting for testbed 'lab', at most 10 s: port 0 of 192.0.2.1:4501 is in use by process {os.getpid()}"
    ]
    second.close()
    second.close()


def test_the_wait_has_a_limit() -> None:
    first = InUse.mark(testbed())
    with pytest.raises(
        TestbedError, match=r"testbed 'lab' was in use for 0\.3 s: port 0 of .* by process \d+; run later"
    ):
        InUse.mark(testbed(0.3))
    # who waits for nobody goes on, and the generator refuses the ports
    InUse.mark(testbed()).close()
    first.close()


def test_other_ports_and_other_generators_are_other_testbeds() -> None:
    held = [
        InUse.mark(testbed(0.1, ports, address)) for ports, address in (((0, 1), "a"), ((2, 3), "a"), ((0, 1), "b"))
    ]
    with pytest.raises(TestbedError, match="port 1 of a:4501"):
        InUse.mark(testbed(0.1, (1, 4), "a"))
    # nothing of the refused one stays
    InUse.mark(testbed(0.1, (4, 5), "a")).close()
    for each in held:
        each.close()


def test_nothing_stays_behind(tmp_path: Path) -> None:
    InUse.mark(testbed()).close()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.slow
def test_a_run_that_was_killed_has_it_no_more() -> None:
    code = (
        "import time\nfrom testbed.test_in_use import testbed\nfrom lineproof.testbed.in_use import InUse\n"
        "InUse.mark(testbed())\nprint('has it', flush=True)\ntime.sleep(60)\n"
    )
    path = os.pathsep.join(entry for entry in sys.path if entry)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == b"has it\n"
        found = InUse.mark(testbed(ports=(2, 3)))
        other.send_signal(signal.SIGKILL)
        other.wait()
        found.close()
        InUse.mark(testbed("10 s")).close()
