"""A link's state and speed are those that the router's own commands show, and no conventions."""

from __future__ import annotations

from pathlib import Path

import pytest

from lineproof.errors import TestbedError
from lineproof.project import Project
from lineproof.routers.command_file import read_command_file
from lineproof.routers.link_state import (
    LinkState,
    parse_hardware,
    parse_ifconfig,
    parse_ip_link,
    read_link_states,
    with_sysfs_speed,
)
from support.paths import ROOT
from support.scripted_shells import broken

STATE = LinkState("eth1")


@pytest.mark.parametrize(
    ("speed", "device", "expected"),
    [
        ("10000\n", "DRIVER=ixgbe\nPCI_CLASS=20000\n", 10e9),
        ("2500\n", "DRIVER=igc\n", 2.5e9),
        ("-1\n", "DRIVER=ixgbe\n", None),
        ("", "DRIVER=ixgbe\n", None),
        ("0\n", "DRIVER=ixgbe\n", None),
        ("10000\n", "", None),
        ("10000\n", "DRIVER=vmxnet3\n", None),
        ("10000\n", "DRIVER=virtio_net\n", None),
        ("99999999999999\n", "DRIVER=ixgbe\n", None),
    ],
)
def test_linux_shows_the_speed_of_a_card(speed: str, device: str, expected: float | None) -> None:
    assert with_sysfs_speed(STATE, speed, device).speed_bps == expected


@pytest.mark.parametrize(
    ("interface", "media", "expected"),
    [
        ("ix0", "Ethernet autoselect (10Gbase-T <full-duplex,rxpause,txpause>)", 10e9),
        ("ix0", "Ethernet 10Gbase-SR <full-duplex>", 10e9),
        ("igc0", "Ethernet autoselect (2500Base-T <full-duplex>)", 2.5e9),
        ("igb0", "Ethernet autoselect (1000baseT <full-duplex>)", 1e9),
        # chosen and in use differ
        ("igb0", "Ethernet 1000baseT <full-duplex> (100baseTX <full-duplex>)", 100e6),
        ("mce0", "Ethernet autoselect <full-duplex,rxpause,txpause> (100GBase-CR4 <full-duplex>)", 100e9),
        ("ix0", "Ethernet autoselect (none)", None),
        ("ix0", "Ethernet autoselect", None),
        ("vtnet0", "Ethernet autoselect (10Gbase-T <full-duplex>)", None),
        ("epair0a", "Ethernet 10Gbase-T (10Gbase-T <full-duplex>)", None),
    ],
)
def test_freebsd_shows_it_among_the_media(interface: str, media: str, expected: float | None) -> None:
    text = f"{interface}: flags=8843<UP,RUNNING> metric 0 mtu 1500\n\tmedia: {media}\n\tstatus: active\n"
    assert parse_ifconfig(text, interface).speed_bps == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("  Link speed: 10 Gbps\n  Intel X710/XL710 Family\n", 10e9),
        ("  Link speed: 2.5 Gbps\n", 2.5e9),
        ("  Link speed: 100 Mbps\n", 100e6),
        ("  Link speed: unknown\n", None),
        ("  Link speed: 10 Gbps\n  Red Hat Virtio\n", None),
        ("  Link speed: 10 Gbps\n  VMware VMXNET3\n", None),
    ],
)
def test_vpp_shows_it_with_its_hardware(rows: str, expected: float | None) -> None:
    text = (
        f"Name  Idx  Link  Hardware\nTen3/0/0  1  up  Ten3/0/0\n{rows}local0  0  down  local0\n  Link speed: unknown\n"
    )
    (found,) = parse_hardware(text, ["Ten3/0/0"])
    assert found.speed_bps == expected


def test_a_described_router_that_refuses_has_no_speed() -> None:
    file = read_command_file(Project.find(ROOT).shells, "ios")
    assert read_link_states("generic", broken, ("one",), file=file) == (LinkState("one"),)


def test_nothing_is_asked_of_a_router_whose_file_does_not_say_how(tmp_path: Path) -> None:
    assert read_link_states("generic", None, ("one",)) == (LinkState("one"),)  # type: ignore[arg-type]


def test_interfaces_of_a_linux_router():
    up = "2: eth1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 state UP\n    link/ether 02:00:00:00:AA:01 brd ff:ff\n"
    assert parse_ip_link(up, "eth1") == LinkState("eth1", "02:00:00:00:aa:01", True, True)
    unplugged = "2: eth1: <NO-CARRIER,BROADCAST,UP> mtu 1500\n    link/ether 02:00:00:00:aa:01 brd ff:ff\n"
    assert parse_ip_link(unplugged, "eth1").carrier is False
    assert parse_ip_link("2: eth1: <BROADCAST,MULTICAST> mtu 1500", "eth1") == LinkState("eth1", "", False, None)
    with pytest.raises(TestbedError, match="was not understood: 'what'"):
        parse_ip_link("what", "eth1")
