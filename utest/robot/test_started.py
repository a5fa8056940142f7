"""With which command a run was started: what is left out is what the resources say by themselves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lineproof.robot.run_variables import NAMES, options
from lineproof.robot.started import DEFAULTS, _of_user
from support.paths import ROOT

ROBOTS = {"${EMPTY}": "", "${NONE}": "None"}


def test_the_defaults_are_those_of_the_resources() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "resources").glob("*.resource"))
    found = dict(re.findall(r"^\$\{([A-Z_]+)\} {2,}(\S.*)$", text, re.MULTILINE))
    assert {name: ROBOTS.get(found[name], found[name]) for name in DEFAULTS} == DEFAULTS
    # what names the run itself, and the folder of results, is given by itself
    assert set(NAMES) - set(DEFAULTS) == {"RESUME", "RESULTS"}


@pytest.mark.parametrize("program", ["/usr/bin/robot", "robot/__main__.py"])
def test_the_selection_is_kept_and_no_variable_of_somebody_else(program: str) -> None:
    words = [
        program,
        "-v",
        "GOAL:quick",
        "--variable=TOKEN:abc",
        "-vKEY:x",
        "-v",
        "A=b",
        "--test",
        "A B",
        "-i",
        "fast",
        "tests",
    ]
    assert list(_of_user(words)) == ["-t", "A B", "-i", "fast", "-v", "TOKEN:…", "-v", "KEY:…"]
    assert list(options(words, ("-d", "--outputdir"))) == []


def test_another_programs_options_are_not_robots() -> None:
    assert list(_of_user([str(Path("bin") / "pytest"), "-e", "x"])) == []
