"""The server's only loop: sockets, events that are due, and the end. No request waits for a timer."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections import deque
from collections.abc import Callable

import zmq

from lineproof.simulation.control import LARGEST_MESSAGE

from ..backend import Backend
from .connections import Connections
from .control import ControlService
from .fault_actions import carry_out
from .habits import ServerHabits
from .nic import ServerCard
from .places import Places
from .publisher import Publisher
from .request_socket import Request, RequestSocket, bind, limit_messages
from .rpc import LARGEST_REQUEST, Dispatcher
from .service import ServerMethods

MOST_DELAYED = 1000
"""Answers that a fault delays at once."""

LARGEST_FRAME = 4 * LARGEST_REQUEST
"""Bytes of a frame to the request socket."""

LARGEST_SUBSCRIPTION = 64
"""Bytes of a frame to the publishing socket: clients name their kind (40 bytes) and subscribe to everything (1)."""


MOST_SUBSCRIBED = 64 << 10
"""Bytes that a subscriber may send in all: a client's subscription has 1."""


class TrexServer:
    """A TRex-compatible server on *host*, whose ports are a *nic*'s.

    ``stop`` may be called from any thread; all else belongs to one.
    """

    def __init__(
        self,
        backend: Backend,
        now: Callable[[], float] = time.monotonic,
        host: str = "127.0.0.1",
        rpc_port: int = 0,
        pub_port: int = 0,
        control: ControlService | None = None,
        places: Places | None = None,
        nic: ServerCard | None = None,
        habits: ServerHabits | None = None,
    ) -> None:
        self._backend, self._control = backend, control
        self._context = zmq.Context()
        # ZeroMQ cuts off much too large requests; somewhat too large ones get an answer that says so
        self._rpc = RequestSocket(self._context, LARGEST_FRAME)
        self._pub = self._context.socket(zmq.XPUB)
        self._control_socket = RequestSocket(self._context, LARGEST_MESSAGE)
        self._stop_read, self._stop_write = os.pipe()
        self.control_port = 0
        self._connections: list[Connections] = []
        self._watched: list[Connections] = []
        try:
            limit_messages(self._pub, LARGEST_SUBSCRIPTION)
            # what waits in the kernel when a connection is ended is read all the same
            self._pub.setsockopt(zmq.RCVBUF, MOST_SUBSCRIBED)
            self._pub.setsockopt(zmq.XPUB_VERBOSE, 1)
            self.rpc_port = self._rpc.listen(host, rpc_port)
            self.pub_port = bind(self._pub, host, pub_port)
            if control:
                self.control_port = self._control_socket.listen("127.0.0.1", control.port)
            subscribers = Connections(self._pub, self.pub_port, MOST_SUBSCRIBED)
            subscribers.watch()
            self._watched = [subscribers]
            requesters = (self._rpc.connections, self._control_socket.connections)
            self._connections = [found for found in requesters if found is not None]
        except BaseException:
            self._release()
            raise
        self._publisher = Publisher(self._pub)
        self.service = ServerMethods(backend, self._publisher, now, places=places, nic=nic, habits=habits)
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
        rpc, control = self._rpc.socket, self._control_socket.socket
        for socket in (rpc, self._pub, control):
            poller.register(socket, zmq.POLLIN)
        poller.register(self._stop_read, zmq.POLLIN)
        transmission, statistics = self.service.transmission, self.service.statistics
        faults = self._control.faults if self._control else None
        delayed: deque[tuple[float, Request, bytes]] = deque(maxlen=MOST_DELAYED)
        while True:
            wait = self._publisher.due - time.monotonic()
            if delayed:
                wait = min(wait, delayed[0][0] - time.monotonic())
            if (due := transmission.wait()) is not None:
                wait = min(wait, due)
            for connections in self._connections:
                connections.look()
                if (due := connections.due) is not None:
                    wait = min(wait, due - time.monotonic())
            # one message of each socket, then the server's own work: nobody who sends many keeps it from that
            ready = dict(poller.poll(math.ceil(max(0.0, wait) * 1000)))
            if self._stop_read in ready:
                return
            if self._pub in ready:
                self._publisher.subscribed()
            if faults:
                carry_out(faults, self.service, self._publisher, self._addresses())
            while delayed and time.monotonic() >= delayed[0][0]:
                self._rpc.answer(*delayed.popleft()[1:])
            if rpc in ready and (request := self._rpc.next_request()) is not None:
                reply = self._dispatcher.handle(*request.frames)
                if faults and faults.drops_reply():
                    pass
                elif faults and (delay := faults.reply_delay()):
                    delayed.append((time.monotonic() + delay, request, reply))
                else:
                    self._rpc.answer(request, reply)
            if self._control and control in ready and (request := self._control_socket.next_request()) is not None:
                self._control_socket.answer(request, self._control.handle(*request.frames))
            transmission.tick()
            statistics.sample_cpu()
            if time.monotonic() >= self._publisher.due:
                self._publisher.counters(statistics.published())

    def _addresses(self) -> dict[str, object]:
        control = {"control_port": self.control_port, "control_token": self._control.token} if self._control else {}
        return {"rpc_port": self.rpc_port, "pub_port": self.pub_port, **control}

    def _release(self) -> None:
        for connections in (*self._watched, *self._connections):
            connections.close()
        self._context.destroy(linger=100)
        for end in (self._stop_read, self._stop_write):
            with contextlib.suppress(OSError):
                os.close(end)
