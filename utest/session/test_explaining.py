"""The paragraph that says why: what is read after the verdict, and the same words in message and record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lineproof import stacks
from lineproof.core.quantity import Requirement
from lineproof.core.trial import DURING_READING, Load
from lineproof.core.under_load import UnderLoad
from lineproof.errors import TestbedError
from lineproof.session.explaining import SampledLoad, read_under_load, samples
from lineproof.stacks import SampledStacks
from support import simulated_session


class FakeRun:
    """Traffic and a router; *events*: what happened. *slow*: s that the stacks take, beyond their seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, why: str = "", slow: float = 0.0, broken: bool = False) -> None:
        self.events: list[str] = []
        self._why, self._slow, self._broken = why, slow, broken
        self._now = 0.0
        monkeypatch.setattr(stacks, "sampled_stacks", self.sampled_stacks)

    def put_for(self, requirement: Requirement) -> None:
        self.events.append("streams")

    def measure(self, load: Load, sent: float, during: Callable[[Callable[[float], None]], None]) -> Any:
        self.events.append("traffic")
        if self._broken and self.events.count("traffic") == 2:
            raise TestbedError("the link went down")
        self._now = 0.0
        during(self.pass_by)
        self.events.append("end")
        direction = SimpleNamespace(offered=sent * load.pps, forwarded=0)
        return SimpleNamespace(
            readings={DURING_READING: self._now}, duration=sent, elapsed=sent, directions=(direction,)
        )

    def pass_by(self, seconds: float) -> None:
        self._now += seconds

    def under_load(self, wait: Callable[[], None]) -> UnderLoad:
        self.events.append("readings")
        wait()
        return UnderLoad(unread={"lspci": "status 1"})

    def sampled_stacks(self, commands: object, seconds: float) -> SampledStacks:
        self.events.append("stacks")
        self.pass_by(seconds + self._slow)
        return SampledStacks({} if self._why else {"a": 1}, 1, self._why)

    def read(self) -> tuple[UnderLoad, dict[str, SampledLoad]]:
        facts = SimpleNamespace(clock_speed=1.0, router=SimpleNamespace(sudo=False))
        router, plan = SimpleNamespace(driver=self, shell=None), SimpleNamespace(command_file=None)
        testbed = SimpleNamespace(facts=facts)
        session: Any = SimpleNamespace(traffic=self, router=router, testbed=testbed, plan=plan, simulated=False)
        found = read_under_load(session, cast(Requirement, None), Load(1000.0))
        return found, samples(session, Load(1000.0), found, "title")


def test_stacks_are_sampled_after_the_readings_and_not_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    run = FakeRun(monkeypatch)
    found, more = run.read()
    sample = more["flame graph"]
    assert sample.texts == {"folded stacks": "a 1\n"} and "2 s, 1 samples, 1 CPU" in sample.picture
    assert found.unread == {"lspci": "status 1"} and found.offered_pps == 1000
    first = ["streams", "readings", "traffic", "readings", "end"]
    assert run.events == [*first, "stacks", "traffic", "stacks", "end"]


@pytest.mark.parametrize(
    ("habits", "why", "traffic"),
    [
        ({"why": "neither is there"}, "neither is there", 1),
        ({"slow": 60.0}, "the router was read until 62.2 s, and traffic ended after ", 2),
        ({"broken": True}, "the link went down", 2),
    ],
)
def test_stacks_that_are_not_of_the_traffic_are_none(
    monkeypatch: pytest.MonkeyPatch, habits: dict[str, Any], why: str, traffic: int
) -> None:
    run = FakeRun(monkeypatch, **habits)
    sample = run.read()[1]["flame graph"]
    assert sample.why.startswith(why) and not sample.picture and not sample.texts
    assert run.events.count("traffic") == traffic


def test_spoilt_readings_are_not_followed_by_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    run = FakeRun(monkeypatch)

    def late(wait: Callable[[], None]) -> UnderLoad:
        run.pass_by(100.0 ** len(run.events))  # each time later than the traffic that was sent for it
        return UnderLoad()

    monkeypatch.setattr(run, "under_load", late)
    found, more = run.read()
    assert more == {} and "stacks" not in run.events and "all" in found.unread


@pytest.mark.slow
def test_facts_are_those_of_the_router_as_it_was_configured(tmp_path: Path) -> None:
    with simulated_session.started(tmp_path, ("netgate6100", "pfsense", "simulated")) as session:
        session.generator.connect()
        session.router.connect()
        assert (session.router.facts.firewall or "").startswith("on")
        session.router.configure()
        # a filter that the run has switched off is not blamed for lost frames
        assert session.router.facts.firewall == "off"
        assert "the packet filter was switched off for the test (pfctl -d)" in str(session.router.configuration())
