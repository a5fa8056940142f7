# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""Sockets that take only what a TRex server may send: those of the imported libraries, our own, and a limit of memory.

Our own has several requests under way: far away, one that waits for the last answer is too late.
"""

from __future__ import annotations

import json
import math
import resource
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import zmq

from ..answer_limits import LARGEST_ANSWER, check_calls, plain_bytes, read_answer
from .messages import plain_message
from .service import Refusal

REPLY_LIMIT = 5.0
"""Seconds for one answer of the server."""

MEMORY_LIMIT = 2 << 30
"""Bytes that this process may hold (0.3 GB with both directions' streams): ZeroMQ collects the frames of one message
for as long as more come, and only this ends it."""

PUBLISHED = ("trex-global", "trex-event", "trex-barrier")
"""Names of the published messages that are used."""


class BoundedSocket(zmq.Socket[bytes]):
    """Receives whole messages that a TRex server may send."""

    # ZeroMQ's class takes attributes of an object for options, unless the class has them
    ids: list[Any] | None = None

    def send(self, data: Any, flags: int = 0, **options: Any) -> Any:  # type: ignore[override]  # ZeroMQ's is overloaded
        """Send a request. Its calls' numbers are kept for the check of the answer."""
        calls = json.loads(plain_bytes(bytes(data)))
        self.ids = [call.get("id") for call in (calls if isinstance(calls, list) else [calls])]
        return super().send(data, flags, **options)

    def recv(self, flags: int = 0, copy: bool = True, track: bool = False) -> bytes:  # type: ignore[override]  # as above
        """The next message, unzipped. Raises Refusal for a bad answer; bad published messages are left out."""
        while True:
            parts = [super().recv(flags)]
            while self.getsockopt(zmq.RCVMORE):
                parts.append(super().recv(flags))
            try:
                data, found = read_answer(parts)
                if self.type != zmq.SUB:
                    check_calls(found, self.ids or [])
                    return data
                if _is_published(found):
                    return data
            except ValueError as error:
                if self.type != zmq.SUB:
                    raise Refusal("refused", f"its answer is not a TRex server's: {error}") from None


class BoundedContext(zmq.Context[BoundedSocket]):
    """Makes such sockets."""

    _socket_class = BoundedSocket

    def socket(self, *args: Any, **options: Any) -> BoundedSocket:
        """A socket that drops the connection of a server that sends too long frames."""
        found = super().socket(*args, **options)
        found.setsockopt(zmq.MAXMSGSIZE, LARGEST_ANSWER)
        return found


def _is_published(found: Any) -> bool:
    """Return whether *found* is a published message that is used."""
    return (
        isinstance(found, dict)
        and found.get("name") in PUBLISHED
        and isinstance(found.get("data"), dict)
        and not isinstance(found.get("type", {}), dict | list)
    )


def bound_libraries() -> None:
    """Let the imported client libraries use these sockets, and bound this process's memory."""
    names = {name: getattr(zmq, name) for name in dir(zmq)}
    bounded = SimpleNamespace(**{**names, "Context": BoundedContext})
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("trex", "trex_stl_lib") and getattr(module, "zmq", None) is zmq:
            setattr(module, "zmq", bounded)  # noqa: B010  (to mypy '=' is an error)
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
    """A connection to *address* (``tcp://host:port``). Methods raise Refusal for what is no answer of a TRex server.

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
        """Return the answers to the oldest message; None: they did not come within *wait* s."""
        if not self._socket.poll(math.ceil(1000 * wait)):
            if self._asked and time.monotonic() - self._asked[0][0] > REPLY_LIMIT:
                raise Refusal("lost", f"the server gave no answer within {REPLY_LIMIT:g} s")
            return None
        parts = self._socket.recv_multipart()
        try:
            asked, calls = self._asked.popleft()
            _, answers = read_answer(parts[1:])
            if any(_is_answered(answers, later) for _, later in self._asked):
                raise Refusal("lost", "the server left out an answer")
            check_calls(answers, [call["id"] for call in calls])
        except (IndexError, ValueError) as error:
            raise Refusal("refused", f"its answer is not a TRex server's: {error}") from None
        answers = answers if isinstance(answers, list) else [answers]
        refused = [answer["error"] for answer in answers if "error" in answer]
        if refused:
            raise Refusal("refused", plain_message(refused[0].get("specific_err") or refused[0].get("message")))
        return Reply(asked, calls, [answer["result"] for answer in answers])

    def close(self) -> None:
        """Close the connection, whatever is under way."""
        self._context.destroy(linger=0)
