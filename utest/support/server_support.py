"""A backend of two crossed ports that only counts, a server on it in a thread, and a plain JSON-RPC client."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import zmq

from lineproof.generators.trex.client.sockets import plain_bytes
from lineproof.platforms import read_platform
from lineproof_bench.backend import (
    CapturedFrame,
    Clock,
    FlowCounters,
    LatencyCounters,
    PortCounters,
    PortDescription,
    StreamTraffic,
)
from lineproof_bench.bench import DirectCableModel
from lineproof_bench.server.loop import ServerSettings, TrexServer
from lineproof_bench.server.ports import ServerHabits
from lineproof_bench.server.rpc import zip_message
from support.paths import VARIABLES

MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
PEERS = ("02:00:00:00:01:01", "02:00:00:00:01:02")


class FakeBackend(DirectCableModel):
    """The modelled cable, which keeps what it was asked; packet groups and captures are made up.

    The clock runs *speed* times the wall's.
    """

    def __init__(self, speed: float = 1.0) -> None:
        clock = Clock(speed)
        super().__init__(read_platform(VARIABLES / "platforms", "netgate6100"), "vpp", clock)
        self.now = clock.now
        self.starts: list[tuple[dict[int, tuple[StreamTraffic, ...]], float | None]] = []
        self.updates: list[tuple[int, float]] = []
        self.closed = False
        self.limits = [0, 0]
        self.groups: dict[int, int] = {}
        self.fails = False
        self.load = 12.5
        self.counted: PortCounters | None = None
        """Counters of port 0, in place of what was sent; port 1 has counted nothing then."""

    @property
    def ports(self) -> tuple[PortDescription, ...]:
        return tuple(
            PortDescription(n, MACS[n], PEERS[n], 10e9, "fake", f"100.65.{n + 1}.2", f"100.65.{n + 1}.1")
            for n in (0, 1)
        )

    def start(self, traffic: Mapping[int, tuple[StreamTraffic, ...]], duration: float | None) -> None:
        if self.fails:
            raise OSError("the cable is cut")
        self.starts.append((dict(traffic), duration))
        super().start(traffic, duration)

    def update(self, port: int, streams: tuple[StreamTraffic, ...]) -> None:
        self.updates.append((port, sum(stream.pps for stream in streams)))
        super().update(port, streams)

    def counters(self, port: int) -> PortCounters:
        if self.counted is not None:
            return self.counted if port == 0 else PortCounters()
        return super().counters(port)

    def capture(self, port: int, limit: int) -> None:
        self.limits[port] = limit

    def captured(self, port: int) -> tuple[CapturedFrame, ...]:
        count = min(3, self.limits[port])
        return tuple(CapturedFrame(port, bytes([n]) * 60, float(n)) for n in range(count))

    def flow_counters(self, group: int) -> FlowCounters:
        """Return ten frames more at each question, sent by port 0 and received by port 1."""
        self.groups[group] = self.groups.get(group, 0) + 10
        frames = self.groups[group]
        return FlowCounters({0: (frames, 64 * frames)}, {1: (frames, 64 * frames)})

    def latency_counters(self, group: int) -> LatencyCounters:
        frames = self.groups.get(group, 0)
        return LatencyCounters(20.5, 2.0, 12.0, 90.0, 45.0, {10: frames, 90: frames // 10}, lost=2)

    def forget(self, group: int) -> None:
        self.groups.pop(group, None)

    def answers(self, port: int, address: str) -> bool | None:
        return address == self.ports[port].peer_ipv4

    def utilisation(self) -> float:
        return self.load

    def close(self) -> None:
        super().close()
        self.closed = True


class Client:
    """Calls methods as a TRex client would, and collects what is published."""

    def __init__(self, server: TrexServer) -> None:
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.rpc, self.sub = self.context.socket(zmq.REQ), self.context.socket(zmq.SUB)
        self.rpc.setsockopt(zmq.RCVTIMEO, 5000)
        self.rpc.connect(f"tcp://127.0.0.1:{server.rpc_port}")
        self.sub.setsockopt(zmq.SUBSCRIBE, b"")
        self.sub.connect(f"tcp://127.0.0.1:{server.pub_port}")
        self.api_h = server.service.api_h
        self.handlers: dict[int, str] = {}
        self._keys = itertools.count(1000)

    def raw(self, data: bytes) -> bytes:
        self.rpc.send(data)
        return self.rpc.recv()

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": "x", "method": method, "params": {"api_h": self.api_h, **params}}

    def call(self, method: str, **params: Any) -> Any:
        """Return the result, or the whole error member."""
        answer = json.loads(self.raw(json.dumps(self.request(method, **params)).encode()))
        return answer["error"] if "error" in answer else answer["result"]

    def zipped(self, data: Any) -> Any:
        answer = self.raw(zip_message(json.dumps(data).encode()))
        plain = plain_bytes(answer)
        assert plain is not answer
        return json.loads(plain)

    def acquire(self, port: int, user: str = "alice", session: int = 1, force: bool = False) -> Any:
        handler = self.call("acquire", port_id=port, user=user, session_id=session, force=force)
        if isinstance(handler, str):
            self.handlers[port] = handler
        return handler

    def on(self, port: int, method: str, **params: Any) -> Any:
        return self.call(method, port_id=port, handler=self.handlers[port], **params)

    def start(self, port: int, value: float = 1000.0, kind: str = "pps", duration: float = 0.1, **more: Any) -> Any:
        mul = {"type": kind, "value": value, "op": "abs"}
        return self.on(port, "start_traffic", mul=mul, duration=duration, **more)

    def published(self, limit: float = 0.3, until: str = "") -> list[dict[str, Any]]:
        """Return the messages of the next *limit* s, or until one whose JSON holds *until*."""
        messages = []
        end = time.monotonic() + limit
        while (left := end - time.monotonic()) > 0:
            if not self.sub.poll(int(left * 1000) + 1):
                break
            data = self.sub.recv()
            text = plain_bytes(data)
            messages.append(json.loads(text))
            if until and until.encode() in text:
                break
        return messages

    def barrier(self) -> list[dict[str, Any]]:
        """Return all that was published before this moment."""
        key = next(self._keys)
        assert self.call("publish_now", key=key, baseline=False) == {}
        return self.published(10, f'"trex-barrier","type":{key}')

    def close(self) -> None:
        self.context.destroy(linger=0)


def run(server: TrexServer, backend: FakeBackend) -> None:
    asyncio.run(server.serve())
    backend.close()


@contextlib.contextmanager
def serving(backend: FakeBackend, habits: ServerHabits | None = None) -> Iterator[TrexServer]:
    """Provide a server on *backend* in a thread."""
    server = TrexServer(backend, backend.now, ServerSettings(habits=habits or ServerHabits()))
    thread = threading.Thread(target=run, args=(server, backend), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(30)
        assert not thread.is_alive()
        assert backend.closed


def stream(pps: float = 1.0, frame: bytes = b"\xaa" * 60, kind: str = "continuous", **more: Any) -> dict[str, Any]:
    """Return a stream as the 0.3 client sends it."""
    return {
        "flags": 0,
        "action_count": 0,
        "enabled": True,
        "self_start": True,
        "isg": 0.0,
        "mode": {"type": kind, "rate": {"type": "pps", "value": pps}},
        "packet": {"binary": base64.b64encode(frame).decode(), "meta": ""},
        "vm": {"instructions": [], "split_by_var": ""},
        "flow_stats": {"enabled": False},
        "next_stream_id": -1,
        **more,
    }


def rate(kind: str, value: float) -> dict[str, Any]:
    """Return the mode of a stream that never ends."""
    return {"type": "continuous", "rate": {"type": kind, "value": value}}


def counter(low: int, high: int, op: str = "inc", size: int = 4, name: str = "a", **more: Any) -> dict[str, Any]:
    """Return an instruction of the field engine: a variable of *size* bytes."""
    ends = {"init_value": low, "min_value": low, "max_value": high, "step": 1}
    return {"type": "flow_var", "name": name, "size": size, "op": op, **ends, **more}


def write(at: int, name: str = "a", **more: Any) -> dict[str, Any]:
    """Return an instruction of the field engine: the variable *name* is written at this offset."""
    return {"type": "write_flow_var", "name": name, "pkt_offset": at, "add_value": 0, "is_big_endian": True, **more}
