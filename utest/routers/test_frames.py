"""Setting a router up for IPv6, tags and labels: what the words need, how Linux is told, what it lacks, and back."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from linerate.errors import TestbedError
from linerate.routers import make
from linerate.routers.base import Result
from linerate.testbed.settings import HardwareSettings
from linerate.traffic.catalogue import Catalogue
from linerate.traffic.frame_kinds import FrameKind, FrameKinds, mapped, mapped_network, reason_against, refuse
from support.fake_router import SIDES, shell_of, simulated
from support.paths import VARIABLES

CATALOGUE = Catalogue.read(VARIABLES / "profiles")
ALL: tuple[FrameKind, ...] = ("ipv6", "vlan", "mpls")
FRAMES = FrameKinds.of(CATALOGUE, ALL)


def test_what_the_words_need_is_read_from_them() -> None:
    assert FRAMES.prefixes == ("2001:2::",)
    assert FRAMES.tags == (((0x8100, 100),), ((0x88A8, 200), (0x8100, 100)))
    # mpls2 needs no more than mpls: a router looks at the outermost label
    assert FRAMES.labels == ((100, 200),)
    assert FrameKinds.of(CATALOGUE, ("vlan",)) == FrameKinds(tags=FRAMES.tags)
    assert FrameKinds.of(CATALOGUE, ()) == FrameKinds()


def test_ipv6_addresses_end_as_the_ipv4_ones() -> None:
    assert mapped("2001:2::", "100.65.1.2") == "2001:2::6441:102"
    assert mapped_network("2001:2::", "48.0.0.0/8") == "2001:2::3000:0/104"


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
def test_a_profile_is_refused_for_what_all_its_frames_need(words: str, reason: str) -> None:
    lacking = {frozenset[FrameKind]({"vlan"}): "no tags", frozenset[FrameKind]({"mpls", "ipv6"}): "not both"}
    profile = CATALOGUE.profile(words.split())
    assert reason_against(profile, lacking) == reason
    if reason:
        with pytest.raises(TestbedError, match=f"'{profile.name}' was not sent: {reason}"):
            refuse(profile, lacking)
    else:
        refuse(profile, lacking)


@pytest.mark.parametrize("kind", ["vpp", "freebsd"])
def test_other_routers_are_set_up_by_hand(kind: str) -> None:
    router = make(kind, shell_of(simulated(kind)[0]))
    with pytest.raises(TestbedError, match=r"'set_up', .* set it up by hand and take the key away"):
        router.set_up(SIDES, FRAMES)
    assert router.lacking == {}


def test_a_testbed_that_is_not_configured_is_not_set_up_either() -> None:
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
    """A Linux shell that remembers its commands; what it has is what *modules* are named."""

    def __init__(self, *modules: str) -> None:
        self.modules, self.commands = modules, list[str]()

    def __call__(self, command: str, limit: float) -> Result:
        words = shlex.split(command)
        if words[:2] != ["sh", "-c"]:
            status, said = self.answer(command)
            return Result(said if not status else "", said if status else "", status, 0.0)
        out, err = "", ""
        for line, number in re.findall(r'(?:^|; )(.*?); echo "@@linerate (\d+) \$\?"', words[2]):
            status, said = self.answer(line)
            out += f"{said}@@linerate {number} {status}\n" if not status else f"@@linerate {number} {status}\n"
            err += said if status else ""
        return Result(out, err, 0, 0.0)

    def answer(self, line: str) -> tuple[int, str]:
        words = line.split()
        if words[:2] == ["sysctl", "-n"]:
            there = words[2].split("/")[1] in ("ipv4", *self.modules)
            return (0, "1\n" if "disable_ipv6" in line else "0\n") if there else (1, "sysctl: cannot stat\n")
        if "show" in words or words[0] == "modprobe":
            return 0, ""
        if "vlan" in words and "8021q" not in self.modules:
            return 2, "Error: Unknown device type.\n"
        self.commands.append(line)
        return 0, ""


def test_a_kernel_with_every_module_gets_a_way_for_each_kind_of_frame() -> None:
    kernel = Kernel("ipv6", "8021q", "mpls")
    router = make("linux", kernel)
    router.set_up(SIDES, FRAMES)
    told = kernel.commands
    assert "ip -6 route replace 2001:2::1000:0/104 via 2001:2::6441:102 dev eth1 onlink" in told
    assert "ip neigh replace 2001:2::6441:202 lladdr 02:00:00:00:02:02 nud permanent dev eth2" in told
    assert "ip link add link eth1 name lr0.100 type vlan proto 802.1Q id 100" in told
    assert "ip link add link eth2 name lr1.s200 type vlan proto 802.1ad id 200" in told
    assert "ip link add link lr1.s200 name lr1.s200.100 type vlan proto 802.1Q id 100" in told
    assert "ip -4 route replace 48.0.0.0/8 via 100.65.2.2 dev lr1.100 onlink table 29700" in told
    assert "ip -6 route replace 2001:2::3000:0/104 via 2001:2::6441:202 dev lr1.s200.100 onlink table 29701" in told
    assert "ip -4 rule add iif lr0.100 lookup 29700" in told
    # the first direction's label leads to the second side
    assert "ip -f mpls route replace 100 as to 100 via inet 100.65.2.2 dev eth2" in told
    assert "ip -f mpls route replace 200 as to 200 via inet 100.65.1.2 dev eth1" in told
    assert "sysctl -w net/mpls/platform_labels=201" in told
    # no interface speaks of itself: quiet before it is let speak at all
    assert told.index("sysctl -w net/ipv6/conf/eth1/addr_gen_mode=1") < told.index(
        "sysctl -w net/ipv6/conf/eth1/disable_ipv6=0"
    )
    [(needs, reason)] = router.lacking.items()
    assert needs == {"vlan", "mpls"} and "without the tags" in reason
    before = len(told)
    router.restore()
    undone = told[before:]
    assert router.lacking == {} and router.notes == ()
    assert "ip link del dev lr0.100" in undone and "ip -6 rule del iif lr1.s200.100 lookup 29701" in undone
    assert undone.index("ip link del dev lr1.s200.100") < undone.index("ip link del dev lr1.s200")
    assert undone[-1] == "sysctl -w net/ipv6/conf/all/forwarding=0"


def test_what_a_kernel_lacks_is_named_with_its_module_and_the_rest_is_done() -> None:
    kernel = Kernel()
    router = make("linux", kernel)
    router.set_up(SIDES, FRAMES)
    reasons = {next(iter(needs)): reason for needs, reason in router.lacking.items()}
    assert len(router.lacking) == len(router.notes) == 3
    assert "its module 8021q is missing ('ip link add … type vlan' says: Unknown device type)" in reasons["vlan"]
    assert "its module mpls_router is missing" in reasons["mpls"]
    assert "has no IPv6" in reasons["ipv6"]
    assert kernel.commands == []
    kernel = Kernel("ipv6")
    router = make("linux", kernel)
    router.set_up(SIDES, FRAMES)
    assert {kind for needs in router.lacking for kind in needs} == {"vlan", "mpls"}
    assert any("2001:2::1000:0/104" in line for line in kernel.commands)


def test_a_label_of_both_directions_is_refused() -> None:
    with pytest.raises(TestbedError, match="label 100 is among the words' 'labels' and 'labels_back'"):
        make("linux", Kernel("mpls")).set_up(SIDES, FrameKinds(labels=((100, 200), (300, 100))))


@pytest.fixture
def namespace() -> Iterator[str]:
    name = f"lr-frames-{os.getpid()}"
    commands = [
        f"ip netns add {name}",
        f"ip -n {name} link add eth1 type veth peer name peer1",
        f"ip -n {name} link add eth2 type veth peer name peer2",
    ]
    try:
        for command in commands:
            subprocess.run(command.split(), check=True, capture_output=True, timeout=10)
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=10, check=False)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="network namespaces need root and iproute2")
def test_a_real_kernel_is_set_up_and_left_as_it_was(namespace: str) -> None:
    def shell(command: str, limit: float) -> Result:
        argv = ["ip", "netns", "exec", namespace, "sh", "-c", command]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=limit, check=False)
        return Result(done.stdout, done.stderr, done.returncode, 0.0)

    def everything() -> list[str]:
        shown = (
            *("ip -br link", "ip route", "ip neigh", "ip rule", "ip -6 rule", "ip -6 route | grep -v fe80"),
            *("ip -4 route show table all", "ip -f mpls route 2>&1", "sysctl net.mpls 2>&1"),
            *("sysctl net.ipv6.conf.eth1 net.ipv6.conf.all.forwarding", "sysctl net.ipv4.conf.eth2.rp_filter"),
        )
        return [shell(command, 5.0).stdout for command in shown]

    # in namespaces of old the kernel announces itself when its interfaces come up; here it is asked not to
    shell("sysctl -w net.ipv6.conf.eth1.disable_ipv6=1 net.ipv6.conf.eth2.disable_ipv6=1", 5.0)
    shell("ip link set eth1 up; ip link set eth2 up; ip link set peer1 up; ip link set peer2 up", 5.0)
    before = everything()
    first, second = make("linux", shell), make("linux", shell)
    first.configure(SIDES)
    first.set_up(SIDES, FRAMES)
    between = everything()
    lacking = {kind for needs in first.lacking if len(needs) == 1 for kind in needs}
    if "ipv6" not in lacking:
        assert "2001:2::1000:0/104 via 2001:2::6441:102 dev eth1" in shell("ip -6 route", 5.0).stdout
        assert "inet6" not in shell("ip -6 addr show dev eth1", 5.0).stdout
    if "vlan" not in lacking:
        assert "lr1.s200.100" in between[0]
    if "mpls" not in lacking:
        assert "100 as to 100 via inet 100.65.2.2 dev eth2" in shell("ip -f mpls route", 5.0).stdout
    # another finds it done already, and leaves it
    second.configure(SIDES)
    second.set_up(SIDES, FRAMES)
    assert everything() == between
    second.restore()
    assert everything() == between
    first.restore()
    assert everything() == before
