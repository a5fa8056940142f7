"""The main job on every card that the embedded server plays: the same verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from lineproof.evidence.run import read_run
from lineproof.testbed.settings import SimulatedNic
from support import robot_run
from support.paths import ROOT

pytestmark = pytest.mark.slow

CARDS: tuple[str, ...] = get_args(SimulatedNic)


def main_job(folder: Path, *variables: str) -> list[tuple[object, ...]]:
    """Run the main job, and return test, verdict, message and figures of each sentence."""
    words = [word for variable in variables for word in ("-v", variable)]
    found = robot_run.run(folder, ROOT / "tests" / "netgate6100.robot", *words)
    assert found.status == 0 and "SIMULATED" in found.console, found.console
    (run,) = (folder / "results").iterdir()
    return [(item.test, item.verdict, item.message, item.extra["figures"]) for item in read_run(run).requirements]


@pytest.fixture(scope="module")
def without_card(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[object, ...]]:
    return main_job(tmp_path_factory.mktemp("default"))


@pytest.mark.parametrize("card", CARDS)
def test_the_nine_sentences_have_the_same_verdicts(
    tmp_path: Path, card: str, without_card: list[tuple[object, ...]]
) -> None:
    root = robot_run.project(tmp_path, "on_card", more=f"nic: {card}")
    assert main_job(tmp_path, f"PROJECT:{root}", "TESTBED:on_card") == without_card
    assert len(without_card) == 9
    log = (tmp_path / "out" / "output.xml").read_text(encoding="utf-8")
    assert "which lost frames do not explain" not in log
    assert ("4 fewer: the generator's card counts no FCS of what it receives" in log) is (card == "ixgbe")
