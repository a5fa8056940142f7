# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""Our own connection to the server, and the limit of memory that guards against what the library's own take.

Ours has several requests under way: far away, one that waits for the last answer is too late.
"""

from __future__ import annotations

import json
import math
import resource
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import zmq

from ..answer_limits import LARGEST_ANSWER, check_calls, read_answer
from .messages import plain_message
from .service import Refusal

REPLY_LIMIT = 5.0
"""Seconds for one answer of the server."""

MEMORY_LIMIT = 2 << 30
"""Bytes that this process may hold (0.3 GB with both directions' streams): ZeroMQ collects the frames of one message
for as long as more come, and only this ends it."""


def limit_memory() -> None:
    """Bound this process's memory: a server that sends more ends it, and the driver names the server."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = MEMORY_LIMIT if hard == resource.RLIM_INFINITY else min(MEMORY_LIMIT, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))


OPTIONS = {zmq.LINGER: 0, zmq.MAXMSGSIZE: LARGEST_ANSWER, zmq.HEARTBEAT_IVL: 5000, zmq.HEARTBEAT_TIMEOUT: 60000}
"""Options of the socket, those of TRex's own client: an idle connection is not forgotten on the way."""


class Reply(NamedTuple):
    """The answers to the *calls* of one message, which was sent at *asked* (s, steady clock)."""

    asked: float
    calls: Sequence[Mapping[str, Any]]
    results: list[Any]


def _is_answered(answers: Any, calls: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether *answers* are those to *calls*."""
    first = answers[0] if isinstance(answers, list) and answers else answers
    return isinstance(first, dict) and first.get("id") == calls[0]["id"]


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

        Raises Refusal if one is an error, ValueError for what is no answer of a TRex server.
        """
        if not self._socket.poll(math.ceil(1000 * wait)):
            if self._asked and time.monotonic() - self._asked[0][0] > REPLY_LIMIT:
                raise Refusal("lost", f"the server gave no answer within {REPLY_LIMIT:g} s")
            return None
        parts = self._socket.recv_multipart()
        if not self._asked:
            raise ValueError("it was not asked")
        asked, calls = self._asked.popleft()
        _, answers = read_answer(parts[1:])
        if any(_is_answered(answers, later) for _, later in self._asked):
            raise Refusal("lost", "the server left out an answer")
        check_calls(answers, [call["id"] for call in calls])
        answers = answers if isinstance(answers, list) else [answers]
        refused = [answer["error"] for answer in answers if "error" in answer]
        if refused:
            raise Refusal("refused", plain_message(refused[0].get("specific_err") or refused[0].get("message")))
        return Reply(asked, calls, [answer["result"] for answer in answers])

    def close(self) -> None:
        """Close the connection, whatever is under way."""
        self._context.destroy(linger=0)
