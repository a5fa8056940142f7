"""Connections to the embedded server that send without end, or nothing: it holds little, and answers others."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import resource
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

from lineproof_bench.server.loop import MOST_SUBSCRIBED
from support.embedded_server import EmbeddedServer, embedded_server
from support.hostile_bytes import GREETING, frame, noise, ready
from support.patience import wait_until

pytestmark = pytest.mark.slow

PORTS = ("rpc_port", "pub_port")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedServer]:
    with embedded_server(tmp_path) as found:
        yield found
        assert found.runs, found.log.read_text()


def ping(server: EmbeddedServer) -> None:
    """It answers within the time that a client waits."""
    with zmq.Context() as context, context.socket(zmq.REQ) as link:
        link.setsockopt(zmq.LINGER, 0)
        link.connect(f"tcp://127.0.0.1:{server.rpc}")
        link.send(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
        assert link.poll(5000)
        assert json.loads(link.recv())["result"]["ts"] > 0


def connect(server: EmbeddedServer, port: str) -> socket.socket:
    link = socket.create_connection(("127.0.0.1", server.facts[port]), 5)

    def read() -> None:
        with contextlib.suppress(OSError):
            while link.recv(65536):
                pass

    threading.Thread(target=read, daemon=True).start()
    return link


@pytest.mark.parametrize(
    ("port", "kind", "size"), [("rpc_port", b"REQ", 1 << 20), ("rpc_port", b"DEALER", 1), ("pub_port", b"SUB", 40)]
)
def test_a_message_without_end_loses_its_connection(server: EmbeddedServer, port: str, kind: bytes, size: int) -> None:
    before, until = server.memory, time.monotonic() + 60
    part = frame(b"x" * size, True) * max(1, 100_000 // size)
    with connect(server, port) as link, pytest.raises(OSError):
        link.sendall(GREETING + ready(kind) + frame(b"", True))
        for number in itertools.count():
            link.sendall(part)
            assert time.monotonic() < until
            if number % 100 == 0:
                ping(server)
    ping(server)
    assert server.memory < before + (200 << 20)


def test_messages_without_an_envelope_do_not_stop_the_server(server: EmbeddedServer) -> None:
    """They make a REP socket ready, and then there is nothing to receive."""
    with zmq.Context() as context:
        for port in PORTS:
            with context.socket(zmq.DEALER) as link:
                link.setsockopt(zmq.LINGER, 0)
                link.connect(f"tcp://127.0.0.1:{server.facts[port]}")
                for frames in ([b"x"], [b"x", b"y"], [b"", b"x", b"y"], [b"", b""], [b""], [b"x"] * 50):
                    link.send_multipart(frames)
                link.poll(200)
                ping(server)


@pytest.mark.parametrize("at_once", [1, 30_000])
def test_subscriptions_without_end_lose_their_connection(server: EmbeddedServer, at_once: int) -> None:
    """Return whether they come as fast as ZeroMQ stores them or faster. All of them together would be some 3 GB."""
    before = server.memory
    with connect(server, "pub_port") as link, pytest.raises(OSError):
        link.sendall(GREETING + ready(b"SUB"))
        for _ in range(1000 * MOST_SUBSCRIBED // 30 // at_once):
            link.sendall(b"".join(b"\0\x1e\x01" + os.urandom(29) for _ in range(at_once)))
    ping(server)
    assert server.memory < before + (500 << 20)


def test_a_long_session_keeps_its_connection(server: EmbeddedServer) -> None:
    """More bytes than an unread message may have: what was read does not count."""
    text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": "y" * 900_000}}).encode()
    with zmq.Context() as context, context.socket(zmq.REQ) as link:
        link.setsockopt(zmq.LINGER, 0)
        link.setsockopt(zmq.RCVTIMEO, 10_000)
        link.connect(f"tcp://127.0.0.1:{server.rpc}")
        watch: Any = link.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        for _ in range(60):
            link.send(text)
            assert json.loads(link.recv())["result"]["ts"] > 0
        assert not watch.poll(0)
        link.disable_monitor()
        watch.close()


def test_a_thousand_connections_keep_nobody_out(tmp_path: Path) -> None:
    """The server raises its own limit of open files: the shell's is often 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 3000:
        pytest.skip("needs a hard limit of 3000 open files")
    chance, links = random.Random(1), list[socket.socket]()
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    try:
        with embedded_server(tmp_path) as server:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            before, memory = server.descriptors, server.memory
            for number in range(1500):
                links.append(socket.create_connection(("127.0.0.1", server.facts[PORTS[number % 2]]), 5))
                if number % 4 > 1:
                    with contextlib.suppress(OSError):
                        links[-1].sendall(noise(chance))
            ping(server)
            # half-open ones are given up by the server itself
            wait_until(lambda: server.descriptors <= before + 700)
            ping(server)
            for link in links:
                link.close()
            wait_until(lambda: server.descriptors <= before + 3)
            assert server.memory < memory + (100 << 20) and server.runs
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
