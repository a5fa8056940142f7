"""A socket that answers requests of ZeroMQ's REQ sockets, whatever else is sent to it.

A ROUTER, not a REP: libzmq 4.3's REP loses the answer to a good request after a message without envelope whose sender
has gone, and it takes no further request before it has answered.
"""

from __future__ import annotations

import contextlib
import errno
from dataclasses import dataclass

import zmq


class PortTaken(Exception):
    """A fixed TCP port is already in use."""


def bind(socket: zmq.Socket[bytes], host: str, port: int) -> int:
    """Bind *socket* to tcp://host:port (0: any free one); returns the port. Raises PortTaken with a sentence."""
    try:
        socket.bind(f"tcp://{host}:{port or '*'}")
    except zmq.ZMQError as error:
        if error.errno == errno.EADDRINUSE:
            text = f"port {port} on {host} is already taken; end what listens there, or choose another (0: a free one)"
            raise PortTaken(text) from None
        raise PortTaken(f"cannot listen on port {port} of {host}: {error.strerror}") from None
    return int(bytes(socket.getsockopt(zmq.LAST_ENDPOINT)).rstrip(b"\0").rpartition(b":")[2])


@dataclass(frozen=True, slots=True)
class Request:
    """A request's *frames*, and the *envelope* by which the answer finds its way."""

    envelope: list[bytes]
    frames: list[bytes]


class RequestSocket:
    """Listens at tcp://host:port (0: any free one). Raises PortTaken."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], host: str, port: int) -> None:
        self.socket = context.socket(zmq.ROUTER)
        self.port = bind(self.socket, host, port)

    def next_request(self) -> Request | None:
        """The next request; None: nothing has come, or no REQ socket has sent it."""
        try:
            parts = self.socket.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:
            return None
        if b"" not in parts[1:-1]:
            return None
        end = parts.index(b"", 1) + 1
        return Request(parts[:end], parts[end:])

    def answer(self, request: Request, data: bytes) -> None:
        """Answer *request*, unless whoever asked has gone or does not read."""
        with contextlib.suppress(zmq.Again):
            self.socket.send_multipart([*request.envelope, data], zmq.NOBLOCK)
