"""Rules of :mod:`.explain` for frames that are lost on arrival while workers have time: the card, its bus, moments."""

from __future__ import annotations

import math

from ..core.explanation import Confidence, Explanation
from ..core.router_facts import NicFacts
from ..units import FCS
from .explain_evidence import SMALL_LOSS, RouterEvidence, busy_share

BUS_FULL, BUS_MAYBE = 0.75, 0.25
"""Least share of the bus from which on it is the limit, or may be: descriptors and turns take the rest."""

_PIECE, _HEADER, _DESCRIPTOR = 256, 24, 32
"""Bytes on PCIe: the usual largest payload of a packet, its header and framing, the least for a frame's descriptors."""

_LINE_CODE = {2.5: 0.8, 5.0: 0.8}
"""Share of the bits on PCIe 1 and 2 (GT/s) that are data: 8b/10b; later ones 128b/130b."""


def card(evidence: RouterEvidence) -> Explanation | None:
    """Lost on arrival while every worker has time: the card, or the bus behind it."""
    if not evidence.arrival_decides or not evidence.workers or len(evidence.idle) < len(evidence.workers):
        return None
    busiest = max(busy_share(worker) or 0.0 for worker in evidence.workers)
    figures = {"busiest_worker": busiest, "loss_ratio": evidence.loss_ratio}
    time_left = f"frames are lost on arrival while the busiest worker is {busiest:.0%} busy"
    if evidence.loss_ratio < SMALL_LOSS:
        return _moments(evidence, time_left, figures)
    slot, share = fullest_bus(evidence) or (None, 0.0)
    link = ""
    if slot is not None:
        figures |= {"bus_gbps": bus_gbps(slot) or 0.0, "bus_share": share}
        most = f" (the card can x{slot.pcie_width_max})" if slot.pcie_width_max and is_narrow(slot) else ""
        link = f"PCIe x{slot.pcie_width} at {slot.pcie_speed:g} GT/s{most}"
        if share >= BUS_FULL:
            return Explanation(
                "bus",
                f"{time_left}: the frames and their headers alone take {share:.0%} of {link}",
                figures,
                Confidence.LIKELY,
                "put the card into a wider or faster slot",
            )
    one_queue = evidence.tried.flows == 1
    if slot is None or (share >= BUS_MAYBE and not one_queue and is_narrow(slot)):
        bus = f"{link}, of which the frames take {share:.0%}" if slot is not None else "which was not read"
        return Explanation(
            "card or bus",
            f"{time_left}: its card, or the bus behind it ({bus}), takes no more frames",
            figures,
            Confidence.LIKELY if slot is None else Confidence.POSSIBLE,
            "more cores will not help; look at the card's limits, its slot, and another driver",
        )
    where = "the one receive queue that one flow has" if one_queue else "its receive queues or ports"
    return Explanation(
        "card",
        f"{time_left} and the frames take {share:.0%} of {link}: the card itself takes no more frames into {where}",
        figures,
        Confidence.LIKELY,
        "more cores will not help; look for the card's published limit, another driver, or its firmware"
        + ("; more flows use more queues" if one_queue else ""),
    )


def _moments(evidence: RouterEvidence, time_left: str, figures: dict[str, float]) -> Explanation:
    rings = [nic.ring_rx for nic in evidence.nics if nic.interface in evidence.ingress and nic.ring_rx]
    ring = f" of {min(rings)} frames" if rings else ""
    return Explanation(
        "late worker",
        f"{time_left}: for moments it comes too late, and the receive ring{ring} overruns",
        figures | ({"ring_rx": float(min(rings))} if rings else {}),
        Confidence.POSSIBLE,
        "pin the interrupts, keep other work off those processors, forbid deep sleep states, or enlarge the ring",
    )


def fullest_bus(evidence: RouterEvidence) -> tuple[NicFacts, float] | None:
    """Of the cards by which lost frames enter, the one whose bus is fullest, and the least share of that bus that the
    forwarded frames take, all ports of the card together. None where a bus, or which card it is of, was not read.
    """
    cards = [nic for nic in evidence.nics if nic.interface in evidence.losing]
    shares = [(nic, share) for nic in cards if (share := _bus_share(evidence, nic)) is not None]
    return max(shares, key=lambda row: row[1]) if shares and len(shares) == len(evidence.losing) else None


def _bus_share(evidence: RouterEvidence, nic: NicFacts) -> float | None:
    gbps, rows = bus_gbps(nic), evidence.ledger.directions if evidence.ledger else ()
    forwarded = sum(row.forwarded for row in rows)

    def on_card(*perhaps: bool | None) -> int:
        # each direction of the bus by itself: what the card takes in goes up, what it sends comes down
        up = sum(row.forwarded for row in rows if _shares_card(evidence, nic, row.ingress) in perhaps)
        return max(up, sum(row.forwarded for row in rows if _shares_card(evidence, nic, row.egress) in perhaps))

    least = on_card(True)
    # ports of which it is not known whether they are on the card
    if not gbps or not forwarded or least != on_card(True, None):
        return None
    data = evidence.tried.frame_bytes - FCS
    total = data + _HEADER * math.ceil(data / _PIECE) + _DESCRIPTOR
    return evidence.tried.forwarded_pps * least / forwarded * 8 * total / (gbps * 1e9)


def _shares_card(evidence: RouterEvidence, nic: NicFacts, interface: str) -> bool | None:
    """Return whether *interface* is a port of the same card as *nic*; None where an address was not read."""
    if interface == nic.interface:
        return True
    if evidence.has_card(interface) is False:
        return False
    other = next((card_of(each) for each in evidence.nics if each.interface == interface), None)
    own = card_of(nic)
    return None if own is None or other is None else own == other


def bus_gbps(nic: NicFacts) -> float | None:
    """Gbit/s that the bus of *nic* carries in each direction; None where it was not read."""
    if not nic.pcie_width or not nic.pcie_speed:
        return None
    return nic.pcie_width * nic.pcie_speed * _LINE_CODE.get(nic.pcie_speed, 128 / 130)


def card_of(nic: NicFacts) -> str | None:
    """The card that *nic* is a port of: its PCI address without the function; None where that was not read."""
    return nic.pci_address.rpartition(".")[0] if nic.pci_address else None


def is_narrow(nic: NicFacts) -> bool:
    """Return whether the bus of *nic* has fewer lanes, or slower ones, than the card can use."""
    lanes = nic.pcie_width_max is not None and (nic.pcie_width or 0) < nic.pcie_width_max
    return lanes or (nic.pcie_speed_max is not None and (nic.pcie_speed or 0.0) < nic.pcie_speed_max)
