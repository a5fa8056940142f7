"""A router's facts: parsers on real outputs, a simulated router, this machine's kernel; nothing is ever guessed."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping

import pytest

from lineproof.core.router_facts import NicFacts, RouterFacts
from lineproof.platforms import RouterKind
from lineproof.routers import fact_reading, freebsd, linux, make_router
from lineproof.routers.base import Result
from support.fake_router import first_output
from support.scripted_shells import answering, this_machine

READERS = re.compile(
    r"(uname|cat|lscpu|grep|lspci|pgrep|wc|readlink|nft list chains|ethtool -[ailgkxnS]|vppctl show|pciconf -lvc"
    r"|sysctl( -i)?(?= [\w.]+)(?!.*=)|kenv -q|pfctl -s info)( |$)"
)
"""Commands that change nothing."""

DPDK = first_output("vpp-dpdk.txt", "vppctl show hardware-interfaces")
INTERRUPTS = first_output("linux-card.txt", "cat /proc/interrupts")


def facts_of(kind: RouterKind, outputs: Mapping[str, tuple[str, int]], *interfaces: str) -> RouterFacts:
    """Return the facts of a router that knows these commands only."""
    return make_router(kind, answering(outputs), interfaces).facts()


# -- VPP ---------------------------------------------------------------------------------------------------------------


def test_a_card_of_dpdk_is_read_with_the_link_that_linux_shows() -> None:
    name, link = "TenGigabitEthernet3/0/0", "/sys/bus/pci/devices/0000:03:00.0"
    shown = {"vppctl show hardware-interfaces": (DPDK, 0)}
    files = {f"cat {link}/current_link_width": ("4\n", 0), f"cat {link}/max_link_speed": ("8.0 GT/s PCIe\n", 0)}
    for answers, expected in ((shown, "0"), ({**shown, **files}, None)):
        (found,) = facts_of("vpp", answers, name).nics
        assert found.other.get("NUMA node") == expected
    assert (found.pcie_width, found.pcie_speed_max) == (4, 8.0)


# -- Linux -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("interface", "device", "expected"),
    [
        ("eth2", "../../virtio2\n", {38: 0}),
        ("eth0", "../../0000:02:00.0\n", {40: 0, 41: 1}),
        ("ens1", "../../0000:01:00.0\n", {43: 3}),
        ("eth", "../virtio\n", {}),
        ("eth", "", {}),
    ],
)
def test_interrupts_of_receive_queues_are_found_by_the_names_that_drivers_give(
    interface: str, device: str, expected: Mapping[int, int]
) -> None:
    assert linux.queue_interrupts(INTERRUPTS, interface, device) == expected


@pytest.mark.slow
def test_the_kernel_of_this_machine_is_read_and_nothing_is_made_up() -> None:
    asked: list[str] = []

    def shell(command: str, limit: float) -> Result:
        asked.append(command)
        return this_machine(command, limit)

    router = make_router("linux", shell, ("lo", "nothere0"))
    facts = router.facts()
    assert facts.kernel == subprocess.run(["uname", "-r"], capture_output=True, text=True).stdout.strip()
    assert [nic.interface for nic in facts.nics] == ["lo", "nothere0"]
    assert facts.nics[1] == NicFacts("nothere0")
    assert facts.nics[0].pcie_width is None


def test_the_link_of_a_pci_device_is_read_but_not_what_the_kernel_does_not_know() -> None:
    device = "/sys/bus/pci/devices/0000:03:00.0"
    facts = linux.link_facts(device)
    (command,) = {command for command, _ in facts.values()}
    files = {"numa_node": "-1", "max_link_width": "255", "current_link_width": "8", "max_link_speed": "8.0 GT/s PCIe"}
    found = fact_reading.picked(
        {command: "".join(f"{device}/{name}:{value}\n" for name, value in files.items())}, facts
    )
    assert found == {"pcie_width": "8", "pcie_speed_max": "8.0"}


HOOKS, CHAINS = "grep -ohwE nft_do_chain|ipt_do_table /proc/kallsyms", "nft list chains"
FORWARD = "table inet a {\n\tchain b {\n\t\ttype filter hook forward priority filter;\n"


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        ({}, None),
        ({HOOKS: ("", 1)}, "off"),
        ({HOOKS: ("nft_do_chain\n", 0)}, None),
        ({HOOKS: ("nft_do_chain\n", 0), CHAINS: ("", 0)}, "off"),
        ({HOOKS: ("nft_do_chain\n", 0), CHAINS: (FORWARD, 0)}, "on: nftables (forward)"),
        ({"cat /proc/net/ip_tables_names": ("filter\nnat\n", 0)}, "on: iptables (filter, nat)"),
    ],
)
def test_a_firewall_is_off_only_where_that_was_read(outputs: dict[str, tuple[str, int]], expected: str | None) -> None:
    assert facts_of("linux", outputs).firewall == expected


# -- FreeBSD -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("t5nex0@pci1:130:31:4:\tclass=0x020000\n", "0001:82:1f.4"),
        # Chelsio's ports are parts of another device; a virtual interface has none
        ("port=0", None),
        ("ix0@pci0:3:0:9:", None),
    ],
)
def test_addresses_of_freebsd_are_written_as_linux_does(text: str, address: str | None) -> None:
    assert freebsd.pci_address(text) == address


def test_a_card_without_ethtool_has_the_address_of_its_device() -> None:
    devices = {"eth1": "../../../0000:04:00.0\n", "eth2": "../../../virtio2\n"}
    outputs = {f"readlink /sys/class/net/{name}/device": (path, 0) for name, path in devices.items()}
    found = facts_of("linux", outputs, *devices, "veth0")
    assert [nic.pci_address for nic in found.nics] == ["0000:04:00.0", None, None]


# -- all ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["vpp", "linux", "freebsd"])
def test_facts_are_read_by_commands_that_change_nothing(kind: RouterKind) -> None:
    commands: list[str] = []

    def shell(command: str, limit: float) -> Result:
        commands.append(command)
        return Result(DPDK.replace("TenGigabitEthernet3/0/0", "eth1") + "nft_do_chain\n", "", 0, 0.0)

    make_router(kind, shell, ("eth1",)).facts()
    assert commands and not [command for command in commands if not READERS.match(command)]


@pytest.mark.parametrize(
    ("version", "workers", "queues", "words"),
    [
        ("22.02", 1, 1, []),
        ("Ubuntu 20.04.3, kernel 5.13", None, None, []),
        ("as found", None, None, []),
        ("22.0", None, None, ["'version': the platform's file says 22.0, the router reports v22.02, Ubuntu 20.04.3"]),
        ("5.1", None, None, ["'version'"]),
        ("22.02", 3, 4, ["'workers': the platform's file says 3, the router has 1", "'rx_queues'"]),
    ],
)
def test_differences_from_the_platforms_file_are_named(
    version: str, workers: int | None, queues: int | None, words: list[str]
) -> None:
    facts = RouterFacts(
        version="v22.02", os="Ubuntu 20.04.3 LTS", kernel="5.13.0-30", workers=1, nics=(NicFacts("a", rx_queues=1),)
    )
    found = fact_reading.differences(facts, version, workers, queues)
    assert len(found) == len(words) and all(text.startswith(word) for text, word in zip(found, words, strict=True))
    assert fact_reading.differences(RouterFacts(), version, workers, queues) == ()


@pytest.mark.parametrize(
    ("ways", "mode", "expected"),
    [
        (("on", "on"), "3", "rx and tx"),
        (("on", "off"), "1", "rx"),
        (("off", "on"), "2", "tx"),
        (("off", "off"), "0", "off"),
        (None, "9", None),
    ],
)
def test_flow_control_is_read_of_linux_and_freebsd(
    ways: tuple[str, str] | None, mode: str, expected: str | None
) -> None:
    pauses = "Pause parameters for eth1:\nAutonegotiate:\ton\nRX:\t\t{}\nTX:\t\t{}\nRX negotiated: on\n"
    text = pauses.format(*ways) if ways else "netlink error: Operation not supported\n"
    (nic,) = facts_of("linux", {"ethtool -a eth1": (text, 0)}, "eth1").nics
    device = {"sysctl -i dev.ix.0": (f"dev.ix.0.%driver: ix\ndev.ix.0.fc: {mode}\n", 0)}
    (card,) = facts_of("freebsd", device, "ix0").nics
    assert nic.flow_control == card.flow_control == expected


def test_the_mask_of_steering_is_read_and_zero_is_none() -> None:
    folder, masks = "/sys/class/net/eth1/queues", enumerate(("00000000,00000006", "0", "zz", "1,00000000"))
    shown = "".join(f"{folder}/rx-{queue}/rps_cpus:{mask}\n" for queue, mask in masks)
    (nic,) = facts_of("linux", {f"grep -rsH . {folder} --include=rps_cpus": (shown, 0)}, "eth1").nics
    assert nic.steered_to == {0: "1,2", 3: "32"}


# -- the generator's machine is read as it shows itself; what it does not show is missing, with the reason


def test_a_machine_that_shows_nothing_says_so() -> None:
    facts = linux.read_host(lambda command, limit: Result("", "sh: not found\n", 127, 0.0))
    assert facts.unread and facts.os is None and facts.nics == ()


@pytest.mark.slow
def test_this_machine_is_read() -> None:
    facts = linux.read_host(this_machine)
    assert facts.cpu and facts.other["kernel command line"]
