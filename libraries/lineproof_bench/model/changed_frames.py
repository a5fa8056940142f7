"""A modelled router that lies: frames leave it changed, late, elsewhere or not at all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from lineproof.simulation.faults import InjectedFault
from lineproof.units import FCS

from ..backend import PortCounters, StreamTraffic
from .backend import ModelBackend
from .counting import Sending
from .egress_frames import LeavingFrames
from .flows import IPV4, fix_checksum, flow_of, forwarded_frame, frame_of, is_latency, mac_bytes, spread, ttl_offset
from .ports import ModelPort

_SHORTEST = 64
"""Bytes with FCS of a frame that is cut."""
_LLDP = bytes.fromhex("88cc 020704020000000bad 040703020000000bad 06020078")
"""EtherType, chassis and port by MAC address, 120 s to live (IEEE 802.1AB)."""


class _Lie:
    """A *fault*, as it is told of frames that *port* sends with *traffic*. *first*: what may come for all."""

    def __init__(self, fault: InjectedFault, port: ModelPort, traffic: StreamTraffic, first: StreamTraffic) -> None:
        self.fault, self._traffic, self._frames = fault, traffic, 0
        self._back = mac_bytes(port.mac) + mac_bytes(port.router_mac)
        frame = frame_of(first, 0)
        self.cached = forwarded_frame(frame, flow_of(frame), port.mac, port.mac)
        self._share = self._part = fault.share or 1.0
        self._flows: list[object] = []
        if fault.what == "flow" or fault.flow is not None:
            begin, wanted = fault.flow or 0, 1 + (fault.what == "flow")
            shares = dict(list(spread(traffic).items())[begin : begin + wanted])
            self._share *= len(shares) == wanted
            self._flows, self._part = list(shares), self._share * sum(shares.values())

    def choose(self, frames: int) -> tuple[int, int]:
        """Return of how many of the next *frames* it is told, and how many pairs these make."""
        before, self._frames = self._frames, self._frames + frames
        first, end = (math.floor(self._part * number + 1e-9) for number in (before, self._frames))
        return end - first, end // 2 - first // 2

    def _index(self, number: int) -> int:
        return math.floor(self._share * number + 1e-9)

    def told(self, number: int, data: bytes) -> Sequence[bytes]:
        """Return what comes in the place of the stream's frame *number*, which the router forwards as *data*."""
        new, flow, what = bytearray(data), flow_of(data), self.fault.what
        ip, is_ipv4 = (flow.ip, flow.version == 4) if flow else (IPV4, False)
        match what:
            case "copies":
                return (data, data) if self._index(number) % 2 else ()
            case "flow":
                return (data, data) if flow == self._flows[0] else ()
            case "hairpin":
                new[:12] = self._back
            case "cached":
                new[12:] = self.cached[12:]
            case "payload":
                begin = ip + (28 if is_ipv4 else 48)
                new[begin:] = b"\xee" * (len(new) - begin)
            case "length":
                del new[_SHORTEST - FCS :]
            case "checksum" if is_ipv4:
                new[ip + 10] ^= 0xFF
            case "mac":
                new[:6] = b"\x02\0\0\0\x0b\xad"
            case "lldp":
                new[:] = (b"\x01\x80\xc2\0\0\x0e" + new[6:12] + _LLDP).ljust(len(new), b"\0")
            case "ttl":
                new[ttl_offset(flow)] = 0
            case "addresses":
                new[(end := ip + (20 if is_ipv4 else 40)) - 3 : end] = b"\x0b\xad\x0b"
        if what in ("ttl", "addresses") and is_ipv4:
            fix_checksum(new, ip)
        return (bytes(new),)

    def chooses(self, number: int) -> bool:
        """Return whether it is told of the stream's frame *number*."""
        if self._index(number + 1) == self._index(number):
            return False
        return not self._flows or flow_of(frame_of(self._traffic, number)) in self._flows


class LyingModel(ModelBackend):
    """The model, truthful until :meth:`lie` is called."""

    _lies: tuple[InjectedFault, ...] = ()
    _told: dict[Sending, _Lie] | None = None
    _late: Sequence[LeavingFrames] = ()
    """Frames that are counted already, and come later."""

    def lie(self, lies: Iterable[InjectedFault]) -> None:
        """From now on tell *lies*; of those that concern the same frames only the last."""
        now = self._advance()
        self._lies = tuple(lies)
        self._settle(now)

    def counters(self, port: int) -> PortCounters:
        """Return what the model does, without the frames that are late."""
        found, now = super().counters(port), self._last
        self._late = [row for row in self._late if now < row.end + row.hold]
        for row in self._late:
            if row.exit == port:
                away = round(row.frames * min(1.0, (row.end + row.hold - now) / max(row.end - row.begin, 1e-9)))
                found = found._replace(ipackets=found.ipackets - away, ibytes=found.ibytes - away * row.size)
        return found

    def _settle(self, now: float) -> None:
        super()._settle(now)
        former = self._told or {}
        # what waits in a ring when its sending ends is told of, too
        self._told = {row: lie for row, lie in former.items() if self._lies and row not in self._sending}
        for sending in self._sending if self._lies else ():
            own = [row for row in self._sending if row.port == sending.port]
            load = sum(row.pps for row in own)
            if fault := next((row for row in self._lies[::-1] if _concerns(row, sending, load)), None):
                lie = former.get(sending)
                if lie is None or lie.fault is not fault:
                    lie = _Lie(fault, self._ports[sending.port], sending.traffic, own[0].traffic)
                self._told[sending] = lie

    def _leaving(self, sending: Sending, exits: Iterable[tuple[int, int]], numbers: range) -> list[LeavingFrames]:
        rows, lie = super()._leaving(sending, exits, numbers), (self._told or {}).get(sending)
        return [part for row in rows for part in self._divided(row, sending, lie)] if lie else rows

    def _divided(self, row: LeavingFrames, sending: Sending, lie: _Lie) -> list[LeavingFrames]:
        """Return the frames of *row* that leave as they should, and the others."""
        what, (chosen, pairs) = lie.fault.what, lie.choose(row.frames)
        true = replace(
            row, frames=row.frames - chosen, sent=lambda number: () if lie.chooses(number) else row.sent(number)
        )
        if what == "lost":
            return [true]
        size = {"length": min(row.size, _SHORTEST), "cached": len(lie.cached) + FCS}.get(what or "", row.size)
        changed = replace(
            row,
            exit=sending.port if what == "hairpin" else row.exit,
            frames=chosen,
            size=size,
            sent=lambda number: (
                [new for data in row.sent(number) for new in lie.told(number, data)] if lie.chooses(number) else ()
            ),
            copies=pairs if what in ("copies", "flow") else 0,
            # without its last bytes a latency frame is none; without IP header no frame has a group
            is_known=what != "lldp"
            and not (is_latency(sending.traffic) and (what in ("payload", "cached") or size < row.size)),
            is_multicast=what == "lldp",
            hold=(lie.fault.hold or 0.0) if what == "late" else 0.0,
        )
        if changed.hold:
            self._late = [*self._late, changed]
        return [true, changed]


def _concerns(fault: InjectedFault, sending: Sending, load: float) -> bool:
    of_it = fault.port in (None, sending.port) and fault.size in (None, sending.size)
    return of_it and load > (fault.above or 0.0) and not (fault.spare and is_latency(sending.traffic))
