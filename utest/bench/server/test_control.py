"""The control socket's answers, and how a server process begins and ends."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

from lineproof_bench.server.control import ControlService
from lineproof_bench.server.loop import TrexServer
from lineproof_bench.server.request_socket import PortTaken
from lineproof_bench.state import RouterConfiguration, RouterState, state_from_json, to_json
from support.paths import ROOT

FAKE = """
import sys
from support.server_support import FakeBackend
import lineproof_bench.server.__main__ as program
program.open_backend = lambda specification: (FakeBackend(), FakeBackend().now, None)
program.main()
"""


class Model:
    def __init__(self) -> None:
        self.configuration = RouterConfiguration()
        self.cleared = 0

    def state(self) -> RouterState:
        return RouterState("vpp", "22.02", "box", 10.0, 5.0, 2.2e9, (), (), self.configuration)

    def configure(self, configuration: RouterConfiguration) -> None:
        if not configuration.up:
            raise ValueError("no interface is up")
        self.configuration = configuration

    def clear(self) -> None:
        self.cleared += 1


def ask(control: ControlService, **request: Any) -> Any:
    return json.loads(control.handle(control.token.encode(), json.dumps(request).encode()))


def test_state_configure_clear() -> None:
    model = Model()
    control = ControlService(model)
    wanted = RouterConfiguration(("a",), (("a", "100.65.1.1/24"),), (("a", "100.65.1.2", "02:00:00:00:00:01"),))
    assert "ok" in ask(control, op="configure", configuration=to_json(wanted))
    assert state_from_json(ask(control, op="state")["ok"]) == model.state()
    assert model.configuration == wanted
    assert "ok" in ask(control, op="clear")
    assert model.cleared == 1


@pytest.mark.parametrize(
    "request_",
    [
        b"",
        b"[]",
        b"{}",
        b'{"token": "x", "op": "state"}',
        b'{"op": "state"}',
        b"\xff",
        b'{"token": null}',
        '{"token": "ü"}'.encode(),
    ],
)
def test_strangers_are_refused(request_: bytes) -> None:
    assert "error" in json.loads(ControlService(Model()).handle(request_))


def test_the_token_is_compared_before_the_request_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: Any) -> Any:
        pytest.fail("somebody without the token had JSON parsed")

    monkeypatch.setattr("lineproof_bench.server.control.parse_json", read)
    control = ControlService(Model())
    request = json.dumps({"token": control.token, "op": "state"}).encode()
    for frames in ((request,), (b"", request), (request, control.token.encode()), ()):
        assert "the token is wrong" in json.loads(control.handle(*frames))["error"]


def test_nonsense_is_refused_in_words() -> None:
    control = ControlService(Model())
    assert "JSON object" in json.loads(control.handle(control.token.encode(), b"[]"))["error"]
    assert "expected state, configure or clear" in ask(control, op="fly")["error"]
    assert "error" in ask(control, op="configure")
    assert "error" in ask(control, op="configure", configuration={"up": 5})
    empty = to_json(RouterConfiguration())
    assert "no interface is up" in ask(control, op="configure", configuration=empty)["error"]


@contextlib.contextmanager
def process(code: str, specification: dict[str, Any]) -> Iterator[subprocess.Popen[str]]:
    ran = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'libraries'}:{ROOT / 'utest'}"},
        start_new_session=True,
    )
    try:
        assert ran.stdin
        ran.stdin.write(json.dumps(specification) + "\n")
        ran.stdin.flush()
        yield ran
    finally:
        ran.kill()
        ran.communicate(timeout=5)


def first_line(ran: subprocess.Popen[str]) -> dict[str, Any]:
    assert ran.stdout
    found: dict[str, Any] = json.loads(ran.stdout.readline())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("how", ["end of input", "SIGTERM"])
def test_a_process_reports_its_ports_and_ends(how: str) -> None:
    with process(FAKE, {"backend": "fake"}) as ran:
        said = first_line(ran)
        assert said["ready"] is True and said["control_port"] is None
        assert [port["mac"] for port in said["ports"]] == ["02:00:00:00:00:01", "02:00:00:00:00:02"]
        with socket.create_connection(("127.0.0.1", said["rpc_port"]), 2):
            pass
        if how == "SIGTERM":
            ran.send_signal(signal.SIGTERM)
        else:
            assert ran.stdin
            ran.stdin.close()
            ran.stdin = None
        assert ran.wait(30) == 0, "its watchdog would end it with status 1"


@pytest.mark.slow
def test_a_taken_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with process(FAKE, {"backend": "fake", "rpc_port": port}) as ran:
            assert f"port {port} on 127.0.0.1 is already taken" in first_line(ran)["error"]
            assert ran.wait(30) == 1


@pytest.mark.slow
def test_an_unknown_backend_is_refused() -> None:
    with process("from lineproof_bench.server.__main__ import main; main()", {"backend": "x"}) as ran:
        assert "expected 'model' or 'wire'" in first_line(ran)["error"]
        assert ran.wait(30) == 1


@pytest.mark.slow
def test_the_model_is_served_with_its_control() -> None:
    specification = {
        "backend": "model",
        "platform_file": str(ROOT / "variables" / "platforms" / "netgate6100.yaml"),
        "software": "vpp",
        "clock_speed": 20.0,
    }
    with process("from lineproof_bench.server.__main__ import main; main()", specification) as ran:
        said = first_line(ran)
        assert [port["speed_bps"] for port in said["ports"]] == [10e9, 10e9]
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        asking = context.socket(zmq.REQ)
        asking.connect(f"tcp://127.0.0.1:{said['control_port']}")
        asking.send_multipart([said["control_token"].encode(), b'{"op": "state"}'])
        assert asking.poll(2000)
        answer: Any = asking.recv_json()
        state = state_from_json(answer["ok"])
        context.destroy(linger=0)
        assert [row.name for row in state.interfaces] == ["TenGigabitEthernet3/0/0", "TenGigabitEthernet3/0/1"]


@pytest.mark.slow
def test_a_server_that_cannot_listen_leaves_nothing_open() -> None:
    from support.server_support import FakeBackend

    with socket.create_server(("127.0.0.1", 0)) as taken:
        before = len(list(Path("/proc/self/fd").iterdir()))
        for _ in range(3):
            with pytest.raises(PortTaken):
                TrexServer(FakeBackend(), pub_port=taken.getsockname()[1])
        time.sleep(0.05)
        assert len(list(Path("/proc/self/fd").iterdir())) <= before + 2
