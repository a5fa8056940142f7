"""When ports begin and end to send, and messages that clients get without asking: events, barriers and counters.

Clients start ports one call after another, a few ms apart. Ports that are started together must begin together, so
a start waits up to JOIN_WAIT while another port of the same session has streams ready, and joins that port's start.

Messages have the form of TRex's API 4, and a name that the 0.3 client knows: at an unknown one it kills its parent's
process group. Newer clients fetch the same events with ``get_async_events``, numbered for each session.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

import zmq

from ..backend import Backend, StreamTraffic
from .ports import ServerPort
from .rpc import ZIP_ABOVE, encode, refused, zip_message
from .statistics import Statistics

ALL_TOPICS = b"\x01"
"""The subscription of a TRex client."""
REPEAT_WITHIN = 1.0
"""Seconds for which a barrier is repeated to a new subscriber."""

PERIOD, QUIET, LONGEST = 0.4, 0.6, 2.0
"""Seconds of wall time between two publications of the counters. Clients of API 4 expect one each 0.5 s; those of API 5
ask for events only when nothing was published for 0.5 s. While one is there, counters wait for QUIET s without any
message, but LONGEST s at the most."""
API5_WITHIN = 5.0
"""Seconds after its last call for which a client of API 5 counts as being there."""


class Event(IntEnum):
    """TRex's event types."""

    STARTED = 0
    STOPPED = 1
    PAUSED = 2
    RESUMED = 3
    JOB_DONE = 4
    ACQUIRED = 5
    RELEASED = 6
    ERROR = 7
    ATTRIBUTES = 8
    SERVER_STOPPED = 100


OF_PROFILE = 10
"""Added to the number of an event up to JOB_DONE if it is of a port's profile."""


def has_message(socket: zmq.Socket[bytes]) -> bool:
    """Return whether a message has come to *socket*."""
    return bool(int(socket.getsockopt(zmq.EVENTS)) & 1)  # ZMQ_POLLIN; poll() takes twice the time


class Publisher:
    """Publishes on *socket*, an XPUB, so that it learns of new subscribers."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._socket = socket
        self._events: list[dict[str, Any]] = []
        self._sessions: dict[int, tuple[int, int]] = {}
        """Places of the first event of a client of API 5, and of the first that it has not got."""
        self._arrivals: list[int] = []
        self._barrier: tuple[float, dict[str, Any]] | None = None
        self._api5_seen = -API5_WITHIN
        self._sent = self._counted = -LONGEST

    def _send(self, message: dict[str, Any]) -> None:
        self._sent = time.monotonic()
        data = encode(message)
        self._socket.send(zip_message(data) if len(data) > ZIP_ABOVE else data, zmq.NOBLOCK)

    def subscribed(self) -> None:
        """Read subscriptions. A new subscriber may have missed the barrier it waits for, which is repeated.

        Without this the 0.3 client repeats its first ``publish_now`` only after 100 ms.
        """
        new = False
        while has_message(self._socket):
            new |= self._socket.recv_multipart()[0] == ALL_TOPICS
        if new and self._barrier and time.monotonic() - self._barrier[0] < REPEAT_WITHIN:
            self._send(self._barrier[1])

    def arrival(self) -> None:
        """Forget the barrier: a new client has connected, and those before are for others.

        The 0.3 client dies of a barrier that it gets before it has asked for one.
        """
        self._barrier = None

    def api5_arrival(self) -> None:
        """Note that a client of API 5 has connected: its first call will get all events from now on."""
        self._arrivals.append(len(self._events))
        self._api5_seen = time.monotonic()

    @property
    def due(self) -> float:
        """When the counters are to be published again, in s of ``time.monotonic()``."""
        if time.monotonic() - self._api5_seen < API5_WITHIN:
            return min(self._sent + QUIET, self._counted + LONGEST)
        return self._counted + PERIOD

    def repeated(self, key: int) -> bool:
        """Return whether this barrier was published just now.

        Clients of API 5 repeat theirs each 20 ms until they find the time to ask for events, which they do only when
        nothing is published.
        """
        now = time.monotonic()
        if self._barrier is None or now - self._api5_seen >= API5_WITHIN:
            return False
        return self._barrier[1]["type"] == key and now - self._barrier[0] < QUIET

    def counters(self, data: dict[str, Any], baseline: bool = False) -> None:
        """Publish all counters (``trex-global``)."""
        self._counted = time.monotonic()
        self._send({"name": "trex-global", "type": 0, "baseline": baseline, "data": data})

    def barrier(self, key: int) -> None:
        """Publish the answer to ``publish_now``: a client that gets it has got everything before."""
        message = {"name": "trex-barrier", "type": key, "data": {}}
        self._barrier = time.monotonic(), message
        self._send(message)

    def event(self, kind: Event, data: dict[str, Any]) -> None:
        """Publish an event of *kind*; for clients of API 5, which expect that, before it one of the port's profile."""
        messages = [{"name": "trex-event", "type": int(kind), "data": data}]
        if kind <= Event.JOB_DONE and self._api5_seen >= 0:
            messages.insert(0, messages[0] | {"type": kind + OF_PROFILE, "data": {**data, "profile_id": "_"}})
        for message in messages:
            self._send(message)
            self._events.append(message)

    def events_of(self, session: int) -> list[dict[str, Any]]:
        """Return the events since this session's last call, numbered; at its first call, since its client connected."""
        self._api5_seen = time.monotonic()
        if session not in self._sessions:
            begin = self._arrivals.pop(0) if self._arrivals else len(self._events)
            self._sessions[session] = begin, begin
        first, following = self._sessions[session]
        self._sessions[session] = first, len(self._events)
        new = enumerate(self._events[following:], following - first)
        return [{**message, "seq": number} for number, message in new]


