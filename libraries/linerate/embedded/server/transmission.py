"""When ports begin and end to send, and who is told.

Clients start ports one call after another, a few ms apart. Ports that are started together must begin together, so
a start waits up to HOLD while another port of the same session has streams ready, and joins that port's start.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..backend import Backend, StreamTraffic
from .params import refused
from .ports import Port
from .publisher import Event, Publisher
from .statistics import Statistics

HOLD = 0.030
"""Seconds of wall time for which a start waits for another."""
TICK = 0.004
"""Seconds of wall time between two looks at ports that send."""
FURTHEST = 600.0
"""Seconds ahead that ``start_at_ts`` may lie."""

log = logging.getLogger("linerate.server")


@dataclass(slots=True)
class _Pending:
    """Starts that will happen at the same moment: *due* in s of *clock*."""

    due: float
    session: int
    duration: float | None
    scheduled: bool
    traffic: dict[int, tuple[StreamTraffic, ...]] = field(default_factory=dict)


class Transmission:
    """Starts and ends sending on *ports*. *clock* is the wall clock that ``ping`` shows."""

    def __init__(
        self,
        backend: Backend,
        ports: Mapping[int, Port],
        publisher: Publisher,
        statistics: Statistics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._backend, self._ports, self._publisher = backend, ports, publisher
        self._statistics, self._clock = statistics, clock
        self._pending: list[_Pending] = []

    # -- commands

    def start(self, port: Port, traffic: tuple[StreamTraffic, ...], duration: float | None, at: float) -> None:
        """Let *port* send for *duration* s of the bench's clock, at once or *at* a moment of the wall clock.

        Raises RpcError when the backend refuses, or the moment has passed.
        """
        now = self._clock()
        if at > 0:
            if not now < at < now + FURTHEST:
                raise refused(f"start_at_ts is {at:.3f}; right would be within {FURTHEST:.0f} s after now, {now:.3f}")
            group = self._group(lambda row: row.scheduled and row.due == at, port, duration)
            if group is None:
                group = self._new(_Pending(at, port.session, duration, scheduled=True))
            group.traffic[port.index] = traffic
            port.state = "TX"
            return
        group = self._group(lambda row: not row.scheduled, port, duration)
        if group is None:
            # another session's, or of another duration: it has waited long enough
            self._begin([row for row in self._pending if not row.scheduled])
            group = self._new(_Pending(now + HOLD, port.session, duration, scheduled=False))
        group.traffic[port.index] = traffic
        port.state = "TX"
        if not any(self._may_follow(other, port) for other in self._ports.values()):
            self._pending.remove(group)
            try:
                self._begin_now(group)
            except Exception:
                # this port's client is told by the answer, the others' were answered before
                self._tell(Event.JOB_DONE, [self._ports[index] for index in group.traffic if index != port.index])
                raise

    def _group(self, fits: Callable[[_Pending], bool], port: Port, duration: float | None) -> _Pending | None:
        for row in self._pending:
            if fits(row) and row.session == port.session and row.duration == duration:
                return row
        return None

    def _new(self, row: _Pending) -> _Pending:
        self._pending.append(row)
        return row

    @staticmethod
    def _may_follow(other: Port, port: Port) -> bool:
        return (
            other.index != port.index
            and other.state == "STREAMS"
            and other.owner != ""
            and other.session == port.session
        )

    def update(self, port: Port, traffic: tuple[StreamTraffic, ...]) -> None:
        """New rates for a port that sends."""
        self._begin([row for row in self._pending if port.index in row.traffic])
        if port.state == "TX":
            self._backend.update(port.index, traffic)

    def pause(self, port: Port) -> None:
        """Stop sending for now."""
        self._begin([row for row in self._pending if port.index in row.traffic])
        port.require("pause", "TX")
        self._backend.pause(port.index)
        port.state = "PAUSE"
        self._tell(Event.PAUSED, [port])

    def resume(self, port: Port) -> None:
        """Go on."""
        port.require("resume", "PAUSE")
        self._backend.resume(port.index)
        port.state = "TX"
        self._tell(Event.RESUMED, [port])

    def stop(self, port: Port) -> None:
        """Stop sending at once. Harmless on an idle port."""
        if not port.active:
            return
        for row in self._pending:
            row.traffic.pop(port.index, None)
        self._pending = [row for row in self._pending if row.traffic]
        self._backend.stop(port.index)
        port.idle()
        self._tell(Event.STOPPED, [port])

    def close(self) -> None:
        """Stop all."""
        self._pending.clear()
        for port in self._ports.values():
            self._backend.stop(port.index)

    # -- time

    def wait(self) -> float | None:
        """Seconds of wall time until :meth:`tick` is due; None while nothing is."""
        found = [TICK] if any(port.state == "TX" for port in self._ports.values()) else []
        now = self._clock()
        found += [max(0.0, row.due - now) for row in self._pending]
        return min(found, default=None)

    def tick(self) -> None:
        """Begin what is due; tell of ports whose duration or bursts are over."""
        now = self._clock()
        self._begin([row for row in self._pending if row.due <= now])
        waiting = {index for row in self._pending for index in row.traffic}
        done = []
        for port in self._ports.values():
            if port.state == "TX" and port.index not in waiting and not self._backend.sending(port.index):
                port.idle()
                done.append(port)
        if done:
            self._tell(Event.JOB_DONE, done)

    def _begin(self, rows: list[_Pending]) -> None:
        for row in rows:
            self._pending.remove(row)
            try:
                self._begin_now(row)
            except Exception as error:
                # the start was already answered: its ports end without having sent a frame, which their counts show
                log.error("start of ports %s failed: %s", sorted(row.traffic), error)
                ports = [self._ports[index] for index in row.traffic]
                self._tell(Event.ERROR, ports)
                self._tell(Event.JOB_DONE, ports)

    def _begin_now(self, row: _Pending) -> None:
        ports = [self._ports[index] for index in sorted(row.traffic)]
        try:
            self._backend.start(row.traffic, row.duration)
        except Exception as error:
            for port in ports:
                port.idle()
            raise refused(f"ports {[port.index for port in ports]} cannot start: {error}") from error
        self._tell(Event.STARTED, ports)

    def _tell(self, kind: Event, ports: list[Port]) -> None:
        if kind in (Event.STOPPED, Event.JOB_DONE, Event.PAUSED):
            # a client that reads its counters when it sees the event shall find the final ones
            self._publisher.counters(self._statistics.published())
        for port in ports:
            self._publisher.event(kind, {"port_id": port.index})
