"""Configuring a router for kinds of frames, and by the settings of a platform's file; a study's commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from lineproof.core.traffic.frame_kinds import FrameKind, FrameKinds, refuse_not_forwarded
from lineproof.errors import ConfigError, TestbedError
from lineproof.platforms import CommandPair, Software, Tuning
from lineproof.project import Project
from lineproof.routers import make_router
from lineproof.routers.described import Router
from lineproof.routers.journal import ChangeJournal
from lineproof.session.plan import read_checked_platform
from lineproof.system.ssh_shell import Result, Shell
from lineproof.testbed.settings import HardwareSettings
from support.catalogue import CATALOGUE
from support.fake_router import SIDES, shell_of, simulated
from support.scripted_shells import Scripted, answering
from support.simulated_router import CHANGE, KEY, occasion, undone, untouched

pytestmark = pytest.mark.usefixtures("state")

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
    refused = pytest.raises(TestbedError, match=f"'{profile.name}' was not sent: {reason}")
    with refused if reason else nullcontext():
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


SHOWN = {
    "vppctl show ip6 interface": "IP6 disabled\n",
    "vppctl show ip fib table": "ipv4-VRF:29700, fib_index:0\n",
    "vppctl show ip6 fib": "ipv6-VRF:0, fib_index:0\n",
    "vppctl show ip table": "[0] table_id:0 ipv4-VRF:0\n",
    "vppctl show ip6 table": "[0] table_id:0 ipv6-VRF:0\n",
    "vppctl show mpls": "",
    **dict.fromkeys(("netstat -rnW -f inet6", "setfib 1 netstat", "setfib 2 netstat"), "Routing tables\n"),
    **dict.fromkeys(("setfib 1 arp -an", "setfib 2 arp -an"), ""),
}
"""Commands, by how they begin, of a router that is not set up for frames beside IPv4, and what they show."""


def not_set_up(kind: str, shown: Mapping[str, str] | None = None) -> Shell:
    """Return a simulated router that takes whatever sets it up for frames, and shows nothing of it, or *shown*."""
    simple, answers = shell_of(simulated(kind)[0]), {**SHOWN, **(shown or {})}

    def shell(command: str, limit: float, stdin: str = "") -> Result:
        texts = [text for begin, text in answers.items() if command.startswith(begin)]
        found = simple(command, limit)
        is_known = "unknown input" not in found.stdout and "not known" not in found.stderr
        return Result(texts[0], "", 0, 0.0) if texts else found if is_known else Result("", "", 0, 0.0)

    return shell


def configured(kind: str, shell: Shell, frames: FrameKinds = FRAMES) -> tuple[Router, list[str]]:
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
    router, _ = configured("freebsd", shell_of(machine), TAGS)
    assert "no net.fibs" in router.not_forwarded[frozenset({"vlan"})]


def test_a_label_of_both_directions_is_refused() -> None:
    with pytest.raises(TestbedError, match="label 100 is among the words' 'labels' and 'labels_back'"):
        configured("linux", answering(Kernel("mpls")), FrameKinds(labels=((100, 200), (300, 100))))


def test_tags_or_names_that_are_taken_are_said() -> None:
    with pytest.raises(TestbedError, match=r"took '.*eth1 29700 dot1q 100 .* may have these tags"):
        configured("vpp", not_set_up("vpp"), TAGS)
    with pytest.raises(TestbedError, match=r"'ifconfig vlan29700' shows 7, beside which .* not use 100"):
        configured("freebsd", not_set_up("freebsd", {"ifconfig vlan29700": "\tvlan: 7 parent interface: eth1\n"}), TAGS)


class Card:
    """A shell over one card's settings."""

    def __init__(self) -> None:
        self.numbers = {"combined": 4, "rx": 512, "tx": 512}
        self.offloads = {"lro": "on", "gro": "on", "gso": "on", "tso": "on"}
        self.flags = ["LRO", "RXCSUM", "TSO4"]
        self.variable = "30 60"
        self.ran: list[str] = []

    def __call__(self, command: str, limit: float) -> Result:
        self.ran.append(command)
        words = [word for word in shlex.split(command) if word not in ("sudo", "-n")]
        return Result(getattr(self, words[0])(words[1:], "-n " in command.removeprefix("sudo -n ")), "", 0, 0.0)

    def ethtool(self, words: list[str], _: bool) -> str:
        option, _name, *pairs = words
        if pairs:
            for key, value in zip(pairs[::2], pairs[1::2], strict=True):
                if option == "-K":
                    self.offloads["tso" if key.startswith("tx-tcp") else key] = value
                else:
                    self.numbers[key] = int(value)
        if option == "-l":
            return f"Current hardware settings:\nRX:\t\tn/a\nCombined:\t{self.numbers['combined']}\n"
        if option == "-g":
            return f"Current hardware settings:\nRX:\t\t{self.numbers['rx']}\nTX:\t\t{self.numbers['tx']}\n"
        names = {"lro": "large-receive", "gro": "generic-receive", "gso": "generic-segmentation"}
        text = "".join(f"{long}-offload: {self.offloads[short]}\n" for short, long in names.items())
        tso = self.offloads["tso"]
        return f"{text}tcp-segmentation-offload: {tso}\n\ttx-tcp-segmentation: {tso}\n\ttx-tcp-ecn: off [fixed]\n"

    def ifconfig(self, words: list[str], _: bool) -> str:
        for word in words[1:]:
            parts = {"tso": ["TSO4", "TSO6"]}.get(word.lstrip("-"), [word.lstrip("-").upper()])
            self.flags = [flag for flag in self.flags if flag not in parts]
            self.flags = sorted([*self.flags, *([] if word.startswith("-") else parts)])
        return f"ix0: flags=8843<UP>\n\toptions=e4<{','.join(self.flags)}>\n"

    def sysctl(self, words: list[str], only_value: bool) -> str:
        if "=" in words[-1]:
            self.variable = words[-1].partition("=")[2]
        return self.variable + "\n"


