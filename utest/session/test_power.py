"""Energy per packet through the whole chain: declared by the platform, and measured by a meter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lineproof.core.rule import Ruling
from lineproof.errors import SentenceError
from lineproof.power.meter import CommandMeterSettings
from lineproof.project import Project
from lineproof.session.plan import Plan
from lineproof.session.power import PoweredTrials
from lineproof.session.session import Session
from support import robot_run, simulated_session
from support.paths import ROOT
from support.simulated_session import judged

pytestmark = pytest.mark.slow
PROJECT = Project.find(ROOT)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with simulated_session.opened(tmp_path_factory.mktemp("run")) as found:
        yield found


def test_the_published_energy_of_the_netgate_comes_out_of_its_declared_watts(session: Session) -> None:
    verdict = judged(session, "64b unidirectional costs ≤ 1.4 µJ/packet")
    assert verdict.ruling is Ruling.PASS, verdict.message
    # published: 1.26 at 15.1 Mpps, three times one worker's rate; one direction of the line carries 14.4
    energy, rate = verdict.figures["energy_uj_low"], verdict.figures["forwarded_pps"]
    assert energy == verdict.figures["energy_uj_high"]
    assert energy * rate == pytest.approx(19e6, rel=1e-3) and energy == pytest.approx(1.26 * 15.1e6 / rate, rel=0.01)
    assert "19 W as the platform's file declares it, not measured" in str(verdict.reason)
    assert judged(session, "64b unidirectional costs ≤ 1.3 µJ/packet").ruling is Ruling.FAIL


def test_a_meter_is_read_while_frames_flow_and_before(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, asked = tmp_path / "watts", tmp_path / "asked"
    shown.write_text("20.9\n")
    # three figures while the router idles, then those under load
    command = f"echo >> {asked}; if [ $(wc -l < {asked}) -gt 3 ]; then cat {shown}; else echo 17.1; fi"
    settings = CommandMeterSettings(kind="command", run=command, accuracy=1, interval=0.5, settle=0.5, covers="it")
    meter = PoweredTrials(
        settings, 19.0, session.traffic.measure, lambda: session.router.shell, False, session.clock_speed
    )
    monkeypatch.setattr(session, "power", meter)
    verdict = judged(session, "64b unidirectional costs ≤ 1.5 µJ/packet")
    assert verdict.ruling is Ruling.PASS, verdict.message
    assert verdict.figures["power_watts"] == 20.9 and verdict.figures["idle_power_watts"] == 17.1
    assert verdict.figures["energy_uj_high"] > verdict.figures["energy_uj_low"]
    assert "' here, which covers it, ± 1 % of the reading" in str(verdict.reason)
    assert len(asked.read_text().splitlines()) == 3 * (len(verdict.trials) + 1)
    shown.write_text("21.9\n")  # its fans, since the sentence before
    verdict = judged(session, "64b unidirectional costs ≤ 1.6 µJ/packet")
    assert verdict.figures["idle_power_watts"] == pytest.approx(21.9), "that of the sentence before"
    shown.unlink()
    verdict = judged(session, "64b bidirectional costs ≤ 1.5 µJ/packet")
    assert verdict.ruling is Ruling.INCONCLUSIVE and "failed with status 1" in str(verdict.reason)


def test_a_meter_that_cannot_be_read_stops_its_sentences_before_any_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its command prints its secret, too, which is in no file of the run."""
    monkeypatch.setenv("PDU_COMMUNITY", "c0mmunity")
    project = robot_run.short_goal(tmp_path)
    folder = tmp_path / "project" / "variables" / "testbeds"
    text = (ROOT / "variables" / "testbeds" / "simulated.yaml").read_text(encoding="utf-8")
    command = """'echo "no answer to $PDU_COMMUNITY" >&2; exit 1'"""
    power = f"\npower: {{kind: command, run: {command}, secrets: [PDU_COMMUNITY], accuracy: 1}}\n"
    (folder / "metered.yaml").write_text(text.replace("testbed: simulated", "testbed: metered") + power, "utf-8")
    suite = robot_run.write_suite(tmp_path, "64b unidirectional costs ≤ 1.5 µJ/packet")
    suite.write_text(suite.read_text("utf-8") + "Another\n    64b unidirectional ≥ 1 Mpps\n", "utf-8")
    found = robot_run.run(tmp_path, suite, "-v", "TESTBED:metered", "-v", "GOAL:quick", "--loglevel", "TRACE", *project)
    assert [status for status, _ in found.tests.values()] == ["FAIL", "PASS"], found.console
    message = next(iter(found.tests.values()))[1]
    assert message.startswith("INCONCLUSIVE: ") and message.count("no answer to ***") == 1
    assert "nothing was sent, because no power is known: the meter 'echo " in message
    (run,) = (tmp_path / "results").iterdir()
    trials = [json.loads(line) for line in (run / "trials.jsonl").read_text("utf-8").splitlines()]
    assert trials and not any("costs" in json.dumps(trial, ensure_ascii=False) for trial in trials)
    files = [path for name in ("out", "results") for path in (tmp_path / name).rglob("*") if path.is_file()]
    assert files and not [path for path in files if b"c0mmunity" in path.read_bytes()]


@pytest.mark.parametrize("software", ["vpp", "pfsense", None])
def test_the_power_of_a_sentence_is_measured_or_declared(software: str | None) -> None:
    platform, testbed = ("netgate6100", "simulated") if software else ("linux_router", "netns")
    plan = Plan.read(PROJECT, platform, software, testbed, "quick")
    declared, idle = "64b bidirectional costs ≤ 1.5 µJ/packet", "expected the key 'power' in the testbed's file"
    with pytest.raises(SentenceError, match=idle if software else "or 'watts' in the platform's, as declared power"):
        plan.requirement(f"{declared} above idle" if software else declared)
    if software:
        plan.requirement(declared)


def test_a_rate_per_core_is_one_of_all_workers() -> None:
    plan = Plan.read(PROJECT, "netgate6100", "vpp", "simulated", "quick")
    assert plan.requirement("64b unidirectional forwards ≥ 4.7 Mpps per core").threshold_pps(1e10) == 3 * 4.7e6
    plan = Plan.read(PROJECT, "linux_router", None, "netns", "quick")
    with pytest.raises(SentenceError, match="expected 'workers' of linux in the file of platform 'linux_router'"):
        plan.requirement("64b unidirectional ≥ 1 Mpps per core")
    with pytest.raises(SentenceError, match="a load is offered to ports, not to cores"):
        plan.requirement("64b unidirectional loses ≤ 1% at 1 Mpps per core")
