"""What of a machine's state keeps TRex from starting there, each with what to do: read before anything is started.

The conditions are those of TRex v3.08's own scripts (``dpdk_setup_ports.py``, ``dpdk_nic_bind.py``) and of DPDK.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...counts.host_state import HostState, PciCard
from ...routers.host_reading import full_address
from .config_file import NO_PORT, are_linux_interfaces

FOR_DPDK = frozenset({"vfio-pci", "igb_uio", "uio_pci_generic"})
SHARED = frozenset({"mlx4_core", "mlx5_core", "mana"})
"""Drivers that stay Linux's while TRex uses the card."""

I40E_IDS = frozenset(f"8086:{number:04x}" for number in (*(0x1572, 0x1574, 0x1580, 0x1581), *range(0x1583, 0x158C)))
"""Cards of which TRex's script wants every port (``check_i40e_binds``)."""

SMALL, LARGE = 2048, 1048576
"""KiB of the two sizes of huge pages."""

WANTED_SMALL_MIB, WANTED_LARGE_MIB = 4096, 2048
"""MiB per node that TRex's script reserves: 2048 pages of 2 MiB, or 2 of 1 GiB where the kernel has such."""

THREADS_BESIDE = 2
"""Threads of TRex beside those that send: its control, and its receiver."""


@dataclass(frozen=True, slots=True)
class StartFinding:
    """A sentence with a fix. ``stops``: TRex does not start so, as far as its source shows; else it may.

    ``refused``: it is not tried either, for it would take away what the host uses, or leave the host half changed.
    """

    text: str
    stops: bool = True
    refused: bool = False


@dataclass(frozen=True, slots=True)
class StartPlan:
    """What is to be started. ``interfaces``: PCI addresses or Linux names, none for the host's own configuration.

    ``cores``: that send, for each pair; ``threads``: the CPUs that a testbed file names; ``memory``: MiB.
    """

    home: str
    interfaces: tuple[str, ...] = ()
    cores: int | None = None
    threads: tuple[int, ...] = ()
    memory: int | None = None
    prefix: str = ""
    extra: tuple[str, ...] = ()
    low_end: bool = False


def start_findings(host: HostState, plan: StartPlan) -> tuple[StartFinding, ...]:
    """What there is to say before TRex is started. Nothing follows from what was not read."""
    found = [*_cpus(host, plan), *_servers(host, plan)]
    if not plan.interfaces or are_linux_interfaces(plan.interfaces):
        return tuple(found)
    named = [full_address(name) for name in plan.interfaces if name != NO_PORT]
    used = [host.cards[address] for address in named if address in host.cards]
    return (
        *_missing(host, named),
        *_used_by_linux(used),
        *_neighbours(host, used, plan),
        *_mellanox(host, used, plan),
        *_drivers(host, used, plan),
        *_memory(host, plan),
        *found,
    )


def _missing(host: HostState, named: Sequence[str]) -> Iterator[StartFinding]:
    if host.lspci is False:
        yield StartFinding("the program lspci is missing, which TRex's scripts call; install it there: pciutils")
    if not host.cards:
        return
    known = "; ".join(map(str, host.cards.values()))
    for address in named:
        if address not in host.cards:
            yield StartFinding(f"'{address}' is no network card there; expected one of: {known}")


def _used_by_linux(used: Sequence[PciCard]) -> Iterator[StartFinding]:
    for card in used:
        if card.addresses and card.driver not in SHARED:
            name = card.interfaces[0]
            yield StartFinding(
                f"Linux uses {card} with the address {card.addresses[0]}, and TRex would take it away; name another"
                f" port, or give this one up there: ip addr flush dev {name}",
                refused=True,
            )


def _neighbours(host: HostState, used: Sequence[PciCard], plan: StartPlan) -> Iterator[StartFinding]:
    if not used or any(card.ids not in I40E_IDS for card in used):
        return
    if {"--ignore-528-issue", "--unbind-unused-ports"} & set(plan.extra):
        return
    slots, own = {card.slot for card in used}, {card.address for card in used}
    left = [card for card in host.cards.values() if card.slot in slots and card.address not in own]
    linux = [card for card in left if card.driver == "i40e"]
    if linux:
        listed = " ".join(card.address for card in linux)
        yield StartFinding(
            f"Linux has {' and '.join(map(str, linux))}, other ports of a card that TRex is to use: with i40e it takes"
            f" a card with all its ports or not at all; on the host: cd {plan.home} && sudo ./dpdk_nic_bind.py -u"
            f" {listed}, or 'extra: [--unbind-unused-ports]' in 'start'",
            refused=True,
        )


