"""A port of the modelled bench: the generator's, the router's interface cabled to it, and the frames that it leaves by.

The bytes of these frames are made when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import islice
from operator import itemgetter

from lineproof.platforms import Platform
from lineproof.simulation import Habit
from lineproof.units import FCS

from ..backend import CapturedFrame, PortCounters, StreamTraffic
from ..state import InterfaceState
from .counting import StreamCounts
from .routing import Fib, flow_of, forwarded_frame, frame_of, mac_bytes, ttl_offset

_LOOKED_AT = 4096
"""Frames of a stream that are looked at, at least, for those that leave by a port."""


@dataclass(frozen=True, slots=True)
class LeavingFrames:
    """*frames* of those *numbers* of *stream*, of *size* bytes with FCS, that leave for the port *exit*.

    They come within ``begin`` … ``end``, s. ``sent``: the frame of a number as it leaves, () if it is not among them;
    lost ones are not left out: the model counts them without knowing which ones they are. ``copies``: frames that come
    twice, in the place of as many lost ones. ``is_known``: whether TRex can tell their packet group. ``hold``: how much
    later than usual they come, s.
    """

    exit: int
    stream: Hashable
    frames: int
    size: int
    numbers: range
    begin: float
    end: float
    sent: Callable[[int], Sequence[bytes]]
    copies: int = 0
    is_known: bool = True
    is_multicast: bool = False
    hold: float = 0.0

    def data(self, most: int) -> Iterator[tuple[float, Hashable, int, bytes]]:
        """Yield the last frames, *most* at most, the last one first: moment, stream, number, bytes of each."""
        left, looked = min(most, self.frames), max(_LOOKED_AT, 4 * most)
        apart = (self.end - self.begin) / max(1, len(self.numbers))
        for number in self.numbers[: -looked - 1 : -1]:
            if left <= 0:
                return
            moment = self.begin + (number - self.numbers.start + 0.5) * apart
            for data in self.sent(number):
                yield moment, self.stream, number, data
                left -= 1


class KeptFrames:
    """The last *limit* frames that come to a port."""

    def __init__(self, limit: int = 0) -> None:
        self.limit = limit
        self._rows: list[LeavingFrames] = []

    def add(self, new: LeavingFrames) -> None:
        """Keep what is needed of *new*: which of the frames of one moment came first is known when all are there."""
        self._rows.append(new)
        while self._rows and sum(row.frames for row in self._rows if row.end > self._rows[0].end) >= self.limit:
            del self._rows[0]

    def take(self, port: int) -> tuple[CapturedFrame, ...]:
        """Return those kept since the last call, in the order in which they came."""
        # from the last one on: frames that are not kept are not made either
        last_first = merge(*(row.data(self.limit) for row in self._rows[::-1]), key=itemgetter(0), reverse=True)
        kept = list(islice(last_first, self.limit))[::-1]
        self._rows.clear()
        # those of a stream leave in their order, whichever ring of the router they waited in
        of_stream: dict[Hashable, list[tuple[int, bytes]]] = {}
        for _, stream, number, data in kept:
            of_stream.setdefault(stream, []).append((number, data))
        in_order = {stream: iter(sorted(frames, key=itemgetter(0))) for stream, frames in of_stream.items()}
        return tuple(CapturedFrame(port, next(in_order[stream])[1], moment) for moment, stream, _, _ in kept)


def egress_frame(traffic: StreamTraffic, fib: Fib, interface: str, source_mac: str, number: int) -> tuple[bytes, ...]:
    """Return frame *number* of *traffic* as the router sends it, if it leaves by *interface*."""
    frame = frame_of(traffic, number)
    flow = flow_of(frame)
    exit_ = fib.exit_for(flow)
    if exit_ and exit_.interface == interface and frame[ttl_offset(flow)] > 1:
        return (forwarded_frame(frame, flow, source_mac, exit_.mac),)
    return ()


@dataclass(slots=True)
class ModelPort:
    """``name``: of the router's interface. ``mac``, ``sent``, ``kept`` (the last frames): of the generator's port.

    Its card drops frames that are addressed to others if ``own_only``, unless it is ``promiscuous``.
    """

    name: str
    mac: str
    router_mac: str
    sent: PortCounters
    interface: InterfaceState
    own_only: bool
    promiscuous: bool = False
    kept: KeptFrames = field(default_factory=KeptFrames)

    def enter(self, new: StreamCounts, size: int, unsent: int) -> None:
        """Count *new* frames of *size* bytes with FCS that the generator offered, and *unsent* that it did not send."""
        self.sent = self.sent._replace(
            opackets=self.sent.opackets + new.offered,
            obytes=self.sent.obytes + new.offered * size,
            queue_full=self.sent.queue_full + unsent,
        )
        taken, interface = new.offered - new.missed, self.interface
        self.interface = interface._replace(
            rx_packets=interface.rx_packets + taken,
            rx_bytes=interface.rx_bytes + taken * (size - FCS),
            rx_missed=interface.rx_missed + new.missed,
            no_route=interface.no_route + new.no_route,
        )

    def receive(self, row: LeavingFrames) -> bool:
        """Let the router send these frames; return whether the generator's card takes them."""
        interface = self.interface
        self.interface = interface._replace(
            tx_packets=interface.tx_packets + row.frames, tx_bytes=interface.tx_bytes + row.frames * (row.size - FCS)
        )
        if self.own_only and not self.promiscuous:
            # all have one destination
            first = next((data for *_, data in row.data(1)), b"")
            if first and not first[0] & 1 and first[:6] != mac_bytes(self.mac):
                return False
        self.sent = self.sent._replace(
            ipackets=self.sent.ipackets + row.frames,
            ibytes=self.sent.ibytes + row.frames * row.size,
            multicasts=self.sent.multicasts + row.frames * row.is_multicast,
        )
        self.kept.add(row)
        return True


def ports_of(platform: Platform, software: str, habits: Sequence[Habit]) -> list[ModelPort]:
    """Return the ports of a bench: one for each interface that *software* has under test. *habits*: of their cards."""
    ports, own = [], {habit.port for habit in habits if habit.kind == "own frames only"}
    cabled = zip(platform.software[software].interfaces, platform.ports.values(), strict=False)
    for number, (name, speed) in enumerate(cabled, 1):
        mac, router_mac = f"02:00:00:00:00:{number:02x}", f"02:00:00:00:01:{number:02x}"
        interface = InterfaceState(name, router_mac, speed, link_up=True)
        ports.append(ModelPort(name, mac, router_mac, PortCounters(), interface, bool(own & {None, number - 1})))
    return ports
