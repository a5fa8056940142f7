"""From 'lineproof calibrate' to verdicts that use the generator's ceiling."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path

import pytest

from lineproof.ceilings.calibration import read_calibration
from lineproof.commands import calibrate
from lineproof.errors import TestbedError
from support import robot_run
from support.command_line import PROGRAM, environment, lineproof
from support.simulated_session import started

pytestmark = pytest.mark.slow


TESTS = """\
Above
    64b bidirectional ≥ 96.5% line rate each way
Below
    64b bidirectional ≥ 90% line rate each way
"""


def test_verdicts_near_the_ceiling_are_inconclusive_and_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    folder = tmp_path / "calibrations"
    words = ("simulated", "--platform", "netgate6100", "--bidirectional", "--traffic", "64b", "1514b")
    options = ("--goal", "quick", "--calibrations", str(folder))
    done = lineproof(tmp_path, "calibrate", *words, *options, cwd=robot_run.ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    assert "SIMULATED" in said and "(97 % line rate)" in said and "takes 40 s of traffic" in said
    # 1 / risk trials of the goal, and it says so first
    assert said.index("2 ceilings. Watching it for 20 s each") < said.index("64b bidirectional: ")
    assert re.findall("^(?!kept in ).{81,}", done.stdout, re.MULTILINE) == []
    known = read_calibration(folder, "simulated", "netgate6100")
    assert known is not None
    assert [(item.traffic, item.bidirectional) for item in known.ceilings] == [("64b", True), ("1514b", True)]
    assert all(item.latency is not None for item in known.ceilings)
    watched = [item.watched for item in known.ceilings if item.watched is not None]
    assert [(item.trials, item.lossy, item.most_lost) for item in watched] == [(20, 0, 0)] * 2

    suite = robot_run.write_tests(tmp_path, TESTS, "Open Testbed For    netgate6100    software=vpp    goal=quick")
    found = robot_run.run(tmp_path, suite, "-v", f"CALIBRATIONS:{folder}")
    messages = {name: message for name, (_, message) in found.tests.items()}
    assert messages["Above"].startswith("INCONCLUSIVE: ")
    assert "calibrated on 20" in messages["Above"]
    assert messages["Below"].startswith("FAIL: ") and "calibrated" not in messages["Below"]

    (run,) = (tmp_path / "results").iterdir()
    records = [json.loads(line) for line in (run / "requirements.jsonl").read_text().splitlines()]
    applied = {record["test"]: record["own_part"]["evidence"] for record in records}
    assert applied["Above"]["lossless_pps"] == known.ceilings[0].lossless_pps
    assert "calibration simulated-netgate6100.yaml of 20" in (tmp_path / "out" / "output.xml").read_text()
    assert robot_run.processes_of(tmp_path) == []


def test_a_router_that_is_not_bypassed_is_refused(tmp_path: Path):
    with started(tmp_path) as session:
        session.generator.connect()
        with pytest.raises(TestbedError, match="connect the generator's two ports to each other"):
            calibrate._check_bypassed(session)
        session.router.connect()
        session.router.configure()
        with pytest.raises(TestbedError, match=r"a router is still between the generator's ports: .* time to live 63"):
            calibrate._check_bypassed(session)


def test_an_interrupt_keeps_what_was_measured(tmp_path: Path):
    words = ("calibrate", "simulated", "--platform", "netgate6100", "--duration", "30")
    with subprocess.Popen(
        [*PROGRAM, *words, "--calibrations", str(tmp_path / "calibrations")],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(tmp_path),
        cwd=robot_run.ROOT,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("64b unidirectional: "):
                process.send_signal(signal.SIGTERM)
                break
        rest, _ = process.communicate(timeout=240)
    assert process.returncode == 130
    assert "kept in" in rest
    known = read_calibration(tmp_path / "calibrations", "simulated", "netgate6100")
    assert known is not None
    assert [item.traffic for item in known.ceilings] == ["64b"]
    assert robot_run.processes_of(tmp_path) == []
