"""Reads the state of a Linux machine that is to run a program on DPDK, from ``/sys``, ``/proc`` and the usual tools.

Two exchanges, no rights, and no change. The facts are read as a Linux router's are.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ..counts.host_state import Cpu, HostState, HugePages, PciCard
from ..counts.router_facts import NicFacts
from .base import Shell
from .fact_reading import Answers, counted, matched, rows_of_files, summarised
from .linux_facts import LINK_FILES, machine_facts, pci_model, read_machine, with_pcie
from .shell_commands import ShellCommands

_PCI = "/sys/bus/pci/devices"
_EFI = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
"""The variable of the UEFI specification (3.3, 'Globally Defined Variables'): its last byte is 1 or 0."""

_DRIVERS = ("sh", "-c", f'grep -sHE "^(DRIVER|PCI_CLASS|PCI_ID)=" {_PCI}/*/uevent')
_NAMES = ("sh", "-c", f"ls -d {_PCI}/*/net/* {_PCI}/*/virtio*/net/*")
_PAGES = (
    *("grep", "-rsH", ".", "/sys/devices/system/node"),
    *("--include=nr_hugepages", "--include=free_hugepages"),
)
_MEMORY = ("grep", "MemAvailable", "/proc/meminfo")
_CPUS = ("lscpu", "-p=CPU,CORE,NODE")
_GROUPS = ("ls", "/sys/kernel/iommu_groups")
_BOOT = ("od", "-An", "-tu1", _EFI)
_LOCKDOWN = ("cat", "/sys/kernel/security/lockdown")
_SERVERS = ("pgrep", "-a", "_t-rex-64")
_ADDRESSES = ("ip", "-o", "addr")
_OFED = ("ls", "/usr/bin/ofed_info")
_STATE = (_DRIVERS, _NAMES, _PAGES, _MEMORY, _CPUS, _GROUPS, _BOOT, _LOCKDOWN, _SERVERS, _ADDRESSES, _OFED)
_MAY_BE_EMPTY = (_NAMES, _GROUPS, _BOOT, _LOCKDOWN, _SERVERS, _OFED, _PAGES)
"""Of these no answer is one, too: the machine has no such thing."""

MOST_CARDS = 64
"""Functions whose details are read: a card with virtual functions may have hundreds."""

_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}")


def full_address(name: str) -> str:
    """A PCI address as Linux writes it: ``03:00.0`` and ``0000:03:00.0/1`` as ``0000:03:00.0``."""
    address = name.lower().partition("/")[0]
    return f"0000:{address}" if address.count(":") == 1 else address


def read_host_state(shell: Shell, interfaces: Sequence[str] = ()) -> HostState:
    """The state of the machine behind *shell*. *interfaces*: PCI addresses or Linux names of the cards to record.

    None: every network card. Never raises: what is not read is missing, with the reason in ``facts.unread``.
    """
    answers = Answers(ShellCommands(shell))
    machine = read_machine(answers)
    texts = answers.ask(*_STATE)
    found = {command: texts[" ".join(command)] for command in _STATE}
    for command in _MAY_BE_EMPTY:
        if " ".join(command) in answers.status:
            answers.unread.pop(" ".join(command), None)
    cards = _cards(found[_DRIVERS], found[_NAMES], found[_ADDRESSES], interfaces)
    cards = _with_details(answers, cards, machine["lspci -D"])
    wanted = [full_address(name) for name in interfaces]
    used = [card for card in cards.values() if card.address in wanted or set(card.interfaces) & set(interfaces)]
    nics = tuple(card.nic for card in (used if interfaces else cards.values()))
    return HostState(
        facts=machine_facts(machine, version=None, nics=nics, unread=answers.unread),
        cards=cards,
        huge_pages=_huge_pages(found[_PAGES]) if " ".join(_PAGES) in answers.status else None,
        available_kib=counted(r"^MemAvailable: +(\d+) kB", found[_MEMORY]),
        command_line=machine["cat /proc/cmdline"].strip() or None,
        iommu=bool(found[_GROUPS].split()) if " ".join(_GROUPS) in answers.status else None,
        secure_boot=_secure_boot(found[_BOOT], found[_LOCKDOWN], answers.status.get(" ".join(_BOOT))),
        trex=_servers(found[_SERVERS]) if answers.status.get(" ".join(_SERVERS)) in (0, 1) else None,
        cpus=_cpus(found[_CPUS]),
        ofed={0: True, 1: False, 2: False}.get(answers.status.get(" ".join(_OFED), -1)),
        lspci={0: True, 127: False}.get(answers.status.get("lspci -D", -1)),
    )


def _cards(drivers: str, names: str, addresses: str, wanted: Collection[str]) -> dict[str, PciCard]:
    """The network cards' functions; those *wanted* and the others of their cards come first, if there are many."""
    rows: dict[str, dict[str, str]] = {}
    for line in drivers.splitlines():
        found = re.fullmatch(rf"{_PCI}/([^/]+)/uevent:([A-Z_]+)=(.*)", line)
        if found and _ADDRESS.fullmatch(found[1]):
            rows.setdefault(found[1], {})[found[2]] = found[3]
    interfaces: dict[str, list[str]] = {}
    for path in names.splitlines():
        if (parts := path.removeprefix(f"{_PCI}/").split("/")) and _NAME.fullmatch(parts[-1]):
            interfaces.setdefault(parts[0], []).append(parts[-1])
    slots = {full_address(name).rpartition(".")[0] for name in wanted}
    # class 02: network controllers (PCI Code and ID Assignment, 1.3)
    cards = [address for address, row in rows.items() if re.fullmatch(r"2[0-9A-F]{4}", row.get("PCI_CLASS", ""))]
    cards.sort(key=lambda address: (address.rpartition(".")[0] not in slots, address))
    on = _addresses(addresses)
    return {
        address: PciCard(
            address,
            rows[address].get("PCI_ID", "").lower(),
            rows[address].get("DRIVER"),
            own := tuple(interfaces.get(address, ())),
            tuple(text for name in own for text in on.get(name, ())),
        )
        for address in cards[:MOST_CARDS]
    }


