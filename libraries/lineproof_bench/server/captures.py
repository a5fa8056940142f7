"""``capture``: frames that a port receives or sends, fetched by clients; several captures may look at one port."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..backend import Backend, CapturedFrame, StreamTraffic
from .filters import Filter, filter_of
from .params import Params, refused
from .sent_frames import first_frames

ANSWER_DELAY = 50e-6
"""Seconds until a modelled router answers."""
MOST_FRAMES = 100_000
"""Most frames one capture may keep."""
MOST_CAPTURES = 10
"""Captures that there may be at once, as on a TRex."""


@dataclass(slots=True)
class _Capture:
    number: int
    rx: tuple[int, ...]
    limit: int
    started: float
    text: str = ""
    fits: Filter = field(default_factory=lambda: filter_of(""))
    tx: tuple[int, ...] = ()
    cyclic: bool = False
    kept: list[CapturedFrame] = field(default_factory=list)
    sent: dict[int, int] = field(default_factory=dict)
    """By port, its sent frames at the last :meth:`Captures._collect`."""
    matched: int = 0
    active: bool = True
    fetched: int = 0

    def take(self, frames: list[CapturedFrame]) -> None:
        """Keep what fits: the first of all, or the last when cyclic."""
        new = [frame for frame in frames if self.fits(frame.data)]
        self.matched += len(new)
        self.kept += new if self.cyclic else new[: max(0, self.limit - len(self.kept))]
        # frames of several ports in the order of their time; those already fetched stay in front
        self.kept[self.fetched :] = sorted(self.kept[self.fetched :], key=lambda frame: frame.timestamp)
        if (over := len(self.kept) - self.limit) > 0:
            del self.kept[:over]
            self.fetched = max(0, self.fetched - over)

    @property
    def room(self) -> int:
        """Frames that it can still keep."""
        return (self.limit if self.cyclic else self.limit - len(self.kept)) if self.active else 0


class Captures:
    """All captures. *now* is the bench's clock in s; *traffic*: what a port sends or sent last.

    A backend keeps the first frames after a request. They are collected, and more are requested, whenever a client asks
    for anything about captures.
    """

    def __init__(
        self, backend: Backend, now: Callable[[], float], traffic: Callable[[int], tuple[StreamTraffic, ...]]
    ) -> None:
        self._backend, self._now, self._traffic = backend, now, traffic
        self._captures: dict[int, _Capture] = {}
        self._queues: dict[int, _Capture] = {}
        self._requested: dict[int, int] = {}
        self._count = 0

    def command(self, params: Params) -> Any:
        """The method ``capture``."""
        command = params.choice("command", ("start", "stop", "fetch", "status", "remove"))
        if command == "start":
            return self._start(params)
        self._collect()
        if command == "status":
            return [self._status(capture) for capture in self._captures.values()]
        number = params.integer("capture_id")
        capture = self._captures.get(number)
        if capture is None:
            raise refused(f"capture ID {number} does not exist")
        if command == "fetch":
            return self._fetch(capture, params.integer("pkt_limit", least=1), params.integer("snaplen", 0))
        capture.active = False
        if command == "remove":
            del self._captures[number]
        self._request()
        return {} if command == "remove" else {"pkt_count": len(capture.kept) - capture.fetched, "endpoint": ""}

    def _start(self, params: Params) -> dict[str, Any]:
        text = params.text("filter", "")
        fits, limit = filter_of(text), params.integer("limit", least=1, most=MOST_FRAMES)
        cyclic = params.choice("mode", ("fixed", "cyclic"), "fixed") == "cyclic"
        rx, tx = (tuple(dict.fromkeys(params.integers(word))) for word in ("rx", "tx"))
        known = {port.index for port in self._backend.ports}
        if not (rx or tx) or not known.issuperset((*rx, *tx)):
            raise refused(f"'rx' is {list(rx)}, 'tx' is {list(tx)}; expected some of the ports {sorted(known)}")
        if len(self._captures) >= MOST_CAPTURES:
            raise refused("capture limit has reached")
        self._collect()
        self._count += 1
        capture = _Capture(self._count, rx, limit, self._now(), text, fits, tx, cyclic)
        capture.sent = {port: self._backend.counters(port).opackets for port in tx}
        self._captures[capture.number] = capture
        self._request()
        return {"capture_id": capture.number, "start_ts": capture.started}

    # -- looking at ports

    def _all(self) -> list[_Capture]:
        return [*self._captures.values(), *self._queues.values()]

    def _request(self) -> None:
        """Request as many frames from the backend as the captures have room for."""
        for port in (row.index for row in self._backend.ports):
            wanted = max((capture.room for capture in self._all() if port in capture.rx), default=0)
            if wanted != self._requested.get(port, 0):
                self._requested[port] = wanted
                self._backend.capture(port, wanted)

    def _collect(self) -> None:
        """Take the frames that the backend has kept."""
        for port in [port for port, requested in self._requested.items() if requested]:
            found = list(self._backend.captured(port))
            for capture in self._all() if found else ():
                if capture.active and port in capture.rx:
                    capture.take(found)
            if found:
                # these were taken: request others
                self._requested[port] = 0
                self._backend.capture(port, 0)
        for capture in self._captures.values():
            for port, before in capture.sent.items() if capture.active else ():
                total = self._backend.counters(port).opackets
                capture.sent[port] = total
                if total > before and capture.room:
                    seen = first_frames(self._traffic(port), min(total - before, capture.room), self._now())
                    capture.take([CapturedFrame(port, data, at, received=False) for at, data in seen])
        self._request()

    def arrived(self, port: int, data: bytes) -> None:
        """*port* received a frame, without FCS, that the backend does not know of."""
        for capture in self._all():
            if capture.active and port in capture.rx:
                capture.take([CapturedFrame(port, data, self._now() + ANSWER_DELAY)])

    def keeps_service(self, port: int) -> str:
        """What keeps *port* in service mode, in TRex's words; "" if nothing does."""
        if port in self._queues:
            return "please remove RX queue"
        if any(capture.active and port in (*capture.rx, *capture.tx) for capture in self._captures.values()):
            return f"an active capture on port {port} exists"
        return ""

    def pushed(self, port: int, frames: list[bytes], counted: bool) -> None:
        """*frames* were sent by *port*. *counted*: the backend counts them too."""
        for capture in self._captures.values():
            if capture.active and port in capture.tx:
                capture.take([CapturedFrame(port, data, self._now(), received=False) for data in frames])
                if counted:
                    capture.sent[port] += len(frames)

    # -- a port's queue

    def queue(self, port: int, size: int) -> None:
        """Keep the next *size* frames that *port* receives, for :meth:`queued`; 0: keep none."""
        self._collect()
        self._queues.pop(port, None)
        if size:
            self._queues[port] = _Capture(0, (port,), size, self._now())
        self._request()

    def queued(self, port: int) -> list[dict[str, Any]]:
        """The frames kept since the last call."""
        if port not in self._queues:
            raise refused(f"port {port} keeps no received packets; expected set_rx_feature 'queue' first")
        self._collect()
        frames = self._queues[port].kept
        self.queue(port, self._queues[port].limit)
        return [{"binary": base64.b64encode(frame.data).decode(), "ts": frame.timestamp} for frame in frames]

    def queue_status(self, port: int) -> dict[str, Any]:
        """``queue`` of a port's ``rx_info``."""
        if port not in self._queues:
            return {"is_active": False}
        self._collect()
        return {"is_active": True, "size": self._queues[port].limit, "count": len(self._queues[port].kept)}

    # -- as reported to clients

    def _fetch(self, capture: _Capture, most: int, snaplen: int) -> dict[str, Any]:
        frames = capture.kept
        chosen = frames[capture.fetched : capture.fetched + most]
        rows = [
            {
                "binary": base64.b64encode(frame.data[: snaplen or None]).decode(),
                "index": index,
                "origin": "RX" if frame.received else "TX",
                "port": frame.port,
                "ts": frame.timestamp,
                "wirelen": len(frame.data),
            }
            for index, frame in enumerate(chosen, capture.fetched + 1)
        ]
        capture.fetched += len(chosen)
        return {"pkts": rows, "pending": len(frames) - capture.fetched, "start_ts": capture.started}

    @staticmethod
    def _status(capture: _Capture) -> dict[str, Any]:
        # ports as bits of a number
        rx, tx = (sum(1 << port for port in ports) for ports in (capture.rx, capture.tx))
        return {
            "id": capture.number,
            "state": "ACTIVE" if capture.active else "STOPPED",
            "matched": capture.matched,
            "fetched": capture.fetched,
            "count": len(capture.kept),
            "bytes": sum(len(frame.data) for frame in capture.kept),
            "limit": capture.limit,
            "snaplen": 0,
            "filter": {"bpf": capture.text, "rx": rx, "tx": tx},
        }

    def close(self) -> None:
        """Stop all."""
        self._captures.clear()
        self._queues.clear()
        self._request()
