"""A study of a real kernel: a firewall of nftables costs each frame CPU time, and is gone afterwards."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from lineproof.evidence.run import read_measurements
from lineproof.studies.history import read_results
from support.command_line import lineproof

pytestmark = pytest.mark.netns

STUDY = """\
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


def runs(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "results").iterdir() if path.name[0] == "2")


def project(folder: Path, text: str) -> None:
    (folder / "variables" / "studies").mkdir(parents=True)
    (folder / "variables" / "studies" / "small.yaml").write_text(text, encoding="utf-8")


@pytest.mark.skipif(shutil.which("nft") is None, reason="this machine has no 'nft' (Debian: nftables)")
def test_two_thousand_rules_cost_a_frame_microseconds(tmp_path: Path) -> None:
    project(tmp_path, STUDY)
    ran = lineproof(tmp_path, "study", "run", "small", "--testbed", "netns", "--goal", "quick")
    (run,) = runs(tmp_path)
    found = read_results(run)
    records = read_measurements(run)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert len(records) == 6 and not found.gaps and not found.simulated
    without, filtered = (found.cells["one flow", name].summary for name in ("without", "2000 rules"))
    assert without is not None and filtered is not None and without.minimum > 500
    # rule after rule: more than a nanosecond each, however busy the machine
    assert filtered.median - without.median > 2000
    assert all(record.figures["windows"] >= 5 and record.unit == "ns/packet" for record in records)
    # rules that do not match, and one that accepts
    assert all(record.figures["forwarded_pps"] > 0.99 * record.figures["offered_pps"] for record in records)
    assert "Machine of the run: " in ran.stdout and f"{os.cpu_count()} CPU" in ran.stdout
    assert lineproof(tmp_path, "verify", str(run)).returncode == 0


def test_a_command_that_the_router_has_not_is_a_gap_with_its_reason(tmp_path: Path) -> None:
    project(tmp_path, STUDY.replace("nft -f -", "no-such-nft -f -").replace("repeats: 2", "repeats: 1"))
    ran = lineproof(tmp_path, "study", "run", "small", "--testbed", "netns", "--goal", "quick")
    (run,) = runs(tmp_path)
    (cell,) = read_results(run).gaps
    assert cell.variant == "2000 rules" and "no-such-nft" in cell.gaps[0]
    assert ran.returncode == 1, ran.stdout + ran.stderr
