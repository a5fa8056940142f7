"""Queues, rings, offloads and kernel variables of a platform: set, read back, restored; else an error."""

from __future__ import annotations

import re

import pytest
from pydantic import ValidationError

from lineproof.errors import TestbedError
from lineproof.platforms import Software, Tuning
from lineproof.routers import make_router
from lineproof.routers.base import Result
from support.tuned_card import Card

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
    assert planned and all(change.is_undoable(None) for change in planned)
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
