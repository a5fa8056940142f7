"""The server's only loop: sockets, events that are due, and the moment to end. No request waits for a timer."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import time
from collections.abc import Callable

import zmq

from ..backend import Backend
from .control import ControlService
from .publisher import Publisher
from .rpc import MAXIMUM, Dispatcher
from .service import ServerMethods
from .trouble import act

RENEWAL = 2.0
"""Seconds that a socket's address may need to be free again."""


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


class TrexServer:
    """A TRex-compatible server on *host*. ``stop`` may be called from any thread; all else belongs to one."""

    def __init__(
        self,
        backend: Backend,
        now: Callable[[], float] = time.monotonic,
        host: str = "127.0.0.1",
        rpc_port: int = 0,
        pub_port: int = 0,
        control: ControlService | None = None,
    ) -> None:
        self._backend, self._control, self._host = backend, control, host
        self._context = zmq.Context()
        self._rpc, self._pub = self._context.socket(zmq.REP), self._context.socket(zmq.XPUB)
        self._control_socket = self._context.socket(zmq.REP)
        self._stop_read, self._stop_write = os.pipe()
        self.control_port = 0
        try:
            for socket in (self._rpc, self._pub, self._control_socket):
                socket.setsockopt(zmq.LINGER, 100)
                # somewhat too large requests are refused in words, much larger ones are cut off by ZeroMQ
                socket.setsockopt(zmq.MAXMSGSIZE, 16 * MAXIMUM)
            self._pub.setsockopt(zmq.XPUB_VERBOSE, 1)
            self.rpc_port = bind(self._rpc, host, rpc_port)
            self.pub_port = bind(self._pub, host, pub_port)
            if control:
                self.control_port = bind(self._control_socket, "127.0.0.1", control.port)
        except BaseException:
            self._release()
            raise
        self._publisher = Publisher(self._pub)
        self.service = ServerMethods(backend, self._publisher, now)
        self._dispatcher = Dispatcher(self.service.methods(), self.service.api_h)

    def stop(self) -> None:
        """Let :meth:`run` return soon."""
        with contextlib.suppress(OSError):
            os.write(self._stop_write, b"!")

    def run(self) -> None:
        """Serve until :meth:`stop`; then stop traffic and give everything back."""
        try:
            self._serve()
        finally:
            with contextlib.suppress(zmq.ZMQError):
                self.service.close()
            self._backend.close()
            self._release()

    def _serve(self) -> None:
        poller = zmq.Poller()
        for socket in (self._rpc, self._pub, self._control_socket):
            poller.register(socket, zmq.POLLIN)
        poller.register(self._stop_read, zmq.POLLIN)
        transmission, statistics = self.service.transmission, self.service.statistics
        late: tuple[float, bytes] | None = None
        while True:
            wait = self._publisher.due - time.monotonic()
            if late is not None:
                wait = min(wait, late[0] - time.monotonic())
            if (due := transmission.wait()) is not None:
                wait = min(wait, due)
            ready = dict(poller.poll(math.ceil(max(0.0, wait) * 1000)))
            if self._stop_read in ready:
                return
            if self._pub in ready:
                self._publisher.subscribed()
            faulty = self._control.faulty if self._control else None
            if faulty:
                act(faulty, self.service, self._publisher, self._addresses())
            if late is not None and time.monotonic() >= late[0]:
                self._rpc.send(late[1])
                late = None
            if self._rpc in ready:
                reply = self._dispatcher.handle(self._rpc.recv())
                if faulty and faulty.drop():
                    self._renew(poller)
                elif faulty and (hold := faulty.hold()):
                    late = time.monotonic() + hold, reply
                else:
                    self._rpc.send(reply)
            if self._control and self._control_socket in ready:
                self._control_socket.send(self._control.handle(self._control_socket.recv()))
            transmission.tick()
            statistics.sample()
            if time.monotonic() >= self._publisher.due:
                self._publisher.counters(statistics.published())

    def _addresses(self) -> dict[str, object]:
        control = {"control_port": self.control_port, "control_token": self._control.token} if self._control else {}
        return {"rpc_port": self.rpc_port, "pub_port": self.pub_port, **control}

    def _renew(self, poller: zmq.Poller) -> None:
        """A new socket for requests in place of one that owes an answer, which must never be sent."""
        poller.unregister(self._rpc)
        self._rpc.close(linger=0)
        self._rpc = self._context.socket(zmq.REP)
        self._rpc.setsockopt(zmq.LINGER, 100)
        self._rpc.setsockopt(zmq.MAXMSGSIZE, 16 * MAXIMUM)
        until = time.monotonic() + RENEWAL
        while True:
            try:
                bind(self._rpc, self._host, self.rpc_port)
                break
            except PortTaken:
                # the old one is closed in the background
                if time.monotonic() > until:
                    raise
                time.sleep(0.005)
        poller.register(self._rpc, zmq.POLLIN)

    def _release(self) -> None:
        self._context.destroy(linger=100)
        for end in (self._stop_read, self._stop_write):
            with contextlib.suppress(OSError):
                os.close(end)