def _mellanox(host: HostState, used: Sequence[PciCard], plan: StartPlan) -> Iterator[StartFinding]:
    mellanox = any(card.driver in ("mlx4_core", "mlx5_core") for card in used)
    if mellanox and host.ofed is False and "--no-ofed-check" not in plan.extra:
        yield StartFinding(
            "Mellanox's own drivers (OFED) are not installed, and TRex wants them; install them, or, with the"
            " distribution's drivers, 'extra: [--no-ofed-check]' in 'start'",
            refused=True,
        )


def _drivers(host: HostState, used: Sequence[PciCard], plan: StartPlan) -> Iterator[StartFinding]:
    """How a card that Linux holds gets to DPDK: by vfio-pci, which needs an IOMMU, else by a module of TRex's own."""
    held = [card for card in used if card.driver not in FOR_DPDK | SHARED]
    if not held or host.iommu is None or host.command_line is None:
        return
    cards = " and ".join(map(str, held))
    if host.iommu and "iommu=" in host.command_line:
        return
    if host.iommu:
        listed = " ".join(card.address for card in held)
        way = (
            f"bind them once: cd {plan.home} && sudo ./dpdk_nic_bind.py --bind=vfio-pci {listed}, or add 'iommu=pt' to"
            " the kernel's command line, which is what TRex's script looks for, and restart"
        )
        why = "its kernel's command line has no 'iommu=', so that TRex does not try vfio-pci"
    else:
        way = (
            "switch VT-d or AMD-Vi on in the BIOS, add 'intel_iommu=on iommu=pt' ('iommu=pt' alone for AMD) to the"
            " kernel's command line, and restart"
        )
        why = "no IOMMU is in use there, which vfio-pci needs"
    if host.secure_boot:
        yield StartFinding(
            f"{cards}: {why}; and with Secure Boot the kernel takes no other way (igb_uio is not signed); {way}, or"
            " switch Secure Boot off"
        )
    elif host.secure_boot is False:
        yield StartFinding(
            f"{cards}: {why}; TRex then uses uio_pci_generic, or igb_uio, which it compiles with gcc, make and the"
            f" kernel's headers; if that fails, {way}",
            stops=False,
        )


def _memory(host: HostState, plan: StartPlan) -> Iterator[StartFinding]:
    """Huge pages: TRex's script reserves what is missing, of the large size where the kernel has that."""
    if host.huge_pages is None or plan.low_end:
        return
    if not host.huge_pages:
        yield StartFinding("its kernel has no huge pages, which DPDK needs; expected one with CONFIG_HUGETLBFS")
        return
    kib = LARGE if any(pages.kib == LARGE for pages in host.huge_pages) else SMALL
    wanted = plan.memory or (WANTED_LARGE_MIB if kib == LARGE else WANTED_SMALL_MIB)
    free = sum(pages.free * pages.kib for pages in host.huge_pages) >> 10
    if free >= wanted:
        return
    have = f"{free} MB of huge pages are free there, and TRex wants {wanted}"
    count = -(-wanted // 1024)
    reserve = f"add 'default_hugepagesz=1G hugepagesz=1G hugepages={count}' to the kernel's command line, and restart"
    if host.available_kib is not None and host.available_kib >> 10 < wanted - free:
        yield StartFinding(
            f"{have}; for more only {host.available_kib >> 10} MB of memory are left; end what takes it, or {reserve}"
        )
    elif kib == LARGE:
        yield StartFinding(
            f"{have}; it reserves pages of 1 GB when it starts, for which memory is often too scattered; {reserve}",
            stops=False,
        )


def _servers(host: HostState, plan: StartPlan) -> Iterator[StartFinding]:
    if not host.trex:
        return
    listed = "; ".join(f"process {pid}: {line[:200]}" for pid, line in host.trex.items())
    yield StartFinding(
        f"TRex runs there already ({listed}); end it, or give this one cards, 'prefix' and 'memory' of its own"
        + ("" if plan.prefix else ": without 'prefix' DPDK refuses a second one"),
        stops=not plan.prefix,
    )


def _cpus(host: HostState, plan: StartPlan) -> Iterator[StartFinding]:
    if not host.cpus or plan.low_end:
        return
    known = {cpu.number for cpu in host.cpus}
    if missing := sorted(set(plan.threads) - known):
        yield StartFinding(f"'threads' names CPU {missing[0]}, and the host has {len(known)}: {_ranges(known)}")
    needed = THREADS_BESIDE + (plan.cores or 1) * (len(plan.interfaces) // 2)
    if plan.interfaces and not plan.threads and needed > len(known):
        most = (len(known) - THREADS_BESIDE) // (len(plan.interfaces) // 2)
        fix = f"expected 'cores: {most}' at most" if most > 0 else "expected 'low_end: true'"
        yield StartFinding(
            f"TRex needs {needed} CPUs for 'cores: {plan.cores or 1}', and the host has {len(known)}; {fix}"
        )


def _ranges(numbers: set[int]) -> str:
    return f"{min(numbers)} to {max(numbers)}"
