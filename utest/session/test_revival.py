"""A router that hangs is switched off and on once; one that answers, or must not be switched, never is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lineproof.core.rule import Ruling
from lineproof.errors import TestbedError
from lineproof.session import revival
from lineproof.session.revival import Revival
from lineproof.session.router_watch import RouterRestarted
from lineproof.testbed.lab.settings import LabSettings, PowerCycleSettings

HANGS, RESTARTED, FINE = TestbedError("no answer"), RouterRestarted("the router restarted"), None
POWER = PowerCycleSettings(boot=0.05)


class Rig:
    """A router whose readings come to *readings* in turn; then it answers. ``done``: what was done to it."""

    def __init__(self, *readings: Exception | None, power: PowerCycleSettings | None = POWER, **odd: Any) -> None:
        self.readings, self.done = list(readings), list[str]()
        self.refused, self.unreachable = odd.get("refused", ""), odd.get("unreachable", "")
        watch = SimpleNamespace(read_again=self.read, configured=lambda: self.done.append("configured"))
        router = SimpleNamespace(watch=watch, connected=True, is_black_box=False, configure=self.configure)
        traffic = SimpleNamespace(forget=lambda: self.done.append("forgot"), check_reachability=self.check)
        lab = SimpleNamespace(power_cycle=self.cycle) if odd.get("lab", True) else None
        settings = LabSettings(coordinator="a:1", power=power)
        testbed: Any = SimpleNamespace(lab=lab, problems=lambda: odd.get("problems", ()))
        plan: Any = SimpleNamespace(testbed=SimpleNamespace(lab=settings))
        found: Any = (plan, testbed, router, traffic)
        self.revival = Revival(*found)

    def read(self) -> None:
        error = self.readings.pop(0) if self.readings else None
        if error is not None:
            raise error

    def cycle(self, power: PowerCycleSettings) -> str:
        self.done.append("cycled")
        if self.refused:
            raise TestbedError(self.refused)
        return "power switched"

    def configure(self, links_moved: bool) -> None:
        self.done.append("configure")

    def check(self) -> None:
        self.done.append("checked")
        if self.unreachable:
            raise TestbedError(self.unreachable)


def verdict(ruling: Ruling = Ruling.INCONCLUSIVE) -> Any:
    return SimpleNamespace(ruling=ruling)


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revival, "POLL", 0.01)


REVIVED = ["cycled", "configure", "configured", "forgot", "checked"]


@pytest.mark.parametrize("first", [FINE, RESTARTED])
def test_a_router_that_answers_is_left_alone(first: Exception | None) -> None:
    rig = Rig(first, first)
    rig.revival.before()
    assert not rig.revival.after(verdict())
    assert rig.done == [] and rig.revival.note == ""


@pytest.mark.parametrize("last", [FINE, RESTARTED])
def test_one_that_hangs_as_the_sentence_begins_is_revived_before_it(last: Exception | None) -> None:
    rig = Rig(HANGS, HANGS, HANGS, last)
    rig.revival.before()
    assert rig.done == REVIVED
    assert rig.revival.note == "the router did not answer (no answer); power switched; it answered again after 0 s"
    # once: whatever comes, this sentence is not tried again
    rig.readings = [HANGS]
    assert not rig.revival.after(verdict()) and rig.done == REVIVED


def test_one_that_hangs_afterwards_has_the_sentence_tried_again() -> None:
    rig = Rig(FINE, HANGS, FINE)
    rig.revival.before()
    assert rig.revival.after(verdict()) and rig.done == REVIVED
    rig.readings = [HANGS]
    assert not rig.revival.after(verdict())
    # the next sentence is another one
    rig.readings = [FINE]
    rig.revival.before()
    assert rig.revival.note == ""


@pytest.mark.parametrize("ruling", [Ruling.PASS, Ruling.FAIL])
def test_what_was_proven_stays(ruling: Ruling) -> None:
    rig = Rig(HANGS)
    assert not rig.revival.after(verdict(ruling)) and rig.done == []


@pytest.mark.parametrize("odd", [{"power": None}, {"lab": False}])
def test_without_the_key_nothing_is_switched(odd: dict[str, Any]) -> None:
    rig = Rig(HANGS, HANGS, **odd)
    rig.revival.before()
    assert not rig.revival.after(verdict()) and rig.done == []


def test_a_testbed_that_is_somebody_elses_by_now_is_not_switched() -> None:
    rig = Rig(HANGS, problems=("labgrid's place 'x' was taken",))
    with pytest.raises(TestbedError, match="was taken"):
        rig.revival.before()
    assert not rig.revival.after(verdict()) and rig.done == []


@pytest.mark.parametrize(
    ("rig", "words"),
    [
        (lambda: Rig(HANGS, refused="no such outlet"), "no such outlet"),
        (lambda: Rig(*[HANGS] * 100), r"power switched, and then: it did not answer within 0\.05 s of that: no answer"),
        (lambda: Rig(HANGS, unreachable="no frame came"), "power switched; it answered .*, and then: no frame came"),
    ],
)
def test_one_that_does_not_come_back_is_named(rig: Any, words: str) -> None:
    with pytest.raises(TestbedError, match=words):
        rig().revival.before()
    after = rig().revival
    assert not after.after(verdict())
    assert "the router did not answer (no answer)" in after.note
