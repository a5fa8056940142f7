"""Facts of a router: its machine, system, cards, and how its queues are placed. Read without traffic.

A fact that the router does not report is missing (None, "" or no entry), never guessed or 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..visible import shortened


@dataclass(frozen=True, slots=True)
class NicFacts:
    """The card of one interface under test.

    ``pci_address``: as Linux writes it (``0000:03:00.0``), whatever the system. ``pcie_width`` in lanes and
    ``pcie_speed`` in GT/s per lane, as the link runs; ``…_max``: what the card can. ``rx_queues`` in use.
    ``flow_control``: ``off``, ``rx`` (pause frames are obeyed), ``tx`` (sent) or both. ``steered_to``: queue ->
    processors that its packets are steered to by software (Linux: RPS), no entry where they are not. ``other``: what
    only people read, by name, as ``offloads``.
    """

    interface: str
    model: str | None = None
    driver: str | None = None
    firmware: str | None = None
    pci_address: str | None = None
    pcie_width: int | None = None
    pcie_speed: float | None = None
    pcie_width_max: int | None = None
    pcie_speed_max: float | None = None
    rx_queues: int | None = None
    flow_control: str | None = None
    steered_to: Mapping[int, str] = field(default_factory=dict)
    other: Mapping[str, str] = field(default_factory=dict)

    @property
    def pcie_bps(self) -> float | None:
        """Bit/s of its PCIe link in each direction, without its coding; None: not read."""
        if not self.pcie_width or not self.pcie_speed:
            return None
        # PCIe 1 and 2 code 8 bits in 10, later ones 128 in 130
        return 1e9 * self.pcie_width * self.pcie_speed * (0.8 if self.pcie_speed in (2.5, 5.0) else 128 / 130)


@dataclass(frozen=True, slots=True)
class Placement:
    """A receive *queue* of *interface*, served by *worker*: the thread's name (VPP), or ``CPU 3``."""

    interface: str
    queue: int
    worker: str


@dataclass(frozen=True, slots=True)
class RouterFacts:
    """A router's facts.

    ``cpu``: the processor's model. ``workers``: threads that forward; VPP's, or the processors of a kernel that
    forwards. ``firewall``: ``on`` or ``off`` with what was found. ``other``: what only people read, by name, as
    ``governor``, ``microcode``, ``mitigations``. ``unread``: command -> why it was not read. ``differences``: from the
    platform's file, as sentences.
    """

    os: str | None = None
    kernel: str | None = None
    version: str | None = None
    firmware: str | None = None
    cpu: str | None = None
    nics: tuple[NicFacts, ...] = ()
    workers: int | None = None
    placement: tuple[Placement, ...] = ()
    firewall: str | None = None
    other: Mapping[str, str] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    differences: tuple[str, ...] = ()

    def beside(self, version: str, workers: int | None, rx_queues: int | None) -> RouterFacts:
        """Return these facts with their ``differences`` from a platform's file; what was not read differs from none."""
        differences = []
        reported = ", ".join(dict.fromkeys(text for text in (self.version, self.os, self.kernel) if text))
        numbers = re.findall(r"\d+(?:\.\d+)+", version)
        if reported and any(not re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", reported) for number in numbers):
            said = f"the platform's file says {shortened(version)}, the router reports {reported}"
            differences.append(f"'version': {said}")
        if workers is not None and self.workers is not None and workers != self.workers:
            differences.append(f"'workers': the platform's file says {workers}, the router has {self.workers}")
        differences += [
            f"'rx_queues': the platform's file says {rx_queues}, {nic.interface} has {nic.rx_queues}"
            for nic in self.nics
            if rx_queues is not None and nic.rx_queues not in (None, rx_queues)
        ]
        return replace(self, differences=tuple(differences))


@dataclass(frozen=True, slots=True)
class RouterSetUp:
    """The configuration of a router for a run, each line by where it comes from.

    ``prepare``: of the testbed's file. ``sides``: addresses and routes that the run set, or that were there;
    ``stated``: the others, by the testbed's file. ``seen``: commands after which the router showed what they set;
    ``unchecked``: those that it took, and that no look belongs to; ``ignored``: those after which it showed something
    else, with that. ``there``: what it had already; ``notes`` of the run; ``afterwards``: sentences of what was found
    when it was restored.
    """

    prepare: str = ""
    sides: tuple[str, ...] = ()
    stated: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    there: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    afterwards: tuple[str, ...] = ()
