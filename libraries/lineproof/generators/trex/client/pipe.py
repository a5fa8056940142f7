# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""Requests to a TRex server of which several are under way: far away, one that waits for the last answer is too late.

ZeroMQ's DEALER gives a REP or ROUTER what its REQ would, without waiting: an empty frame, then the message.
"""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import zmq

from ..answer_limits import LARGEST_ANSWER, check_calls, read_answer
from .library import REPLY_LIMIT
from .messages import plain_message
from .service import Refusal

OPTIONS = {zmq.LINGER: 0, zmq.MAXMSGSIZE: LARGEST_ANSWER, zmq.HEARTBEAT_IVL: 5000, zmq.HEARTBEAT_TIMEOUT: 60000}
"""Options of the socket, those of TRex's own client: an idle connection is not forgotten on the way."""


class Pipe:
    """A connection to *address* (``tcp://host:port``). Methods raise Refusal for what is no answer of a TRex server."""

    def __init__(self, address: str) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        for option, value in OPTIONS.items():
            self._socket.setsockopt(option, value)
        self._socket.connect(address)
        self._asked = deque[tuple[float, list[Any]]]()

    @property
    def under_way(self) -> int:
        """Return the number of requests without an answer so far."""
        return len(self._asked)

    def ask(self, calls: Sequence[Mapping[str, Any]]) -> None:
        """Send *calls* of JSON-RPC in one message."""
        self._asked.append((time.monotonic(), [call["id"] for call in calls]))
        self._socket.send_multipart([b"", json.dumps(calls).encode()], zmq.NOBLOCK)

    def answer(self, wait: float) -> tuple[float, list[Any]] | None:
        """Return when the oldest request was asked (s, steady clock), and its results; None: not within *wait* s."""
        if not self._socket.poll(math.ceil(1000 * wait)):
            if self._asked and time.monotonic() - self._asked[0][0] > REPLY_LIMIT:
                raise Refusal("lost", f"the server gave no answer within {REPLY_LIMIT:g} s")
            return None
        parts = self._socket.recv_multipart()
        try:
            asked, numbers = self._asked.popleft()
            _, answers = read_answer(parts[1:])
            check_calls(answers, numbers)
        except (IndexError, ValueError) as error:
            raise Refusal("refused", f"its answer is not a TRex server's: {error}") from None
        answers = answers if isinstance(answers, list) else [answers]
        refused = [answer["error"] for answer in answers if "error" in answer]
        if refused:
            raise Refusal("refused", plain_message(refused[0].get("specific_err") or refused[0].get("message")))
        return asked, [answer["result"] for answer in answers]

    def close(self) -> None:
        """Close the connection, whatever is under way."""
        self._context.destroy(linger=0)
