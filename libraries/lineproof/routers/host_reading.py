"""Reads the facts of a Linux machine that is to run a program on DPDK, from ``/sys``, ``/proc`` and the usual tools.

Three exchanges, no rights, and no change. The facts are read as a Linux router's are.
"""

from __future__ import annotations

import re

from ..core.router_facts import NicFacts, RouterFacts
from .base import Shell
from .fact_reading import Answers, matched, picked, summarised
from .linux_facts import PCI_ADDRESS, link_facts, machine_facts, pci_model, read_machine, with_pcie
from .shell_commands import ShellCommands

_PCI = "/sys/bus/pci/devices"
_DRIVERS = ("sh", "-c", f'grep -sHE "^(DRIVER|PCI_CLASS|PCI_ID)=" {_PCI}/*/uevent')
_NAMES = ("sh", "-c", f"ls -d {_PCI}/*/net/* {_PCI}/*/virtio*/net/*")

MOST_CARDS = 64
"""Functions whose details are read: a card with virtual functions may have hundreds."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}")


def read_host(shell: Shell) -> RouterFacts:
    """Return the facts of the machine behind *shell*, with every network card by its PCI address.

    Never raises: what is not read is missing, with the reason in ``unread``.
    """
    answers = Answers(ShellCommands(shell))
    machine = read_machine(answers)
    texts = answers.ask(_DRIVERS, _NAMES)
    if " ".join(_NAMES) in answers.status:
        # no card has a name: that is an answer, too
        answers.unread.pop(" ".join(_NAMES), None)
    nics = _nics(answers, _cards(texts[" ".join(_DRIVERS)]), _names(texts[" ".join(_NAMES)]), machine.get("cards", ""))
    return machine_facts(machine, version=None, nics=nics, unread=answers.unread)


def _cards(text: str) -> dict[str, dict[str, str]]:
    """Return the network cards' functions by address: the variables of their ``uevent``."""
    rows: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        row = re.fullmatch(rf"{_PCI}/([^/]+)/uevent:([A-Z_]+)=(.*)", line)
        if row and PCI_ADDRESS.fullmatch(row[1]):
            rows.setdefault(row[1], {})[row[2]] = row[3]
    # class 02: network controllers (PCI Code and ID Assignment, 1.3)
    cards = sorted(address for address, row in rows.items() if re.fullmatch(r"2[0-9A-F]{4}", row.get("PCI_CLASS", "")))
    return {address: rows[address] for address in cards[:MOST_CARDS]}


def _names(text: str) -> dict[str, list[str]]:
    """Return Linux's names of each card's ports, by address."""
    names: dict[str, list[str]] = {}
    for path in text.splitlines():
        if (parts := path.removeprefix(f"{_PCI}/").split("/")) and _NAME.fullmatch(parts[-1]):
            names.setdefault(parts[0], []).append(parts[-1])
    return names


def _nics(
    answers: Answers, cards: dict[str, dict[str, str]], names: dict[str, list[str]], pci: str
) -> tuple[NicFacts, ...]:
    links = {address: link_facts(f"{_PCI}/{address}") for address in cards}
    drivers = {name: ("ethtool", "-i", name) for address in cards for name in names.get(address, ())}
    commands = dict.fromkeys(command for facts in links.values() for command, _ in facts.values())
    texts = answers.ask(*commands, *drivers.values())
    nics = []
    for address, card in cards.items():
        link = picked(texts, links[address])
        information = [texts[" ".join(drivers[name])] for name in names.get(address, ())]
        nic = NicFacts(
            interface=address,
            model=pci_model(pci, address) or card.get("PCI_ID", "").lower() or None,
            driver=card.get("DRIVER"),
            firmware=summarised(matched(r"^firmware-version: *(\S.*)", text) or "" for text in information),
            other={"NUMA node": link["NUMA node"]} if "NUMA node" in link else {},
        )
        nics.append(with_pcie(nic, link))
    return tuple(nics)
