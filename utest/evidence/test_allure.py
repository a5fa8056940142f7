"""A library's listener writes correct Allure results, without a flag. These tests run Robot itself."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lineproof
from lineproof.evidence.allure import CATEGORIES, attach_text, show_svg, write_categories, write_environment

LIBRARY = """
from pathlib import Path
from lineproof.errors import ConfigError, Inconclusive, SlaFailure
from lineproof.evidence import allure

class Testbed:
    ROBOT_LIBRARY_SCOPE = "GLOBAL"

    def __init__(self):
        self.ROBOT_LIBRARY_LISTENER = allure.allure_listener(lambda: Path("allure"))

    def open_testbed(self):
        print("opened <here>")

    def close_testbed(self):
        assert not allure.show_svg("none", "<svg/>")

    def judge(self, message=""):
        allure.attach_svg("Plot", "<svg xmlns='http://www.w3.org/2000/svg'/>")
        allure.attach_html("Trials", "<p>1</p>")
        allure.show_svg("Plot", "<svg/>")
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
    VAR    ${{why}}    no such platform
    VAR    ${{password}}    hunter2
    Run Keyword If    $password == ''    Judge    ${{password}}
    Judge    ${{why}}

*** Keywords ***
Sentence
    Judge
"""


NAMES = ("64b Costs ≤ 1.5 µJ/Packet", "Fails", "Fails Twice", "Inconclusive", "Broken")


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
def left(tmp_path_factory):
    return results(run(tmp_path_factory.mktemp("allure")))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "status", "message"),
    [
        ("64b Costs ≤ 1.5 µJ/Packet", "passed", ""),
        ("Fails", "failed", "FAIL: 64b: lost 3 %"),
        ("Fails Twice", "failed", "Several failures occurred:\n\n1) FAIL: 64b: lost 3 %\n\n2) INCONCLUSIVE: 64b"),
        ("Inconclusive", "broken", "INCONCLUSIVE: 64b: the generator sent 92 %"),
        ("Broken", "broken", "no such platform"),
    ],
)
def test_only_the_routers_fault_is_a_failure(left, name, status, message):
    for test in [test for test in left if test["name"] == name]:
        assert test["status"] == status
        assert test.get("statusDetails", {}).get("message", "").startswith(message)


@pytest.mark.slow
def test_suites_are_complete_although_their_folders_do_not_import_the_library(left):
    paths = {tuple(test["titlePath"]) for test in left}
    assert paths == {("Tests", "One"), ("Tests", "Inner", "V1.1")}
    labels = [(label["value"] for label in test["labels"] if "uite" in label["name"]) for test in left]
    assert {tuple(names) for names in labels} == paths


@pytest.mark.slow
def test_attachments_belong_to_tests_and_steps_are_nested(left):
    for test in left:
        assert {item["name"] for item in test["attachments"]} == {"Plot", "Trials"}
        assert "data:image/svg+xml;base64," in test["descriptionHtml"]
    first = next(test for test in left if test["name"].startswith("64b"))
    assert first["descriptionHtml"].startswith("<p>Source: <b>figures</b></p>")
    assert [step["name"] for step in first["steps"]] == ["Sentence"]
    assert [step["name"] for step in first["steps"][0]["steps"]] == ["Testbed.Judge"]


@pytest.mark.slow
def test_a_killed_run_leaves_the_tests_that_had_ended(tmp_path):
    end = "Killed\n    Evaluate    os.kill(os.getpid(), signal.SIGKILL)    modules=os, signal\n*** Keywords ***"
    (tmp_path / "tests.robot").write_text(SUITE.format(up="").replace("*** Keywords ***", end))
    assert robot(tmp_path, "tests.robot").returncode == -signal.SIGKILL
    states = {test["name"]: test["status"] for test in results(tmp_path / "allure")}
    assert states == dict(zip(NAMES, ("passed", "failed", "failed", "broken", "broken"), strict=True))


@pytest.mark.slow
def test_arguments_have_the_values_of_their_variables_but_for_secrets(left):
    broken = next(test for test in left if test["name"] == "Broken")
    shown = [[item["value"] for item in step.get("parameters", ())] for step in broken["steps"]]
    assert shown[-1] == ["no such platform"] and "${password}" in shown[-2]


@pytest.mark.slow
def test_set_up_and_tear_down_belong_to_their_suites(tmp_path):
    folder = run(tmp_path)
    containers = [json.loads(path.read_text()) for path in folder.glob("*-container.json")]
    assert [len(container["children"]) for container in containers] == [5, 5]
    for container in containers:
        assert [step["name"] for step in container["befores"]] == ["Testbed.Open Testbed"]
        assert all(step["start"] <= step["stop"] for step in (*container["befores"], *container["afters"]))
        assert [step["name"] for step in container["afters"]] == ["Testbed.Close Testbed"]
        (log,) = container["befores"][0]["attachments"]
        assert "opened &lt;here&gt;" in (folder / log["source"]).read_text()


@pytest.mark.slow
def test_a_dry_run_leaves_nothing(tmp_path):
    assert not run(tmp_path, "--dryrun").exists()


@pytest.mark.slow
def test_the_users_own_listener_takes_over(tmp_path):
    assert not run(tmp_path, "--listener", "allure_robotframework:own").exists()
    assert len(results(tmp_path / "own")) == 10


def test_without_a_listener_nothing_is_attached():
    assert not attach_text("name", "text")
    assert not show_svg("name", "<svg/>")


def decode(line: str) -> tuple[str, str]:
    """A line of a properties file as Java reads it."""
    key, value = re.fullmatch(r"((?:\\.|[^\\ ])*) = (.*)\n?", line).groups()

    def plain(text):
        short = {"n": "\n", "r": "\r", "t": "\t"}
        text = re.sub(
            r"\\(?:u([0-9a-f]{4})|(.))", lambda m: chr(int(m[1], 16)) if m[1] else short.get(m[2], m[2]), text
        )
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")

    return plain(key), plain(value)


@given(st.dictionaries(st.text(min_size=1), st.text(), max_size=4))
def test_any_words_can_be_read_back_from_the_environment(tmp_path_factory, facts):
    folder = tmp_path_factory.mktemp("environment")
    write_environment(folder, facts)
    lines = (folder / "environment.properties").read_bytes().decode("ascii").split("\n")[:-1]
    assert dict(decode(line) for line in lines) == facts


def test_categories_separate_the_three_kinds_of_failure(tmp_path):
    write_categories(tmp_path, "Netgate 6100", True)
    assert json.loads((tmp_path / "categories.json").read_text()) == [dict(item) for item in CATEGORIES]
    settings = json.loads((tmp_path / "allurerc.json").read_text())
    assert "SIMULATED" in settings["name"]
    assert [item["name"] for item in settings["categories"]] == [item["name"] for item in CATEGORIES]

    def first(message):
        return next(n for n, item in enumerate(CATEGORIES) if re.fullmatch(item["messageRegex"], message))

    assert first("FAIL: lost\nmore") == 0
    assert first("Several failures occurred:\n\n1) FAIL: lost\n\n2) x") == 0
    assert first("INCONCLUSIVE: the generator") == 1
    assert first("variables/x.yaml:3: unknown key; FAIL: is not a goal") == 2
