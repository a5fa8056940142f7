"""Small studies: run, interrupted, refused, of a kernel with a firewall, of generators on a cable."""

from __future__ import annotations

import csv
import shutil
from collections import Counter
from dataclasses import astuple
from pathlib import Path

import pytest

from lineproof.evidence.run import read_run
from lineproof.studies.forms import headline
from lineproof.studies.results import read_results
from lineproof.studies.runner import StudyRun
from lineproof.studies.study import load_study, steps_of
from support.command_line import lineproof
from support.served_bench import served
from support.study_builders import study_project


def runs(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "results").iterdir() if path.name[0] == "2")


@pytest.mark.slow
def test_a_study_leaves_each_measurement_with_its_trials_and_can_be_reported_elsewhere(tmp_path: Path) -> None:
    project = study_project(tmp_path)
    ran = lineproof(tmp_path, "study", "run", "small", "--goal", "quick")
    # the coarse ramp is nobody's published figure, so that all are met
    assert ran.returncode == 0 and "2 of 2 published figures inside" in ran.stdout, ran.stdout + ran.stderr
    (run,) = runs(tmp_path)
    records, trials = read_run(run).measured, Counter(trial.requirement for trial in read_run(run).trials)
    places = [(record.block, record.turn, record.variant, record.row) for record in records]
    assert places == [astuple(step) for step in steps_of(load_study(project.studies / "small.yaml"))]
    assert all(record.simulated and trials[record.requirement] for record in records) and len(trials) == len(records)
    assert lineproof(tmp_path, "verify", str(run)).returncode == 0
    # a report needs nothing but the folder, and says the same
    page = (run / "study.html").read_text()
    shutil.copytree(run, elsewhere := tmp_path / "elsewhere" / run.name, ignore=shutil.ignore_patterns("study.*"))
    assert lineproof(tmp_path, "study", "report", str(elsewhere)).returncode == 0
    assert (elsewhere / "study.html").read_text() == page


@pytest.mark.slow
def test_what_an_interrupted_study_measured_is_kept(tmp_path: Path) -> None:
    def interrupt(line: str) -> None:
        if line == "block 1: linux":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        StudyRun(study_project(tmp_path), "small", goal="quick", say=interrupt).run(tmp_path / "results")
    (run,) = runs(tmp_path)
    assert [record.row for record in read_run(run).measured] == ["one flow", "ramp"]
    assert "INCOMPLETE: 2 of 8 measurements" in headline(read_results(run))


QUEUES = """\
study: small
title: Receive queues
platform: netgate6100
repeats: 1
measures:
  one flow: {forwards: 64b 1-flow unidirectional}
variants:
  vpp-1q: {software: vpp-1q}
  vpp-3q: {software: vpp}
"""


@pytest.mark.slow
def test_a_router_with_other_queues_than_its_variant_stops_a_study(tmp_path: Path) -> None:
    """Also after a step by hand that nobody did; what was measured before it is kept."""
    with served(tmp_path) as bench:
        home = bench.project(tmp_path)
        options = ("study", "run", "small", "--testbed", "lab", "--goal", "quick", "--wait", "0")
        study_project(home, QUEUES.replace("  vpp-3q: {software: vpp}\n", ""))
        ran = lineproof(home, *options)
        assert ran.returncode == 2 and not read_run(runs(home)[0]).measured
        assert "the platform's file says 1, TenGigabitEthernet3/0/0 has 3" in ran.stdout + ran.stderr

        study_project(home, QUEUES.replace("repeats: 1", "repeats: 1\nbaseline: vpp-3q"))
        ran = lineproof(home, *options)
        assert ran.returncode == 2 and ran.stdout.index("by hand, 1 of 2") < ran.stdout.index("by hand, 2 of 2")
        assert "BY HAND: make the router testbed 'lab', netgate6100, vpp 22.02, " in ran.stdout
        assert "and has not restarted since" in ran.stderr and "what was measured is in" in ran.stdout
        assert [record.variant for record in read_run(runs(home)[1]).measured] == ["vpp-3q"]


