"""The paragraph that says why: what is read after the verdict, and the same words in message and record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lineproof import stacks
from lineproof.core.ledger import DirectionAccount, Drop, Ledger
from lineproof.core.quantity import Reason, Requirement
from lineproof.core.router_facts import NicFacts, Placement, RouterFacts
from lineproof.core.rule import Ruling
from lineproof.core.sentence import parse
from lineproof.core.telemetry import Stage
from lineproof.core.trial import DURING_READING, Load, Outcome, Tolerance, read_trial
from lineproof.core.under_load import CpuLoad, NodeLoad, QueueLoad, UnderLoad, WorkerLoad
from lineproof.core.verdict import Verdict
from lineproof.errors import TestbedError
from lineproof.session import router_watch
from lineproof.session.explaining import SampledLoad, explained, read_under_load, samples
from lineproof.session.router_watch import WorkerWatch
from lineproof.stacks import SampledStacks
from support import simulated_session
from support.catalogue import CATALOGUE
from support.made_testbeds import promised, router

OFFERED = 6_000_000
FACTS = RouterFacts(
    os="Ubuntu 24.04",
    placement=tuple(Placement("eth0", queue, f"vpp_wk_{queue}") for queue in range(3)),
    nics=(NicFacts("eth0", driver="dpdk", pcie_width=4, pcie_speed=8.0),),
)
LOAD = UnderLoad(
    OFFERED,
    OFFERED,
    0.9 * OFFERED,
    (
        WorkerLoad("vpp_wk_0", 1.0, 5e6, 256.0, 440.0, (NodeLoad("ip4-lookup", 5e6, 30.0, 256.0, 0.1),)),
        WorkerLoad("vpp_wk_1", 0.0, 0.0),
        WorkerLoad("vpp_wk_2", 0.0, 0.0),
    ),
    (QueueLoad("eth0", 0, "vpp_wk_0"),),
    (CpuLoad(0, 1.0, 0.0),),
    {"show runtime": "…"},
    1.0,
)


def judged(sentence: str, ruling: Ruling = Ruling.FAIL, lost: float = 0.1) -> Verdict:
    """Return a verdict on a trial that lost this share."""
    words = f"64b 1-flow unidirectional {sentence}"
    trial = read_trial(1, router(lost)(Load(OFFERED), 1.0), Tolerance())
    return Verdict(parse(words, CATALOGUE), promised(words), ruling, Reason("lost 10 %"), (trial,))


def verdict(ruling: Ruling = Ruling.FAIL, stage: Stage = Stage.ARRIVING) -> Verdict:
    found = judged("≥ 6 Mpps", ruling)
    trial = found.trials[0]
    drop = Drop(stage, "rx-miss", "eth0" if stage is Stage.ARRIVING else "eth1", trial.lost)
    taken = trial.forwarded if stage is Stage.ARRIVING else trial.offered
    row = DirectionAccount(0, 1, "eth0", "eth1", trial.offered, trial.forwarded, taken, trial.forwarded, (drop,))
    return replace(found, ledgers=(Ledger(1, 1, (row,)),))


def rule_of(verdict: Verdict) -> str:
    return verdict.why.explanation.rule if verdict.why.explanation else ""


def test_without_telemetry_only_rules_that_need_none_speak() -> None:
    assert explained(verdict(), None, None).message == verdict().message
    assert explained(verdict(), FACTS, None).message == verdict().message
    assert rule_of(explained(verdict(stage=Stage.LEAVING), None, None)) == "tx slots"


@pytest.mark.parametrize("ruling", [Ruling.PASS, Ruling.INCONCLUSIVE])
def test_only_a_fail_is_explained_by_the_router(ruling: Ruling) -> None:
    assert explained(verdict(ruling), FACTS, LOAD).message == verdict(ruling).message


@pytest.mark.parametrize(
    ("sentence", "lost", "rule"),
    [
        ("latency p99 ≤ 10 µs at 1 Mpps", 0.0, ""),
        ("pdv p99 ≤ 10 µs at 1 Mpps", 0.0, ""),
        ("costs ≤ 300 cycles/packet at 1 Mpps", 0.0, ""),
        # frames that are lost are late, but cost nothing
        ("latency p99 ≤ 10 µs at 1 Mpps", 0.1, "one flow"),
        ("costs ≤ 300 cycles/packet at 1 Mpps", 0.1, ""),
        ("recovers in ≤ 1 s", 0.1, ""),
        ("loses ≤ 1% at 1 Mpps", 0.1, "one flow"),
    ],
)
def test_a_fail_that_no_loss_made_has_no_reason_of_loss(sentence: str, lost: float, rule: str) -> None:
    found = judged(sentence, lost=lost)
    trial = found.trials[0]
    # the generator sends 2 % less than was asked
    rows = tuple(replace(row, intended=round(row.offered / 0.98)) for row in trial.outcome.directions)
    trial = replace(trial, outcome=replace(trial.outcome, directions=rows))
    ledgers = verdict().ledgers if lost else ()
    assert rule_of(explained(replace(found, trials=(trial,), ledgers=ledgers), FACTS, LOAD)) == rule


@pytest.mark.parametrize(
    ("sentence", "rule"),
    [
        ("latency p99 ≤ 10 µs at 1 Mpps", "late frames"),
        ("pdv p99 ≤ 10 µs at 1 Mpps", "late frames"),
        ("reorders ≤ 1% at 1 Mpps", ""),
        ("costs ≤ 300 cycles/packet at 1 Mpps", ""),
    ],
)
def test_late_frames_of_a_busy_worker_are_explained_though_none_was_lost(sentence: str, rule: str) -> None:
    assert rule_of(explained(judged(sentence, lost=0.0), FACTS, LOAD)) == rule
    assert rule_of(explained(judged(sentence, lost=0.0), FACTS, None)) == ""


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


MEGAPPS = Load(1e6)


class Watched:
    """Trials of 2 s with a router whose readings are *counts* in turn; *events*: what happened."""

    def __init__(self, *counts: Mapping[str, float] | TestbedError) -> None:
        self.counts, self.events = list(counts), list[str]()
        watch = WorkerWatch(self.work, self.trial)
        self.measure = watch.measure

    def work(self) -> Mapping[str, float]:
        self.events.append("read")
        found = self.counts.pop(0)
        if isinstance(found, TestbedError):
            raise found
        return found

    def trial(self, load: Load, duration: float, during: Any = None) -> Outcome:
        self.events.append("trial")
        return Outcome(load, duration, duration, 0.0, (), readings={"cpu_util": 1.0})


def test_a_trial_has_the_rates_of_its_seconds_of_traffic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router_watch, "EVERY", 0.0)
    run = Watched({"a": 10.0, "b": 5.0}, {"a": 12.0, "b": 1.0, "c": 1.0}, {"a": 13.0, "b": 2.0, "c": 2.0})
    # those of b have been reset, those of c were not there before
    assert run.measure(MEGAPPS, 2.0).readings == {"cpu_util": 1.0, "a": 1.0}
    assert run.measure(MEGAPPS, 2.0).readings == {"cpu_util": 1.0, "a": 0.5, "b": 0.5, "c": 0.5}
    assert run.events == ["read", "trial", "read", "trial", "read"]


def test_of_many_short_trials_the_first_is_read_and_few_others() -> None:
    run = Watched({"a": 10.0}, {"a": 12.0})
    assert [len(run.measure(MEGAPPS, 2.0).readings) for _ in range(9)] == [2] + 8 * [1]
    assert run.events.count("read") == 2


@pytest.mark.parametrize("shown", [{}, TestbedError("the link dropped")])
def test_a_router_that_shows_nothing_is_not_asked_again(shown: Any) -> None:
    for counts in ([shown], [{"a": 10.0}, shown]):
        run = Watched(*counts)
        assert [run.measure(MEGAPPS, 2.0).readings for _ in range(3)] == 3 * [{"cpu_util": 1.0}]


def test_a_trial_that_reads_the_router_itself_is_left_alone() -> None:
    run = Watched()
    run.measure(MEGAPPS, 2.0, lambda wait: None)
    assert run.events == ["trial"]
