"""When ports begin and end to send, and the events about it.

Clients start ports one call after another, a few ms apart. Ports that are started together must begin together, so
a start waits up to HOLD while another port of the same session has streams ready, and joins that port's start.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..backend import Backend, StreamTraffic
from .params import refused
from .ports import ServerPort
from .profile import PortProfile
from .profile_mixer import ProfileMixer
from .publisher import Event, Publisher
from .statistics import Statistics

JOIN_WAIT = 0.030
"""Seconds of wall time that a start waits for another port's."""
TICK = 0.004
"""Seconds of wall time between two looks at ports that send."""
MOST_AHEAD = 600.0
"""Seconds ahead that ``start_at_ts`` may lie."""

log = logging.getLogger("lineproof.server")


@dataclass(slots=True)
class _PendingStart:
    """Profiles that start at the same moment: *due* in s of *clock*."""

    due: float
    session: int
    duration: float | None
    scheduled: bool
    traffic: dict[PortProfile, tuple[StreamTraffic, ...]] = field(default_factory=dict)


class Transmission:
    """Starts and ends sending on *ports*. *clock*: the wall clock that ``ping`` reports."""

    def __init__(
        self,
        backend: Backend,
        ports: Mapping[int, ServerPort],
        publisher: Publisher,
        statistics: Statistics,
        now: Callable[[], float],
        clock: Callable[[], float],
    ) -> None:
        self._backend, self._ports, self._publisher = backend, ports, publisher
        self._mixer = ProfileMixer(backend, now)
        self._statistics, self._clock = statistics, clock
        self._pending: list[_PendingStart] = []

    # -- commands

    def start(
        self, profile: PortProfile, traffic: tuple[StreamTraffic, ...], duration: float | None, at: float
    ) -> None:
        """Let *profile* send for *duration* s of the bench's clock, at once or *at* a moment of the wall clock.

        Raises RpcError when the backend refuses, or the moment has passed.
        """
        now = self._clock()
        if at > 0:
            if not now < at < now + MOST_AHEAD:
                raise refused(f"start_at_ts is {at:.3f}; expected within {MOST_AHEAD:.0f} s after now, {now:.3f}")
            group = self._group(lambda row: row.scheduled and row.due == at, profile, duration)
            if group is None:
                group = self._new(_PendingStart(at, profile.port.session, duration, scheduled=True))
            group.traffic[profile] = traffic
            profile.state = "TX"
            return
        group = self._group(lambda row: not row.scheduled, profile, duration)
        if group is None:
            # a waiting start of another session or duration: begin it now
            self._begin([row for row in self._pending if not row.scheduled])
            group = self._new(_PendingStart(now + JOIN_WAIT, profile.port.session, duration, scheduled=False))
        group.traffic[profile] = traffic
        profile.state = "TX"
        if not any(self._may_follow(other, profile) for other in self._ports.values()):
            self._pending.remove(group)
            try:
                self._begin_one(group)
            except Exception:
                # this port's client gets the error as its answer; the others had their answers before
                self._publish(Event.JOB_DONE, [other for other in group.traffic if other is not profile])
                raise

    def _group(
        self, fits: Callable[[_PendingStart], bool], profile: PortProfile, duration: float | None
    ) -> _PendingStart | None:
        for row in self._pending:
            if fits(row) and row.session == profile.port.session and row.duration == duration:
                return row
        return None

    def _new(self, row: _PendingStart) -> _PendingStart:
        self._pending.append(row)
        return row

    @staticmethod
    def _may_follow(other: ServerPort, profile: PortProfile) -> bool:
        return (
            other.index != profile.index
            and other.state == "STREAMS"
            and other.owner != ""
            and other.session == profile.port.session
        )

    def update(self, profile: PortProfile, traffic: tuple[StreamTraffic, ...]) -> None:
        """New rates for a port that sends."""
        self._begin([row for row in self._pending if profile in row.traffic])
        if profile.state == "TX":
            self._mixer.update(profile, traffic)

    def pause(self, profile: PortProfile) -> None:
        """Pause sending."""
        self._begin([row for row in self._pending if profile in row.traffic])
        profile.require("pause", "TX")
        self._mixer.pause(profile)
        profile.state = "PAUSE"
        self._publish(Event.PAUSED, [profile])

    def resume(self, profile: PortProfile) -> None:
        """Resume sending."""
        profile.require("resume", "PAUSE")
        self._mixer.resume(profile)
        profile.state = "TX"
        self._publish(Event.RESUMED, [profile])

    def stop(self, profile: PortProfile) -> None:
        """Stop sending at once. Harmless on an idle port."""
        if not profile.active:
            return
        for row in self._pending:
            row.traffic.pop(profile, None)
        self._pending = [row for row in self._pending if row.traffic]
        self._mixer.stop(profile)
        profile.idle()
        self._publish(Event.STOPPED, [profile])

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
        """Begin what is due; publish events for ports whose duration or bursts are over."""
        now = self._clock()
        self._begin([row for row in self._pending if row.due <= now])
        waiting = {profile for row in self._pending for profile in row.traffic}
        sending = [row for port in self._ports.values() for row in port.profiles.values() if row.state == "TX"]
        done = [row for row in sending if row not in waiting and not self._mixer.sending(row)]
        for profile in done:
            profile.idle()
        if done:
            self._publish(Event.JOB_DONE, done)

    def _begin(self, rows: list[_PendingStart]) -> None:
        for row in rows:
            self._pending.remove(row)
            try:
                self._begin_one(row)
            except Exception as error:
                # the start was already answered: its ports end without having sent a frame, which their counts show
                log.error("start of ports %s failed: %s", sorted(profile.index for profile in row.traffic), error)
                self._publish(Event.ERROR, list(row.traffic))
                self._publish(Event.JOB_DONE, list(row.traffic))

    def _begin_one(self, row: _PendingStart) -> None:
        profiles = sorted(row.traffic, key=lambda profile: profile.index)
        try:
            self._mixer.start(row.traffic, row.duration)
        except Exception as error:
            for profile in profiles:
                profile.idle()
            raise refused(f"ports {[profile.index for profile in profiles]} cannot start: {error}") from error
        self._publish(Event.STARTED, profiles)

    def _publish(self, kind: Event, profiles: list[PortProfile]) -> None:
        if kind in (Event.STOPPED, Event.JOB_DONE, Event.PAUSED):
            # a client that reads its counters at the event must find the final ones
            self._publisher.counters(self._statistics.published())
        for profile in profiles:
            others = [row for row in profile.port.profiles.values() if row not in profiles]
            # an event that does not change the port's own state is the profile's alone
            states = ("TX",) if kind in (Event.STARTED, Event.RESUMED, Event.PAUSED) else ("TX", "PAUSE")
            whole = not any(row.state in states for row in others)
            self._publisher.event(kind, {"port_id": profile.index}, profile.name, whole)
