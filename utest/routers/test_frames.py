"""Configuring a router for IPv6, tags and labels: what the words need, commands on Linux, missing modules, restore."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest

from lineproof.errors import TestbedError
from lineproof.routers import make_router
from lineproof.routers.base import Result, Shell
from lineproof.testbed.settings import HardwareSettings
from lineproof.traffic.catalogue import Catalogue
from lineproof.traffic.frame_kinds import (
    FrameKind,
    FrameKinds,
    ipv6_address,
    ipv6_network,
    reason_not_forwarded,
    refuse_not_forwarded,
)
from support.fake_router import SIDES
from support.kernel_namespace import kernel_namespace
from support.paths import VARIABLES

CATALOGUE = Catalogue.read(VARIABLES / "profiles")
ALL: tuple[FrameKind, ...] = ("ipv6", "vlan", "mpls")
FRAMES = FrameKinds.of(CATALOGUE, ALL)


def test_frame_kinds_are_read_from_the_words_of_a_catalogue() -> None:
    assert FRAMES.prefixes == ("2001:2::",)
    assert FRAMES.tags == (((0x8100, 100),), ((0x88A8, 200), (0x8100, 100)))
    # mpls2 needs no more than mpls: a router looks at the outermost label
    assert FRAMES.labels == ((100, 200),)
    vlan: tuple[FrameKind, ...] = ("vlan",)
    assert FrameKinds.of(CATALOGUE, vlan) == FrameKinds(tags=FRAMES.tags)
    assert FrameKinds.of(CATALOGUE, ()) == FrameKinds()


def test_ipv6_addresses_end_with_the_ipv4_address() -> None:
    assert ipv6_address("2001:2::", "100.65.1.2") == "2001:2::6441:102"
    assert ipv6_network("2001:2::", "48.0.0.0/8") == "2001:2::3000:0/104"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("64b", ""),
        ("64b tcp", ""),
        ("64b vlan", "no tags"),
        ("64b qinq", "no tags"),
        ("82b vlan ipv6", "no tags"),
        ("78b ipv6", ""),
        ("82b mpls ipv6", "not both"),
    ],
)
def test_a_profile_is_refused_if_the_router_cannot_forward_its_frames(words: str, reason: str) -> None:
    lacking = {frozenset[FrameKind]({"vlan"}): "no tags", frozenset[FrameKind]({"mpls", "ipv6"}): "not both"}
    profile = CATALOGUE.profile(words.split())
    assert reason_not_forwarded(profile, lacking) == reason
    if reason:
        with pytest.raises(TestbedError, match=f"'{profile.name}' was not sent: {reason}"):
            refuse_not_forwarded(profile, lacking)
    else:
        refuse_not_forwarded(profile, lacking)


def test_set_up_is_refused_with_prepare_none() -> None:
    hardware = {
        "testbed": "lab",
        "kind": "hardware",
        "generator": {"address": "192.0.2.10"},
        "router": {"address": "192.0.2.20", "user": "admin", "key": "key"},
        "set_up": ["ipv6"],
    }
    assert HardwareSettings.model_validate(hardware).set_up == ("ipv6",)
    with pytest.raises(ValueError, match="with 'none' expected to leave it out"):
        HardwareSettings.model_validate({**hardware, "prepare": "none"})


class Kernel:
    """A Linux shell with *modules* that records its commands."""

    def __init__(self, *modules: str) -> None:
        self.modules, self.commands = modules, list[str]()
        self.variables = dict[str, str]()

    def __call__(self, command: str, limit: float) -> Result:
        words = shlex.split(command)
        if words[:2] != ["sh", "-c"]:
            status, text = self.answer(command)
            return Result(text if not status else "", text if status else "", status, 0.0)
        out, err = "", ""
        for line, number in re.findall(r'(?:^|; )(.*?); echo "@@lineproof (\d+) \$\?"', words[2]):
            status, text = self.answer(line)
            out += f"{text}@@lineproof {number} {status}\n" if not status else f"@@lineproof {number} {status}\n"
            err += text if status else ""
        return Result(out, err, 0, 0.0)

    def answer(self, line: str) -> tuple[int, str]:
        words = line.split()
        if words[:2] == ["sysctl", "-n"]:
            exists = words[2].split("/")[1] in ("ipv4", *self.modules)
            value = self.variables.get(words[2], "1" if "disable_ipv6" in line else "0")
            return (0, f"{value}\n") if exists else (1, "sysctl: cannot stat\n")
        if words[:2] == ["sysctl", "-w"]:
            name, _, value = words[2].partition("=")
            self.variables[name] = value
        if "show" in words or words[0] == "modprobe":
            return 0, ""
        if "vlan" in words and "8021q" not in self.modules:
            return 2, "Error: Unknown device type.\n"
        self.commands.append(line)
        return 0, ""


def test_a_kernel_with_every_module_is_configured_for_each_kind_of_frame() -> None:
    kernel = Kernel("ipv6", "8021q", "mpls")
    router = make_router("linux", kernel)
    router.configure_frames(SIDES, FRAMES)
    commands = kernel.commands
    assert "ip -6 route replace 2001:2::1000:0/104 via 2001:2::6441:102 dev eth1 onlink" in commands
    assert "ip neigh replace 2001:2::6441:202 lladdr 02:00:00:00:02:02 nud permanent dev eth2" in commands
    assert "ip link add link eth1 name lr0.100 type vlan proto 802.1Q id 100" in commands
    assert "ip link add link eth2 name lr1.s200 type vlan proto 802.1ad id 200" in commands
    assert "ip link add link lr1.s200 name lr1.s200.100 type vlan proto 802.1Q id 100" in commands
    assert "ip -4 route replace 48.0.0.0/8 via 100.65.2.2 dev lr1.100 onlink table 29700" in commands
    assert "ip -6 route replace 2001:2::3000:0/104 via 2001:2::6441:202 dev lr1.s200.100 onlink table 29701" in commands
    assert "ip -4 rule add iif lr0.100 lookup 29700" in commands
    # the first direction's label leads to the second side
    assert "ip -f mpls route replace 100 as to 100 via inet 100.65.2.2 dev eth2" in commands
    assert "ip -f mpls route replace 200 as to 200 via inet 100.65.1.2 dev eth1" in commands
    assert "sysctl -w net/mpls/platform_labels=201" in commands
    # interfaces are quiet before IPv6 is enabled
    assert commands.index("sysctl -w net/ipv6/conf/eth1/addr_gen_mode=1") < commands.index(
        "sysctl -w net/ipv6/conf/eth1/disable_ipv6=0"
    )
    [(needs, reason)] = router.not_forwarded.items()
    assert needs == {"vlan", "mpls"} and "without the tags" in reason
    before = len(commands)
    router.restore()
    undone = commands[before:]
    assert router.not_forwarded == {} and router.notes == ()
    assert "ip link del dev lr0.100" in undone and "ip -6 rule del iif lr1.s200.100 lookup 29701" in undone
    assert undone.index("ip link del dev lr1.s200.100") < undone.index("ip link del dev lr1.s200")
    assert undone[-1] == "sysctl -w net/ipv6/conf/all/forwarding=0"


def test_a_missing_module_is_named_and_the_rest_is_configured() -> None:
    kernel = Kernel()
    router = make_router("linux", kernel)
    router.configure_frames(SIDES, FRAMES)
    reasons = {next(iter(needs)): reason for needs, reason in router.not_forwarded.items()}
    assert len(router.not_forwarded) == len(router.notes) == 3
    assert "its module 8021q is missing ('ip link add … type vlan' reports: Unknown device type)" in reasons["vlan"]
    assert "its module mpls_router is missing" in reasons["mpls"]
    assert "has no IPv6" in reasons["ipv6"]
    assert kernel.commands == []
    kernel = Kernel("ipv6")
    router = make_router("linux", kernel)
    router.configure_frames(SIDES, FRAMES)
    assert {kind for needs in router.not_forwarded for kind in needs} == {"vlan", "mpls"}
    assert any("2001:2::1000:0/104" in line for line in kernel.commands)


def test_a_label_of_both_directions_is_refused() -> None:
    with pytest.raises(TestbedError, match="label 100 is among the words' 'labels' and 'labels_back'"):
        make_router("linux", Kernel("mpls")).configure_frames(SIDES, FrameKinds(labels=((100, 200), (300, 100))))


@pytest.fixture
def kernel() -> Iterator[Shell]:
    with kernel_namespace() as shell:
        yield shell


@pytest.mark.netns
def test_a_real_kernel_is_configured_for_all_frames_and_restored(kernel: Shell) -> None:
    def settings() -> list[str]:
        shown = (
            *("ip -br link", "ip route", "ip neigh", "ip rule", "ip -6 rule", "ip -6 route | grep -v fe80"),
            *("ip -4 route show table all", "ip -f mpls route 2>&1", "sysctl net.mpls 2>&1"),
            *("sysctl net.ipv6.conf.eth1 net.ipv6.conf.all.forwarding", "sysctl net.ipv4.conf.eth2.rp_filter"),
        )
        return [kernel(command, 5.0).stdout for command in shown]

    # otherwise the kernel announces itself when its interfaces come up
    kernel("sysctl -w net.ipv6.conf.eth1.disable_ipv6=1 net.ipv6.conf.eth2.disable_ipv6=1", 5.0)
    kernel("ip link set eth1 up; ip link set eth2 up; ip link set peer1 up; ip link set peer2 up", 5.0)
    before = settings()
    first, second = make_router("linux", kernel), make_router("linux", kernel)
    first.configure(SIDES)
    first.configure_frames(SIDES, FRAMES)
    between = settings()
    lacking = {kind for needs in first.not_forwarded if len(needs) == 1 for kind in needs}
    if "ipv6" not in lacking:
        assert "2001:2::1000:0/104 via 2001:2::6441:102 dev eth1" in kernel("ip -6 route", 5.0).stdout
        assert "inet6" not in kernel("ip -6 addr show dev eth1", 5.0).stdout
    if "vlan" not in lacking:
        assert "lr1.s200.100" in between[0]
    if "mpls" not in lacking:
        assert "100 as to 100 via inet 100.65.2.2 dev eth2" in kernel("ip -f mpls route", 5.0).stdout
    # a second router finds it configured, and changes nothing
    second.configure(SIDES)
    second.configure_frames(SIDES, FRAMES)
    assert settings() == between
    second.restore()
    assert settings() == between
    first.restore()
    assert settings() == before
