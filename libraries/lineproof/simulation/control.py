"""The client of a simulated testbed's control socket: causes faults, and carries what the shells ask of the model.

A request is two frames, the token and a JSON object: the server reads the second only if the first is right.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import zmq

from ..errors import TestbedError
from ..json_text import parse_json

if TYPE_CHECKING:  # the shells, which import this, start faster without pydantic
    from .faults import InjectedFault

TIMEOUT = 2.0
"""Seconds within which the model must answer."""

LARGEST_MESSAGE = 4 << 20
"""Bytes of a request or an answer: a router's whole state has some 10 kB."""


class ControlClient:
    """Requests to the model. Safe in any thread: each request has its own socket."""

    def __init__(self, port: int, token: str, timeout: float = TIMEOUT) -> None:
        self._address, self._token, self._timeout = f"tcp://127.0.0.1:{port}", token, timeout
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()

    def cause(self, fault: InjectedFault) -> None:
        """Cause *fault*, in addition to earlier ones."""
        self.ask("fault", fault=fault.model_dump(exclude_none=True))

    def close(self) -> None:
        """Close all sockets."""
        self._context.destroy(linger=0)

    def ask(self, op: str, **more: Any) -> dict[str, Any]:
        """The answer to *op*. Raises TestbedError where the model does not answer in time, or refuses."""
        socket = self._context.socket(zmq.REQ)
        try:
            socket.setsockopt(zmq.LINGER, 0)
            socket.setsockopt(zmq.MAXMSGSIZE, LARGEST_MESSAGE)
            socket.connect(self._address)
            socket.send_multipart([self._token.encode(), json.dumps({"op": op, **more}).encode()])
            if not socket.poll(int(self._timeout * 1000)):
                raise TestbedError(
                    f"the simulated router's model at {self._address} gave no answer to '{op}' within"
                    f" {self._timeout:g} s; the embedded server that holds it must be running"
                )
            answer = parse_json(socket.recv_multipart(zmq.NOBLOCK)[0], LARGEST_MESSAGE)
        except (zmq.ZMQError, ValueError) as error:
            raise TestbedError(f"the simulated router's model at {self._address} cannot be reached: {error}") from None
        finally:
            socket.close()
        if not isinstance(answer, dict) or "ok" not in answer:
            reason = answer.get("error") if isinstance(answer, dict) else answer
            raise TestbedError(f"the simulated router's model refused '{op}': {str(reason)[:1000]}")
        found: dict[str, Any] = answer["ok"]
        return found
