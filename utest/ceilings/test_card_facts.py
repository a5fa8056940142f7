"""Facts of cards beside their limits: firmware, what filters measure, interfaces of a router."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lineproof.ceilings.cards import (
    CardChoice,
    choose_card,
    firmware_version,
)
from lineproof.ceilings.published_limits import PublishedLimits
from lineproof.errors import TestbedError
from lineproof.routers.link_state import LinkState, parse_hardware, parse_ifconfig, parse_ip_link
from support.ceilings import CATALOGUE, FILES, ports


def test_interfaces_of_a_linux_router():
    up = "2: eth1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 state UP\n    link/ether 02:00:00:00:AA:01 brd ff:ff\n"
    assert parse_ip_link(up, "eth1") == LinkState("eth1", "02:00:00:00:aa:01", True, True)
    unplugged = "2: eth1: <NO-CARRIER,BROADCAST,UP> mtu 1500\n    link/ether 02:00:00:00:aa:01 brd ff:ff\n"
    assert parse_ip_link(unplugged, "eth1").carrier is False
    assert parse_ip_link("2: eth1: <BROADCAST,MULTICAST> mtu 1500", "eth1") == LinkState("eth1", "", False, None)
    with pytest.raises(TestbedError, match="was not understood: 'what'"):
        parse_ip_link("what", "eth1")


def test_interfaces_of_a_freebsd_router():
    text = "ix0: flags=8843<UP,BROADCAST,RUNNING> metric 0 mtu 1500\n\tether 02:00:00:00:aa:01\n\tstatus: no carrier\n"
    assert parse_ifconfig(text, "ix0") == LinkState("ix0", "02:00:00:00:aa:01", True, False)


def test_interfaces_of_vpp():
    text = "Name  Idx  Link  Hardware\nTen3/0/0  1  up  Ten3/0/0\n  Link speed: 10 Gbps\n"
    text += "  Ethernet address 02:00:00:00:aa:01\n"
    assert parse_hardware(text + "local0  0  down  local0\n", ["Ten3/0/0", "Ten9"]) == (
        LinkState("Ten3/0/0", "02:00:00:00:aa:01", None, True, 10e9, "show hardware-interfaces"),
        LinkState("Ten9"),
    )


@pytest.mark.parametrize(
    ("card", "firmware", "server", "words"),
    [
        ("intel_x710", "4.26 0x8000143f 0.0.0", "v3.08", ["too old"]),
        ("intel_x710", "5.05 0x80002899 1.1568.0", "v3.08", []),
        ("intel_x710", "6.01 0x80003493 1.1747.0", "v2.60", ["27 Mpps"]),
        ("intel_x710", "6.01 0x80003493 1.1747.0", "v3.08", []),
        ("intel_x710", "9.20 0x8000d95e 22.0.9", "v3.08", ["low-latency queue"]),
        ("intel_xxv710", "9.50 0x8000f251 1.3682.0", "v3.08", ["low-latency queue", "receive errors"]),
        ("intel_x710", "9.20 0x8000d95e 22.0.9", None, []),
        ("intel_x710", "N/A", "v3.08", []),
        ("mellanox_connectx5", "16.24.1000 (MT_0000000080)", "v3.08", ["older than what TRex's manual"]),
        ("mellanox_connectx5", "16.35.2000 (MT_0000000080)", "v3.08", []),
    ],
)
def test_firmware_is_compared_by_its_numbers_and_trexs_version(
    card: str, firmware: str, server: str | None, words: list[str]
):
    (file,) = [file for file in FILES if file.card.card == card]
    found = [fact.problem for fact in file.card.firmware_facts(firmware, server)]
    assert len(found) == len(words) and all(word in text for word, text in zip(words, found, strict=True)), found


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("9.20 0x8000d95e 22.0.9", (9, 20)),
        ("16.25.1020 (MT_0000000008)", (16, 25, 1020)),
        ("0x800006da", None),
        ("N/A", None),
        ("", None),
        ("9", None),
        ("9.2a", None),
    ],
)
def test_a_firmwares_version_is_its_first_word(text: str, version: tuple[int, ...] | None):
    assert firmware_version(text) == version


@pytest.mark.parametrize(
    ("driver", "gbps", "description", "card"),
    [
        ("net_ice", 10, "Ethernet Controller E810-C for QSFP", "intel_e810_100g"),
        ("net_ice", 10, "Ethernet Controller E810-XXV for SFP", "intel_e810_25g"),
        ("net_ice", 25, "Ethernet Controller E810-C for SFP", "intel_e810_25g"),
        ("net_ice", 100, "Unknown", "intel_e810_100g"),
        ("net_i40e", 0, "Ethernet Controller X710 for 10GbE SFP+", "intel_x710"),
        ("net_mlx5", 25, "MT27710 Family [ConnectX-4 Lx]", "mellanox_connectx4"),
    ],
)
def test_a_slower_link_or_an_unknown_speed_hides_no_card(driver: str, gbps: float, description: str, card: str):
    choice = choose_card(FILES, ports(driver, gbps, description))
    assert choice.file is not None and choice.file.card.card == card


@pytest.mark.parametrize(
    ("card", "words", "server", "refused"),
    [
        ("intel_x710", "128b vlan", "v3.08", False),
        ("intel_82599", "128b vlan", "v3.08", True),
        ("intel_e810_100g", "128b", "v3.06", True),
        ("mellanox_connectx5", "128b ipv6", "v3.08", False),
    ],
)
def test_what_hardware_filters_cannot_measure_software_can(card: str, words: str, server: str, refused: bool):
    (file,) = [file for file in FILES if file.card.card == card]
    profile = CATALOGUE.profile(words.split())
    for software, expected in ((False, refused), (True, False)):
        measures = frozenset({"flow_stats", "latency"} | ({"tpg"} if software else set()))
        own = [replace(port, measures=measures) for port in ports(file.card.drivers[0])]
        limits = PublishedLimits.of(CardChoice(file, ""), own, 10e9, server)
        limits.check_sendable(profile, probes=False)
        if expected:
            with pytest.raises(TestbedError, match=r"known not to measure the latency .*start TRex with '--software'"):
                limits.check_sendable(profile, probes=True)
        else:
            limits.check_sendable(profile, probes=True)


@pytest.mark.parametrize(
    ("card", "part", "servers"),
    [
        (
            "mellanox_connectx4",
            "received frames are counted as errors",
            {"v3.03": False, "v3.04": True, "v3.05": False},
        ),
        (
            "mellanox_connectx5",
            "received frames are counted as errors",
            {"v3.03": False, "v3.04": True, "v3.05": False},
        ),
        (
            "mellanox_connectx6",
            "received frames are counted as errors",
            {"v3.03": False, "v3.04": True, "v3.05": False},
        ),
        ("virtual", "are in no counter", {"v2.87": True, "v3.08": True}),
    ],
)
def test_facts_of_some_versions_and_cards_are_there(card: str, part: str, servers: dict[str, bool]):
    (file,) = [file for file in FILES if file.card.card == card]
    (quirk,) = [quirk for quirk in file.card.quirks if part in quirk.quirk]
    assert {server: quirk.servers.include(server) for server in servers} == servers
