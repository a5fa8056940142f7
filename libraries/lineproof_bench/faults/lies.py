"""A modelled router that lies: frames leave it changed, late, elsewhere or not at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from lineproof.simulation.faults import InjectedFault
from lineproof.units import FCS

from ..backend import StreamTraffic
from ..model.counting import Sending
from ..model.flows import (
    IPV4,
    fix_checksum,
    flow_of,
    forwarded_frame,
    frame_of,
    mac_bytes,
    spread,
    ttl_offset,
)
from ..model.ports import LeavingFrames, ModelPort

_SHORTEST = 64
"""Bytes with FCS of a frame that is cut."""
_LLDP = bytes.fromhex("88cc 020704020000000bad 040703020000000bad 06020078")
"""EtherType, chassis and port by MAC address, 120 s to live (IEEE 802.1AB)."""


class Lie:
    """A *fault*, as it is told of the frames of *sending* from *port*. *first*: what may come for all."""

    def __init__(self, fault: InjectedFault, port: ModelPort, sending: Sending, first: StreamTraffic) -> None:
        self.fault, self._port, self._frames = fault, sending.port, 0
        self._traffic = traffic = sending.traffic
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

    @staticmethod
    def concerns(fault: InjectedFault, sending: Sending, load: float) -> bool:
        """Return whether *fault* is about frames of *sending*, whose port sends *load* frames/s."""
        of_it = fault.port in (None, sending.port) and fault.size in (None, sending.size)
        return of_it and load > (fault.above or 0.0) and not (fault.spare and sending.traffic.is_latency)

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

    def divided(self, row: LeavingFrames) -> list[LeavingFrames]:
        """Return the frames of *row* that leave as they should, and the others."""
        what, (chosen, pairs) = self.fault.what, self.choose(row.frames)
        true = replace(
            row, frames=row.frames - chosen, sent=lambda number: () if self.chooses(number) else row.sent(number)
        )
        if what == "lost":
            return [true]
        size = {"length": min(row.size, _SHORTEST), "cached": len(self.cached) + FCS}.get(what or "", row.size)
        changed = replace(
            row,
            exit=self._port if what == "hairpin" else row.exit,
            frames=chosen,
            size=size,
            sent=lambda number: (
                [new for data in row.sent(number) for new in self.told(number, data)] if self.chooses(number) else ()
            ),
            copies=pairs if what in ("copies", "flow") else 0,
            # without its last bytes a latency frame is none; without IP header no frame has a group
            is_known=what != "lldp"
            and not (self._traffic.is_latency and (what in ("payload", "cached") or size < row.size)),
            is_multicast=what == "lldp",
            hold=(self.fault.hold or 0.0) if what == "late" else 0.0,
        )
        return [true, changed]
