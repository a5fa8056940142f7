"""The trial after the verdict: the router's readings first, then its stacks in seconds of their own."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lineproof.core.quantity import Requirement
from lineproof.core.trial import DURING_READING, Load
from lineproof.core.under_load import RouterLoad, SampledStacks, UnderLoad
from lineproof.errors import TestbedError
from lineproof.session import explaining
from lineproof.session.session import Session

STACKS = SampledStacks(2.0, {"a": 1}, 1)


class FakeRun:
    """Traffic and a router; *events*: what happened. *slow*: s that the stacks take, beyond their seconds."""

    def __init__(self, tried: SampledStacks = STACKS, slow: float = 0.0, broken: bool = False) -> None:
        self.events: list[str] = []
        self._tried, self._slow, self._broken = tried, slow, broken
        self._now = 0.0

    def put_for(self, requirement: Requirement) -> None:
        self.events.append("streams")

    def measure(self, load: Load, sent: float, during: Callable[[Callable[[float], None]], None]) -> Any:
        self.events.append("traffic")
        if self._broken and self.events.count("traffic") == 2:
            raise TestbedError("the link went down")
        self._now = 0.0
        during(self._pass)
        self.events.append("end")
        direction = SimpleNamespace(offered=sent * load.pps, forwarded=0)
        return SimpleNamespace(
            readings={DURING_READING: self._now}, duration=sent, elapsed=sent, directions=(direction,)
        )

    def _pass(self, seconds: float) -> None:
        self._now += seconds

    def under_load(self, wait: Callable[[], None]) -> RouterLoad:
        self.events.append("readings")
        wait()
        return RouterLoad(unread={"lspci": "status 1"})

    def sample_stacks(self, seconds: float) -> SampledStacks:
        self.events.append("stacks")
        self._pass(seconds + self._slow)
        return self._tried

    def read(self) -> UnderLoad:
        facts = SimpleNamespace(clock_speed=1.0)
        session = SimpleNamespace(
            traffic=self, router=SimpleNamespace(driver=self), testbed=SimpleNamespace(facts=facts)
        )
        return explaining.read_under_load(cast(Session, session), cast(Requirement, None), Load(1000.0))


def test_stacks_are_sampled_after_the_readings_and_not_meanwhile() -> None:
    run = FakeRun()
    found = run.read()
    assert found.sampled == STACKS and found.unread == {"lspci": "status 1"}
    first = ["streams", "readings", "traffic", "readings", "end"]
    assert run.events == [*first, "stacks", "traffic", "stacks", "end"]


def test_no_traffic_is_sent_where_stacks_cannot_be_sampled() -> None:
    run = FakeRun(SampledStacks(0.5, why="'perf --version' has status 127: it is not there"))
    found = run.read()
    assert run.events.count("traffic") == 1 and run.events[-1] == "stacks"
    assert found.unread["flame graph"] == "'perf --version' has status 127: it is not there"


def test_stacks_beyond_the_traffic_are_none() -> None:
    found = FakeRun(slow=60.0).read()
    assert found.sampled is not None and not found.sampled.stacks
    assert found.unread["flame graph"].startswith("it took until 62.2 s, and traffic ended after ")


def test_the_readings_stay_whatever_happens_to_the_stacks() -> None:
    found = FakeRun(broken=True).read()
    assert found.unread == {"lspci": "status 1", "flame graph": "the link went down"} and found.offered_pps == 1000


def test_spoilt_readings_are_not_followed_by_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    run = FakeRun()

    def late(wait: Callable[[], None]) -> RouterLoad:
        run._pass(100.0 ** len(run.events))  # each time later than the traffic that was sent for it
        return RouterLoad()

    monkeypatch.setattr(run, "under_load", late)
    found = run.read()
    assert found.sampled is None and "stacks" not in run.events and "all" in found.unread
