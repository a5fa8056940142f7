"""Which words on Robot's command line are checked before any traffic, and which a run keeps as its command."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lineproof.errors import ConfigError
from lineproof.robot.execution import DEFAULTS, _of_user
from lineproof.robot.run_variables import NAMES, _given, check_names, check_values, options
from support.paths import ROOT


def test_they_are_those_of_the_resources():
    texts = [(ROOT / "resources" / f"{name}.resource").read_text() for name in ("testbed", "methodology", "study")]
    lines = [line for line in "".join(texts).splitlines() if line.startswith("${")]
    assert {line.split("}")[0][2:] for line in lines} == set(NAMES) and all("    " in line for line in lines)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("CHARACTERISE", "xx", "'-v CHARACTERISE:xx': expected never, on failure or always"),
        ("GOAL", "", "'-v GOAL:' is empty; expected a value"),
        ("TESTBED", " ", "'-v TESTBED:' is empty"),
        ("SEARCH_DEADLINE", "", "'-v SEARCH_DEADLINE:' is empty"),
        ("TELEMETRY", "often", "'-v TELEMETRY:often': expected never, on failure or always"),
        ("SEARCH_DEADLINE", "soon", "expected a time"),
        ("SEARCH_DEADLINE", "nan", "expected a time"),
        ("SEARCH_DEADLINE", "9" * 5000, "expected a time"),
        ("SEARCH_DEADLINE", [], "expected a time"),
        ("MARGIN", "always", "'-v MARGIN:always': expected on or off"),
        ("MARGIN_DEADLINE", 0, "expected a time"),
        ("SOAK", "all", "'-v SOAK:all': expected part or whole"),
        ("RESUME", "../x", "expected the name of a run's folder"),
        ("RESUME", "**/*", "expected the name of a run's folder"),
        ("CALIBRATIONS", "/nowhere/at/all", "(-v CALIBRATIONS:) does not exist"),
        ("CALIBRATIONS", "/etc/passwd", "(-v CALIBRATIONS:) is not a folder"),
        ("CALIBRATIONS", "a\0b", "(-v CALIBRATIONS:) does not exist"),
        ("CALIBRATIONS", "x" * 5000, "(-v CALIBRATIONS:) does not exist"),
        ("RESULTS", "/etc/passwd", "/etc/passwd: is not a folder"),
        ("RESULTS", "/etc/passwd/runs", "/etc/passwd: is not a folder"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_expected(name: str, value: Any, says: str):
    with pytest.raises(ConfigError) as caught:
        check_values({name: value})
    assert says in str(caught.value)


def test_defaults_and_what_robot_takes_are_right(tmp_path: Path):
    check_values(dict.fromkeys(NAMES))
    check_values({"CHARACTERISE": "On_Failure", "SEARCH_DEADLINE": "5 min", "RESUME": "20261121T120000Z-1a2b3c"})
    check_values({"MARGIN": True, "MARGIN_DEADLINE": "20 s"})
    check_values({"MARGIN": "ON", "MARGIN_DEADLINE": None})
    check_values({"SEARCH_DEADLINE": 300, "CALIBRATIONS": str(tmp_path), "RESULTS": str(tmp_path / "new" / "one")})


@pytest.mark.parametrize(
    ("name", "near"), [("GAOL", "GOAL"), ("characterize", "CHARACTERISE"), ("RESULT", "RESULTS"), ("MARGINS", "MARGIN")]
)
def test_a_misspelt_name_is_refused(tmp_path: Path, name: str, near: str):
    with pytest.raises(ConfigError, match=f"did you mean '{near}'"):
        check_names([name], tmp_path)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("TESTBED=lab", "'-v TESTBED=lab': expected '-v TESTBED:lab'"),
        ("goal=a=b", "'-v goal=a=b': expected '-v goal:a=b'"),
        ("MY_TOKEN=secret", "'-v MY_TOKEN=…': expected '-v MY_TOKEN:…'"),
    ],
)
def test_an_equals_sign_for_the_colon_is_refused(tmp_path: Path, name: str, says: str):
    with pytest.raises(ConfigError) as caught:
        check_names([name], tmp_path)
    assert says in str(caught.value)


def test_other_names_are_the_suites_own(tmp_path: Path):
    check_names(["Test Bed", "goal", "MODEST", "x", "RATE"], tmp_path)
    (tmp_path / "suite.robot").write_text("*** Variables ***\n${Test Bed 2}    x\n")
    check_names(["TESTBED2"], tmp_path / "suite.robot")


def test_names_are_read_from_the_command_line():
    argv = "robot -v GOAL:x --variable A:b:c -vB:1 --variable=C:2 --variablefile d:e f.robot"
    assert list(_given(argv.split())) == ["GOAL", "A", "B", "C"]


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
