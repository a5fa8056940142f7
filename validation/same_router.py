"""Runs of a study of the same router three times, with noise: how many find a difference, which none should.

``python -m validation.same_router``: 20 runs, at 95 %. It ends with status 1 where more than two differences are shown.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from lineproof.project import Project
from lineproof.studies.results import read_results
from lineproof.studies.runner import StudyRun

MOST = 2
"""The most differences of 20 runs of two variants each: at 5 % for both together, one is expected."""

STUDY = """\
study: same
title: The same router three times
platform: netgate6100
testbed: noisy
repeats: 5
seed: {seed}
seconds: 0.5
unit: kpps
baseline: one
measures: {{saturated: {{forwards: 64b 1-flow unidirectional}}}}
variants: {{one: {{software: vpp}}, two: {{software: vpp}}, three: {{software: vpp}}}}
"""

TESTBED = """\
testbed: noisy
kind: simulated
clock_speed: 50
seed: {seed}
noise: {{capacity: 0.003, bursts: {{packets: 500, every: 50}}}}
"""


def differences(seed: int) -> list[str]:
    """Return what a run with *seed* proves: the variants, each with its change."""
    with tempfile.TemporaryDirectory() as home:
        root = Path(home)
        for kind, name, text in (("studies", "same", STUDY), ("testbeds", "noisy", TESTBED)):
            folder = root / "variables" / kind
            folder.mkdir(parents=True)
            (folder / f"{name}.yaml").write_text(text.format(seed=seed), encoding="utf-8")
        found = read_results(StudyRun(Project(root), "same", goal="quick").run(root / "results"))
        compared = {cell.variant: cell.compared for cell in found.cells.values() if cell.compared}
        assert len(compared) == 2, found.gaps
        return [f"{name} {change}" for name, change in compared.items() if change.proven]


def main() -> int:
    """Run them, and print what each proves."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="how many (20)")
    proven = 0
    runs = parser.parse_args().runs
    for seed in range(runs):
        words = differences(seed)
        proven += len(words)
        print(f"run {seed + 1}: {', '.join(words) or 'no difference'}", flush=True)
    print(f"{proven} of {2 * runs} comparisons prove a difference; at most {MOST} in 20 runs")
    return int(proven > MOST * max(1.0, runs / 20))


if __name__ == "__main__":
    sys.exit(main())
