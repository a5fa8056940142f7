"""A platform without a model on the simulated testbed: refused before any start, with the testbeds that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lineproof.commands.main import main
from lineproof.errors import ConfigError
from lineproof.project import Project
from lineproof.session.plan import Plan


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project that ``lineproof init`` writes, its platform without a model."""
    monkeypatch.chdir(tmp_path)
    assert main(["init", "mybox"]) == 0
    path = tmp_path / "variables" / "platforms" / "mybox.yaml"
    path.write_text(path.read_text(encoding="utf-8").partition("\nmodel:")[0] + "\n", encoding="utf-8")
    return tmp_path


def refusal(home: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        Plan.read(Project.find(home), "mybox", None, "simulated", "quick")
    return str(caught.value)


def test_the_testbeds_of_the_project_are_named_before_the_model(home: Path) -> None:
    folder = home / "variables" / "testbeds"
    lab = (folder / "lab.yaml").read_text(encoding="utf-8")
    assert re.search(
        r"mybox\.yaml: has no 'model:', so testbed 'simulated' cannot simulate it; name the testbed that the router is"
        r" in: -v TESTBED:lab; or add its physical parameters",
        refusal(home),
    )
    (folder / "rack.yaml").write_text(lab.replace("testbed: lab", "testbed: rack"), encoding="utf-8")
    (folder / "wrong.yaml").write_text("kind: hardware\n", encoding="utf-8")
    (folder / "toy.yaml").write_text("testbed: toy\nkind: simulated\n", encoding="utf-8")
    (folder / "any.yaml").write_text("testbed: any\nkind: pool\n", encoding="utf-8")
    assert "-v TESTBED:lab (others here: rack, any); or" in refusal(home)
    for path in folder.iterdir():
        path.unlink()
    assert f"write a testbed of 'kind: hardware' in {folder}, and name it: -v TESTBED:NAME; or" in refusal(home)


def test_a_model_without_the_software_is_refused_alike(home: Path) -> None:
    path = home / "variables" / "platforms" / "mybox.yaml"
    path.write_text(path.read_text(encoding="utf-8") + "model: {software: {vpp: {}}}\n", encoding="utf-8")
    assert "has no 'linux' in 'model.software', so testbed 'simulated' cannot simulate it; name" in refusal(home)