def test_rings_queues_and_variables_of_somebody_stay() -> None:
    card = Card()
    with closing(ChangeJournal.claim(occasion(), KEY)) as journal:
        router = make_router("linux", card, ("eth1", "eth2"))
        router.keep_journal(journal)
        router.tune(Tuning(queues=2, rx_ring=4096, offloads={"tso": "off"}, sysctls={"net.core.netdev_budget": "600"}))
    card.numbers |= {"rx": 1024, "combined": 3}
    card.variable = "777"
    said = undone(card)
    assert card.numbers["rx"] == 1024 and card.numbers["combined"] == 3 and card.variable == "777"
    assert "'sysctl -w net.core.netdev_budget=600' (now: 777; before the run: 30 60)" in said
    assert "rx 4096' (now: 1024" in said
    assert card.offloads["tso"] == "on"


LINUX = Tuning(
    queues=2,
    rx_ring=4096,
    offloads={"lro": "off", "gro": "off", "tso": "off"},
    sysctls={"net.core.netdev_budget": "600 700"},
)
FREEBSD = Tuning(offloads={"lro": "off", "tso": "off"}, sysctls={"dev.ix.0.fc": "0"})


@pytest.mark.parametrize(("kind", "tuning"), [("linux", LINUX), ("freebsd", FREEBSD)])
def test_it_is_set_once_and_restored_exactly(kind: str, tuning: Tuning) -> None:
    card, untouched = Card(), Card()
    router = make_router(kind, card, ("ix0",), sudo=True)
    with router.rehearsal() as planned:
        router.tune(tuning)
    assert vars(card) | {"ran": []} == vars(untouched) and router.notes == ()
    assert planned.pending
    router.tune(tuning)
    assert len(router.notes) == len(planned.pending)
    count = len(card.ran)
    router.tune(tuning)
    assert not any(re.search(r" -[LGK] |=| -(lro|tso)", command) for command in card.ran[count:])
    assert all(command.startswith("sudo -n ") for command in card.ran if re.search(r" -[LGK] |=", command))
    router.restore()
    assert vars(card) | {"ran": []} == vars(untouched)


class Odd(Card):
    """It takes the next number that it can have, and keeps its offloads."""

    def ethtool(self, words: list[str], only: bool) -> str:
        return super().ethtool([word if word != "4096" else "4032" for word in words], only)

    def ifconfig(self, words: list[str], only: bool) -> str:
        return super().ifconfig(words[:1], only)


@pytest.mark.parametrize(("kind", "tuning"), [("linux", Tuning(rx_ring=4096)), ("freebsd", FREEBSD)])
def test_what_the_card_does_not_keep_is_an_error_and_undone(kind: str, tuning: Tuning) -> None:
    card = Odd()
    router = make_router(kind, card, ("ix0",))
    with pytest.raises(TestbedError, match=r"the router took '.*ix0.*' and does not show it; look at"):
        router.tune(tuning)
    assert (card.numbers, card.flags) == (Card().numbers, Card().flags)
    assert router.restore() == ""


def test_a_setting_that_the_card_lacks_is_named() -> None:
    card = Card()

    def shell(command: str, limit: float) -> Result:
        return Result(card(command, limit).stdout.replace("512", "n/a"), "", 0, 0.0)

    router = make_router("linux", shell, ("eth1",))
    with pytest.raises(TestbedError, match=r"'ethtool -g eth1' was not understood: 'Current .*RX:.*n/a"):
        router.tune(LINUX)


