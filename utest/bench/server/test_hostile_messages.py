"""Any bytes at the embedded server's sockets: it goes on, counts the same, and keeps nothing of them.

``LINEPROOF_FUZZ=100`` sends a million messages beside a trial (default 10 000).
"""

from __future__ import annotations

import contextlib
import json
import random
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof_bench.server.control import ControlService
from lineproof_bench.server.rpc import LARGEST_REQUEST, MOST_CALLS, MOST_LOGGED, Dispatcher, is_zipped, unzip_message
from support.embedded_server import EmbeddedServer, embedded_server
from support.fuzz import TIMES
from support.hostile_bytes import message, noise
from support.server_support import stream

MESSAGES = 10_000 * TIMES


# -- without sockets


def answered(data: bytes) -> Any:
    return json.loads(unzip_message(data, 1 << 30) if is_zipped(data) else data)


def broken(_: Any) -> Any:
    raise ZeroDivisionError("x" * 100_000)


@settings(max_examples=30)
@given(st.randoms(use_true_random=False))
def test_every_message_gets_one_answer(chance: random.Random) -> None:
    dispatcher = Dispatcher({"ping": lambda _: {"ts": 1.0}, "acquire": broken}, "handle12")
    control = ControlService(object())  # type: ignore[arg-type]  # nobody without the token reaches it
    for frames in (message(chance, "handle12") for _ in range(20)):
        answered(dispatcher.handle(*frames))
        assert "the token is wrong" in answered(control.handle(*frames))["error"]
        answered(control.handle(control.token.encode(), *frames))


def test_an_id_that_json_cannot_write_gets_an_answer() -> None:
    assert answered(Dispatcher({}, "").handle(b'{"id": 1e999}'))["error"]["code"] == -32700


def test_the_token_is_compared_before_the_request_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: Any) -> Any:
        pytest.fail("somebody without the token had JSON parsed")

    monkeypatch.setattr("lineproof_bench.server.control.parse_json", read)
    control = ControlService(object())  # type: ignore[arg-type]
    request = json.dumps({"token": control.token, "op": "state"}).encode()
    for frames in ((request,), (b"", request), (request, control.token.encode()), ()):
        assert "the token is wrong" in answered(control.handle(*frames))["error"]


def test_a_batch_has_limits_of_number_size_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    large = Dispatcher({"get_version": lambda _: "x" * 1_000_000}, "")
    call = b'{"method": "get_version"}'
    rows = answered(large.handle(b"[" + b",".join([call] * 1000) + b"]"))
    assert len(rows) == 1000 and sum("result" in row for row in rows) < 20, "a small request for gigabytes"
    too_many = answered(large.handle(b"[" + b",".join([b"0"] * (MOST_CALLS + 1)) + b"]"))
    assert f"at most {MOST_CALLS}" in too_many["error"]["specific_err"]
    monkeypatch.setattr("lineproof_bench.server.rpc.BATCH_LIMIT", 0.05)
    slow = Dispatcher({"ping": lambda _: time.sleep(0.02)}, "")
    rows = answered(slow.handle(b"[" + b",".join([b'{"method": "ping"}'] * 100) + b"]"))
    assert sum("result" in row for row in rows) < 10


def test_failures_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    failing = Dispatcher({"ping": broken}, "")
    for _ in range(50):
        failing.handle(b'{"method": "ping"}')
    assert len(caplog.records) == MOST_LOGGED


# -- at the sockets


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedServer]:
    with embedded_server(tmp_path) as found:
        yield found
        assert found.runs, found.log.read_text()


class Caller:
    """A client in its own context that waits at most as long as TRex's do."""

    def __init__(self, server: EmbeddedServer) -> None:
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.rpc = self.context.socket(zmq.REQ)
        self.rpc.setsockopt(zmq.RCVTIMEO, 5000)
        self.rpc.connect(f"tcp://127.0.0.1:{server.rpc}")
        self.api_h = ""
        self.api_h = self.call("api_sync_v2", name="STL", major=5, minor=1)["api_h"]

    def call(self, method: str, **params: Any) -> Any:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"api_h": self.api_h, **params}}
        self.rpc.send(json.dumps(request).encode())
        answer = json.loads(self.rpc.recv())
        assert "result" in answer, answer
        return answer["result"]

    def close(self) -> None:
        self.context.destroy(linger=0)


@pytest.fixture
def caller(server: EmbeddedServer) -> Iterator[Caller]:
    found = Caller(server)
    yield found
    found.close()


