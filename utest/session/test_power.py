"""Energy per packet: declared by the platform, or measured by a meter whose figures cover the trial alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lineproof.core.rule import Ruling
from lineproof.core.trial import Fault, Load
from lineproof.power import CommandMeterSettings
from lineproof.project import Project
from lineproof.session.judging import judge
from lineproof.session.plan import Plan
from lineproof.session.power import PoweredTrials
from lineproof.session.session import Session
from support.paths import ROOT
from support.power_bench import PowerBench
from support.simulated_session import judged


@pytest.mark.slow
def test_the_published_energy_of_the_netgate_comes_out_of_its_declared_watts(session: Session) -> None:
    verdict = judged(session, "64b unidirectional costs ≤ 1.4 µJ/packet")
    assert verdict.ruling is Ruling.PASS, verdict.message
    # published: 1.26 at 15.1 Mpps, three times one worker's rate; one direction of the line carries 14.4
    energy, rate = verdict.figures["energy_uj_low"], verdict.figures["forwarded_pps"]
    assert energy == verdict.figures["energy_uj_high"]
    assert energy * rate == pytest.approx(19e6, rel=1e-3) and energy == pytest.approx(1.26 * 15.1e6 / rate, rel=0.01)
    assert "19 W as the platform's file declares it, not measured" in str(verdict.reason)
    failed = judged(session, "64b unidirectional costs ≤ 1.3 µJ/packet")
    # the trials of an earlier run alone say it, too
    again = judge(session, failed.requirement, earlier=[replace(trial, run="a") for trial in failed.trials])
    assert failed.ruling is again.ruling is Ruling.FAIL and again.reason == failed.reason


@pytest.mark.slow
def test_a_meter_is_read_while_frames_flow_and_before(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, asked = tmp_path / "watts", tmp_path / "asked"
    shown.write_text("20.9\n")
    # one figure before anything is sent, three while the router idles, then those under load
    command = f"echo >> {asked}; if [ $(wc -l < {asked}) -gt 4 ]; then cat {shown}; else echo 17.1; fi"
    settings = CommandMeterSettings(kind="command", run=command, accuracy=1, interval=0.5, settle=0.5, covers="it")
    meter = PoweredTrials(
        settings, 19.0, session.traffic.measure, lambda: session.router.shell, False, session.clock_speed
    )
    testbed = session.plan.testbed.model_copy(update={"power": settings})
    monkeypatch.setattr(session, "power", meter)
    monkeypatch.setattr(session, "plan", replace(session.plan, testbed=testbed))
    verdict = judged(session, "64b unidirectional costs ≤ 1.5 µJ/packet")
    assert verdict.ruling is Ruling.PASS, verdict.message
    assert verdict.figures["power_watts"] == 20.9 and verdict.figures["idle_power_watts"] == 17.1
    assert verdict.figures["energy_uj_high"] > verdict.figures["energy_uj_low"]
    assert "' here, which covers it, ± 1 % of the reading" in str(verdict.reason)
    assert len(asked.read_text().splitlines()) == 1 + 3 * (len(verdict.trials) + 1)


@pytest.mark.slow
def test_a_meter_that_cannot_be_read_stops_its_sentences_before_any_frame(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = CommandMeterSettings(kind="command", run="echo no answer >&2; exit 1", accuracy=1)
    monkeypatch.setattr(session.power, "settings", settings)
    verdict = judged(session, "64b unidirectional costs ≤ 1.5 µJ/packet")
    assert verdict.ruling is Ruling.INCONCLUSIVE and verdict.trials == ()
    assert "nothing was sent, because no power is known: the meter 'echo " in verdict.message
    assert judged(session, "64b unidirectional ≥ 1 Mpps").ruling is Ruling.PASS


def test_power_may_be_declared_and_a_rate_per_core_is_one_of_all_workers() -> None:
    plan = Plan.read(Project.find(ROOT), "netgate6100", "vpp", "simulated", "quick")
    plan.requirement("64b bidirectional costs ≤ 1.5 µJ/packet")
    assert plan.requirement("64b unidirectional forwards ≥ 4.7 Mpps per core").threshold_pps(1e10) == 3 * 4.7e6


LOAD = Load(1e6)
PHASES = (0.0, 0.01, 0.3, 0.5, 0.99)


@pytest.mark.parametrize(("interval", "ahead"), [(1, 0.0), (5, 0.0), (30, 0.0), (1, -1.5), (1, 0.9)])
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("averages", [False, True])
def test_a_line_from_before_the_traffic_does_not_count(
    tmp_path: Path, interval: float, ahead: float, phase: float, averages: bool
) -> None:
    # a clock that differs a little makes no old line a new one
    bench, file = PowerBench(ahead=ahead), tmp_path / "power.csv"
    bench.log(file, interval, phase * interval, averages)
    bench.sleep(2 * interval)
    sentence = bench.powered(kind="csv", file=file, interval=interval).of_sentence()
    for _ in range(3):
        bench.sleep(0.77 * interval)
        found = sentence(LOAD, 1.0)
        shown = [found.readings[f"{name}_watts"] for name in ("power_least", "power_most", "idle_power")]
        assert not found.problems and shown == pytest.approx([15.0, 15.0, 5.0])


@pytest.mark.parametrize(("interval", "late", "ahead"), [(5.0, 0.0, 0.0), (1.0, 4.0, 0.0), (1.0, 0.0, 3.0)])
def test_a_file_without_a_figure_of_the_trial_itself_proves_nothing(
    tmp_path: Path, interval: float, late: float, ahead: float
) -> None:
    bench, file = PowerBench(ahead=ahead), tmp_path / "power.csv"
    bench.log(file, interval, late=late)
    bench.sleep(4 * interval + late)
    found = bench.powered(kind="csv", file=file, interval=1).of_sentence()(LOAD, 1.0)
    assert [problem.fault for problem in found.problems] == [Fault.READING]
    assert "power_watts" not in found.readings
    assert str(file) in found.problems[0].detail and "clocks" in found.problems[0].detail
