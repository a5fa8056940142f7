"""A port of the modelled bench: the generator's port, the router's interface cabled to it, and their counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lineproof.platforms import Platform
from lineproof.simulation.habits import Habit
from lineproof.units import FCS

from ..backend import PortCounters
from ..state import InterfaceState
from .counting import Sending, StreamCounts
from .egress_frames import KeptFrames, LeavingFrames
from .flows import mac_bytes


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
        """The generator offered *new* frames of *size* bytes with FCS and left *unsent* more in its queue."""
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
        """The router sent these frames. Returns whether the generator's card takes them."""
        interface = self.interface
        self.interface = interface._replace(
            tx_packets=interface.tx_packets + row.frames,
            tx_bytes=interface.tx_bytes + row.frames * (row.size - FCS),
        )
        if self.own_only and not self.promiscuous:
            # all have one destination
            first = next((data for _, data in row.data(1)), b"")
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
    """The ports of a bench: one for each interface that *software* has under test. *habits*: of their cards."""
    found, own = [], {habit.port for habit in habits if habit.kind == "own frames only"}
    cabled = zip(platform.software[software].interfaces, platform.ports.values(), strict=False)
    for number, (name, speed) in enumerate(cabled, 1):
        mac, router_mac = f"02:00:00:00:00:{number:02x}", f"02:00:00:00:01:{number:02x}"
        interface = InterfaceState(name, router_mac, speed, link_up=True)
        found.append(ModelPort(name, mac, router_mac, PortCounters(), interface, bool(own & {None, number - 1})))
    return found


def count_tx_drops(ports: Sequence[ModelPort], sending: Sending, new: StreamCounts) -> None:
    """Count the drops of *new* at the sending ring that most frames of *sending* go to: that one is full."""
    if new.tx_dropped:
        shares: dict[int, float] = {part.exit: part.share for part in sending.parts if part.exit is not None}
        port = ports[max(shares, key=lambda direction: shares[direction])]
        port.interface = port.interface._replace(tx_dropped=port.interface.tx_dropped + new.tx_dropped)
