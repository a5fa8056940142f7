"""A port of the modelled bench: the generator's port, the router's interface cabled to it, and their counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lineproof.platforms import Platform
from lineproof.simulation.habits import Habit
from lineproof.units import FCS

from ..backend import CapturedFrame, PortCounters
from ..state import InterfaceState
from .counting import Sending, StreamCounts


@dataclass(slots=True)
class ModelPort:
    """``name``: of the router's interface. ``mac``, ``sent``, ``captured``: of the generator's port.

    Its card drops frames that are addressed to others if ``own_only``, unless it is ``promiscuous``.
    """

    name: str
    mac: str
    router_mac: str
    sent: PortCounters
    interface: InterfaceState
    own_only: bool
    promiscuous: bool = False
    capture_limit: int = 0
    captured: tuple[CapturedFrame, ...] = ()

    def capture_room(self, frames: int) -> int:
        """How many of so many received *frames* are still to be captured."""
        return max(0, min(self.capture_limit - len(self.captured), frames))

    def enter(self, new: StreamCounts, size: int, unsent: int) -> None:
        """The generator offered *new* frames of *size* bytes with FCS and left *unsent* more in its queue."""
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

    def leave(self, frames: int, size: int, taken: bool = True) -> None:
        """The router sent so many *frames* of *size* bytes with FCS. *taken*: the generator's card kept them."""
        self.interface = replace(
            self.interface,
            tx_packets=self.interface.tx_packets + frames,
            tx_bytes=self.interface.tx_bytes + frames * (size - FCS),
        )
        frames *= taken
        self.sent = replace(self.sent, ipackets=self.sent.ipackets + frames, ibytes=self.sent.ibytes + frames * size)


def ports_of(platform: Platform, software: str, habits: Sequence[Habit]) -> list[ModelPort]:
    """The ports of a bench: one for each interface that *software* has under test. *habits*: of their cards."""
    found, own = [], {habit.port for habit in habits if habit.kind == "own frames only"}
    for number, name in enumerate(platform.software[software].interfaces, 1):
        mac, router_mac = f"02:00:00:00:00:{number:02x}", f"02:00:00:00:01:{number:02x}"
        interface = InterfaceState(name, router_mac, platform.link_bps, link_up=True)
        found.append(ModelPort(name, mac, router_mac, PortCounters(), interface, bool(own & {None, number - 1})))
    return found


def count_tx_drops(ports: Sequence[ModelPort], sending: Sending, new: StreamCounts) -> None:
    """Count the drops of *new* at the sending ring that most frames of *sending* go to: that one is full."""
    if new.tx_dropped:
        shares: dict[int, float] = {part.exit: part.share for part in sending.parts if part.exit is not None}
        port = ports[max(shares, key=lambda direction: shares[direction])]
        port.interface = replace(port.interface, tx_dropped=port.interface.tx_dropped + new.tx_dropped)
