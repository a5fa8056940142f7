"""A library's listener writes correct Allure results, without a flag. These tests run Robot itself."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import lineproof
from lineproof.evidence.allure import write_categories, write_environment

LIBRARY = """
from pathlib import Path
from lineproof.errors import ConfigError, Inconclusive, SlaFailure
from lineproof.evidence import allure

class Testbed:
    ROBOT_LIBRARY_SCOPE = "GLOBAL"

    def __init__(self):
        self.ROBOT_LIBRARY_LISTENER = allure.AllureListener(lambda: Path("allure"))

    def open_testbed(self):
        print("opened <here>")

    def close_testbed(self):
        pass

    def judge(self, message=""):
        print("judged <here>")
        allure.attach("Plot", "<svg xmlns='http://www.w3.org/2000/svg'/>", "SVG")
        allure.attach("Trials", "<p>1</p>", "HTML")
        allure.attach("Too large", "x" * 100_001, "HTML")
        allure.add_parameters({"promised": "64b"})
        if message:
            raise {"F": SlaFailure, "I": Inconclusive}.get(message[0], ConfigError)(message)
"""
SUITE = """
*** Settings ***
Library           {up}Testbed.py
Suite Setup       Open Testbed
Suite Teardown    Close Testbed
Test Tags         simulated

*** Test Cases ***
64b Costs ≤ 1.5 µJ/Packet
    [Documentation]    Source: *figures*
    Sentence
Fails
    Judge    FAIL: 64b: lost 3 %
Fails Twice
    Run Keyword And Continue On Failure    Judge    FAIL: 64b: lost 3 %
    Judge    INCONCLUSIVE: 64b: under-offered
Inconclusive
    Judge    INCONCLUSIVE: 64b: the generator sent 92 %
Broken
    Judge    no such platform

*** Keywords ***
Sentence
    Judge
"""


OUTCOMES = {
    "64b Costs ≤ 1.5 µJ/Packet": ("passed", ""),
    "Fails": ("failed", "FAIL: 64b: lost 3 %"),
    "Fails Twice": ("failed", "Several failures occurred:\n\n1) FAIL: 64b: lost 3 %\n\n2) INCONCLUSIVE: 64b"),
    "Inconclusive": ("broken", "INCONCLUSIVE: 64b: the generator sent 92 %"),
    "Broken": ("broken", "no such platform"),
}
"""Status of each test, and how its message begins."""


def robot(folder: Path, suites: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Robot on *suites* of a folder, beside the library."""
    (folder / "Testbed.py").write_text(LIBRARY)
    files = [word for name in ("output", "log", "report") for word in (f"--{name}", "NONE")]
    command = [sys.executable, "-m", "robot", *files, *arguments, suites]
    environment = {"PYTHONPATH": str(Path(lineproof.__file__).parents[1]), "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


def run(folder: Path, *arguments: str) -> Path:
    """Run Robot on two suites below a folder; the folder of Allure's results."""
    (folder / "tests" / "inner").mkdir(parents=True)
    (folder / "tests" / "one.robot").write_text(SUITE.format(up="../"))
    (folder / "tests" / "inner" / "v1.1.robot").write_text(SUITE.format(up="../../"))
    done = robot(folder, "tests", *arguments)
    assert "ERROR" not in done.stderr + done.stdout
    return folder / "allure"


def results(folder: Path) -> list[dict]:
    return [json.loads(path.read_text()) for path in folder.glob("*-result.json")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return run(tmp_path_factory.mktemp("allure"))


@pytest.fixture
def left(folder):
    return results(folder)


@pytest.mark.slow
def test_a_test_has_its_status_its_suites_and_what_a_reader_sees_of_it(left):
    """Only the router's fault is a failure; the suites' folders do not import the library."""
    suites = set()
    for test in left:
        status, message = OUTCOMES[test["name"]]
        assert test["status"] == status
        assert test.get("statusDetails", {}).get("message", "").startswith(message)
        path = tuple(test["titlePath"])
        suites.add(path)
        assert tuple(label["value"] for label in test["labels"] if "uite" in label["name"]) == path
        assert {item["name"] for item in test["attachments"]} == {"Plot", "Trials"}
        assert not [step for step in test["steps"] if step.keys() & {"steps", "attachments"}]
        assert {"name": "promised", "value": "64b"} in test["parameters"]
    assert suites == {("Tests", "One"), ("Tests", "Inner", "V1.1")}
    first = next(test for test in left if test["name"].startswith("64b"))
    assert (first["description"], [step["name"] for step in first["steps"]]) == ("Source: *figures*", ["Sentence"])


@pytest.mark.slow
def test_a_killed_run_leaves_the_tests_that_had_ended(tmp_path):
    end = "Killed\n    Evaluate    os.kill(os.getpid(), signal.SIGKILL)    modules=os, signal\n*** Keywords ***"
    (tmp_path / "tests.robot").write_text(SUITE.format(up="").replace("*** Keywords ***", end))
    assert robot(tmp_path, "tests.robot").returncode == -signal.SIGKILL
    states = {test["name"]: test["status"] for test in results(tmp_path / "allure")}
    assert states == {name: status for name, (status, _) in OUTCOMES.items()}


@pytest.mark.slow
def test_set_up_and_tear_down_belong_to_their_suites(folder):
    containers = [json.loads(path.read_text()) for path in folder.glob("*-container.json")]
    assert [len(container["children"]) for container in containers] == [5, 5]
    for container in containers:
        assert [step["name"] for step in container["befores"]] == ["Open Testbed"]
        assert all(step["start"] <= step["stop"] for step in (*container["befores"], *container["afters"]))
        assert [step["name"] for step in container["afters"]] == ["Close Testbed"]


@pytest.mark.slow
@pytest.mark.parametrize(("options", "others"), [(["--dryrun"], 0), (["--listener", "allure_robotframework:own"], 10)])
def test_a_dry_run_leaves_nothing_and_the_users_own_listener_takes_over(tmp_path, options, others):
    assert not run(tmp_path, *options).exists()
    assert len(results(tmp_path / "own")) == others


def test_the_environment_is_a_properties_file_of_java(tmp_path):
    write_environment(tmp_path, {"Router = x": "ü \\ \U0001f600\n"})
    line = (tmp_path / "environment.properties").read_bytes()
    assert line == rb"Router\ \=\ x = \u00fc \\ \ud83d\ude00\n".replace(rb"\n", b"\n")


def test_categories_separate_the_three_kinds_of_failure(tmp_path):
    write_categories(tmp_path, "Netgate 6100", True)
    settings = json.loads((tmp_path / "allurerc.json").read_text())
    categories = settings["categories"]
    assert "SIMULATED" in settings["name"]

    def first(message):
        return next(n for n, item in enumerate(categories) if re.fullmatch(item["messageRegex"], message))

    assert first("FAIL: lost\nmore") == 0
    assert first("Several failures occurred:\n\n1) FAIL: lost\n\n2) x") == 0
    assert first("INCONCLUSIVE: the generator") == 1
    assert first("variables/x.yaml:3: unknown key; FAIL: is not a goal") == 2
