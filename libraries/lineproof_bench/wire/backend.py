"""The carrier of real frames behind the embedded TRex server: kernel interfaces, one sending process per port.

All counts of ports are the kernel's own interface counters, so they agree with ``ip -s link`` to the frame. Packet
groups of latency streams are counted as well: see :mod:`.flows`.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lineproof.errors import TestbedError
from lineproof.units import FCS

from ..backend import (
    Backend,
    CapturedFrame,
    FlowCounters,
    LatencyCounters,
    PortCounters,
    PortDescription,
    StreamTraffic,
)
from .flows import FlowGroups
from .linux import FrameCapture, LinkReader
from .protocol import SenderLoad, SenderProcess, SenderProcesses

DRIVER = "lineproof_wire"

SENDER_PPS = 400_000.0
"""Frames/s for one sending process; faster traffic is shared among processes if there are CPUs."""

MOST_SENDERS = 4
"""The most sending processes of a port."""

START_DELAY = 0.003
"""Seconds from the moment that the last process is ready to the common start."""

_HEADERS = 18
"""Bytes of a frame beyond the interface's MTU: the Ethernet header and a VLAN tag."""


@dataclass(frozen=True, slots=True)
class WirePort(PortDescription):
    """A generator port: an *interface* of the namespace at *netns* (None: this one), with a nominal speed."""

    speed_bps: float = 10e9
    driver: str = DRIVER
    netns: str | None = None


