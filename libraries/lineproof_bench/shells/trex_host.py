"""A simulated Linux machine that is to run TRex: what its ``/sys``, ``/proc`` and tools show. It runs no TRex.

A :data:`HABITS` each for what such machines have and a first run stumbles over.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from lineproof.errors import TestbedError
from lineproof.simulation.signs import BY_A_MODEL

from ..state import RouterConfiguration, RouterState
from . import posix
from .machine import Builtin, CommandLine, CommandOutput, MachineSoftware

KIND = "trex-host"
KERNEL = "6.8.0-simulated"
NODES, CORES = 2, 6
"""NUMA nodes, and physical cores of each; every core has two threads."""

HABITS = {
    "held by linux": "both ports are still Linux's, by i40e",
    "in use": "the first port is Linux's, and has an address",
    "neighbours in linux": "the card's third and fourth port are Linux's, by i40e",
    "mellanox": "the card is a ConnectX-5, without Mellanox's own drivers",
    "no huge pages": "none is reserved",
    "no huge pages in the kernel": "its kernel has none",
    "little memory": "nearly all is taken",
    "secure boot": "the kernel is locked down",
    "no iommu": "it is off",
    "no iommu option": "it is on, and the kernel's command line does not say so",
    "other server": "another TRex runs",
    "two nodes": "the second port is a card of its own, on the other node",
    "narrow slot": "the card has 4 of its 8 lanes",
    "old firmware": "the card's is from 2014",
    "no lspci": "that program is not installed",
    "no configuration": "nobody wrote /etc/trex_cfg.yaml",
}
"""What each habit means."""


class NoRouter:
    """In place of the model: this machine forwards nothing."""

    def state(self) -> RouterState:
        """Raises TestbedError."""
        raise TestbedError("this simulated machine is no router")

    def configure(self, configuration: RouterConfiguration) -> None:
        """Raises TestbedError."""
        self.state()

    def clear(self) -> None:
        """Raises TestbedError."""
        self.state()


@dataclass(frozen=True, slots=True)
class _Card:
    address: str
    driver: str
    ids: str = "8086:1572"
    name: str = "Ethernet controller: Intel Corporation Ethernet Controller X710 for 10GbE SFP+ (rev 02)"
    node: int = 0
    interface: str = ""


def software(habits: Collection[str] = ()) -> MachineSoftware:
    """The machine with these :data:`HABITS`. Raises TestbedError for an unknown one."""
    for habit in habits:
        if habit not in HABITS:
            raise TestbedError(f"no habit '{habit}' of a simulated host; there are {', '.join(HABITS)}")
    cards = _cards(habits)
    tree = _tree(cards, habits)
    files: dict[str, Callable[[CommandLine], str]] = {path: _constant(text) for path, text in tree.items()}
    commands = {**posix.commands(files), "grep": _grep(tree), "ls": _ls(tree), **_tools(cards, habits, tree)}
    return MachineSoftware("# ", commands, files)


def _constant(text: str) -> Callable[[CommandLine], str]:
    return lambda line: text


def _cards(habits: Collection[str]) -> list[_Card]:
    second = "0000:81:00.0" if "two nodes" in habits else "0000:03:00.1"
    linux = "held by linux" in habits
    drivers = ["i40e" if linux or "in use" in habits else "vfio-pci", "i40e" if linux else "vfio-pci"]
    found = [
        _Card(address, driver, node=int(address.startswith("0000:81")), interface="" if driver == "vfio-pci" else name)
        for address, driver, name in zip(("0000:03:00.0", second), drivers, ("enp3s0f0", "enp3s0f1"), strict=True)
    ]
    if "neighbours in linux" in habits:
        found += [_Card(f"0000:03:00.{number}", "i40e", interface=f"enp3s0f{number}") for number in (2, 3)]
    if "mellanox" in habits:
        name = "Ethernet controller: Mellanox Technologies MT27800 Family [ConnectX-5]"
        found = [
            _Card(f"0000:03:00.{number}", "mlx5_core", "15b3:1017", name, 0, f"ens3f{number}") for number in (0, 1)
        ]
    return [_Card("0000:01:00.0", "igb", "8086:1521", "Ethernet controller: Intel Corporation I350", 0, "eno1"), *found]


def _tree(cards: Sequence[_Card], habits: Collection[str]) -> dict[str, str]:
    options = {"no iommu": "", "no iommu option": ""}
    option = "".join(options.get(habit, "") for habit in habits if habit in options)
    if not set(options) & set(habits):
        option = " intel_iommu=on iommu=pt"
    free = 1 if "little memory" in habits else 60
    pages = 0 if {"no huge pages", "little memory"} & set(habits) else 4
    files = {
        "/proc/cmdline": f"BOOT_IMAGE=/vmlinuz-{KERNEL} root=/dev/sda1 ro{option}\n",
        "/proc/cpuinfo": "microcode\t: 0xd0003d1\n",
        "/proc/meminfo": f"MemTotal:       65536000 kB\nMemAvailable:   {free * 1000000} kB\n",
        "/etc/os-release": 'PRETTY_NAME="Ubuntu 24.04 (SIMULATED)"\nID=simulated\n',
        "/etc/trex_cfg.yaml": "- version: 2\n  interfaces: [03:00.0, 03:00.1]\n  port_limit: 2\n",
        "/sys/devices/system/cpu/intel_pstate/no_turbo": "1\n",
        "/sys/devices/system/cpu/smt/active": "1\n",
        "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "performance\n",
        "/sys/devices/system/cpu/vulnerabilities/spectre_v2": "Mitigation: Enhanced IBRS\n",
        "/sys/class/dmi/id/bios_version": "2.1.8 (SIMULATED)\n",
        "/sys/class/dmi/id/bios_date": "05/11/2023\n",
        "/sys/kernel/security/lockdown": "none [integrity] confidentiality\n"
        if "secure boot" in habits
        else "[none] integrity confidentiality\n",
    }
    if "no configuration" in habits:
        del files["/etc/trex_cfg.yaml"]
    if "no iommu" not in habits:
        files["/sys/kernel/iommu_groups/0/type"] = "DMA\n"
    for node in range(NODES):
        for kib, count in ((1048576, pages), (2048, 0)):
            folder = f"/sys/devices/system/node/node{node}/hugepages/hugepages-{kib}kB"
            if "no huge pages in the kernel" not in habits:
                files |= {f"{folder}/nr_hugepages": f"{count}\n", f"{folder}/free_hugepages": f"{count}\n"}
    for card in cards:
        folder = f"/sys/bus/pci/devices/{card.address}"
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
            files[f"{folder}/net/{card.interface}/mtu"] = "1500\n"
    return files


def _tools(cards: Sequence[_Card], habits: Collection[str], tree: dict[str, str]) -> dict[str, Builtin]:
    firmware = "4.26 0x8000143f 0.0.0" if "old firmware" in habits else "9.20 0x8000d95e 22.0.9"
    names = {card.interface: card for card in cards if card.interface}
    addresses = {"eno1": "192.0.2.10/24", **({"enp3s0f0": "198.51.100.7/24"} if "in use" in habits else {})}

    def ethtool(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        card = names.get(arguments[-1]) if arguments[:1] == ["-i"] else None
        if card is None:
            return CommandOutput("", "netlink error: no device matches name\n", 1)
        return CommandOutput(f"driver: {card.driver}\nfirmware-version: {firmware}\nbus-info: {card.address}\n")

    def lscpu(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        if not arguments:
            return CommandOutput(f"CPU(s): {2 * NODES * CORES}\nModel name:   {BY_A_MODEL}\nNUMA node(s): {NODES}\n")
        every = range(2 * NODES * CORES)
        rows = [f"{cpu},{cpu % (NODES * CORES)},{cpu % (NODES * CORES) // CORES}\n" for cpu in every]
        return CommandOutput("# CPU,Core,Node\n" + "".join(rows))

    def pgrep(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        found = "4711 ./_t-rex-64 -i -c 4\n" if "other server" in habits and "-a" in arguments else ""
        return CommandOutput(found, "", 0 if found else 1)

    def od(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        return CommandOutput(f"   6   0   0   0   {int('secure boot' in habits)}\n")

    def lspci(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        return CommandOutput("".join(f"{card.address} {card.name}\n" for card in cards))

    def ip(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        rows = [
            f"{at}: {name}    inet {text} scope global {name}\n" for at, (name, text) in enumerate(addresses.items())
        ]
        return CommandOutput("".join(rows))

    def uname(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        return CommandOutput(f"{KERNEL}\n")

    found: dict[str, Builtin] = {"ethtool": ethtool, "lscpu": lscpu, "pgrep": pgrep, "od": od, "ip": ip, "uname": uname}
    return found if "no lspci" in habits else {**found, "lspci": lspci}


def _grep(tree: dict[str, str]) -> Builtin:
    """``grep`` with ``-r``, ``-s``, ``-H``, ``-E``, ``-m1`` and ``--include``, of files."""

    def grep(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        flags = "".join(word[1:] for word in arguments if re.fullmatch(r"-[a-zA-Z]\w*", word))
        included = [word.partition("=")[2] for word in arguments if word.startswith("--include=")]
        pattern, *paths = [word for word in arguments if not word.startswith("-")]
        chosen = [path for path in tree for wanted in paths if _is_meant(path, wanted, "r" in flags, included)]
        rows = [(path, row) for path in chosen for row in tree[path].splitlines() if re.search(pattern, row)]
        text = "".join(f"{path}:{row}\n" if "H" in flags else f"{row}\n" for path, row in rows)
        return CommandOutput(text, "", 0 if rows else 1 if chosen else 2)

    return grep


def _is_meant(path: str, wanted: str, recursive: bool, included: Sequence[str]) -> bool:
    if recursive:
        name = path.rpartition("/")[2]
        return path.startswith(f"{wanted}/") and (not included or name in included)
    return fnmatch.fnmatchcase(path, wanted) and path.count("/") == wanted.count("/")


def _ls(tree: dict[str, str]) -> Builtin:
    """``ls`` of a folder, and ``ls -d`` of patterns."""
    folders = {"/".join(path.split("/")[:depth]) for path in tree for depth in range(2, path.count("/") + 1)}

    def ls(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        wanted = [word for word in arguments if not word.startswith("-")]
        if "-d" in arguments:
            found = sorted(path for path in {*tree, *folders} for name in wanted if _is_meant(path, name, False, ()))
        else:
            every = {*tree, *folders}
            found = sorted(
                {path[len(name) + 1 :] for name in wanted for path in every if path.rpartition("/")[0] == name}
            )
        missing = not found and not set(wanted) & folders
        return CommandOutput("".join(f"{name}\n" for name in found), "", 2 if missing else 0)

    return ls
