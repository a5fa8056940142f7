"""Runs on testbeds that labgrid lends have them from their first session to their last."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lineproof.errors import TestbedError
from lineproof.evidence.run import read_run
from lineproof.project import Project
from lineproof.studies.preparing import prepare_study
from lineproof.studies.runner import StudyRun
from lineproof.testbed.lab.place import LabPlace
from support import robot_run
from support.lab_rig import lab
from support.study_builders import SMALL, study_project

pytestmark = pytest.mark.slow

ROW = "  ramp: {ramp: 64b 1-flow unidirectional, steps: 5, repeats: 1}\n"
POOL = """\
testbed: benches
kind: pool
lab: {{coordinator: "{address}", tags: {{kind: bench}}, wait: 5 min}}
"""


def test_a_suite_gets_a_testbed_of_a_pool_and_gives_it_back(tmp_path: Path) -> None:
    home = robot_run.project(tmp_path, "bench1")
    with lab(tmp_path / "lab", ["bench1"]) as rig:
        (home / "variables" / "testbeds" / "benches.yaml").write_text(POOL.format(address=rig.address), "utf-8")
        suite = robot_run.write_suite(tmp_path, "64b 1-flow ≥ 1 Mpps")
        options = ("-v", f"PROJECT:{home}", "-v", "GOAL:quick", "-v", "TESTBED:benches")
        run = robot_run.start(tmp_path, suite, *options)
        assert run.wait(240) == 0, (tmp_path / "console.txt").read_text(encoding="utf-8")
        assert rig.holders() == {}
    (path,) = tmp_path.rglob("environment.json")
    environment = read_run(path.parent).environment
    assert environment is not None
    assert (environment.testbed, environment.extra["labgrid"]["place"]) == ("bench1", "bench1")


class Place(LabPlace):
    """A place that nobody is asked for; somebody takes it away where *problem* says so."""

    def __init__(self, problem: str = "") -> None:
        self.name, self.owner, self.closed, self.problem = "bench1", "here/alice", 0, problem

    def record(self) -> dict[str, str]:
        """Return the record of one that was acquired."""
        return {"place": self.name}

    def problems(self) -> tuple[str, ...]:
        """Return the problem of one that was released."""
        return (self.problem,) if self.problem else ()

    def close(self) -> None:
        """Counts."""
        self.closed += 1


@pytest.mark.parametrize("problem", ["", "labgrid's place 'bench1' was taken from this run"])
def test_a_study_has_one_place_for_all_its_variants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    places = [Place(problem)]
    monkeypatch.setattr(LabPlace, "acquire", lambda *_: places.pop())
    (place,) = places
    home = robot_run.project(tmp_path, "bench1", more="lab: {coordinator: '127.0.0.1:1'}")
    study_project(home, SMALL.replace(ROW, ""))
    run = StudyRun(prepare_study(Project(home), "small", "bench1", "quick", 1), tmp_path / "results")
    if problem:
        with pytest.raises(TestbedError, match="was taken from this run"):
            run.run()
    else:
        environment = json.loads((run.run() / "environment.json").read_text(encoding="utf-8"))
        assert environment["extra"]["labgrid"] == {"place": "bench1"}
    assert place.closed and not places
