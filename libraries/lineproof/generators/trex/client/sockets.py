"""Our own connection to the server, and the limits that guard against what it may send.

Ours has several requests under way: far away, one that waits for the last answer is too late. An answer is JSON of
bounded length and depth, zipped or not; what the library's own connection takes is bounded by a limit of memory.
"""

from __future__ import annotations

import json
import math
import resource
import struct
import time
import zlib
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import zmq

from ....json_text import parse_json
from .answers import plain_message
from .service import Refusal

REPLY_LIMIT = 5.0
"""Seconds for one answer of the server."""

LARGEST_ANSWER = 64 << 20
"""Bytes of a message, also once unzipped. The largest of a TRex, 50 captured jumbo frames, have less than 1 MB."""

MAGIC = 0xABE85CEA
"""Begins a zipped message; its unzipped length and a zlib stream follow."""

MEMORY_LIMIT = 2 << 30
"""Bytes that this process may hold (0.3 GB with both directions' streams): ZeroMQ collects the frames of one message
for as long as more come, and only this ends it."""

OPTIONS = {zmq.LINGER: 0, zmq.MAXMSGSIZE: LARGEST_ANSWER, zmq.HEARTBEAT_IVL: 5000, zmq.HEARTBEAT_TIMEOUT: 60000}
"""Options of the socket, those of TRex's own client: an idle connection is not forgotten on the way."""


def limit_memory(kind: int = resource.RLIMIT_DATA) -> None:
    """Bound this process's memory: a server that sends more ends it, and the driver names the server."""
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (MEMORY_LIMIT if hard == resource.RLIM_INFINITY else min(MEMORY_LIMIT, hard), hard))


class Reply(NamedTuple):
    """The *results* of the calls of one message, which was sent at *asked* (s, steady clock)."""

    asked: float
    results: list[Any]


class Pipe:
    """A connection to *address* (``tcp://host:port``).

    ZeroMQ's DEALER gives a REP or ROUTER what its REQ would, without waiting: an empty frame, then the message.
    """

    def __init__(self, address: str) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        for option, value in OPTIONS.items():
            self._socket.setsockopt(option, value)
        self._socket.connect(address)
        self._asked = deque[tuple[float, Sequence[Mapping[str, Any]]]]()

    @property
    def under_way(self) -> int:
        """Return the number of requests without an answer so far."""
        return len(self._asked)

    def ask(self, calls: Sequence[Mapping[str, Any]]) -> None:
        """Send *calls* of JSON-RPC in one message."""
        self._asked.append((time.monotonic(), calls))
        self._socket.send_multipart([b"", json.dumps(calls).encode()], zmq.NOBLOCK)

    def answer(self, wait: float) -> Reply | None:
        """Return the answers to the oldest message; None: they did not come within *wait* s.

        Raises Refusal if one is an error, or is missing; ValueError for what is no answer of a TRex server.
        """
        if not self._socket.poll(math.ceil(1000 * wait)):
            if self._asked and time.monotonic() - self._asked[0][0] > REPLY_LIMIT:
                raise Refusal("lost", f"the server gave no answer within {REPLY_LIMIT:g} s")
            return None
        parts = self._socket.recv_multipart()
        if not self._asked:
            raise ValueError("it was not asked")
        asked, calls = self._asked.popleft()
        answers = read_answers(parts[1:])
        if any(answers[0].get("id") == later[0]["id"] for _, later in self._asked):
            raise Refusal("lost", "the server left out an answer")
        return Reply(asked, results(answers, [call["id"] for call in calls]))

    def close(self) -> None:
        """Close the connection, whatever is under way."""
        self._context.destroy(linger=0)


def plain_bytes(data: bytes, largest: int = LARGEST_ANSWER) -> bytes:
    """Return *data* unzipped. Raises ValueError if it is damaged, or more than *largest* bytes then."""
    if len(data) < 8 or struct.unpack(">I", data[:4])[0] != MAGIC:
        return data
    length = struct.unpack(">I", data[4:8])[0]
    if length > largest:
        raise ValueError(f"{length} bytes, zipped, are too many; at most {largest}")
    try:
        # at most one byte more than announced: a small message must not fill the memory
        unzipped = zlib.decompressobj().decompress(data[8:], length + 1)
    except zlib.error as error:
        raise ValueError(f"it is zipped and damaged: {error}") from None
    if len(unzipped) != length:
        raise ValueError("it is zipped and has not the length that its header announces")
    return unzipped


def read_answers(parts: Sequence[bytes]) -> list[dict[str, Any]]:
    """Return the answers in a message of the server, at least one. Raises ValueError for what no TRex sends."""
    if len(parts) != 1:
        raise ValueError(f"it has {len(parts)} frames; expected 1")
    # a TRex writes infinity (1e+9999) into rates that nobody reads here; whoever reads a number checks it
    message = parse_json(plain_bytes(parts[0]), LARGEST_ANSWER, strict=False)
    answers = message if isinstance(message, list) else [message]
    if not answers or not all(isinstance(answer, dict) for answer in answers):
        raise ValueError("it is no answer of JSON-RPC")
    return answers


def results(answers: Sequence[Mapping[str, Any]], ids: Sequence[Any]) -> list[Any]:
    """Return the results of the calls with *ids* in *answers*, in their order.

    Raises Refusal if one of them is an error, ValueError if they are not the answers to these calls.
    """
    for answer in answers:
        if isinstance(error := answer.get("error"), dict):
            text = plain_message(error.get("specific_err") or error.get("message"))
            raise Refusal("refused", text, error.get("code"))
    if [answer.get("id") for answer in answers] != list(ids) or not all("result" in answer for answer in answers):
        raise ValueError("it does not answer what was asked")
    return [answer["result"] for answer in answers]
