"""Configuring a router for IPv6, tags and labels: what the words need, and what is not set up."""

from __future__ import annotations

import re
from typing import Any

import pytest

from lineproof.core.traffic.frame_kinds import (
    FrameKind,
    FrameKinds,
    reason_not_forwarded,
    refuse_not_forwarded,
)
from lineproof.errors import TestbedError
from lineproof.routers import RouterKind, make_router
from lineproof.routers.base import Result, Shell
from lineproof.routers.described import Router
from lineproof.testbed.settings import HardwareSettings
from support.catalogue import CATALOGUE
from support.fake_router import SIDES, shell_of, simulated
from support.scripted_shells import answering

ALL: tuple[FrameKind, ...] = ("ipv6", "vlan", "mpls")
FRAMES, TAGS = FrameKinds.of(CATALOGUE, ALL), FrameKinds.of(CATALOGUE, ALL[1:2])


def test_frame_kinds_are_read_from_the_words_of_a_catalogue() -> None:
    assert FRAMES.prefixes == ("2001:2::",)
    assert FRAMES.tags == (((0x8100, 100),), ((0x88A8, 200), (0x8100, 100)))
    # mpls2 needs no more than mpls: a router looks at the outermost label
    assert FRAMES.labels == ((100, 200),)
    assert FrameKinds(tags=FRAMES.tags) == TAGS
    assert FrameKinds.of(CATALOGUE, ()) == FrameKinds()


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
    router = {"address": "192.0.2.20", "user": "admin", "key": "key"}
    hardware = {"testbed": "lab", "kind": "hardware", "generator": {"address": "192.0.2.10"}, "router": router}
    assert HardwareSettings.model_validate({**hardware, "set_up": ["ipv6"]}).set_up == ("ipv6",)
    with pytest.raises(ValueError, match="with 'none' expected to leave it out"):
        HardwareSettings.model_validate({**hardware, "set_up": ["ipv6"], "prepare": "none"})


class Kernel(dict[str, tuple[str, int]]):
    """The answers of a Linux kernel with *modules*. It keeps the commands that set something."""

    def __init__(self, *modules: str) -> None:
        self.modules, self.commands = modules, list[str]()

    def get(self, line: str, default: Any = None) -> Any:
        words = line.split()
        if words[:2] == ["sysctl", "-n"]:
            if any(key.split("/")[1] not in ("ipv4", *self.modules) for key in words[2:]):
                return "", 1
            return "".join(f"{self.value(key)}\n" for key in words[2:]), 0
        if words[:4] == ["ip", "-d", "link", "show"]:
            made = re.search(rf"link add link (\S+) name {words[-1]} type vlan proto (.*)", "\n".join(self.commands))
            if made is None:
                return f'Device "{words[-1]}" does not exist.\n', 1
            return f"9: {words[-1]}@{made[1]}: <UP>\n    ether\n    vlan protocol {made[2]} <>\n", 0
        if words[2:] == ["rule", "show"]:
            rules = [row.partition(" add ")[2] for row in self.commands if row.startswith(f"ip {words[1]} rule add")]
            return "".join(f"5: from all {rule} \n" for rule in rules), 0
        if "vlan" in words and "8021q" not in self.modules:
            return "Error: Unknown device type.\n", 2
        if "show" not in words and words[0] != "modprobe":
            self.commands.append(line)
        return "", 0

    def value(self, key: str) -> str:
        assigned = [word for row in self.commands for word in row.split() if word.startswith(f"{key}=")]
        return assigned[-1].partition("=")[2] if assigned else str(int("disable_ipv6" in key))


def configured(kind: RouterKind, shell: Shell, frames: FrameKinds = FRAMES) -> tuple[Router, list[str]]:
    """A router that is configured for *frames*, and the commands that did it."""
    router = make_router(kind, shell, ("eth1", "eth2"))
    router.configure_frames(SIDES, frames)
    return router, [line for change in router.changes for line in change.do]


def test_a_missing_module_is_named_and_the_rest_is_configured() -> None:
    router, commands = configured("linux", answering(Kernel()))
    reasons = {next(iter(needs)): reason for needs, reason in router.not_forwarded.items()}
    assert len(router.not_forwarded) == len(router.notes) == 3
    assert "its module 8021q is missing (status 2: Error: Unknown device type.)" in reasons["vlan"]
    assert "its module mpls_router is missing" in reasons["mpls"]
    assert "has no IPv6" in reasons["ipv6"]
    assert commands == []
    router, commands = configured("linux", answering(Kernel("ipv6")))
    assert {kind for needs in router.not_forwarded for kind in needs} == {"vlan", "mpls"}
    assert any("2001:2::1000:0/104" in line for line in commands)
    machine, _ = simulated("freebsd")
    machine.memory.sysctl.pop("net.fibs")
    router, _ = configured("freebsd", shell_of(machine))
    assert "no net.fibs" in router.not_forwarded[frozenset({"vlan"})]


def test_a_label_of_both_directions_is_refused() -> None:
    with pytest.raises(TestbedError, match="label 100 is among the words' 'labels' and 'labels_back'"):
        configured("linux", answering(Kernel("mpls")), FrameKinds(labels=((100, 200), (300, 100))))


def test_tags_or_names_that_are_taken_are_said() -> None:
    vpp, freebsd = shell_of(simulated("vpp")[0]), simulated("freebsd")[0]

    def taken(command: str, limit: float) -> Result:
        return Result("", "", 0, 0.0) if "create sub-interfaces" in command else vpp(command, limit)

    with pytest.raises(TestbedError, match=r"did not take '.*eth1 29700 dot1q 100 .* may have these tags"):
        configured("vpp", taken, TAGS)
    freebsd.run("ifconfig vlan29700 create vlan 7 vlandev eth1")
    with pytest.raises(TestbedError, match=r"'ifconfig vlan29700' shows 7, beside which .* not use 100"):
        configured("freebsd", shell_of(freebsd), TAGS)
