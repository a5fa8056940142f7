"""Facts of a Linux machine and its cards, from ``/proc``, ``/sys``, ``lscpu``, ``lspci`` and ``ethtool``.

``machine.yaml`` has the commands and how they are read. Nothing here changes anything: no command loads a kernel module
either (``nft`` is asked only where its code is in the kernel already).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...core.router_facts import NicFacts, Placement, RouterFacts
from ..base import Shell
from ..fact_reading import Answers, Fact, ask_facts, facts_as, facts_of, matched, summarised
from ..shell_commands import ShellCommands

_INTERRUPTS, _IRQBALANCE = "cat /proc/interrupts", "pgrep -x irqbalance"
_AFFINITY = "grep -rsH . /proc/irq --include=effective_affinity_list --include=smp_affinity_list"
_FILTERS = "grep -ohwE 'nft_do_chain|ipt_do_table' /proc/kallsyms"
"""Which packet filters are in the kernel, built in or as a module."""
_TABLES, _CHAINS = "cat /proc/net/ip_tables_names", "nft list chains"


_facts = functools.partial(facts_of, Path(__file__).parent)


def read_linux_facts(answers: Answers, interfaces: Sequence[str]) -> RouterFacts:
    """The facts of a Linux router; the kernel forwards. ``workers``: its processors that are online."""
    machine = read_machine(answers)
    cards = {name: _facts("card", interface=name) | link_facts(f"/sys/class/net/{name}/device") for name in interfaces}
    known = ask_facts(answers, cards)
    nics = tuple(_nic(name, known[name], machine.get("_cards", "")) for name in interfaces)
    files = answers.ask(_INTERRUPTS, _AFFINITY)
    cpus_of = _affinity(files[_AFFINITY])
    placement = []
    for nic in nics:
        owners = interrupt_owners(nic.interface, known[nic.interface].get("_device", ""))
        irqs = queue_interrupts(files[_INTERRUPTS], owners)
        serving = {**{queue: cpus_of.get(irq, "") for irq, queue in irqs.items()}, **nic.steered_to}
        rows = sorted((queue, cpus) for queue, cpus in serving.items() if cpus.isdigit())
        placement += [Placement(nic.interface, queue, f"CPU {cpus}") for queue, cpus in rows]
    answers.ask(_IRQBALANCE)
    balanced = {0: "running", 1: "not running"}.get(answers.status.get(_IRQBALANCE, -1))
    if balanced:
        # without output it looked, and found none
        answers.unread.pop(_IRQBALANCE, None)
        machine["irqbalance"] = balanced
    return facts_as(
        *(RouterFacts, machine),
        version=machine.get("kernel"),
        nics=nics,
        placement=tuple(placement),
        firewall=_firewall(answers),
        unread=answers.unread,
    )


def read_machine(answers: Answers) -> dict[str, str]:
    """Return the facts of the machine itself, as far as they were read; of the cards the list of ``lspci``."""
    return ask_facts(answers, {"": _facts("machine")})[""]


def _firewall(answers: Answers) -> str | None:
    """``on`` with what filters, or ``off``; None where that was not read."""
    loaded, tables = answers.ask(_FILTERS, _TABLES).values()
    chains = answers.ask(_CHAINS)[_CHAINS] if "nft_do_chain" in loaded else ""
    looked_at, tabled, chained = map(answers.status.get, (_FILTERS, _TABLES, _CHAINS))
    hooks = summarised(re.findall(r"\bhook (prerouting|forward|postrouting|ingress)\b", chains))
    known = {"nftables": hooks, "iptables": summarised(tables.split()) if tabled == 0 else None}
    if found := [f"{name} ({what})" for name, what in known.items() if what]:
        return f"on: {', '.join(found)}"
    is_unknown = ("nft_do_chain" in loaded and chained != 0) or ("ipt_do_table" in loaded and tabled != 0)
    if looked_at not in (0, 1) or is_unknown:
        return None
    for line in (_FILTERS, _TABLES, _CHAINS):
        answers.unread.pop(line, None)  # nothing on standard output is an answer here
    return "off"


def interrupt_owners(interface: str, device: str) -> tuple[str, ...]:
    """Names by which ``/proc/interrupts`` may call *interface*. *device*: the link ``/sys/class/net/…/device``."""
    name = device.strip().rpartition("/")[2]
    return (interface, name) if name else (interface,)


def interrupt_rows(text: str) -> tuple[tuple[int, ...], dict[int, tuple[tuple[int, ...], str]]]:
    """``/proc/interrupts``: the processors, and interrupt -> its counts and its name."""
    title, _, rest = text.partition("\n")
    cpus = tuple(map(int, re.findall(r"\bCPU(\d{1,6})\b", title)))
    found = {}
    for row in re.finditer(rf"^ *(\d{{1,9}}):((?: +\d{{1,20}}){{{len(cpus)}}}) +(?:.* )?(\S+)$", rest, re.MULTILINE):
        found[int(row[1])] = (tuple(map(int, row[2].split())), row[3])
    return cpus, found


def queue_interrupts(table: str, owners: Sequence[str]) -> dict[int, int]:
    """``/proc/interrupts``: interrupt -> receive queue of the card that drivers call by one of *owners*."""
    names = ((irq, name) for irq, (_, name) in interrupt_rows(table)[1].items())
    queues = ((irq, _queue_of(name, owner)) for irq, name in names for owner in owners)
    return {irq: int(queue) for irq, queue in queues if queue}


def _queue_of(name: str, owner: str) -> str | None:
    """``ixgbe``: eth0-TxRx-3; ``i40e``: i40e-eth0-TxRx-3; ``virtio_net``: virtio2-input.3; ``mlx5``: by PCI address."""
    if mlx := re.fullmatch(r"mlx\d_comp(\d{1,4})@pci:(\S+)", name):
        return mlx[1] if mlx[2] == owner else None
    pattern = rf"(?:\w+-)?{re.escape(owner)}-(?:(?:tx-?rx|rx-?tx|rx|input|fp|queue|r)[-.]?)?(\d{{1,4}})"
    found = re.fullmatch(pattern, name, re.IGNORECASE)
    return found[1] if found else None


def _nic(name: str, known: Mapping[str, str], pci: str) -> NicFacts:
    bus = known.get("_bus") or known.get("_device", "")
    channels = sum(int(known.get(key, "0")) for key in ("_rx channels", "_channels"))
    return card_facts(
        *(name, known, pci, bus),
        pci_address=bus if PCI_ADDRESS.fullmatch(bus) else None,
        rx_queues=channels or len(known.get("_queues", "").split()) or None,
        flow_control=known.get("_pauses", "").replace(",", " and").lower() or known.get("_no pauses"),
        steered_to=steered(known.get("_steering", "")),
    )


def steered(text: str) -> dict[int, str]:
    """``rx-0/rps_cpus:00000000,00000006``: receive queue -> ``1,2``; none for one without steering."""
    found: dict[int, str] = {}
    for queue, mask in re.findall(r"rx-(\d{1,4})/rps_cpus:([0-9a-f,]{1,4096}?)(?:, |$)", text):
        bits = int(mask.replace(",", "") or "0", 16)
        if cpus := [str(cpu) for cpu in range(bits.bit_length()) if bits >> cpu & 1]:
            found[int(queue)] = ",".join(cpus)
    return found


PCI_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def link_facts(folder: str) -> dict[str, Fact]:
    """Return what is asked of the PCIe link of the device in *folder*."""
    return _facts("link", folder=folder)


def card_facts(interface: str, known: Mapping[str, str], pci: str, address: str, **own: object) -> NicFacts:
    """Return what is *known* of the card at *address* and of its PCIe link; *pci*: the list of ``lspci -D``."""
    model = (matched(rf"^{re.escape(address)} [^:\n]*: *(.+)", pci) if address else None) or known.get("model")
    return facts_as(NicFacts, known, interface=interface, model=model, **own)


def _affinity(text: str) -> dict[int, str]:
    """Processors that each interrupt goes to; where the kernel does not show it, those that it may go to."""
    rows = re.findall(r"^/proc/irq/(\d+)/(effective|smp)_affinity_list:(.+)$", text, re.MULTILINE)
    return {int(irq): cpus for irq, kind, cpus in sorted(rows, key=lambda row: row[1], reverse=True)}


# -- a machine that is to run a program on DPDK: no rights, and no change

_DEVICES = (
    "grep -rsHE '^(DRIVER|PCI_CLASS|PCI_ID|INTERFACE)=' /sys/devices --include=uevent --exclude-dir=system"
    " --exclude-dir=virtual"
)
MOST_CARDS = 64
"""Functions whose details are read: a card with virtual functions may have hundreds."""


def read_host(shell: Shell) -> RouterFacts:
    """Return the facts of the machine behind *shell*, with every network card by its PCI address.

    Never raises: what is not read is missing, with the reason in ``unread``.
    """
    answers = Answers(ShellCommands(shell))
    machine = read_machine(answers)
    # class 02: network controllers (PCI Code and ID Assignment, 1.3)
    devices = _devices(answers.ask(_DEVICES)[_DEVICES])
    cards = [name for name in sorted(devices) if re.fullmatch(r"2[0-9A-F]{4}", devices[name].get("PCI_CLASS", ""))]
    nics = [_card(answers, name, devices[name], machine.get("_cards", "")) for name in cards[:MOST_CARDS]]
    return facts_as(RouterFacts, machine, workers=None, nics=tuple(nics), unread=answers.unread)


def _devices(text: str) -> dict[str, dict[str, str]]:
    """Return the variables of each PCI device's ``uevent`` by its address, with its ``folder`` and ``INTERFACE``."""
    found: dict[str, dict[str, str]] = {}
    row = rf"^(/sys/devices/\S*/({PCI_ADDRESS.pattern}))(/(?:virtio\d+/)?net/[\w.-]+)?/uevent:([A-Z_]+)=(.*)$"
    for folder, address, port, name, value in re.findall(row, text, re.MULTILINE):
        card = found.setdefault(address, {"folder": folder, "INTERFACE": ""})
        if not port:
            card[name] = value
        elif name == "INTERFACE":
            card[name] += f"{value} "
    return found


def _card(answers: Answers, address: str, card: Mapping[str, str], pci: str) -> NicFacts:
    link = ask_facts(answers, {"": link_facts(card["folder"])})[""]
    drivers = [f"ethtool -i {name}" for name in card["INTERFACE"].split()]
    information = "\n".join(answers.ask(*drivers).values())
    firmware = summarised(re.findall(r"^firmware-version: *(\S.*)", information, re.MULTILINE))
    own = {"model": card.get("PCI_ID", "").lower(), "driver": card.get("DRIVER"), "firmware": firmware}
    known = {name: value for name, value in own.items() if value} | link
    return card_facts(address, known, pci, address)
