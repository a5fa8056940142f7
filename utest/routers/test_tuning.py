"""Queues, rings, offloads and kernel variables of a platform: set, read back, restored; else an error."""

from __future__ import annotations

import re
import shlex

import pytest
from pydantic import ValidationError

from linerate.errors import TestbedError
from linerate.platforms import Software, Tuning
from linerate.routers import make_router
from linerate.routers.base import Result
from linerate.routers.undo_commands import is_undo


class Card:
    """A shell over one card's settings. *deaf*: it takes settings and keeps its own."""

    def __init__(self, deaf: bool = False, tso: tuple[str, ...] = ("TSO4",)) -> None:
        self.numbers = {"combined": 4, "rx": 512, "tx": 512}
        self.offloads = {"lro": "on", "gro": "on", "gso": "on", "tso": "on"}
        self.flags = sorted(["RXCSUM", "LRO", *tso])
        self.variable = "30 60"
        self.ran: list[str] = []
        self.deaf = deaf

    def __call__(self, command: str, limit: float) -> Result:
        self.ran.append(command)
        words = [word for word in shlex.split(command) if word not in ("sudo", "-n")]
        return Result(getattr(self, words[0])(words[1:], "-n " in command.removeprefix("sudo -n ")), "", 0, 0.0)

    def ethtool(self, words: list[str], _: bool) -> str:
        option, _name, *pairs = words
        if pairs and not self.deaf:
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
        if not self.deaf:
            for word in words[1:]:
                parts = {"tso": ["TSO4", "TSO6"]}.get(word.lstrip("-"), [word.lstrip("-").upper()])
                self.flags = [flag for flag in self.flags if flag not in parts]
                self.flags = sorted([*self.flags, *([] if word.startswith("-") else parts)])
        return f"ix0: flags=8843<UP>\n\toptions=e4<{','.join(self.flags)}>\n"

    def sysctl(self, words: list[str], only_value: bool) -> str:
        if "=" in words[-1] and not self.deaf:
            self.variable = words[-1].partition("=")[2]
        return self.variable + "\n"


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
    router = make_router(kind, card, ("ix0",), sudo=True)  # type: ignore[arg-type]
    with router.rehearsal() as planned:
        router.tune(tuning)
    assert vars(card) | {"ran": []} == vars(untouched) and router.notes == ()
    assert planned and all(is_undo(change.undo) for change in planned)
    router.tune(tuning)
    assert len(router.notes) == len(planned)
    count = len(card.ran)
    router.tune(tuning)
    assert not any(re.search(r" -[LGK] |=| -(lro|tso)", command) for command in card.ran[count:])
    assert all(command.startswith("sudo -n ") for command in card.ran if re.search(r" -[LGK] |=", command))
    router.restore()
    assert vars(card) | {"ran": []} == vars(untouched)


@pytest.mark.parametrize(("kind", "tuning"), [("linux", LINUX), ("freebsd", FREEBSD)])
def test_what_the_card_does_not_keep_is_an_error(kind: str, tuning: Tuning) -> None:
    router = make_router(kind, Card(deaf=True), ("ix0",))  # type: ignore[arg-type]
    with pytest.raises(TestbedError, match=r"the router took '.*' for ix0 and does not show it; look at"):
        router.tune(tuning)
    router.restore()


def test_a_setting_that_the_card_lacks_is_named() -> None:
    card = Card()

    def shell(command: str, limit: float) -> Result:
        return Result(card(command, limit).stdout.replace("512", "n/a"), "", 0, 0.0)

    router = make_router("linux", shell, ("eth1",))
    with pytest.raises(TestbedError, match="the card of eth1 reports no rx in 'ethtool -g eth1'"):
        router.tune(LINUX)


@pytest.mark.parametrize(
    ("shell", "tuning", "problem"),
    [
        ("vpp", {"queues": 2}, "startup.conf"),
        ("none", {"sysctls": {"net.a": "1"}}, "set it up by hand"),
        ("freebsd", {"queues": 2, "offloads": {"gro": "off"}}, "not queues, offloads: gro"),
        ("linux", {"sysctls": {"kernel.core_pattern": "1"}}, "pattern"),
        ("linux", {"sysctls": {"net.core.x": "|/tmp/x"}}, "pattern"),
        ("linux", {"sysctls": {"net.core.x y": "1"}}, "pattern"),
        ("linux", {"offloads": {"rx": "off"}}, "lro"),
    ],
)
def test_a_platform_file_says_only_what_can_be_set(shell: str, tuning: object, problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        Software.model_validate({"shell": shell, "version": "1", "interfaces": ("a", "b"), "tuning": tuning})
