"""What a Linux machine shows that is to run a program on DPDK: its facts, cards, memory and processors.

What it does not show is None, or missing; never guessed or 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .router_facts import NicFacts, RouterFacts


@dataclass(frozen=True, slots=True)
class PciCard:
    """A network card's function on the PCI bus: ``address`` as ``0000:03:00.0``, ``ids`` as ``8086:1572``.

    ``driver`` that holds it (None: none does); ``interfaces``: Linux's names of its ports; ``addresses``: the IP
    addresses on them, without link-local ones.
    """

    address: str
    ids: str
    driver: str | None = None
    interfaces: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    nic: NicFacts = field(default_factory=lambda: NicFacts(""))

    @property
    def slot(self) -> str:
        """The address without the function: functions of one card share it."""
        return self.address.rpartition(".")[0]

    def __str__(self) -> str:
        held = f"held by {self.driver}" if self.driver else "no driver"
        named = f" as {', '.join(self.interfaces)}" if self.interfaces else ""
        return f"{self.address} ({self.nic.model or self.ids}, {held}{named})"


@dataclass(frozen=True, slots=True)
class HugePages:
    """Pages of ``kib`` KiB on a NUMA ``node``: how many are reserved, and how many of these are free."""

    node: int
    kib: int
    reserved: int
    free: int


@dataclass(frozen=True, slots=True)
class Cpu:
    """A processor, the physical ``core`` that it is a thread of, and its NUMA ``node``."""

    number: int
    core: int
    node: int


@dataclass(frozen=True, slots=True)
class HostState:
    """A machine. ``facts``: for the record, with the cards that were asked for.

    ``cards`` by address. ``huge_pages``: None if not read, empty if its kernel has none. ``available_kib``: memory
    that programs may still take. ``iommu``: whether one is in use. ``secure_boot``: whether the kernel is locked down,
    by Secure Boot or otherwise. ``trex``: command line of each TRex server by process. ``ofed``: whether Mellanox's
    own drivers are installed; ``lspci``: whether that program is.
    """

    facts: RouterFacts = field(default_factory=RouterFacts)
    cards: Mapping[str, PciCard] = field(default_factory=dict)
    huge_pages: tuple[HugePages, ...] | None = None
    available_kib: int | None = None
    command_line: str | None = None
    iommu: bool | None = None
    secure_boot: bool | None = None
    trex: Mapping[int, str] | None = None
    cpus: tuple[Cpu, ...] = ()
    ofed: bool | None = None
    lspci: bool | None = None
