"""A simulated Linux machine that is to run TRex: what its ``/sys``, ``/proc`` and tools show. It runs no TRex."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from lineproof.errors import TestbedError
from lineproof.simulation.habits import BY_A_MODEL

from ..state import ModelledRouter
from . import posix
from .machine import Builtin, CommandLine, CommandOutput, Commands

KIND = "trex-host"
KERNEL = "6.8.0-simulated"
HABITS = {
    "held by linux": "both ports are still Linux's, by i40e",
    "two nodes": "the second port is a card of its own, on the other node",
    "narrow slot": "the card has 4 of its 8 lanes",
    "old firmware": "the card's is from 2014",
}
"""The meaning of each habit."""


def no_router() -> ModelledRouter:
    """Refuse, in place of a model: this machine forwards nothing. Raises TestbedError."""
    raise TestbedError("this simulated machine is no router")


@dataclass(frozen=True, slots=True)
class _Card:
    address: str
    driver: str
    ids: str = "8086:1572"
    name: str = "Ethernet controller: Intel Corporation Ethernet Controller X710 for 10GbE SFP+ (rev 02)"
    node: int = 0
    interface: str = ""


def software(habits: Collection[str] = ()) -> Commands:
    """The machine with these :data:`HABITS`. Raises TestbedError for an unknown one."""
    for habit in habits:
        if habit not in HABITS:
            raise TestbedError(f"no habit '{habit}' of a simulated host; there are {', '.join(HABITS)}")
    cards = _cards(habits)
    tree = _tree(cards, habits)
    files: dict[str, Callable[[CommandLine], str]] = {path: _constant(text) for path, text in tree.items()}
    return {**posix.commands(files), **_tools(cards, habits)}


def _constant(text: str) -> Callable[[CommandLine], str]:
    return lambda line: text


def _cards(habits: Collection[str]) -> list[_Card]:
    second = "0000:81:00.0" if "two nodes" in habits else "0000:03:00.1"
    linux = "held by linux" in habits
    cards = [
        _Card(address, "i40e" if linux else "vfio-pci", node=int(address.startswith("0000:81")), interface=name)
        for address, name in (("0000:03:00.0", "enp3s0f0" if linux else ""), (second, "enp3s0f1" if linux else ""))
    ]
    return [_Card("0000:01:00.0", "igb", "8086:1521", "Ethernet controller: Intel Corporation I350", 0, "eno1"), *cards]


def _tree(cards: Sequence[_Card], habits: Collection[str]) -> dict[str, str]:
    files = {
        "/proc/cmdline": f"BOOT_IMAGE=/vmlinuz-{KERNEL} root=/dev/sda1 ro intel_iommu=on iommu=pt\n",
        "/proc/cpuinfo": "microcode\t: 0xd0003d1\n",
        "/etc/os-release": 'PRETTY_NAME="Ubuntu 24.04 (SIMULATED)"\nID=simulated\n',
        "/sys/devices/system/cpu/intel_pstate/no_turbo": "1\n",
        "/sys/devices/system/cpu/smt/active": "1\n",
        "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "performance\n",
        "/sys/devices/system/cpu/vulnerabilities/spectre_v2": "Mitigation: Enhanced IBRS\n",
        "/sys/class/dmi/id/bios_version": "2.1.8 (SIMULATED)\n",
        "/sys/class/dmi/id/bios_date": "05/11/2023\n",
    }
    for card in cards:
        folder = f"/sys/devices/pci0000:00/{card.address}"
        lanes = 4 if "narrow slot" in habits and card.address != "0000:01:00.0" else 8
        files[f"{folder}/uevent"] = f"DRIVER={card.driver}\nPCI_CLASS=20000\nPCI_ID={card.ids.upper()}\n"
        files |= {
            f"{folder}/numa_node": f"{card.node}\n",
            f"{folder}/current_link_width": f"{lanes}\n",
            f"{folder}/max_link_width": "8\n",
            f"{folder}/current_link_speed": "8.0 GT/s PCIe\n",
            f"{folder}/max_link_speed": "8.0 GT/s PCIe\n",
        }
        if card.interface:
            files[f"{folder}/net/{card.interface}/uevent"] = f"INTERFACE={card.interface}\n"
    return files


def _tools(cards: Sequence[_Card], habits: Collection[str]) -> dict[str, Builtin]:
    firmware = "4.26 0x8000143f 0.0.0" if "old firmware" in habits else "9.20 0x8000d95e 22.0.9"
    names = {card.interface: card for card in cards if card.interface}

    def ethtool(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        card = names.get(arguments[-1]) if arguments[:1] == ["-i"] else None
        if card is None:
            return CommandOutput("", "netlink error: no device matches name\n", 1)
        return CommandOutput(f"driver: {card.driver}\nfirmware-version: {firmware}\nbus-info: {card.address}\n")

    def lscpu(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        return CommandOutput(f"CPU(s): 24\nModel name:   {BY_A_MODEL}\nNUMA node(s): 2\n")

    def lspci(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        return CommandOutput("".join(f"{card.address} {card.name}\n" for card in cards))

    def uname(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        return CommandOutput(f"{KERNEL}\n")

    return {"ethtool": ethtool, "lscpu": lscpu, "uname": uname, "lspci": lspci}
