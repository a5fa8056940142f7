"""A TRex server that means harm: an embedded one behind a neighbour that replaces answers and published messages."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import zmq

from lineproof.generators.trex.client.sockets import plain_bytes
from lineproof_bench.server.loop import TrexServer
from lineproof_bench.server.rpc import zip_message
from support.server_support import FakeBackend, serving

MAGIC = struct.pack(">I", 0xABE85CEA)

GREETING = b"\xff" + b"\0" * 8 + b"\x7f\x03\x00NULL" + b"\0" * 48
"""ZMTP 3.0 without authentication."""

BOMB = zlib.compress(b" " * (200 << 20), 1)
"""200 MB in 1 MB."""

DEEP = b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 100_000 + b"]" * 100_000 + b"}"

Answer = Callable[[Any], "bytes | list[bytes]"]
"""The bytes, or frames, in place of the right answer to a request."""


def result(value: str) -> Answer:
    """Return an answer with the JSON text *value* for a result."""

    def make(request: Any) -> bytes:
        number = json.dumps(request[0]["id"] if isinstance(request, list) else request["id"])
        return f'{{"jsonrpc":"2.0","id":{number},"result":{value}}}'.encode()

    return make


def refusing(text: str) -> Answer:
    """Return an error in the words *text*."""

    def make(request: Any) -> bytes:
        number = request[0]["id"] if isinstance(request, list) else request["id"]
        error = {"code": -32000, "message": "x", "specific_err": text}
        return json.dumps({"jsonrpc": "2.0", "id": number, "error": error}).encode()

    return make


BAD_BYTES: Mapping[str, Answer] = {
    "bomb": lambda _: MAGIC + struct.pack(">I", 200 << 20) + BOMB,
    "bomb that lies": lambda _: MAGIC + struct.pack(">I", 100) + BOMB,
    "damaged zip": lambda _: MAGIC + struct.pack(">I", 100) + b"x" * 100,
    "zipped and deep": lambda _: zip_message(DEEP),
    "several frames": lambda _: [b"{}", b"{}"],
    "nothing": lambda _: b"",
    "no JSON": lambda _: b"hello",
    "no UTF-8": lambda _: b'{"result": "\xff\xfe"}',
    "a list": lambda _: b"[[], 5]",
    "wrong id": lambda _: b'{"jsonrpc":"2.0","id":"other","result":{}}',
    "text for an error": lambda _: b'{"jsonrpc":"2.0","id":1,"error":"no"}',
    "endless digits": result("1" * 100_000),
}
"""Answers that no TRex server sends to any request."""

BAD_VALUES: Mapping[str, Answer] = {
    "null": result("null"),
    "infinite": result('{"attr": {"speed": 1e999}, "cpu": [{"history": [1e999, NaN]}]}'),
    "a text": result('"x"'),
    "an empty object": result("{}"),
    "wrong types": result('{"attr": 5, "rate": "x", "0": [], "ports": {"a": 1}}'),
}
"""JSON-RPC, but not what a method answers."""


class HostileServer:
    """*server* until :attr:`instead` has an answer for a method (``*``: every one); None as an answer is silence.

    ``inside``: answers to single calls of a method; the other calls of a message are answered by *server*.
    """

    def __init__(self, server: TrexServer) -> None:
        self.instead: dict[str, Answer | None] = {}
        self.inside: dict[str, Answer] = {}
        self._methods: dict[int, str] = {}
        self.published: list[list[bytes]] = []
        """Messages that are published before each one of *server* that has :attr:`marker` in it."""
        self.marker = b""
        self._over = threading.Event()
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._front, self._events = self._context.socket(zmq.ROUTER), self._context.socket(zmq.XPUB)
        self.rpc_port = self._front.bind_to_random_port("tcp://127.0.0.1")
        self.pub_port = self._events.bind_to_random_port("tcp://127.0.0.1")
        self._back, self._source = self._context.socket(zmq.DEALER), self._context.socket(zmq.XSUB)
        self._back.connect(f"tcp://127.0.0.1:{server.rpc_port}")
        self._source.connect(f"tcp://127.0.0.1:{server.pub_port}")
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        poller = zmq.Poller()
        for link in (self._front, self._back, self._events, self._source):
            poller.register(link, zmq.POLLIN)
        while not self._over.is_set():
            ready = dict(poller.poll(20))
            if self._front in ready:
                self._request(self._front.recv_multipart())
            if self._back in ready:
                *envelope, data = self._back.recv_multipart()
                self._front.send_multipart([*envelope, self._changed(data) if self.inside else data])
            if self._events in ready:
                self._source.send(self._events.recv())
            if self._source in ready:
                own = self._source.recv_multipart()
                for message in self.published if self.marker in own[0] else ():
                    self._events.send_multipart(message)
                self._events.send_multipart(own)

    def _request(self, parts: list[bytes]) -> None:
        data = parts[-1]
        request = json.loads(plain_bytes(data))
        calls = request if isinstance(request, list) else [request]
        names = {call["method"] for call in calls}
        self._methods = {call["id"]: call["method"] for call in calls}
        chosen = next((name for name in self.instead if name in names or name == "*"), None)
        if chosen is None:
            self._back.send_multipart(parts)
        elif (make := self.instead[chosen]) is not None:
            answer = make(request)
            self._front.send_multipart([*parts[:-1], *(answer if isinstance(answer, list) else [answer])])

    def _changed(self, data: bytes) -> bytes:
        """Return the answers in *data* with those of :attr:`inside` in their places."""
        answers = json.loads(data)
        texts = list[bytes]()
        for answer in answers if isinstance(answers, list) else [answers]:
            make = self.inside.get(self._methods.get(answer["id"], ""))
            text = make(answer) if make else json.dumps(answer).encode()
            assert isinstance(text, bytes)
            texts.append(text)
        return b"[" + b",".join(texts) + b"]" if isinstance(answers, list) else texts[0]

    def close(self) -> None:
        self._over.set()
        self._thread.join(5)
        self._context.destroy(linger=0)


@contextmanager
def hostile_trex() -> Iterator[HostileServer]:
    """Provide a hostile server over a :class:`FakeBackend`."""
    with serving(FakeBackend()) as server:
        hostile = HostileServer(server)
        try:
            yield hostile
        finally:
            hostile.close()


def endless(link: socket.socket, size: int = 1 << 20) -> None:
    _greet(link)
    link.sendall(frame(b"", True))
    part = frame(b" " * size, True)
    while True:
        link.sendall(part)


def slow(link: socket.socket) -> None:
    _greet(link)
    for byte in frame(b"", True) + frame(b" " * 10_000):
        link.sendall(bytes([byte]))
        time.sleep(0.05)


def _greet(link: socket.socket) -> None:
    link.sendall(GREETING + ready(b"REP"))
    link.recv(4096)


def ready(kind: bytes) -> bytes:
    """Return the command after the greeting. *kind*: REQ, SUB, ..."""
    body = b"\x05READY\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind
    return b"\x04" + bytes([len(body)]) + body


def frame(data: bytes, more: bool = False) -> bytes:
    """Return a frame of a message."""
    return bytes([2 | more]) + struct.pack(">Q", len(data)) + data
