"""A router that hangs is switched off and on once; one that answers, or must not be switched, never is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lineproof.core.rule import Ruling
from lineproof.errors import TestbedError
from lineproof.session import session
from lineproof.session.router_watch import RouterRestarted
from lineproof.session.session import Revival
from lineproof.testbed.lab import LabSettings, PowerCycleSettings

HANGS, RESTARTED, FINE = TestbedError("no answer"), RouterRestarted("the router restarted"), None
POWER = PowerCycleSettings(boot=0.05)


class Rig:
    """A router whose readings come to *readings* in turn; then it answers. ``done``: what was done to it."""

    def __init__(self, *readings: Exception | None, power: PowerCycleSettings | None = POWER, **odd: Any) -> None:
        self.readings, self.done, self.refused = list(readings), list[str](), odd.get("refused", "")
        watch = SimpleNamespace(read_again=self.read, configured=lambda: self.do("configured"))
        lab = SimpleNamespace(power_cycle=lambda _: self.do("cycled") or "power switched")
        found: Any = (
            SimpleNamespace(testbed=SimpleNamespace(lab=LabSettings(coordinator="a:1", power=power))),
            SimpleNamespace(lab=odd.get("lab", lab), problems=lambda: odd.get("problems", ())),
            SimpleNamespace(
                watch=watch, connected=True, is_black_box=False, configure=lambda links_moved: self.do("configure")
            ),
            SimpleNamespace(forget=lambda: self.do("forgot"), check_reachability=lambda: self.do("checked")),
        )
        self.revival = Revival(*found)

    def read(self) -> None:
        error = self.readings.pop(0) if self.readings else None
        if error is not None:
            raise error

    def do(self, step: str) -> None:
        self.done.append(step)
        if step == self.refused:
            raise TestbedError(f"not {step}")

    def revived(self, ruling: Ruling = Ruling.INCONCLUSIVE) -> bool:
        verdict: Any = SimpleNamespace(ruling=ruling)
        return self.revival.after(verdict)


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "POLL", 0.01)


@pytest.mark.parametrize(
    ("rig", "ruling"),
    [
        (Rig(FINE), Ruling.INCONCLUSIVE),
        (Rig(RESTARTED), Ruling.INCONCLUSIVE),
        (Rig(HANGS), Ruling.PASS),
        (Rig(HANGS), Ruling.FAIL),
        (Rig(HANGS, power=None), Ruling.INCONCLUSIVE),
        (Rig(HANGS, lab=None), Ruling.INCONCLUSIVE),
        (Rig(HANGS, problems=("labgrid's place 'x' was taken",)), Ruling.INCONCLUSIVE),
    ],
)
def test_what_answers_is_proven_or_must_not_be_switched_is_left_alone(rig: Rig, ruling: Ruling) -> None:
    assert not rig.revived(ruling) and rig.done == [] and rig.revival.note == ""


@pytest.mark.parametrize("last", [FINE, RESTARTED])
def test_one_that_hangs_is_revived_and_configured_again(last: Exception | None) -> None:
    rig = Rig(HANGS, HANGS, HANGS, last, power=POWER.model_copy(update={"boot": 60.0}))
    assert rig.revived() and rig.done == ["cycled", "configure", "configured", "forgot", "checked"]
    said = "the router did not answer (no answer); power switched; it answered again after "
    assert rig.revival.note.startswith(said)
    # the next sentence is another one
    assert not rig.revived() and rig.revival.note == ""


@pytest.mark.parametrize(
    ("rig", "words"),
    [
        (Rig(HANGS, refused="cycled"), "(no answer), and then: not cycled"),
        (Rig(*[HANGS] * 100), "power switched, and then: it did not answer within 0.05 s of that: no answer"),
        (Rig(HANGS, refused="checked"), " s, and then: not checked"),
    ],
)
def test_one_that_does_not_come_back_is_named(rig: Rig, words: str) -> None:
    assert not rig.revived() and words in rig.revival.note
