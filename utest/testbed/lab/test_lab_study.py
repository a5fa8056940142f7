"""A study has its place of a real labgrid coordinator from its first session to its last."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lineproof.errors import TestbedError
from lineproof.project import Project
from lineproof.studies.preparing import PreparedStudy, prepare_study
from lineproof.studies.runner import StudyRun
from lineproof.testbed.held import HeldTestbed
from lineproof.testbed.in_use import InUse
from lineproof.testbed.lab.place import LabPlace
from lineproof.testbed.lab.settings import LabSettings
from lineproof.testbed.waiting_time import silent
from support.lab_rig import bench_project, client, lab
from support.study_builders import SMALL
from testbed.test_in_use import testbed

ROW = "  ramp: {ramp: 64b 1-flow unidirectional, steps: 5, repeats: 1}\n"


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("LG_USERNAME", "alice")
    monkeypatch.setenv("LG_HOSTNAME", "here")


def prepared_in(folder: Path, address: str) -> PreparedStudy:
    home = bench_project(folder, ["bench1"], f'\nlab: {{{{coordinator: "{address}"}}}}\n')
    (home / "variables" / "studies" / "small.yaml").write_text(SMALL.replace(ROW, ""), encoding="utf-8")
    return prepare_study(Project(home), "small", "bench1", "quick", 1)


@pytest.mark.slow
def test_nobody_gets_it_between_two_variants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each variant has a session of its own, and the next user waits in labgrid's queue all the time."""
    with lab(tmp_path / "lab", ["bench1"]) as rig:
        settings = LabSettings.model_validate({"coordinator": rig.address, "wait": "1 min"})
        rivals, had = list[LabPlace](), list[dict[str, str]]()

        def say(words: str) -> None:
            if words.startswith("  one flow: "):
                had.append(rig.holders())
            if words.startswith("  ") and not rivals:
                monkeypatch.setenv("LG_USERNAME", "bob")
                rivals.append(LabPlace(settings, "bob's", settings.filters("bench1"), silent))
                monkeypatch.setenv("LG_USERNAME", "alice")

        try:
            folder = StudyRun(prepared_in(tmp_path, rig.address), tmp_path / "results", say=say).run()
            (rival,) = rivals
            rival._wait()
            assert rig.holders() == {"bench1": "here/bob"}
        finally:
            for rival in rivals:
                rival.close()
        assert had == [{"bench1": "here/alice"}] * 2
        (kept,) = (folder / "telemetry").glob("*labgrid*")
        story = [line.split(" ", 1)[1] for line in kept.read_text(encoding="utf-8").splitlines()]
        assert story == [
            f"labgrid's place 'bench1' at {rig.address} acquired",
            "labgrid's place 'bench1' given back",
        ]
        environment = json.loads((folder / "environment.json").read_text(encoding="utf-8"))
        assert environment["extra"]["labgrid"]["place"] == "bench1"
        assert client(rig.address, "reservations").strip() == ""


class Taken(LabPlace):
    """A place that somebody else has by now. Asks nobody."""

    def __init__(self) -> None:
        self.story, self.closed = ["acquired"], 0
        self.settings, self.name, self.owner = LabSettings(coordinator="127.0.0.1:1"), "bench1", "here/alice"
        self.token, self.waited = "", 0.0

    def problems(self) -> tuple[str, ...]:
        """As if it was released."""
        return ("labgrid's place 'bench1' was taken from this run",)

    def close(self) -> None:
        """Counts."""
        self.closed += 1


@pytest.mark.slow
def test_nothing_is_started_on_a_place_that_was_taken_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, asked = Taken(), list[str]()

    def acquire(_settings: LabSettings, name: str, _say: object) -> LabPlace:
        asked.append(name)
        return place

    monkeypatch.setattr(LabPlace, "acquire", acquire)
    run = StudyRun(prepared_in(tmp_path, "127.0.0.1:1"), tmp_path / "results")
    with pytest.raises(TestbedError, match="was taken from this run"):
        run.run()
    # once, and given back on this way out too
    assert asked == ["bench1"] and place.closed


def test_the_lock_of_hardware_is_had_until_it_is_given_back() -> None:
    held = HeldTestbed.take(testbed())
    with pytest.raises(TestbedError, match="in use for"):
        InUse.mark(testbed(0.1))
    held.check()
    held.close()
    held.close()
    InUse.mark(testbed(0.1)).close()
