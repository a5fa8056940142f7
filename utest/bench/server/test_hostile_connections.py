"""Odd connections to the embedded server: it answers others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from support.embedded_server import EmbeddedServer, embedded_server

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
