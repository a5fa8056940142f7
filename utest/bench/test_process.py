"""The bench as one process: how it begins and ends, its faults, and shells that change no count."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lineproof.errors import TestbedError
from lineproof.system.installed import bench_command
from lineproof.testbed.process import TestbedProcess
from lineproof_bench.server.loop import PortTaken, TrexServer
from support.embedded_server import bench_process
from support.paths import ROOT
from support.patience import wait_until
from support.server_support import FakeBackend

pytestmark = pytest.mark.slow

MODEL = {
    "backend": "model",
    "platform_file": str(ROOT / "variables" / "platforms" / "netgate6100.yaml"),
    "software": "vpp",
    "clock_speed": 20.0,
}


@contextlib.contextmanager
def process(**specification: Any) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, Any]]]:
    """A process of the modelled bench, and what it says first."""
    with bench_process({**MODEL, **specification}) as started:
        yield started


def tell(ran: subprocess.Popen[bytes], line: Any) -> dict[str, Any]:
    """Return the answer to *line*."""
    assert ran.stdin
    ran.stdin.write(json.dumps(line).encode() + b"\n")
    ran.stdin.flush()
    return said(ran)


def said(ran: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert ran.stdout
    found: dict[str, Any] = json.loads(ran.stdout.readline())
    return found


@pytest.mark.parametrize("how", ["end of input", "SIGTERM", "SIGTERM while its server is away"])
def test_it_reports_its_ports_and_ends_with_its_folder(how: str, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    with process(folder=str(folder)) as (ran, first):
        assert first["ready"] is True and [port["speed_bps"] for port in first["ports"]] == [10e9, 10e9]
        with socket.create_connection(("127.0.0.1", first["rpc_port"]), 2):
            pass
        if "away" in how:
            assert tell(ran, {"fault": {"kind": "server restart", "start": 0, "for": 2000}}) == {"ok": True}
            wait_until(lambda: socket.socket().connect_ex(("127.0.0.1", first["rpc_port"])) != 0)
        if "SIGTERM" in how:
            ran.send_signal(signal.SIGTERM)
        else:
            assert ran.stdin
            ran.stdin.close()
        assert ran.wait(30) == 0, "its watchdog would end it with status 1"
        assert not folder.exists()


def test_an_error_is_in_the_log_that_its_owner_quotes(tmp_path: Path) -> None:
    specification = {**MODEL, "shells": {"user": 1}, "folder": str(tmp_path)}
    with pytest.raises(TestbedError, match=r"its log ends: .*authorized_key"):
        TestbedProcess("server", bench_command(), tmp_path / "server.log", specification)


def test_a_taken_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with process(rpc_port=port) as (ran, first):
            assert f"port {port} on 127.0.0.1 is already taken" in first["error"]
            assert ran.wait(30) == 1


def test_a_fault_is_caused_or_refused_in_words() -> None:
    with process() as (ran, _):
        assert tell(ran, {"fault": {"kind": "link flap", "start": 0}}) == {"ok": True}
        assert "there is no port 7" in tell(ran, {"fault": {"kind": "link flap", "port": 7}})["error"]
        assert "error" in tell(ran, "nonsense")


def test_a_server_that_cannot_listen_leaves_nothing_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        before = len(list(Path("/proc/self/fd").iterdir()))
        for _ in range(3):
            with pytest.raises(PortTaken):
                TrexServer(FakeBackend(), pub_port=taken.getsockname()[1])
        time.sleep(0.05)
        assert len(list(Path("/proc/self/fd").iterdir())) <= before + 2
