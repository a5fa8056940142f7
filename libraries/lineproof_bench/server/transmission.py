"""When ports begin and end to send, and the events about it.

Clients start ports one call after another, a few ms apart. Ports that are started together must begin together, so
a start waits up to JOIN_WAIT while another port of the same session has streams ready, and joins that port's start.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ..backend import Backend, StreamTraffic
from .ports import ServerPort
from .publisher import Event, Publisher
from .rpc import refused
from .statistics import Statistics

JOIN_WAIT = 0.030
"""Seconds of wall time that a start waits for another port's."""
TICK = 0.004
"""Seconds of wall time between two looks at ports that send."""

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
        """Seconds of wall time until :meth:`tick` is due; None while nothing is."""
        due = [TICK] if any(port.state == "TX" for port in self._ports.values()) else []
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