LATEST = 10_000_000
"""µs after which a stream begins at the latest: streams of a mix, and probes, begin a little apart."""
ENDLESS = 600.0
"""Seconds that traffic without an end may last at least: what is due later is never sent."""
JOIN_WAIT = 0.030
"""Seconds of wall time that a start waits for another port's."""

log = logging.getLogger("lineproof.server")


@dataclass(slots=True)
class _PendingStart:
    """Ports of *session* that start at the same moment: *due* in s of *clock*."""

    due: float
    session: int
    duration: float | None
    traffic: dict[int, tuple[StreamTraffic, ...]] = field(default_factory=dict)


class Transmission:
    """Starts and ends sending on *ports*. *clock*: the wall clock that ``ping`` reports."""

    def __init__(
        self,
        backend: Backend,
        ports: Mapping[int, ServerPort],
        publisher: Publisher,
        statistics: Statistics,
        clock: Callable[[], float],
    ) -> None:
        self._backend, self._ports, self._publisher = backend, ports, publisher
        self._statistics, self._clock = statistics, clock
        self._pending: _PendingStart | None = None

    # -- commands

    def start(self, port: ServerPort, traffic: tuple[StreamTraffic, ...], duration: float | None) -> None:
        """Let *port* send for *duration* s of the bench's clock. Raises RpcError when the backend refuses."""
        late = [stream for stream in traffic if stream.isg_usec > LATEST]
        # with one that is not due before the end a client looks at what the server counts, and nothing is sent
        if any(stream.isg_usec < (duration or ENDLESS) * 1e6 for stream in late):
            raise refused("streams that begin late are not on this server; expected all at once")
        traffic = tuple(stream for stream in traffic if stream not in late)
        pending = self._pending
        if pending is None or (pending.session, pending.duration) != (port.session, duration):
            self._begin_pending()
            pending = self._pending = _PendingStart(self._clock() + JOIN_WAIT, port.session, duration)
        pending.traffic[port.index] = traffic
        port.state = "TX"
        own = (other for other in self._ports.values() if other.owner and other.session == port.session)
        if not any(other.state == "STREAMS" for other in own):
            self._pending = None
            try:
                self._begin(pending)
            except Exception:
                # this port's client gets the error as its answer; the others had their answers before
                self._publish(Event.JOB_DONE, [index for index in pending.traffic if index != port.index])
                raise

    def update(self, port: ServerPort, traffic: tuple[StreamTraffic, ...]) -> None:
        """New rates for a port that sends."""
        self._begin_pending()
        if port.state == "TX":
            self._backend.update(port.index, traffic)

    def pause(self, port: ServerPort) -> None:
        """Pause sending, which is endless."""
        self._begin_pending()
        self._backend.stop(port.index)
        port.state = "PAUSE"
        self._publish(Event.PAUSED, [port.index])

    def resume(self, port: ServerPort) -> None:
        """Resume sending."""
        port.require("resume", "PAUSE")
        self._backend.start({port.index: tuple(replace(row, isg_usec=0.0) for row in port.sent)}, None)
        port.state = "TX"
        self._publish(Event.RESUMED, [port.index])

    def stop(self, port: ServerPort) -> None:
        """Stop sending at once. Harmless on an idle port."""
        if not port.active:
            return
        if self._pending:
            self._pending.traffic.pop(port.index, None)
            self._pending = self._pending if self._pending.traffic else None
        self._backend.stop(port.index)
        port.idle()
        self._publish(Event.STOPPED, [port.index])

    def close(self) -> None:
        """Stop all."""
        self._pending = None
        for index in self._ports:
            self._backend.stop(index)

    # -- time

    def wait(self) -> float | None:
        """Return the seconds of wall time until :meth:`tick` is due; None while nothing is."""
        due = [self._backend.until_change()] if any(port.state == "TX" for port in self._ports.values()) else []
        if self._pending:
            due.append(max(0.0, self._pending.due - self._clock()))
        return min(due, default=None)

    def tick(self) -> None:
        """Begin what is due; publish events for ports whose duration or bursts are over."""
        if self._pending and self._pending.due <= self._clock():
            self._begin_pending()
        waiting = self._pending.traffic if self._pending else ()
        sending = [port for port in self._ports.values() if port.state == "TX" and port.index not in waiting]
        done = [port for port in sending if not self._backend.sending(port.index)]
        for port in done:
            port.idle()
        if done:
            self._publish(Event.JOB_DONE, [port.index for port in done])

    def _begin_pending(self) -> None:
        pending, self._pending = self._pending, None
        if pending is None:
            return
        try:
            self._begin(pending)
        except Exception as error:
            # the start was already answered: its ports end without having sent a frame, which their counts show
            log.error("start of ports %s failed: %s", sorted(pending.traffic), error)
            self._publish(Event.ERROR, list(pending.traffic))
            self._publish(Event.JOB_DONE, list(pending.traffic))

    def _begin(self, pending: _PendingStart) -> None:
        indexes = sorted(pending.traffic)
        try:
            self._backend.start(pending.traffic, pending.duration)
        except Exception as error:
            for index in indexes:
                self._ports[index].idle()
            raise refused(f"ports {indexes} cannot start: {error}") from error
        self._publish(Event.STARTED, indexes)

    def _publish(self, kind: Event, indexes: list[int]) -> None:
        if kind in (Event.STOPPED, Event.JOB_DONE, Event.PAUSED):
            # a client that reads its counters at the event must find the final ones
            self._publisher.counters(self._statistics.published())
        for index in indexes:
            self._publisher.event(kind, {"port_id": index})
