"""A study of generators: the router bypassed, each variant on its own testbed, those that are not here as gaps."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from lineproof.evidence.run import read_measurements
from support.command_line import lineproof

STUDY = """\
study: senders
title: Two senders
platform: linux_router
testbed: slow
bypass: true
repeats: 3
seconds: 0.3
unit: kpps
measures:
  64b: {sends: 64b 1-flow unidirectional}
  512b: {sends: 512b 1-flow unidirectional}
  imix: {sends: imix 1-flow unidirectional, repeats: 1}
variants:
  own: {measures: [64b, 512b]}
  away: {testbed: far, measures: [64b]}
  iperf3: {testbed: slow-iperf3}
"""
TESTBED = "testbed: {}\ndescription: slow ports\nkind: {}\nwarm_up: 0\n{}"
TOLERANCE = "tolerance: {under: 0.01, over: 0.01}\n"
SLOW = "port_speed: 40 Mbps\n" + TOLERANCE
"""About 60 kpps of 64 bytes."""


def project(folder: Path, platform: str = "linux_router", **testbeds: str) -> None:
    for kind in ("studies", "testbeds"):
        (folder / "variables" / kind).mkdir(parents=True)
    (folder / "variables/studies/senders.yaml").write_text(STUDY.replace("linux_router", platform))
    for name, text in testbeds.items():
        (folder / f"variables/testbeds/{name.replace('_', '-')}.yaml").write_text(text)


def table(folder: Path) -> tuple[Path, dict[tuple[str, str], dict[str, str]]]:
    (run,) = (path for path in (folder / "results").iterdir() if path.name[0] == "2")
    with (run / "study.csv").open() as file:
        return run, {(row["row"], row["variant"]): row for row in csv.DictReader(file)}


@pytest.mark.slow
def test_what_is_not_here_is_a_gap_and_no_failure(tmp_path: Path) -> None:
    project(tmp_path, "netgate6100", slow=TESTBED.format("slow", "simulated", ""))
    (tmp_path / "variables/testbeds/slow-iperf3.yaml").write_text(TESTBED.format("slow-iperf3", "hardware", HARDWARE))
    ran = lineproof(tmp_path, "study", "run", "senders", "--goal", "quick")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    run, found = table(tmp_path)
    assert "SIMULATED" in ran.stdout and found["64b", "own"]["n"] == "3"
    # a simulated generator fills its ports, and says nothing of a real one: the mark stands above it
    assert found["64b", "own"]["fit_1g"] == "true" and "own, line rate of 1 Gbit/s: fit with every row" in ran.stdout
    assert found["64b", "away"]["gaps"].startswith("not here: no file describes a testbed 'far'")
    assert "the generator 'iperf3' sends no frames of several sizes" in found["imix", "iperf3"]["gaps"]
    assert found["64b", "iperf3"]["gaps"].startswith("not here: ")
    assert {record.excused for record in read_measurements(run) if record.value is None} == {True}
    assert "Frames/s over frame size" in (run / "study.html").read_text()
    assert lineproof(tmp_path, "verify", str(run)).returncode == 0

    again = lineproof(tmp_path, "study", "run", "senders", "--goal", "quick", "--resume", run.name)
    assert again.returncode == 0 and "6 measurements: carried over" in again.stdout


HARDWARE = """\
generator:
  type: iperf3
  ports:
    - {interface: lr-nowhere0, namespace: lr-nowhere-a}
    - {interface: lr-nowhere1, namespace: lr-nowhere-b}
router: {address: 192.0.2.1, user: root, key: /nonexistent}
"""


@pytest.mark.netns
def test_two_real_senders_on_one_cable(tmp_path: Path) -> None:
    project(
        tmp_path,
        slow=TESTBED.format("slow", "netns", SLOW + "generator: {type: trafgen}\n"),
        slow_iperf3=TESTBED.format("slow-iperf3", "netns", SLOW + "generator: {type: iperf3}\n"),
    )
    ran = lineproof(tmp_path, "study", "run", "senders", "--goal", "quick")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    run, found = table(tmp_path)
    for row in ("64b", "512b"):
        for variant in ("own", "iperf3"):
            cell = found[row, variant]
            # however busy this machine is: something was sent, no more than the port carries, at a price
            assert cell["n"] == "3" and 0 < float(cell["l1_gbps"]) < 0.041
            # a shell counts CPU time in ticks of 10 ms, which may be more than a few thousand frames take
            assert float(cell["cpu_seconds_per_mframe"] or row == "512b") > 0 and cell["fit_1g"] == ""
    assert "its port has 0.04 Gbit/s" in ran.stdout
    assert lineproof(tmp_path, "verify", str(run)).returncode == 0