FIREWALL = """\
study: small
title: A firewall of a Linux kernel
platform: linux_router
repeats: 2
seconds: 0.5
baseline: without
measures:
  one flow: {cpu_time: 64b 1-flow unidirectional, at: 50 kpps}
variants:
  without: {software: linux}
  2000 rules:
    software: linux
    commands:
      - do: >-
          sh -c '{ echo "add table ip lineproof";
          echo "add chain ip lineproof forward { type filter hook forward priority 0; policy drop; }";
          for i in $(seq 2000); do echo "add rule ip lineproof forward ip saddr 198.18.$((i / 250)).$((i % 250)) drop";
          done; echo "add rule ip lineproof forward accept"; } | nft -f -'
        undo: nft delete table ip lineproof
"""


@pytest.mark.netns
@pytest.mark.skipif(shutil.which("nft") is None, reason="this machine has no 'nft' (Debian: nftables)")
def test_two_thousand_rules_cost_a_frame_microseconds(tmp_path: Path) -> None:
    study_project(tmp_path, FIREWALL)
    ran = lineproof(tmp_path, "study", "run", "small", "--testbed", "netns", "--goal", "quick")
    (run,) = runs(tmp_path)
    found = read_results(run)
    records = read_run(run).measured
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert len(records) == 6 and not found.gaps and not found.simulated
    without, filtered = (found.cells["one flow", name].summary for name in ("without", "2000 rules"))
    assert without is not None and filtered is not None and without.minimum > 500
    # rule after rule: more than a nanosecond each, however busy the machine
    assert filtered.median - without.median > 2000
    assert all(record.figures["windows"] >= 5 and record.unit == "ns/packet" for record in records)
    # rules that do not match, and one that accepts
    assert all(record.figures["forwarded_pps"] > 0.99 * record.figures["offered_pps"] for record in records)
    assert "Machine of the run: " in ran.stdout


SENDERS = """\
study: senders
title: Two senders
platform: netgate6100
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
TESTBED = "testbed: {}\nkind: {}\nwarm_up: 0\n{}"
HARDWARE = """\
generator:
  type: iperf3
  ports:
    - {interface: lr-nowhere0, namespace: lr-nowhere-a}
    - {interface: lr-nowhere1, namespace: lr-nowhere-b}
router: {address: 192.0.2.1, user: root, key: /nonexistent}
"""


@pytest.mark.slow
def test_what_is_not_here_is_a_gap_and_no_failure(tmp_path: Path) -> None:
    study_project(tmp_path, SENDERS, "senders")
    testbeds = tmp_path / "variables" / "testbeds"
    testbeds.mkdir()
    (testbeds / "slow.yaml").write_text(TESTBED.format("slow", "simulated", ""))
    (testbeds / "slow-iperf3.yaml").write_text(TESTBED.format("slow-iperf3", "hardware", HARDWARE))
    ran = lineproof(tmp_path, "study", "run", "senders", "--goal", "quick")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (run,) = runs(tmp_path)
    printed = lineproof(tmp_path, "study", "report", str(run), "--format", "csv").stdout
    found = {(row["row"], row["variant"]): row for row in csv.DictReader(printed.splitlines())}
    assert "SIMULATED" in ran.stdout and found["64b", "own"]["n"] == "3"
    # a simulated generator fills its ports, and says nothing of a real one: the mark stands above it
    assert found["64b", "own"]["fit_1g"] == "true"
    assert found["64b", "away"]["gaps"].startswith("not here: no file describes a testbed 'far'")
    assert "the generator 'iperf3' sends no frames of several sizes" in found["imix", "iperf3"]["gaps"]
    assert found["64b", "iperf3"]["gaps"].startswith("not here: ")
    assert {record.excused for record in read_run(run).measured if record.value is None} == {True}
    assert "Frames/s over frame size" in (run / "study.html").read_text()