@pytest.mark.parametrize(
    ("tuning", "problem"),
    [
        ({"sysctls": {"kernel.core_pattern": "1"}}, "pattern"),
        ({"sysctls": {"net.core.x": "|/tmp/x"}}, "pattern"),
        ({"sysctls": {"net.core.x y": "1"}}, "pattern"),
        ({"offloads": {"rx": "off"}}, "lro"),
    ],
)
def test_a_platform_file_has_only_settings_that_end_nothing(tuning: object, problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        Tuning.model_validate(tuning)


@pytest.mark.parametrize(
    ("shell", "key", "refused"),
    [("linux", "queues: 2", False), ("freebsd", "queues: 2", True), ("vpp", "sysctls: {net.a: 1}", True)],
)
def test_a_platform_file_has_settings_that_the_description_of_its_router_has(
    shell: str, key: str, refused: bool, tmp_path: Path
) -> None:
    text = f"{{shell: {shell}, version: '1', interfaces: [a, b], tuning: {{{key}}}}}"
    box = f"platform: box\ndescription: a box\nports: {{a: 1 Gbps, b: 1 Gbps}}\nsoftware: {{own: {text}}}\n"
    (tmp_path / "variables" / "platforms").mkdir(parents=True)
    (tmp_path / "variables" / "platforms" / "box.yaml").write_text(box)
    with pytest.raises(ConfigError, match="'tuning' of 'own' has") if refused else nullcontext():
        read_checked_platform(Project(tmp_path), "box")


@pytest.mark.parametrize("name", ["eth1 $(reboot)", "eth1;reboot", "eth1\nreload", ""])
def test_a_platform_file_names_interfaces_that_no_shell_gives_a_meaning(name: str) -> None:
    with pytest.raises(ValidationError, match="is not the name of an interface"):
        Software.model_validate({"shell": "linux", "version": "1", "interfaces": (name, "b")})


# -- a study's commands: run in order, undone in reverse, and in the journal


PAIRS = (
    CommandPair(do="nft -f -", stdin="add table ip lineproof", undo="nft delete table ip lineproof"),
    CommandPair(do="sh -c 'modprobe pktgen; true'", undo="modprobe -r pktgen"),
)


def test_commands_are_undone_in_reverse_and_what_was_there_stays() -> None:
    shell = Scripted()
    router = make_router("linux", shell)
    router._changes.make(CHANGE)
    router.apply(PAIRS)
    assert router.withdraw() == ""
    assert shell.ran[1:] == [
        "nft -f - <<< add table ip lineproof",
        "sh -c 'modprobe pktgen; true'",
        "modprobe -r pktgen",
        "nft delete table ip lineproof",
    ]
    assert router.changes == (CHANGE,)
    assert router.withdraw() == ""  # harmless when repeated


def test_a_refused_command_leaves_the_others_to_be_undone() -> None:
    shell = Scripted({PAIRS[1].do: Result("", "no such thing", 1, 0.0)})
    router = make_router("linux", shell)
    with pytest.raises(TestbedError, match="no such thing"):
        router.apply(PAIRS)
    router.restore()
    assert shell.ran[-1] == "nft delete table ip lineproof"


@pytest.mark.parametrize("forwards", ["0", "1"])
def test_lro_which_a_kernel_that_forwards_switches_off_is_switched_on_again(forwards: str) -> None:
    machine, _ = simulated("linux")
    machine.memory.sysctl["net.ipv4.ip_forward"] = forwards
    machine.memory.lro.add("eth2")
    router = make_router("linux", shell_of(machine), ("eth1", "eth2"))
    router.configure(SIDES)
    assert machine.memory.lro == (set() if forwards == "0" else {"eth2"})
    router.restore()
    assert machine.memory.lro == {"eth2"}


def test_a_card_that_keeps_lro_is_left_alone() -> None:
    machine, _ = simulated("linux")
    machine.memory.lro.add("eth2")
    whole, refused = shell_of(machine), list[str]()

    def shell(command: str, limit: float) -> Result:
        if "ethtool -K" not in command:
            return whole(command, limit)
        refused.append(command)
        return Result("", "Cannot change large-receive-offload", 1, 0.0)

    router = make_router("linux", shell, ("eth1", "eth2"))
    router.configure(SIDES)
    assert machine.memory.sysctl["net.ipv4.ip_forward"] == "1" and not any("lro" in note for note in router.notes)
    router.restore()
    assert machine.memory.sysctl["net.ipv4.ip_forward"] == "0"
    assert refused == ["ethtool -K eth2 lro off"]


@pytest.mark.parametrize("mac", ["02:00:00:00:01", "'; reload"])
@pytest.mark.parametrize("kind", ["vpp", "linux", "freebsd", "routeros"])
def test_what_a_generator_reports_in_place_of_a_mac_address_never_reaches_the_shell(kind: str, mac: str) -> None:
    with pytest.raises(TestbedError, match="is not a MAC address"):
        make_router(kind, untouched).configure((replace(SIDES[0], peer_mac=mac),))
