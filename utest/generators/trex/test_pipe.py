"""Requests of which several are under way at once: answers in order, and what no TRex server answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import zmq

from lineproof.generators.trex.client import pipe as pipe_module
from lineproof.generators.trex.client.pipe import Pipe
from lineproof.generators.trex.client.service import Refusal


@pytest.fixture
def server() -> Iterator[zmq.Socket[bytes]]:
    """A REP socket, as a real TRex has."""
    with zmq.Context() as context, context.socket(zmq.REP) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.bind("tcp://127.0.0.1:*")
        yield socket


@pytest.fixture
def pipe(server: zmq.Socket[bytes]) -> Iterator[Pipe]:
    found = Pipe(server.getsockopt_string(zmq.LAST_ENDPOINT))
    yield found
    found.close()


def ping(number: int) -> list[dict[str, Any]]:
    return [{"jsonrpc": "2.0", "method": "ping", "id": number}]


def answer(server: zmq.Socket[bytes], **content: Any) -> None:
    (call,) = json.loads(server.recv())
    server.send(json.dumps([{"jsonrpc": "2.0", "id": call["id"], **content}]).encode())


def test_answers_come_in_the_order_of_the_requests(server: zmq.Socket[bytes], pipe: Pipe) -> None:
    for number in range(3):
        pipe.ask(ping(number))
    assert pipe.under_way == 3 and pipe.answer(0) is None
    for number in range(3):
        answer(server, result={"ts": number})
    come = [pipe.answer(5) for _ in range(3)]
    assert [found and found[1] for found in come] == [[{"ts": 0}], [{"ts": 1}], [{"ts": 2}]]
    assert pipe.under_way == 0 and come == sorted(come, key=lambda found: found[0] if found else 0)


@pytest.mark.parametrize(
    "content", [{"error": {"code": -32600, "message": "no"}}, {"id": 7, "result": {}}, {"neither": 0}]
)
def test_what_is_no_result_of_the_request_is_refused(
    server: zmq.Socket[bytes], pipe: Pipe, content: dict[str, Any]
) -> None:
    pipe.ask(ping(1))
    answer(server, **content)
    with pytest.raises(Refusal) as caught:
        pipe.answer(5)
    assert caught.value.kind == "refused"


def test_a_silent_server_is_lost(monkeypatch: pytest.MonkeyPatch, pipe: Pipe) -> None:
    monkeypatch.setattr(pipe_module, "REPLY_LIMIT", 0.01)
    pipe.ask(ping(1))
    with pytest.raises(Refusal) as caught:
        while True:
            pipe.answer(0.02)
    assert caught.value.kind == "lost"
