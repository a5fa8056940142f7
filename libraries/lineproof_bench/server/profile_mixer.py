"""Several profiles on one port, on a backend that sends one traffic per port.

A profile that is alone at its port goes to the backend as it is. With several, the rest of all of them is started again
whenever one changes: then each stream ends by its count instead of a common duration.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ..backend import Backend, StreamTraffic
from .profile import PortProfile

PortTraffic = tuple[StreamTraffic, ...]


@dataclass(slots=True)
class _SendingProfile:
    """What one profile sends: *traffic* since *began* for *duration* s, of the bench's clock."""

    traffic: PortTraffic
    began: float
    duration: float | None
    paused: bool = False

    def rebase(self, now: float) -> None:
        """Let it begin at *now* with the rest of its traffic."""
        elapsed = 0.0 if self.paused else now - self.began
        self.traffic = tuple(_remaining(row, elapsed) for row in self.traffic)
        self.began = now
        if self.duration is not None:
            self.duration = max(0.0, self.duration - elapsed)

    def rates(self, traffic: PortTraffic) -> None:
        """Take the rates of *traffic*, which is otherwise the same."""
        self.traffic = tuple(replace(row, pps=new.pps) for row, new in zip(self.traffic, traffic, strict=True))

    @property
    def bounded(self) -> PortTraffic:
        """The traffic with counts that end it with the duration."""
        rows = [row if self.duration is None else _limited_to(row, self.duration) for row in self.traffic]
        return () if self.paused else tuple(row for row in rows if row.pps > 0 and row.count != 0)

    @property
    def ends(self) -> float:
        """When it has sent everything."""
        return self.began + max((_seconds_to_send(row) for row in self.bounded), default=0.0)


class ProfileMixer:
    """Sends profiles by *backend*; *now* is the bench's clock in s."""

    def __init__(self, backend: Backend, now: Callable[[], float]) -> None:
        self._backend, self._now = backend, now
        self._profiles: defaultdict[int, dict[PortProfile, _SendingProfile]] = defaultdict(dict)
        self._mixed: set[int] = set()

    def start(self, traffic: Mapping[PortProfile, PortTraffic], duration: float | None) -> None:
        """Begin all of *traffic* at the same moment, for *duration* s."""
        now, alone = self._now(), dict[int, PortTraffic]()
        for profile, rows in traffic.items():
            port = profile.index
            profiles = self._profiles[port]
            for other, sending in tuple(profiles.items()):
                if not sending.paused and not self.sending(other):
                    del profiles[other]
            joined = any(other is not profile for other in (*profiles, *(row for row in traffic if row.index == port)))
            profiles[profile] = _SendingProfile(rows, now, duration)
            if joined:
                self._mixed.add(port)
            else:
                self._mixed.discard(port)
                alone[port] = rows
        if alone:
            self._backend.start(alone, duration)
        for port in {profile.index for profile in traffic} - alone.keys():
            self._restart(port)

    def update(self, profile: PortProfile, traffic: PortTraffic) -> None:
        """New rates."""
        sending = self._profiles[profile.index].get(profile)
        if sending is None:
            return
        if all(row.pps <= 0 for row in traffic):
            # a backend could take streams that are all paused for ended
            self.pause(profile)
            return
        if sending.paused:
            self.resume(profile)
        sending.rebase(self._now())
        sending.rates(traffic)
        if profile.index in self._mixed:
            self._restart(profile.index)
        else:
            self._backend.update(profile.index, traffic)

    def pause(self, profile: PortProfile) -> None:
        """Pause."""
        sending = self._profiles[profile.index][profile]
        if sending.paused:
            return
        sending.rebase(self._now())
        sending.paused = True
        if profile.index in self._mixed:
            self._restart(profile.index)
        else:
            self._backend.pause(profile.index)

    def resume(self, profile: PortProfile) -> None:
        """Resume."""
        sending = self._profiles[profile.index][profile]
        sending.began, sending.paused = self._now(), False
        if profile.index in self._mixed:
            self._restart(profile.index)
        else:
            self._backend.resume(profile.index)

    def stop(self, profile: PortProfile) -> None:
        """Stop at once."""
        profiles = self._profiles[profile.index]
        profiles.pop(profile, None)
        if profiles and profile.index in self._mixed:
            self._restart(profile.index)
        else:
            self._backend.stop(profile.index)

    def sending(self, profile: PortProfile) -> bool:
        """Whether it still sends."""
        sending = self._profiles[profile.index].get(profile)
        if sending is None or sending.paused:
            return sending is not None
        if profile.index in self._mixed:
            return sending.ends > self._now()
        return self._backend.sending(profile.index)

    def _restart(self, port: int) -> None:
        """Start the rest of all the port's profiles again."""
        now, rows = self._now(), list[StreamTraffic]()
        for number, sending in enumerate(self._profiles[port].values()):
            sending.rebase(now)
            # two profiles may have streams of the same number
            rows += [replace(row, stream_id=row.stream_id + (number << 32)) for row in sending.bounded]
        self._backend.stop(port)
        if rows:
            self._backend.start({port: tuple(rows)}, None)


def _remaining(row: StreamTraffic, elapsed: float) -> StreamTraffic:
    gap = row.isg_usec / 1e6
    sent = max(0, round(row.pps * (elapsed - gap)))
    count = None if row.count is None else max(0, row.count - sent)
    return replace(row, count=count, isg_usec=max(0.0, gap - elapsed) * 1e6)


def _limited_to(row: StreamTraffic, duration: float) -> StreamTraffic:
    most = max(0, round(row.pps * (duration - row.isg_usec / 1e6)))
    return replace(row, count=most if row.count is None else min(row.count, most))


def _seconds_to_send(row: StreamTraffic) -> float:
    return math.inf if row.count is None else row.isg_usec / 1e6 + row.count / row.pps
