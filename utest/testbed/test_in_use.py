"""A testbed of hardware that another run has in use is waited for; how such times are written and said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from lineproof.errors import TestbedError
from lineproof.testbed.opening import HeldTestbed
from lineproof.testbed.settings import HardwareSettings
from lineproof.testbed.waiting_time import PROGRESS_INTERVAL, Seconds, WaitProgress


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
    first, lines = HeldTestbed.take(testbed()), list[str]()
    threading.Timer(0.5, first.close).start()
    began = time.monotonic()
    second = HeldTestbed.take(testbed("10 s"), lines.append)
    assert 0.3 < time.monotonic() - began < 8
    assert lines == [
        f"waiting for testbed 'lab', at most 10 s: port 0 of 192.0.2.1:4501 is in use by process {os.getpid()}"
    ]
    second.close()
    second.close()


def test_the_wait_has_a_limit() -> None:
    first = HeldTestbed.take(testbed())
    with pytest.raises(TestbedError, match=r"was in use for [0-9.]+ s: port 0 of .* by process \d+; run later"):
        HeldTestbed.take(testbed(0.3))
    # who waits for nobody goes on, and the generator refuses the ports
    HeldTestbed.take(testbed()).close()
    first.close()


def test_other_ports_and_other_generators_are_other_testbeds() -> None:
    held = [
        HeldTestbed.take(testbed(0.1, ports, address))
        for ports, address in (((0, 1), "a"), ((2, 3), "a"), ((0, 1), "b"))
    ]
    with pytest.raises(TestbedError, match="port 1 of a:4501"):
        HeldTestbed.take(testbed(0.1, (1, 4), "a"))
    # nothing of the refused one stays
    HeldTestbed.take(testbed(0.1, (4, 5), "a")).close()
    for each in held:
        each.close()


@pytest.mark.slow
def test_a_run_that_was_killed_has_it_no_more() -> None:
    code = (
        "import time\nfrom testbed.test_in_use import testbed\nfrom lineproof.testbed.opening import HeldTestbed\n"
        "HeldTestbed.take(testbed())\nprint('has it', flush=True)\ntime.sleep(60)\n"
    )
    path = os.pathsep.join(entry for entry in sys.path if entry)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == b"has it\n"
        found = HeldTestbed.take(testbed(ports=(2, 3)))
        other.send_signal(signal.SIGKILL)
        other.wait()
        found.close()
        HeldTestbed.take(testbed("10 s")).close()


SECONDS: TypeAdapter[float] = TypeAdapter(Seconds)


@pytest.mark.parametrize(
    ("written", "seconds"), [(30, 30.0), (1.5, 1.5), ("30 s", 30.0), ("10 min", 600.0), ("2h", 7200.0), ("0 s", 0.0)]
)
def test_a_time_is_a_number_of_seconds_or_has_a_unit(written: object, seconds: float) -> None:
    assert SECONDS.validate_python(written) == seconds


@pytest.mark.parametrize("written", ["soon", "10", "10 days", "-1 s", -1, "1e9 h", "999999 h", float("nan")])
def test_other_times_are_refused(written: object) -> None:
    with pytest.raises(ValidationError):
        SECONDS.validate_python(written)


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
