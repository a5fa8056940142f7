"""Several profiles that send by one port, on a backend that knows of one for each port.

A profile that is alone at its port is the backend's matter. As soon as another joins, what is left of all is begun
anew whenever one of them changes: each of their streams then has a count for its end instead of a common duration.
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
class _Share:
    """What one profile sends: *traffic* since *began* for *duration* s, of the bench's clock."""

    traffic: PortTraffic
    began: float
    duration: float | None
    paused: bool = False

    def rebase(self, now: float) -> None:
        """Let it begin at *now*: with what is left."""
        elapsed = 0.0 if self.paused else now - self.began
        self.traffic = tuple(_left(row, elapsed) for row in self.traffic)
        self.began = now
        if self.duration is not None:
            self.duration = max(0.0, self.duration - elapsed)

    def rates(self, traffic: PortTraffic) -> None:
        """Take over the rates of *traffic*, which is the same but for them."""
        self.traffic = tuple(replace(row, pps=new.pps) for row, new in zip(self.traffic, traffic, strict=True))

    @property
    def bounded(self) -> PortTraffic:
        """The traffic with counts that end it when the duration does."""
        rows = [row if self.duration is None else _within(row, self.duration) for row in self.traffic]
        return () if self.paused else tuple(row for row in rows if row.pps > 0 and row.count != 0)

    @property
    def ends(self) -> float:
        """When it has sent everything."""
        return self.began + max((_lasts(row) for row in self.bounded), default=0.0)


class Mixer:
    """Sends profiles by *backend*; *now* is the bench's clock in s."""

    def __init__(self, backend: Backend, now: Callable[[], float]) -> None:
        self._backend, self._now = backend, now
        self._shares: defaultdict[int, dict[PortProfile, _Share]] = defaultdict(dict)
        self._mixed: set[int] = set()

    def start(self, traffic: Mapping[PortProfile, PortTraffic], duration: float | None) -> None:
        """Begin all of *traffic* at the same moment, for *duration* s."""
        now, alone = self._now(), dict[int, PortTraffic]()
        for profile, rows in traffic.items():
            port = profile.index
            shares = self._shares[port]
            for other, share in tuple(shares.items()):
                if not share.paused and not self.sending(other):
                    del shares[other]
            joined = any(other is not profile for other in (*shares, *(row for row in traffic if row.index == port)))
            shares[profile] = _Share(rows, now, duration)
            if joined:
                self._mixed.add(port)
            else:
                self._mixed.discard(port)
                alone[port] = rows
        if alone:
            self._backend.start(alone, duration)
        for port in {profile.index for profile in traffic} - alone.keys():
            self._again(port)

    def update(self, profile: PortProfile, traffic: PortTraffic) -> None:
        """New rates."""
        share = self._shares[profile.index].get(profile)
        if share is None:
            return
        if all(row.pps <= 0 for row in traffic):
            # streams that are all paused have not ended, which a backend could take them to have
            self.pause(profile)
            return
        if share.paused:
            self.resume(profile)
        share.rebase(self._now())
        share.rates(traffic)
        if profile.index in self._mixed:
            self._again(profile.index)
        else:
            self._backend.update(profile.index, traffic)

    def pause(self, profile: PortProfile) -> None:
        """Stop for now."""
        share = self._shares[profile.index][profile]
        if share.paused:
            return
        share.rebase(self._now())
        share.paused = True
        if profile.index in self._mixed:
            self._again(profile.index)
        else:
            self._backend.pause(profile.index)

    def resume(self, profile: PortProfile) -> None:
        """Go on."""
        share = self._shares[profile.index][profile]
        share.began, share.paused = self._now(), False
        if profile.index in self._mixed:
            self._again(profile.index)
        else:
            self._backend.resume(profile.index)

    def stop(self, profile: PortProfile) -> None:
        """Stop at once."""
        shares = self._shares[profile.index]
        shares.pop(profile, None)
        if shares and profile.index in self._mixed:
            self._again(profile.index)
        else:
            self._backend.stop(profile.index)

    def sending(self, profile: PortProfile) -> bool:
        """Whether it still sends."""
        share = self._shares[profile.index].get(profile)
        if share is None or share.paused:
            return share is not None
        if profile.index in self._mixed:
            return share.ends > self._now()
        return self._backend.sending(profile.index)

    def _again(self, port: int) -> None:
        """Begin anew what is left of the port's profiles."""
        now, rows = self._now(), list[StreamTraffic]()
        for number, share in enumerate(self._shares[port].values()):
            share.rebase(now)
            # two profiles may have streams of the same number
            rows += [replace(row, stream_id=row.stream_id + (number << 32)) for row in share.bounded]
        self._backend.stop(port)
        if rows:
            self._backend.start({port: tuple(rows)}, None)


def _left(row: StreamTraffic, elapsed: float) -> StreamTraffic:
    gap = row.isg_usec / 1e6
    sent = max(0, round(row.pps * (elapsed - gap)))
    count = None if row.count is None else max(0, row.count - sent)
    return replace(row, count=count, isg_usec=max(0.0, gap - elapsed) * 1e6)


def _within(row: StreamTraffic, duration: float) -> StreamTraffic:
    most = max(0, round(row.pps * (duration - row.isg_usec / 1e6)))
    return replace(row, count=most if row.count is None else min(row.count, most))


def _lasts(row: StreamTraffic) -> float:
    return math.inf if row.count is None else row.isg_usec / 1e6 + row.count / row.pps
