"""``capture``: frames that a port receives, fetched by clients; several captures may look at one port."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..backend import Backend, CapturedFrame
from .filters import Filter, filter_of
from .params import Params, refused

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
    cyclic: bool = False
    kept: list[CapturedFrame] = field(default_factory=list)
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
    """All captures. *now* is the bench's clock in s.

    A backend keeps the last frames after a request. They are collected whenever a client asks for anything about
    captures: a capture of the first frames misses those that do not fit between two questions.
    """

    def __init__(self, backend: Backend, now: Callable[[], float]) -> None:
        self._backend, self._now = backend, now
        self._captures: dict[int, _Capture] = {}
        self._requested: dict[int, int] = {}
        """Frames that the backend keeps, by port."""
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
        rx, tx = tuple(dict.fromkeys(params.integers("rx"))), params.integers("tx")
        known = {port.index for port in self._backend.ports}
        if tx or not rx or not known.issuperset(rx):
            raise refused(f"'rx' is {list(rx)}, 'tx' is {tx}; expected 'rx' of the ports {sorted(known)}, and no 'tx'")
        if len(self._captures) >= MOST_CAPTURES:
            raise refused("capture limit has reached")
        self._collect()
        self._count += 1
        capture = _Capture(self._count, rx, limit, self._now(), text, fits, cyclic)
        self._captures[capture.number] = capture
        self._request()
        return {"capture_id": capture.number, "start_ts": capture.started}

    # -- looking at ports

    def _request(self) -> None:
        """Request as many frames from the backend as the captures have room for."""
        for port in (row.index for row in self._backend.ports):
            wanted = max((row.room for row in self._captures.values() if port in row.rx), default=0)
            requested = self._requested.get(port, 0)
            # a request that is large enough is left alone: no frame is missed meanwhile
            if wanted > requested or (requested and not wanted):
                self._requested[port] = wanted
                self._backend.capture(port, wanted)

    def _collect(self) -> None:
        """Take the frames that the backend has kept."""
        for port, requested in self._requested.items():
            found = list(self._backend.captured(port)) if requested else []
            for capture in self._captures.values() if found else ():
                if capture.active and port in capture.rx:
                    capture.take(found)
        self._request()

    def arrived(self, port: int, data: bytes) -> None:
        """*port* received a frame, without FCS, that the backend does not know of."""
        for capture in self._captures.values():
            if capture.active and port in capture.rx:
                capture.take([CapturedFrame(port, data, self._now() + ANSWER_DELAY)])

    def keeps_service(self, port: int) -> str:
        """Return what keeps *port* in service mode, in TRex's words; "" if nothing does."""
        looking = any(capture.active and port in capture.rx for capture in self._captures.values())
        return f"an active capture on port {port} exists" if looking else ""

    # -- as reported to clients

    def _fetch(self, capture: _Capture, most: int, snaplen: int) -> dict[str, Any]:
        frames = capture.kept
        chosen = frames[capture.fetched : capture.fetched + most]
        rows = [
            {
                "binary": base64.b64encode(frame.data[: snaplen or None]).decode(),
                "index": index,
                "origin": "RX",
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
        return {
            "id": capture.number,
            "state": "ACTIVE" if capture.active else "STOPPED",
            "matched": capture.matched,
            "fetched": capture.fetched,
            "count": len(capture.kept),
            "bytes": sum(len(frame.data) for frame in capture.kept),
            "limit": capture.limit,
            "snaplen": 0,
            # ports as bits of a number
            "filter": {"bpf": capture.text, "rx": sum(1 << port for port in capture.rx), "tx": 0},
        }

    def close(self) -> None:
        """Stop all."""
        self._captures.clear()
        self._request()
