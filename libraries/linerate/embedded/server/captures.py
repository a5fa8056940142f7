"""``capture``: frames that a port receives, kept by the backend and fetched by clients."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..backend import Backend, CapturedFrame
from .filters import Filter, filter_of
from .params import Params, refused

ANSWERED = 50e-6
"""Seconds after which a modelled router answers."""
LIMIT = 100_000
"""Most frames one capture may keep."""


@dataclass(slots=True)
class _Capture:
    number: int
    ports: tuple[int, ...]
    limit: int
    started: float
    text: str
    fits: Filter
    answers: list[CapturedFrame] = field(default_factory=list)
    stopped: tuple[CapturedFrame, ...] | None = None
    fetched: int = 0


class Captures:
    """All captures. *now* is the bench's clock in s. A port takes part in one active capture at a time."""

    def __init__(self, backend: Backend, now: Callable[[], float]) -> None:
        self._backend, self._now = backend, now
        self._captures: dict[int, _Capture] = {}
        self._queues: dict[int, _Capture] = {}
        self._count = 0

    def command(self, params: Params) -> Any:
        """The method ``capture``."""
        command = params.choice("command", ("start", "stop", "fetch", "status", "remove"))
        if command == "start":
            return self._start(params)
        if command == "status":
            return [self._status(capture) for capture in self._captures.values()]
        number = params.integer("capture_id")
        capture = self._captures.get(number)
        if capture is None:
            raise refused(f"capture ID {number} does not exist")
        if command == "fetch":
            return self._fetch(capture, params.integer("pkt_limit", least=1), params.integer("snaplen", 0))
        self._stop(capture)
        if command == "remove":
            del self._captures[number]
            return {}
        return {"pkt_count": len(self._frames(capture)) - capture.fetched, "endpoint": ""}

    def _start(self, params: Params) -> dict[str, Any]:
        if params.integers("tx"):
            raise refused("this server captures received frames only; right would be 'tx': []")
        text = params.text("filter", "")
        fits = filter_of(text)
        if params.choice("mode", ("fixed", "cyclic"), "fixed") != "fixed":
            raise refused("this server keeps the first frames of a capture only; right would be mode 'fixed'")
        ports, limit = tuple(dict.fromkeys(params.integers("rx"))), params.integer("limit", least=1, most=LIMIT)
        known = {port.index for port in self._backend.ports}
        if not ports or not known.issuperset(ports):
            raise refused(f"'rx' is {list(ports)}; right would be some of the ports {sorted(known)}")
        self._free(ports)
        self._count += 1
        capture = _Capture(self._count, ports, limit, self._now(), text, fits)
        for port in ports:
            self._backend.capture(port, limit)
        self._captures[capture.number] = capture
        return {"capture_id": capture.number, "start_ts": capture.started}

    def _free(self, ports: tuple[int, ...]) -> None:
        """Raise RpcError when one of *ports* is already looked at."""
        captures = [capture for capture in self._captures.values() if capture.stopped is None]
        busy = {port for capture in (*captures, *self._queues.values()) for port in capture.ports}
        if busy.intersection(ports):
            raise refused(f"port {min(busy.intersection(ports))} already takes part in a capture; stop that first")

    def queue(self, port: int, size: int) -> None:
        """Keep the next *size* frames that *port* receives for :meth:`queued`; 0: no longer."""
        if self._queues.pop(port, None) is not None:
            self._backend.capture(port, 0)
        if size:
            self._free((port,))
            self._queues[port] = _Capture(0, (port,), size, self._now(), "", filter_of(""))
            self._backend.capture(port, size)

    def queued(self, port: int, take: bool = True) -> list[dict[str, Any]]:
        """The frames kept; when they are taken, the next ones are kept."""
        capture = self._queues.get(port)
        if capture is None:
            raise refused(f"port {port} keeps no received packets; right would be set_rx_feature 'queue' first")
        frames = self._frames(capture)
        if take:
            self.queue(port, capture.limit)
        return [{"binary": base64.b64encode(frame.data).decode(), "ts": frame.timestamp} for frame in frames]

    def queue_status(self, port: int) -> dict[str, Any]:
        """``queue`` of a port's ``rx_info``."""
        capture = self._queues.get(port)
        if capture is None:
            return {"is_active": False}
        return {"is_active": True, "size": capture.limit, "count": len(self._frames(capture))}

    def _frames(self, capture: _Capture) -> tuple[CapturedFrame, ...]:
        if capture.stopped is not None:
            return capture.stopped
        seen = [frame for port in capture.ports for frame in self._backend.captured(port)]
        found = [*(frame for frame in seen if capture.fits(frame.data)), *capture.answers]
        # frames of several ports in the order of their time; those already fetched stay in front
        found.sort(key=lambda frame: frame.timestamp)
        return tuple(found[: capture.limit])

    def arrived(self, port: int, data: bytes) -> None:
        """A frame without FCS was received by *port* that the backend does not know of."""
        for capture in (*self._captures.values(), *self._queues.values()):
            if capture.stopped is None and port in capture.ports and capture.fits(data):
                capture.answers.append(CapturedFrame(port, data, self._now() + ANSWERED))

    def _stop(self, capture: _Capture) -> None:
        if capture.stopped is None:
            capture.stopped = self._frames(capture)
            for port in capture.ports:
                self._backend.capture(port, 0)

    def _fetch(self, capture: _Capture, most: int, snaplen: int) -> dict[str, Any]:
        frames = self._frames(capture)
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

    def _status(self, capture: _Capture) -> dict[str, Any]:
        frames = self._frames(capture)
        return {
            "id": capture.number,
            "state": "ACTIVE" if capture.stopped is None else "STOPPED",
            "matched": len(frames),
            "fetched": capture.fetched,
            "count": len(frames),
            "bytes": sum(len(frame.data) for frame in frames),
            "limit": capture.limit,
            "snaplen": 0,
            # ports as bits of a number
            "filter": {"bpf": capture.text, "rx": sum(1 << port for port in capture.ports), "tx": 0},
        }

    def close(self) -> None:
        """Stop all."""
        for capture in self._captures.values():
            self._stop(capture)
        for port in tuple(self._queues):
            self.queue(port, 0)
