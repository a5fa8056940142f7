"""The server's loop: its sockets, events that are due, and its end. No request waits for a timer."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import time
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Any

import zmq

from ..backend import THIEF, Backend, ServerAction
from .nic import ServerCard
from .ports import Places, ServerHabits
from .publisher import Event, Publisher
from .rpc import Dispatcher
from .service import ServerMethods

READABLE = int(zmq.POLLIN)
"""A plain number: pyzmq's flags are slow to combine."""


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
        places: Places | None = None,
        nic: ServerCard | None = None,
        habits: ServerHabits | None = None,
    ) -> None:
        self._backend = backend
        self._context = zmq.Context()
        # a ROUTER, not a REP: an answer may come late, or never
        self._rpc, self._pub = self._context.socket(zmq.ROUTER), self._context.socket(zmq.XPUB)
        self._stopping = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()
        try:
            self._pub.setsockopt(zmq.XPUB_VERBOSE, 1)
            self.rpc_port, self.pub_port = bind(self._rpc, host, rpc_port), bind(self._pub, host, pub_port)
        except BaseException:
            self._release()
            raise
        self._publisher = Publisher(self._pub)
        self.service = ServerMethods(backend, self._publisher, now, places=places, nic=nic, habits=habits)
        self._dispatcher = Dispatcher(self.service.methods(), self.service.api_h, backend.frozen)

    def stop(self) -> None:
        """Let :meth:`serve` return soon."""
        self._stopping = True
        if self._loop:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._wake.set)

    async def serve(self) -> ServerAction | None:
        """Serve until :meth:`stop`, or a fault that ends the server, which is returned.

        Then stop traffic and release everything but the backend.
        """
        self._loop = asyncio.get_running_loop()
        descriptors = [int(socket.getsockopt(zmq.FD)) for socket in (self._rpc, self._pub)]
        for descriptor in descriptors:
            self._loop.add_reader(descriptor, self._look)
        end: ServerAction | None = None
        try:
            end = await self._serve()
            return end
        finally:
            for descriptor in descriptors:
                self._loop.remove_reader(descriptor)
            with contextlib.suppress(zmq.ZMQError):
                self.service.close(announced=end is None)
            self._release()

    async def _serve(self) -> ServerAction | None:
        transmission, statistics, faults = self.service.transmission, self.service.statistics, self._backend
        replies: deque[tuple[float, list[bytes]]] = deque()
        while True:
            due = [self._publisher.due, *(moment for moment, _ in islice(replies, 1))]
            if (wait := transmission.wait()) is not None:
                due.append(time.monotonic() + wait)
            readable = await self._wait(min(due))
            if self._stopping:
                return None
            # one message of each socket, then the server's own work: nobody who sends many keeps it from that
            if self._pub in readable:
                self._publisher.subscribed()
            if end := carry_out(faults, self.service, self._publisher):
                return end
            if self._rpc in readable:
                *envelope, request = self._rpc.recv_multipart()
                reply = [*envelope, self._dispatcher.handle(request)]
                delay = faults.reply_delay() or 0.0
                if delay or not faults.drops_reply():
                    replies.append((time.monotonic() + delay, reply))
            # those after a late one wait for it: a TRex answers in order
            while replies and time.monotonic() >= replies[0][0]:
                self._rpc.send_multipart(replies.popleft()[1])
            transmission.tick()
            statistics.sample_cpu()
            if time.monotonic() >= self._publisher.due:
                self._publisher.counters(statistics.published())

    async def _wait(self, until: float) -> list[zmq.Socket[bytes]]:
        """Let others have their turn until *until* (steady clock) or a message; return the sockets that have one."""
        if (readable := self._readable()) or self._stopping or (left := until - time.monotonic()) <= 0:
            await asyncio.sleep(0)
            return readable
        self._wake.clear()
        timer = asyncio.get_running_loop().call_later(left, self._wake.set)
        await self._wake.wait()
        timer.cancel()
        return self._readable()

    def _readable(self) -> list[zmq.Socket[bytes]]:
        return [socket for socket in (self._rpc, self._pub) if int(socket.getsockopt(zmq.EVENTS)) & READABLE]

    def _look(self) -> None:
        # ZeroMQ's descriptors tell of changes only, most of them its own
        if self._readable():
            self._wake.set()

    def _release(self) -> None:
        self._context.destroy(linger=100)


THIEF_SESSION = 2**32
"""The thief's session: no client has it, since clients' sessions fit into 32 bits."""


def carry_out(faults: Backend, service: ServerMethods, publisher: Publisher) -> ServerAction | None:
    """Carry out the actions that are due. Returns the one that ends the server."""
    for action in faults.server_actions():
        if action.what in ("end", "restart"):
            return action
        port = service.ports[action.port]
        data: dict[str, Any] = {"port_id": port.index}
        if action.what == "link":
            publisher.event(Event.ATTRIBUTES, data | {"attr": port.attributes_json(action.up)})
        elif action.what == "free":
            if port.owner == THIEF:
                port.release()
                publisher.event(Event.RELEASED, data | {"who": THIEF, "session_id": THIEF_SESSION})
        else:
            port.acquire(THIEF, THIEF_SESSION, force=True)
            publisher.event(Event.ACQUIRED, data | {"who": THIEF, "session_id": THIEF_SESSION, "force": True})
    return None