def _addresses(text: str) -> dict[str, list[str]]:
    """``ip -o addr``: the addresses of each interface, without link-local ones."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        row = re.match(r"\d+: +([^\s:@]+)(?:@\S+)? +inet6? +(\S+).* scope (\w+)", line)
        if row and row[3] != "link":
            found.setdefault(row[1], []).append(row[2])
    return found


def _with_details(answers: Answers, cards: Mapping[str, PciCard], pci: str) -> dict[str, PciCard]:
    links = {address: ("grep", "-sH", ".", *(f"{_PCI}/{address}/{name}" for name in LINK_FILES)) for address in cards}
    drivers = {name: ("ethtool", "-i", name) for card in cards.values() for name in card.interfaces}
    texts = answers.ask(*links.values(), *drivers.values())
    found = {}
    for address, card in cards.items():
        start = f"{_PCI}/{address}/"
        link = {path.removeprefix(start): text for path, text in rows_of_files(texts[" ".join(links[address])]).items()}
        info = [texts[" ".join(drivers[name])] for name in card.interfaces]
        nic = NicFacts(
            interface=address,
            model=pci_model(pci, address) or card.ids or None,
            driver=card.driver,
            firmware=summarised(matched(r"^firmware-version: *(\S.*)", text) or "" for text in info),
            numa_node=counted(r"^(\d+)$", link.get("numa_node", "")),
        )
        found[address] = replace(card, nic=with_pcie(nic, link))
    return found


def _huge_pages(text: str) -> tuple[HugePages, ...]:
    counts: dict[tuple[int, int], dict[str, int]] = {}
    for path, value in rows_of_files(text).items():
        found = re.search(r"/node(\d{1,4})/hugepages/hugepages-(\d{1,9})kB/(nr|free)_hugepages$", path)
        if found and re.fullmatch(r"\d{1,12}", value):
            counts.setdefault((int(found[1]), int(found[2])), {})[found[3]] = int(value)
    return tuple(
        HugePages(node, kib, row["nr"], row["free"]) for (node, kib), row in sorted(counts.items()) if len(row) == 2
    )


def _cpus(text: str) -> tuple[Cpu, ...]:
    """``lscpu -p``; a machine without nodes has its processors on node 0."""
    rows = re.findall(r"^(\d{1,5}),(\d{1,5}),(\d{0,4})$", text, re.MULTILINE)
    return tuple(Cpu(int(number), int(core), int(node or 0)) for number, core, node in rows)


def _secure_boot(variable: str, lockdown: str, status: int | None) -> bool | None:
    """Whether the kernel is locked down, or UEFI says that Secure Boot is on; no UEFI has none."""
    if re.search(r"\[(integrity|confidentiality)\]", lockdown):
        return True
    values = variable.split()
    if values and values[-1] in ("0", "1"):
        return values[-1] == "1"
    return False if "[none]" in lockdown or status == 1 else None


def _servers(text: str) -> dict[int, str]:
    return {int(pid): line.strip() for pid, line in re.findall(r"^(\d{1,9}) (.+)$", text, re.MULTILINE)}
