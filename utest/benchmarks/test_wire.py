"""What the wire study makes of what the kernel tells: CPU time of a sender's family, tables, ratios of one run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import benchmarks.wire.__main__ as wire
from benchmarks.wire import rivals as wire_rivals
from benchmarks.wire.figures import (
    CpuTime,
    Process,
    Sample,
    cpu_ratio,
    cpu_shared,
    fastest_sender,
    processes,
    rate_ratio,
    table,
)
from lineproof.errors import TestbedError
from support.paths import ROOT

_TCP = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 01016441:1451 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1
"""


def _line(pid: int, name: str, parent: int, user: int, system: int) -> str:
    return f"{pid} ({name}) S {parent} 1 1 0 -1 4194304 1 2 3 4 {user} {system} 50 60 20 0 2 0 100 1 1\n"


def _sample(mpps: float, cpus: float, octets: int = 60) -> Sample:
    frames = round(mpps * 2e6)
    return Sample(frames, octets * frames, 2.0, 2 * cpus)


@given(
    st.integers(1, 2**22),
    st.text(st.characters(codec="ascii", exclude_characters="\n"), max_size=15),
    st.integers(0, 2**22),
    st.integers(0, 2**40),
    st.integers(0, 2**40),
)
def test_a_process_with_any_name(pid: int, name: str, parent: int, user: int, system: int) -> None:
    assert Process.parse(_line(pid, name, parent, user, system)) == Process(pid, name, parent, user + system)


@given(st.text(max_size=60))
def test_an_invalid_line_is_refused(text: str) -> None:
    with pytest.raises(TestbedError, match="proc"):
        Process.parse(text)


def test_cpu_time_is_the_family_s_and_the_kernel_s() -> None:
    found = [
        Process(13, "worker", 12, 300),
        Process(1, "init", 0, 1000),
        Process(10, "trafgen", 1, 5),
        Process(12, "trafgen", 10, 40),
        Process(20, "another", 1, 7000),
        Process(3, "ksoftirqd/0", 2, 20),
        Process(4, "ksoftirqd/1", 2, 1),
    ]
    used = CpuTime.of(found, (10,), 0.01)
    assert (used.sender, used.kernel) == (pytest.approx(3.45), pytest.approx(0.21))


def test_cpu_time_of_a_process_that_has_gone() -> None:
    assert CpuTime.of([Process(1, "init", 0, 5)], (99,), 0.01) == CpuTime(0.0, 0.0)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux's")
def test_processes_of_this_machine() -> None:
    own = next(process for process in processes() if process.pid == os.getpid())
    assert own.parent == os.getppid()


def test_files_that_are_not_processes_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "7").mkdir()  # ended between the listing and the reading
    (tmp_path / "8").mkdir()
    (tmp_path / "8" / "stat").write_text(_line(8, "it", 1, 1, 1))
    assert list(processes(tmp_path)) == [Process(8, "it", 1, 2)]


def test_rates_of_the_wall_and_of_a_cpu() -> None:
    sample = _sample(3.0, cpus=1.5)
    assert (sample.rate, sample.busy, sample.per_cpu) == pytest.approx((3e6, 1.5, 2e6))
    assert _sample(3.0, cpus=0.0).per_cpu == 0.0


def test_a_sender_of_other_frames_is_refused() -> None:
    assert _sample(1.0, 1.0).checked("it").frames == 2_000_000
    with pytest.raises(TestbedError, match="it sends frames of 1500"):
        _sample(1.0, 1.0, octets=1500).checked("it")
    with pytest.raises(TestbedError, match="it sends nothing"):
        Sample(0, 0, 2.0, 0.0).checked("it")


def test_a_few_longer_frames_are_accepted() -> None:
    assert Sample(100_000, 60 * 99_990 + 10 * 600, 1.0, 1.0).checked("it")


def test_ratios_are_of_the_same_round() -> None:
    # the machine is slower in the second round, for both
    ours, theirs = [_sample(3.0, 2.0), _sample(1.5, 2.0), _sample(3.0, 2.0)], [_sample(2.0, 1.0), _sample(1.0, 1.0)]
    assert rate_ratio(ours[:2], theirs) == pytest.approx(1.5)
    assert cpu_ratio(ours[:2], theirs) == pytest.approx(0.75)
    with pytest.raises(ValueError, match="zip"):
        rate_ratio(ours, theirs)
    assert cpu_ratio(ours[:1], [_sample(1.0, 0.0)]) == 0.0


def test_the_table_and_the_fastest_sender() -> None:
    samples = {
        "slow": [_sample(1.0, 1.0), _sample(1.2, 1.0), _sample(9.0, 1.0)],
        "fast": [_sample(2.0, 2.0), _sample(2.5, 2.0), _sample(3.0, 2.0)],
    }
    head, slow, fast = table(samples)
    assert head.split() == ["sender", "median", "least", "most", "CPUs", "per", "CPU", "s"]
    assert slow.split() == ["slow", "1.200", "1.000", "9.000", "1.00", "1.200"]
    assert fast.split() == ["fast", "2.500", "2.000", "3.000", "2.00", "1.250"]
    assert fastest_sender(samples) == "fast"


def test_a_cpu_that_others_used_too() -> None:
    alone, shared = [_sample(1.0, 0.99)] * 3, [_sample(1.0, 0.5), _sample(1.0, 0.5), _sample(1.0, 1.0)]
    assert not cpu_shared([alone, alone])
    assert cpu_shared([alone, shared])


def test_a_socket_that_listens() -> None:
    assert wire_rivals.listens(_TCP, 5201)
    assert not wire_rivals.listens(_TCP, 80)
    assert not wire_rivals.listens(_TCP.replace(" 0A ", " 01 "), 5201)
    assert not wire_rivals.listens(_TCP.splitlines()[0], 5201)


@pytest.mark.netns
@pytest.mark.skipif(shutil.which("trafgen") is None, reason="trafgen (netsniff-ng) is not installed")
def test_one_run(tmp_path: Path) -> None:
    root = ROOT
    done = subprocess.run(
        (sys.executable, "-m", "benchmarks.wire", "--rounds", "1", "--seconds", "0.3"),
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root / "libraries"), "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    # which bounds a busy machine keeps is not this test's matter
    assert done.returncode in (0, 1), done.stdout + done.stderr
    for sender in ("trafgen", wire.EMBEDDED):
        assert done.stdout.count(f"\n  {sender}") == 2, done.stdout
    iperf3 = done.stdout.count("\n  iperf3 -u")
    assert iperf3 == (2 if shutil.which("iperf3") else 0), done.stdout
    assert iperf3 or "left out: iperf3" in done.stdout
    assert not list((tmp_path / "lineproof").glob("*.json")), "a lease is left"
