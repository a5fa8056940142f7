"""A socket that answers requests of ZeroMQ's REQ sockets, whatever else is sent to it.

A ROUTER, not a REP: libzmq 4.3's REP loses the answer to a good request after a message without envelope whose sender
has gone, and it takes no further request before it has answered.
"""

from __future__ import annotations

import contextlib
import errno
from dataclasses import dataclass

import zmq

from .connections import Connections

HANDSHAKE_LIMIT = 5.0
"""Seconds in which whoever connects must begin to speak ZeroMQ's protocol."""

MOST_REQUESTS, MOST_ANSWERS = 2, 100
"""Messages of one connection that wait to be read and to be sent. A client has one under way, but ZeroMQ learns only
after 1 ms that an answer has gone."""


MOST_WAITING = 1024
"""Connections that wait until they are accepted."""

KERNEL_BUFFER = 16 << 20
"""Bytes of a connection that the kernel may hold."""


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


def limit_messages(socket: zmq.Socket[bytes], largest: int) -> None:
    """Bound what others send to *socket*: who sends a frame of more than *largest* bytes loses its connection."""
    socket.setsockopt(zmq.LINGER, 100)
    socket.setsockopt(zmq.MAXMSGSIZE, largest)
    socket.setsockopt(zmq.HANDSHAKE_IVL, round(HANDSHAKE_LIMIT * 1000))
    # many who connect at once let nobody wait for a second try
    socket.setsockopt(zmq.BACKLOG, MOST_WAITING)


@dataclass(frozen=True, slots=True)
class Request:
    """A request's *frames*, and the *envelope* by which the answer finds its way."""

    envelope: list[bytes]
    frames: list[bytes]


class RequestSocket:
    """Listens at tcp://host:port (0: any free one). *largest*: bytes of a request's frame. Raises PortTaken."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], host: str, port: int, largest: int) -> None:
        self.socket = context.socket(zmq.ROUTER)
        limit_messages(self.socket, largest)
        self.socket.setsockopt(zmq.RCVHWM, MOST_REQUESTS)
        self.socket.setsockopt(zmq.SNDHWM, MOST_ANSWERS)
        self.port = bind(self.socket, host, port)
        self.connections = Connections(self.socket, self.port, (MOST_REQUESTS + 1) * largest + KERNEL_BUFFER)

    def next_request(self) -> Request | None:
        """The next request; None: nothing has come, or no REQ socket has sent it."""
        try:
            frames = self.socket.recv_multipart(zmq.NOBLOCK, copy=False)
        except zmq.Again:
            return None
        parts = [frame.bytes for frame in frames]
        # what a frame has before its bytes, 2 or 9 of them, counts as read. Peers that speak ZeroMQ's protocol of 2009
        # have no number, and may send no more than the limit
        with contextlib.suppress(zmq.ZMQError):
            self.connections.note_read(frames[-1].get(zmq.SRCFD), sum(len(part) + 9 for part in parts))
        if b"" not in parts[1:-1]:
            return None
        end = parts.index(b"", 1) + 1
        return Request(parts[:end], parts[end:])

    def answer(self, request: Request, data: bytes) -> None:
        """Answer *request*, unless whoever asked has gone or does not read."""
        with contextlib.suppress(zmq.Again):
            self.socket.send_multipart([*request.envelope, data], zmq.NOBLOCK)
