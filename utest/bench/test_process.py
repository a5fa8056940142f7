"""The bench as one process: how it begins and ends, its faults; who gets into its shells."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lineproof.errors import TestbedError
from lineproof.system.login import Login
from lineproof.system.ssh import Connection
from lineproof.system.ssh_keys import make_key
from support.embedded_server import bench_process
from support.paths import LIBRARIES, ROOT
from support.patience import wait_until
from support.simulated_session import started

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
    assert ran.stdin and ran.stdout
    ran.stdin.write(json.dumps(line).encode() + b"\n")
    ran.stdin.flush()
    message: dict[str, Any] = json.loads(ran.stdout.readline())
    return message


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


@pytest.mark.parametrize("key", ["rpc_port", "pub_port"])
def test_a_taken_port_is_named_with_the_option_that_chooses_another(key: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with process(**{key: port}) as (ran, first):
            assert f"port {port} on 127.0.0.1 is already taken" in first["error"]
            assert f"'--{key.replace('_', '-')}'" in first["error"]
            assert ran.wait(30) == 1


STRANGER = """
import os, sys
from scapy.layers.inet import IP, UDP, Ether
from trex_stl_lib.api import *
client = STLClient(server="127.0.0.1", sync_port=int(sys.argv[1]), async_port=int(sys.argv[2]))
client.connect()
client.acquire(ports=[0, 1], force=True)
client.reset(ports=[0, 1])
client.set_service_mode(ports=[0, 1])
client.set_l3_mode(port=0, src_ipv4="100.65.1.2", dst_ipv4="100.65.1.1")
client.resolve(ports=[0])
packet = STLPktBuilder(Ether(dst="02:00:00:00:01:01") / IP() / UDP() / bytes(18))
client.add_streams(STLStream(packet=packet, mode=STLTXCont(pps=1000), flow_stats=STLFlowLatencyStats(7)), ports=[0])
if "dies" in sys.argv:
    client.start(ports=[0], duration=-1, force=True)
    os._exit(0)
capture, frames = client.start_capture(rx_ports=[1], limit=5), []
client.clear_stats()
client.start(ports=[0], duration=1, force=True)
client.wait_on_traffic(ports=[0])
counts, groups = client.get_stats(), client.get_pgid_stats([7])
client.stop_capture(capture["id"], output=frames)
client.set_service_mode(ports=[0, 1], enabled=False)
client.stop(ports=[0])
client.release(ports=[0, 1])
client.disconnect()
print(counts[0]["opackets"], counts[1]["ipackets"], groups["flow_stats"][7]["rx_pkts"]["total"], len(frames))
"""


def test_the_client_of_pypi_does_its_work_also_after_one_that_died_while_it_sent() -> None:
    with process(bypass=True, clock_speed=1.0) as (_, first):
        call = [sys.executable, "-c", STRANGER, str(first["rpc_port"]), str(first["pub_port"])]
        subprocess.run([*call, "dies"], check=True, timeout=120)
        ran = subprocess.run(call, check=True, timeout=120, stdout=subprocess.PIPE)
        assert ran.stdout.split() == [b"1000", b"1000", b"1000", b"5"]


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Login]:
    """The login of a simulated router."""
    with started(tmp_path_factory.mktemp("router")) as session:
        yield session.testbed.facts.router


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"key": "another"}, "refuses the login of 'lineproof' with the key"),
        ({"user": "root"}, "refuses the login of 'root'"),
        ({"key": None, "password_from": "SECRET"}, "password"),
    ],
)
def test_wrong_keys_and_users_are_refused(
    router: Login, wrong: dict[str, Any], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "secret")
    if wrong.get("key"):
        make_key(tmp_path / "another")
        wrong = {"key": tmp_path / "another"}
    with pytest.raises(TestbedError, match=says):
        Connection(router.model_copy(update=wrong), "the router").open()


def test_a_person_finds_a_prompt(router: Login) -> None:
    with closing(Connection(router, "the router").open()) as connection:
        channel = connection.client.invoke_shell()
        channel.settimeout(10)
        channel.send(b"hostname\nvppctl show version\nexit\n")
        text = b""
        while more := channel.recv(4096):
            text += more
        assert channel.recv_exit_status() == 0
    shown = text.decode()
    assert all(words in shown for words in ("SIMULATED router", "# ", "vpp v22.02 built")), shown


def test_to_begin_it_starts_no_other_program() -> None:
    """asyncssh looks for libraries by ``ldconfig``, ``gcc`` and ``ld`` where it is imported as it is."""
    code = (
        "import sys; started = []\n"
        "sys.addaudithook(lambda event, args: event == 'subprocess.Popen' and started.append(args[1]))\n"
        "import ctypes.util; search = ctypes.util.find_library\n"
        "import lineproof_bench.shells.server\n"
        "assert not started, started\n"
        "assert ctypes.util.find_library is search"
    )
    environment = {**os.environ, "PYTHONPATH": str(LIBRARIES)}
    subprocess.run([sys.executable, "-P", "-c", code], env=environment, check=True, timeout=60)