class WireBackend(Backend):
    """Sends real frames from *ports* and counts with the kernel. Linux, root."""

    def __init__(self, ports: Sequence[WirePort]) -> None:
        self._ports = tuple(ports)
        self._captures: dict[int, FrameCapture] = {}
        with contextlib.ExitStack() as opened:
            self._readers = [
                opened.enter_context(contextlib.closing(LinkReader(port.netns, port.interface))) for port in self._ports
            ]
            # a port may send with every CPU when it sends alone
            each = [False] * min(MOST_SENDERS, len(os.sched_getaffinity(0)))
            self._processes = SenderProcesses(
                [(port.index, port.netns, port.interface, timed) for port in self._ports for timed in (*each, True)]
            )
            opened.callback(self._processes.close)
            self._active = {port.index: self._processes.of(port.index)[:1] for port in self._ports}
            self._flows = FlowGroups(
                {port.index: (port.netns, port.interface) for port in self._ports},
                {port.index: self._processes.of(port.index)[-1].probes for port in self._ports},
            )
            opened.callback(self._flows.close)
            self._first = [reader.read() for reader in self._readers]
            self._opened = opened.pop_all()
        self._used = (time.monotonic(), self._seconds())

    @property
    def ports(self) -> tuple[PortDescription, ...]:
        return self._ports

    @property
    def sender(self) -> int:
        """Process id of the senders' parent."""
        return self._processes.parent

    def start(self, traffic: Mapping[int, tuple[StreamTraffic, ...]], duration: float | None) -> None:
        """Begin sending on each port of *traffic* at the same moment, for *duration* s (None: until stopped).

        Raises TestbedError for a frame that the interface cannot carry, or a stream that cannot be counted by its
        packet group.
        """
        traffic = {port: streams for port, streams in traffic.items() if streams}
        for port, streams in traffic.items():
            self._check(port, streams)
        others = sum(self.sending(other.index) for other in self._ports if other.index not in traffic)
        loads = self._flows.prepare(traffic, idle=not others)
        began: list[SenderProcess] = []
        try:
            for port, (plain, timed) in loads.items():
                self._active[port] = self._choose(port, plain, timed, len(traffic) + others)
                for order, process in self._orders("load", port, plain, timed):
                    process.number += 1
                    began.append(process)
                    process.send({**order, "duration": duration, "number": process.number})
            for process in began:
                process.answer()
        except TestbedError:
            for process in began:
                process.number = min(process.number, process.status[0])
            for port in traffic:
                with contextlib.suppress(TestbedError):
                    self.stop(port)
            raise
        begin = time.monotonic() + START_DELAY
        _command_all(began, {"op": "go", "at": begin})

    def _choose(self, port: int, plain: SenderLoad, timed: SenderLoad, sending: int) -> tuple[SenderProcess, ...]:
        """The processes that send: as few as the rate needs, at most this port's part of the CPUs."""
        own = [process for process in self._processes.of(port) if not process.timed]
        needed = math.ceil(sum(stream.pps for stream in plain.streams) / SENDER_PPS)
        least = 0 if timed.streams and not plain.streams else 1
        found = own[: max(least, min(needed, len(own) // max(1, sending)))]
        return (*found, *(process for process in self._processes.of(port) if process.timed and timed.streams))

    def _orders(
        self, name: str, port: int, plain: SenderLoad, timed: SenderLoad | None
    ) -> list[tuple[dict[str, Any], SenderProcess]]:
        senders = [process for process in self._active[port] if not process.timed]
        found: list[tuple[dict[str, Any], SenderProcess]] = [
            ({"op": name, "load": plain, "share": share, "shares": len(senders)}, process)
            for share, process in enumerate(senders)
        ]
        if timed is not None:
            found += [({"op": name, "load": timed}, process) for process in self._active[port] if process.timed]
        return found

    def _check(self, port: int, streams: tuple[StreamTraffic, ...]) -> None:
        room = self._readers[port].read().mtu + _HEADERS
        for stream in streams:
            if not 14 <= len(stream.frame) <= room:
                raise TestbedError(
                    f"stream {stream.stream_id} has frames of {len(stream.frame)} bytes without FCS;"
                    f" interface '{self._ports[port].interface}' carries 14 to {room}"
                )

    def update(self, port: int, streams: tuple[StreamTraffic, ...]) -> None:
        if self.sending(port):
            self._check(port, streams)
            plain, timed = self._flows.change(port, streams)
            begin = time.monotonic() + START_DELAY
            orders = self._orders("update", port, plain, timed)
            for order, process in orders:
                process.send({**order, "at": begin})
            for _, process in orders:
                process.answer()

    def stop(self, port: int) -> None:
        """Stop sending; on return no more frames leave. Harmless on an idle port."""
        _command_all(self._processes.of(port), {"op": "stop"})

    def sending(self, port: int) -> bool:
        # the server asks every few ms while a port sends: often enough to read what arrives
        self._flows.collect()
        for capture in self._captures.values():
            capture.look()
        return any(process.busy for process in self._active[port])

    def counters(self, port: int) -> PortCounters:
        """The kernel's counts since the backend started. ``queue_full``: refused by the peer, so not sent."""
        now, first = self._readers[port].read(), self._first[port]
        received, sent = now.rx_packets - first.rx_packets, now.tx_packets - first.tx_packets
        return PortCounters(
            opackets=sent,
            ipackets=received,
            obytes=now.tx_bytes - first.tx_bytes + FCS * sent,
            ibytes=now.rx_bytes - first.rx_bytes + FCS * received,
            oerrors=now.tx_errors - first.tx_errors,
            ierrors=now.rx_errors - first.rx_errors,
            queue_full=now.tx_dropped - first.tx_dropped,
        )

    def flow_counters(self, group: int) -> FlowCounters:
        return self._flows.flow_counters(group)

    def latency_counters(self, group: int) -> LatencyCounters:
        """Latency of a packet group: from the kernel's sending of a frame to its receiving it."""
        return self._flows.latency_counters(group)

    def forget(self, group: int) -> None:
        self._flows.forget(group)

    def link_up(self, port: int) -> bool:
        """Return whether the interface has carrier; False as well when it is gone."""
        try:
            return self._readers[port].read().carrier
        except TestbedError:
            return False

    def capture(self, port: int, limit: int) -> None:
        old = self._captures.pop(port, None)
        if old is not None:
            old.close()
        if limit > 0:
            settings = self._ports[port]
            self._captures[port] = FrameCapture(settings.netns, settings.interface, port, limit)

    def captured(self, port: int) -> tuple[CapturedFrame, ...]:
        found = self._captures.get(port)
        return found.frames() if found is not None else ()

    def utilisation(self) -> float:
        """CPU of the busiest sending process since the last call, in per cent of one CPU."""
        now, seconds = time.monotonic(), self._seconds()
        before, used = self._used
        if now - before < 0.01:
            return 0.0
        self._used = (now, seconds)
        busiest = max((new - old for new, old in zip(seconds, used, strict=True)), default=0.0)
        return min(100.0, 100 * busiest / (now - before))

    def _seconds(self) -> list[float]:
        return [process.status[1] for process in self._processes]

    def close(self) -> None:
        """Stop everything and release all resources. Harmless when repeated."""
        for capture in self._captures.values():
            capture.close()
        self._captures.clear()
        self._opened.close()


def _command_all(processes: Iterable[SenderProcess], order: Mapping[str, Any]) -> None:
    """Send one command to all, then wait for all, so that they carry it out at nearly the same time."""
    processes = tuple(processes)
    for process in processes:
        process.send(order)
    for process in processes:
        process.answer()
