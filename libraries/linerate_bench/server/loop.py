"""The server's only loop: sockets, events that are due, and the end. No request waits for a timer."""

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
from .fault_actions import carry_out
from .publisher import Publisher
from .rpc import LARGEST_REQUEST, Dispatcher
from .service import ServerMethods

REBIND_LIMIT = 2.0
"""Seconds that a closed socket's address may take to become free."""


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
                # ZeroMQ cuts off much too large requests; somewhat too large ones get an answer that says so
                socket.setsockopt(zmq.MAXMSGSIZE, 16 * LARGEST_REQUEST)
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
        """Serve until :meth:`stop`; then stop traffic and release everything."""
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
        delayed: tuple[float, bytes] | None = None
        while True:
            wait = self._publisher.due - time.monotonic()
            if delayed is not None:
                wait = min(wait, delayed[0] - time.monotonic())
            if (due := transmission.wait()) is not None:
                wait = min(wait, due)
            ready = dict(poller.poll(math.ceil(max(0.0, wait) * 1000)))
            if self._stop_read in ready:
                return
            if self._pub in ready:
                self._publisher.subscribed()
            faults = self._control.faults if self._control else None
            if faults:
                carry_out(faults, self.service, self._publisher, self._addresses())
            if delayed is not None and time.monotonic() >= delayed[0]:
                self._rpc.send(delayed[1])
                delayed = None
            if self._rpc in ready:
                reply = self._dispatcher.handle(self._rpc.recv())
                if faults and faults.drops_reply():
                    self._replace_request_socket(poller)
                elif faults and (delay := faults.reply_delay()):
                    delayed = time.monotonic() + delay, reply
                else:
                    self._rpc.send(reply)
            if self._control and self._control_socket in ready:
                self._control_socket.send(self._control.handle(self._control_socket.recv()))
            transmission.tick()
            statistics.sample_cpu()
            if time.monotonic() >= self._publisher.due:
                self._publisher.counters(statistics.published())

    def _addresses(self) -> dict[str, object]:
        control = {"control_port": self.control_port, "control_token": self._control.token} if self._control else {}
        return {"rpc_port": self.rpc_port, "pub_port": self.pub_port, **control}

    def _replace_request_socket(self, poller: zmq.Poller) -> None:
        """Replace the request socket without answering: ZeroMQ would not let it take the next request."""
        poller.unregister(self._rpc)
        self._rpc.close(linger=0)
        self._rpc = self._context.socket(zmq.REP)
        self._rpc.setsockopt(zmq.LINGER, 100)
        self._rpc.setsockopt(zmq.MAXMSGSIZE, 16 * LARGEST_REQUEST)
        until = time.monotonic() + REBIND_LIMIT
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
