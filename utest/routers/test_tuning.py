"""Settings of a platform file are read back and taken back; a study's commands are undone in reverse."""

from __future__ import annotations

import re
import shlex
from contextlib import nullcontext
from pathlib import Path

import pytest
from pydantic import ValidationError

from lineproof.errors import ConfigError, TestbedError
from lineproof.platforms import CommandPair, RouterKind, Software, Tuning
from lineproof.project import Project
from lineproof.routers import make_router
from lineproof.routers.base import Result, Shell
from lineproof.routers.journal import ChangeJournal
from lineproof.session.plan import read_checked_platform
from support.journals import CHANGE, KEY, occasion, undone
from support.scripted_shells import Scripted


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


pytestmark = pytest.mark.usefixtures("state")


def killed(kind: RouterKind, shell: Shell, tuning: Tuning) -> None:
    """A run with *tuning* that was killed."""
    journal = ChangeJournal.claim(occasion(kind=kind), KEY)
    router = make_router(kind, shell, ("eth1", "eth2"))
    router.keep_journal(journal)
    router.tune(tuning)
    journal.close()


SOME = Tuning(queues=2, rx_ring=4096, offloads={"tso": "off"}, sysctls={"net.core.netdev_budget": "600"})


def test_rings_queues_and_variables_of_somebody_stay() -> None:
    card = Card()
    killed("linux", card, SOME)
    card.numbers |= {"rx": 1024, "combined": 3}
    card.variable = "777"
    said = undone(card)
    assert card.numbers["rx"] == 1024 and card.numbers["combined"] == 3 and card.variable == "777"
    assert (
        "'sysctl -w net.core.netdev_budget=600' (now: 777; before the run: 30 60)" in said
        and "rx 4096' (now: 1024" in said
    )
    assert card.offloads["tso"] == "on"


LINUX = Tuning(
    queues=2,
    rx_ring=4096,
    offloads={"lro": "off", "gro": "off", "tso": "off"},
    sysctls={"net.core.netdev_budget": "600 700"},
)
FREEBSD = Tuning(offloads={"lro": "off", "tso": "off"}, sysctls={"dev.ix.0.fc": "0"})


@pytest.mark.parametrize(("kind", "tuning"), [("linux", LINUX), ("freebsd", FREEBSD)])
def test_it_is_set_once_and_restored_exactly(kind: RouterKind, tuning: Tuning) -> None:
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
def test_what_the_card_does_not_keep_is_an_error_and_undone(kind: RouterKind, tuning: Tuning) -> None:
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
