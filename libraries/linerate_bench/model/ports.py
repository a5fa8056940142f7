"""A port of the modelled bench: the generator's, the router's interface cabled to it, and what both counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from linerate.units import FCS

from ..backend import CapturedFrame, PortCounters
from ..state import InterfaceState
from .counting import Sending, StreamCounts


@dataclass(slots=True)
class ModelPort:
    """``name`` of the interface, MAC addresses of both ends, counts of both, frames kept of those received."""

    name: str
    mac: str
    router_mac: str
    sent: PortCounters
    interface: InterfaceState
    capture_limit: int = 0
    captured: tuple[CapturedFrame, ...] = ()

    def enter(self, new: StreamCounts, size: int, unsent: int) -> None:
        """The generator offered *new* frames of *size* bytes with FCS; *unsent* more did not leave its queue."""
        self.sent = replace(
            self.sent,
            opackets=self.sent.opackets + new.offered,
            obytes=self.sent.obytes + new.offered * size,
            queue_full=self.sent.queue_full + unsent,
        )
        taken, interface = new.offered - new.missed, self.interface
        self.interface = replace(
            interface,
            rx_packets=interface.rx_packets + taken,
            rx_bytes=interface.rx_bytes + taken * (size - FCS),
            rx_missed=interface.rx_missed + new.missed,
            no_route=interface.no_route + new.no_route,
        )

    def leave(self, frames: int, size: int) -> None:
        """The router sent so many *frames* of *size* bytes with FCS."""
        self.interface = replace(
            self.interface,
            tx_packets=self.interface.tx_packets + frames,
            tx_bytes=self.interface.tx_bytes + frames * (size - FCS),
        )
        self.sent = replace(self.sent, ipackets=self.sent.ipackets + frames, ibytes=self.sent.ibytes + frames * size)


def refuse(ports: Sequence[ModelPort], sending: Sending, new: StreamCounts) -> None:
    """Those of *new* that found no room in a sending ring: of the way that most take, which is the full one."""
    if new.tx_dropped:
        shares: dict[int, float] = {part.exit: part.share for part in sending.parts if part.exit is not None}
        port = ports[max(shares, key=lambda direction: shares[direction])]
        port.interface = replace(port.interface, tx_dropped=port.interface.tx_dropped + new.tx_dropped)
