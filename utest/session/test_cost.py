"""Cycles per packet through the whole chain: generator, SSH, VPP's shell, the model's worker that spends them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from lineproof.errors import TestbedError
from lineproof.project import Project
from lineproof.routers.base import Result, Shell
from lineproof.session.session import Session
from lineproof.sla.verdict import Ruling
from support import published, simulated_session
from support.paths import ROOT
from support.simulated_session import judged

pytestmark = pytest.mark.slow
PROJECT = Project.find(ROOT)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with simulated_session.opened(tmp_path_factory.mktemp("run")) as found:
        yield found


@pytest.fixture(scope="module")
def modelled() -> dict[str, float]:
    """What the model itself spends, by the name of the published row."""
    studies = tuple(study for study in published.published_studies(PROJECT) if study.study == "netgate6100")
    return {
        variant.name.removesuffix(", vpp-1q"): published.modelled(variant)
        for variant in published.modelled_variants(PROJECT, studies)
        if variant.name.endswith(", vpp-1q")
    }


@pytest.mark.parametrize(("load", "limit"), [("1 kpps", 1_600_000), ("1 Mpps", 1800), ("10 Mpps", 450)])
def test_the_sentence_finds_what_the_model_spends(
    session: Session, modelled: dict[str, float], load: str, limit: float
) -> None:
    kept: list[str] = []
    sentence = f"64b 1-flow unidirectional costs ≤ {limit} cycles/packet at {load}"
    verdict = judged(session, sentence, on_telemetry=lambda name, reading: kept.append(name))
    assert verdict.ruling is Ruling.PASS, verdict.message
    at = f"at {load}"
    for figure, row in (
        ("cycles_per_packet", "cycles"),
        ("cycles_per_packet_without_input", "cycles without input"),
        ("vectors_per_call", "packets per call"),
    ):
        assert verdict.figures[figure] == pytest.approx(modelled[f"{row} {at}"], rel=0.02)
        # one flow keeps one worker busy: the others are no part of the mean
        assert verdict.figures[f"{figure}_vpp_wk_0"] == verdict.figures[figure]
        assert f"{figure}_vpp_wk_1" not in verdict.figures
    for trial in verdict.trials:
        if trial.valid:
            assert trial.outcome.readings["cycles_per_packet"] == pytest.approx(modelled[f"cycles {at}"], rel=0.02)
            assert 0.9 < trial.outcome.readings["runtime_seconds"] < trial.outcome.duration
    assert kept.count("under load") == len(verdict.trials)


class FailingShell:
    """*shell*, in which the *number*-th command with *word* in it fails, and the first 'clear runtime' takes long."""

    def __init__(self, shell: Shell, word: str, number: int) -> None:
        self._shell, self._word, self._left = shell, word, number
        self._slow = True

    def __call__(self, command: str, limit: float) -> Result:
        if self._slow and "clear runtime" in command:
            # so the trials leave two seconds of real time and more for the commands
            self._slow = False
            time.sleep(1.0)
        self._left -= self._word in command
        if self._left == 0 and self._word in command:
            raise TestbedError("the SSH link to the router broke")
        return self._shell(command, limit)


# the first 'clear' is a rehearsal; readings: before the trials, the rehearsal, the first trial
@pytest.mark.parametrize(("word", "number"), [("clear runtime", 2), ("show runtime", 3)])
def test_traffic_stops_when_a_command_of_the_router_fails(session: Session, word: str, number: int) -> None:
    router = session.router
    shell = router.shell
    router.connect(FailingShell(shell, word, number))
    try:
        verdict = judged(session, "64b 1-flow unidirectional costs ≤ 1 cycles/packet at 1 kpps")
        assert verdict.ruling is Ruling.INCONCLUSIVE and "the SSH link to the router broke" in verdict.reason
        assert verdict.trials == ()

        def received() -> int:
            return sum(item.rx_packets for item in router.watch.read().interfaces.values())

        first = received()
        time.sleep(0.1)  # 5 s of the testbed's clock
        assert received() == first
        # the generator did not fail, so it is not connected again
        assert judged(session, "64b 1-flow unidirectional ≥ 1 Mpps").ruling is Ruling.PASS
        assert session.traffic.reconnection.note == ""
    finally:
        router.connect(shell)
