"""Signs that a session is simulated: words of generator and router themselves, whatever the testbed file says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lineproof.core.router_facts import RouterFacts
from lineproof.core.rule import Ruling
from lineproof.core.traffic.profiles import Traffic
from lineproof.core.trial import Load
from lineproof.evidence.rejudge import contradictions
from lineproof.generators.base import GeneratorPort
from lineproof.project import Project
from lineproof.session.came_back import Content
from lineproof.session.plan import Plan
from lineproof.session.session import Session
from lineproof.simulation import BY_A_MODEL, MODEL_DRIVER, parse_fault
from lineproof_bench.backend import PortDescription
from lineproof_bench.server.ports import ServerCard, ServerPort
from support import robot_run
from support.simulated_session import judged, opened

PLAN = Plan.read(Project.find(robot_run.ROOT), "netgate6100", "vpp", "lab-example", "quick")
REAL_SERVER = "v3.08 (Jul 15 2026, STL)"
REAL_PORT = GeneratorPort(0, "02:00:00:00:00:01", 10e9, True, "net_ixgbe", "0000:03:00.0", "82599ES 10-Gigabit")
REAL_ROUTER = {"software": "VPP", "version": "v24.10", "kernel": "Linux simulated-lab 6.8.0-45 #45-Ubuntu SMP x86_64"}


def connected(
    monkeypatch: pytest.MonkeyPatch,
    server: str = REAL_SERVER,
    port: GeneratorPort = REAL_PORT,
    router: dict[str, str] = REAL_ROUTER,
    **facts: Any,
) -> Session:
    """A session on a testbed of kind hardware whose generator and router say this of themselves."""
    sides = tuple(SimpleNamespace(interface=name) for name in ("one", "two"))
    generator = SimpleNamespace(ports=(0, 1))
    known = {"label": "lab", "generator": generator, "clock_speed": 1.0, "simulated": False, "sides": sides, **facts}
    testbed: Any = SimpleNamespace(
        facts=SimpleNamespace(**known, router=SimpleNamespace(sudo=False, where="192.0.2.1:22")),
        problems=list,
        say=list,
    )
    session = Session(PLAN, testbed)
    driver: Any = SimpleNamespace(ports=(port, replace(port, index=1)), versions={"server": server})
    session.generator.connect(lambda _: driver)
    monkeypatch.setattr(
        "lineproof.session.router.make_router",
        lambda *_, **__: SimpleNamespace(identify=lambda: router, facts=RouterFacts),
    )
    nothing: Any = object()
    session.router.connect(nothing)
    return session


@pytest.mark.parametrize(
    ("changes", "sign"),
    [
        ({"server": f"v3.08 ({BY_A_MODEL}, STL)"}, "the generator's server: "),
        ({"port": replace(REAL_PORT, driver=MODEL_DRIVER)}, "driver of the generator's port 0: "),
        ({"port": replace(REAL_PORT, description=f"model0, {BY_A_MODEL}")}, "the generator's port 0: "),
        ({"router": {**REAL_ROUTER, "kernel": f"Linux r 5.15 {BY_A_MODEL} x86_64"}}, "the router's kernel: "),
        ({"router": {**REAL_ROUTER, "cpu": BY_A_MODEL}}, "the router's cpu: "),
        ({"router": {"software": "pfSense", "version": "2.7.2-SIMULATED"}}, "the router's version: "),
        ({"clock_speed": 20.0}, "the testbed's clock runs 20 times as fast"),
        ({"simulated": True}, "the testbed is simulated"),
    ],
)
def test_any_single_sign_is_enough(monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], sign: str):
    session = connected(monkeypatch, **changes)
    assert session.simulated
    assert session.simulation_signs[0].startswith(sign)


def test_the_model_s_server_marks_its_ports():
    port = PortDescription(0, "02:00:00:00:00:01", "", 10e9, MODEL_DRIVER, interface="model0")
    assert BY_A_MODEL in ServerPort(port, ServerCard()).information()["description"]
    wire = replace(port, driver="lineproof_wire", interface="veth0")
    assert ServerPort(wire, ServerCard()).information()["description"] == "veth0"


# -- the simulated router that carries other frames than it was sent does not pass, and what is wrong is named


SENTENCE, MIX = "64b bidirectional ≥ 1 Mpps each way", "imix bidirectional ≥ 300 kpps each way"
OVERLOAD = "64b bidirectional forwards ≥ 90% line rate each way"
ONE_FLOW, SOON = "64b 1-flow unidirectional ≥ 1 Mpps", "64b bidirectional latency p50 ≤ 10 ms at 1 Mpps each way"
MOST_SOON = "64b unidirectional latency p99 ≤ 10 ms at 1 Mpps"
IN_ORDER = "64b unidirectional reorders ≤ 0.01% at 1 Mpps"
MIX_SOON = "imix unidirectional latency p99 ≤ 10 ms at 300 kpps"
SOAK, LOSES = (f"64b unidirectional loses ≤ {words}" for words in ("1% at 1 Mpps for 20 s", "2% at 1 Mpps"))


@pytest.mark.slow
@pytest.mark.parametrize("words", ["64b", "64b 256-flows", "64b 10k-flows"])
def test_a_router_whose_rings_are_full_sends_no_frame_twice(words: str, tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        session.traffic.put(Traffic(session.plan.catalogue.profile(words.split()), True))
        session.examine(True)
        outcomes = [session.traffic.measure(Load(load), 1.0) for load in (6.18e6, 6.2e6, 6.22e6)]
    assert any(row.lost for outcome in outcomes for row in outcome.directions)
    assert [str(problem) for outcome in outcomes for problem in outcome.problems] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sentence", "lie", "words"),
    [
        (MIX, {"what": "payload", "size": 1518, "port": 1}, "payload"),
        (MIX, {"what": "length"}, "bytes"),
        (SOAK, {"what": "ttl", "share": 0.02}, "time to live"),
        (LOSES, {"what": "ttl", "share": 0.02}, "time to live"),
        ("64b 1-flow unidirectional recovers in ≤ 1 s at 10 Mpps", {"what": "payload"}, "payload"),
        (OVERLOAD, {"what": "payload"}, "frames or more came back changed"),
        (SENTENCE, {"what": "cached"}, "copies"),
        (SENTENCE, {"what": "flow"}, "copies"),
        (SENTENCE, {"what": "lost", "share": 0.02, "spare": True}, "lost 2 %"),
        (ONE_FLOW, {"what": "copies"}, "come back twice"),
        (ONE_FLOW, {"what": "cached"}, "probe frames were lost"),
        (MIX_SOON, {"what": "late", "size": 1518}, "p99"),
        (SOON, {"what": "late", "spare": True, "hold": 0.2}, "later than the probe frames"),
        (SOON, {"what": "late", "spare": True, "hold": 0.1, "port": 1}, "later than the probe frames"),
        (MOST_SOON, {"what": "late", "spare": True, "share": 0.5}, "later than the probe frames"),
        (IN_ORDER, {"what": "late", "spare": True, "share": 0.5, "hold": 0.3}, "later than the probe frames"),
        (SENTENCE, {"what": "hairpin", "share": 0.02, "above": 600e3}, "more probe frames were lost"),
        (SENTENCE, {"what": "copies", "share": 0.02, "above": 600e3}, "come back twice"),
    ],
)
def test_a_simulated_router_that_lies_does_not_pass(
    tmp_path: Path, sentence: str, lie: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "above" in lie:
        # probe frames show it where no frames are kept at the load
        monkeypatch.setattr(Content, "is_kept_at_any_load", False)
    # at a slow clock counts are read before late frames have come
    with opened(tmp_path, clock_speed=5 if sentence == SOON else 50) as session:
        session.cause_fault(parse_fault("changed frames", **lie))
        verdict = judged(session, sentence)
    assert verdict.ruling is not Ruling.PASS
    assert words in verdict.message
    # judged again, an untouched record does not contradict itself
    record: Any = SimpleNamespace(trials=tuple(trial.number for trial in verdict.trials))
    assert list(contradictions(verdict.trials, record)) == []