class Flood(threading.Thread):
    """Sends *count* messages to the server's three ports, and noise to their TCP ports."""

    def __init__(self, server: EmbeddedServer, api_h: str, count: int) -> None:
        super().__init__(daemon=True)
        self._ports = [int(server.facts[name]) for name in ("rpc_port", "pub_port", "control_port")]
        self._api_h, self._count = api_h, count

    def run(self) -> None:
        chance, sent = random.Random(1), 0
        kinds = (zmq.DEALER, zmq.XSUB, zmq.DEALER)
        while sent < self._count:
            with zmq.Context() as context:
                links = [context.socket(kind) for kind in kinds]
                for link, port in zip(links, self._ports, strict=True):
                    link.setsockopt(zmq.LINGER, 0)
                    link.setsockopt(zmq.SNDTIMEO, 20)
                    link.connect(f"tcp://127.0.0.1:{port}")
                # then new connections: noise ends the old ones
                for _ in range(min(5000, self._count - sent)):
                    self._send(chance, links)
                    sent += 1
                self._noise(chance)
                for link in links:
                    link.close()

    def _send(self, chance: random.Random, links: list[zmq.Socket[bytes]]) -> None:
        link = chance.choice(links)
        frames = message(chance, self._api_h)
        envelope = [b""] if link.type == zmq.DEALER and chance.random() < 0.9 else []
        try:
            link.send_multipart([*envelope, *frames])
            while link.poll(0):
                link.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:
            pass  # it is as fast as it can be

    def _noise(self, chance: random.Random) -> None:
        for port in self._ports * 5:
            with socket.create_connection(("127.0.0.1", port)) as raw, contextlib.suppress(OSError):
                raw.sendall(noise(chance))


def prepared(caller: Caller) -> str:
    handler = caller.call("acquire", port_id=0, user="alice", session_id=7, force=False)
    caller.call("add_stream", port_id=0, handler=handler, stream_id=1, stream=stream())
    return str(handler)


def trial(caller: Caller, handler: str, pps: float, duration: float) -> tuple[int, int]:
    """Frames that port 0 sent, and bytes, in one start of *duration* s."""
    before = caller.call("get_port_stats", port_id=0)
    multiplier = {"type": "pps", "value": pps, "op": "abs"}
    caller.call("start_traffic", port_id=0, handler=handler, mul=multiplier, duration=duration, force=True)
    until = time.monotonic() + duration + 20
    while caller.call("get_port_status", port_id=0)["state"] == "TX":
        assert time.monotonic() < until
        time.sleep(0.02)
    after = caller.call("get_port_stats", port_id=0)
    return after["opackets"] - before["opackets"], after["obytes"] - before["obytes"]


@pytest.mark.slow
def test_a_flood_changes_no_count_and_leaves_nothing(server: EmbeddedServer, caller: Caller) -> None:
    handler = prepared(caller)
    alone = trial(caller, handler, 100_000, 0.5)
    warm = Flood(server, caller.api_h, 2000)
    warm.run()
    memory, descriptors = server.memory, server.descriptors
    flood = Flood(server, caller.api_h, MESSAGES)
    flood.start()
    trials = [trial(caller, handler, 100_000, 0.5)]
    while flood.is_alive():
        trials.append(trial(caller, handler, 100_000, 0.5))
    assert set(trials) == {alone}
    until = time.monotonic() + 20
    while server.descriptors > descriptors + 3 and time.monotonic() < until:
        time.sleep(0.1)
    assert server.descriptors <= descriptors + 3
    assert server.memory < memory + (100 << 20)
    assert server.log.stat().st_size < 1 << 20
    assert caller.call("get_port_status", port_id=0)["owner"] == "alice"


@pytest.mark.slow
def test_messages_without_an_envelope_do_not_stop_the_server(server: EmbeddedServer, caller: Caller) -> None:
    """They make a REP socket ready, and then there is nothing to receive."""
    for port in (server.rpc, server.facts["control_port"], server.facts["pub_port"]):
        with caller.context.socket(zmq.DEALER) as link:
            link.setsockopt(zmq.LINGER, 0)
            link.connect(f"tcp://127.0.0.1:{port}")
            for frames in ([b"x"], [b"x", b"y"], [b"", b"x", b"y"], [b"", b""], [b""], [b"x"] * 50):
                link.send_multipart(frames)
            link.poll(200)
            assert caller.call("ping")["ts"] > 0


@pytest.mark.slow
def test_shutdown_and_other_peoples_ports_are_refused(server: EmbeddedServer, caller: Caller) -> None:
    prepared(caller)
    other = Caller(server)
    try:
        for method, params in (
            ("shutdown", {"force": True, "user": "x"}),
            ("shutdown", {"token": server.facts["control_token"]}),
            ("release", {"port_id": 0, "handler": ""}),
            ("remove_all_streams", {"port_id": 0, "handler": "x"}),
            ("start_traffic", {"port_id": 0, "handler": "é" * 900}),
            ("acquire", {"port_id": 0, "user": "alice", "session_id": 7, "force": False}),
            ("acquire", {"port_id": 0, "user": "x" * LARGEST_REQUEST, "session_id": 7, "force": True}),
        ):
            with pytest.raises((AssertionError, zmq.Again)):
                other.call(method, **params)
            other.close()
            other = Caller(server)
    finally:
        other.close()
    assert server.runs
    assert caller.call("get_port_status", port_id=0)["owner"] == "alice"
