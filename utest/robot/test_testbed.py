"""Robot's side: errors that nobody foresaw, a missing set-up, and one testbed for a folder of suites."""

from __future__ import annotations

import errno
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from robot.api import SkipExecution
from robot.api import TestSuite as Suite
from robot.errors import RobotError

from lineproof.errors import SlaFailure, TestbedError
from lineproof.robot import Lineproof
from lineproof.robot import sentences as SuiteSentences
from lineproof.robot.library import CalmListener
from support import robot_run
from support.catalogue import CATALOGUE


@pytest.mark.slow
def test_a_suite_without_an_open_testbed_fails_with_the_missing_lines(tmp_path: Path):
    suite = robot_run.write_suite(tmp_path, "64b 1-flow ≥ 1 Mpps", setup="No Operation")
    found = robot_run.run(tmp_path, suite)
    assert found.status == 1, found.console
    assert found.message.startswith(f"{suite}: no testbed is open; ")


@pytest.mark.slow
def test_a_folder_of_suites_shares_one_testbed(tmp_path: Path):
    folder = tmp_path / "folder"
    folder.mkdir()
    first = robot_run.write_suite(folder, "64b 1-flow ≥ 1 Mpps", "64b 1-flow ≥ 2 Mpps")
    text = first.read_text(encoding="utf-8")
    settings = text.partition("*** Test Cases")[0]
    (folder / "__init__.robot").write_text(settings, encoding="utf-8")
    without = "".join(line for line in text.splitlines(True) if not line.startswith("Suite "))
    first.write_text(without, encoding="utf-8")
    # it has opened none, so this closes none
    first.write_text(without.replace("*** Test", "Suite Teardown    Close Testbed\n\n*** Test"), encoding="utf-8")
    (folder / "second.robot").write_text(without.replace("The Test", "Second Test"), encoding="utf-8")
    found = robot_run.run(tmp_path, folder, "-v", "GOAL:quick")
    assert found.status == 0, found.console
    assert {name: status for name, (status, _) in found.tests.items()} == {"The Test": "PASS", "Second Test": "PASS"}
    assert robot_run.processes_of(tmp_path) == []


@pytest.mark.slow
def test_a_suite_that_imports_the_resource_while_it_runs_is_checked_itself(tmp_path: Path):
    (tmp_path / "a.robot").write_text(
        f"*** Settings ***\nResource    {robot_run.ROOT}/resources/acceptance.resource\n"
        "*** Test Cases ***\nOne\n    IF    False    64b 1-flow ≥ 1 Mpps\n",
        encoding="utf-8",
    )
    second = tmp_path / "b.robot"
    second.write_text(
        f"*** Test Cases ***\nTwo\n    Import Resource    {robot_run.ROOT}/resources/acceptance.resource\n"
        "    Read Plan    netgate6100    vpp    simulated    quick\n"
        "    Check Sentences Of Suite\n"
        "    IF    False    Run Keyword    64b 1-flow ≥ 1 furlongs\n",
        encoding="utf-8",
    )
    for suite in (tmp_path, second):
        found = robot_run.run(tmp_path, suite)
        status, message = found.tests["Two"]
        assert status == "FAIL" and f"{second}:6: '64b 1-flow ≥ 1 furlongs'" in message, found.console


@pytest.mark.slow
def test_a_wrong_sentence_fails_its_own_test_alone_before_any_traffic_and_is_said_once(tmp_path: Path):
    tests = "Right\n    64b 1-flow ≥ 1 Mpps\nWrong\n    64b 1-flow ≥ 1 furlong\nTorn\n    64b  1-flow ≥ 1 Mpps\n"
    suite = robot_run.write_tests(tmp_path, tests)
    found = robot_run.run(tmp_path, suite, "-v", "GOAL:quick")
    assert [status for status, _ in found.tests.values()] == ["PASS", "FAIL", "FAIL"], found.console
    assert found.tests["Wrong"][1].startswith(f"{suite}:10: '64b 1-flow ≥ 1 furlong'")
    assert found.tests["Torn"][1].startswith(f"{suite}:12: '64b  1-flow ≥ 1 Mpps' has two spaces inside")
    assert found.console.count("unit 'furlong'") == 1
    alone = robot_run.run(tmp_path, suite, "-v", "GOAL:quick", "-t", "Wrong")
    assert alone.message == found.tests["Wrong"][1] and alone.console.count("unit 'furlong'") == 1
    assert "Nothing was measured: " in alone.console and re.findall("Evidence:|Next:", alone.console) == []
    assert len(list(tmp_path.glob("results/*/allure/allurerc.json"))) == 2


class Stuck:
    """A session whose end may go wrong."""

    def __init__(self, fails: bool) -> None:
        self.closed, self.fails = False, fails

    def close(self) -> None:
        self.closed = True
        if self.fails:
            raise OSError("stuck")


def test_every_session_is_closed_even_where_one_fails():
    library = Lineproof()
    sessions: list[Any] = [Stuck(False), Stuck(True), Stuck(False)]
    library._shared.opened.extend(("", session) for session in sessions)
    with pytest.raises(OSError, match="stuck"):
        library.close()
    assert all(session.closed for session in sessions)
    library.close()


@pytest.mark.parametrize("error", [KeyError("x"), RecursionError(), MemoryError(), OSError(5, "I/O error", "/x")])
def test_a_foreign_error_of_a_keyword_is_the_testbeds(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    found = raised_for(error, monkeypatch)
    assert isinstance(found, TestbedError)
    assert type(error).__name__ not in str(found)


def test_an_assertion_that_is_no_verdict_does_not_blame_the_router(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(raised_for(AssertionError("stdin"), monkeypatch), TestbedError)


@pytest.mark.parametrize("error", [SlaFailure("FAIL: x"), TestbedError("y"), RobotError("z"), SkipExecution("skip")])
def test_own_errors_and_those_of_robot_stay(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    assert raised_for(error, monkeypatch) is error


def raised_for(error: Exception, monkeypatch: pytest.MonkeyPatch) -> BaseException:
    """Return what Robot sees of a keyword that raises *error*."""
    library = Lineproof()

    def broken(*_: object) -> None:
        raise error

    monkeypatch.setitem(library.keywords, "end_testbed", broken)
    with pytest.raises((Exception,)) as caught:
        library.run_keyword("end_testbed", [])
    return caught.value


def test_a_listeners_error_is_a_warning_once(caplog: pytest.LogCaptureFixture) -> None:
    class Writing:
        ROBOT_LISTENER_API_VERSION = 2

        def end_test(self, name: str, attributes: Any) -> None:
            raise OSError(errno.ENOSPC, "No space left on device", f"/full/{name}")

    tidied: list[bool] = []
    listener = CalmListener(Writing(), "results lack something", lambda: tidied.append(True))
    with caplog.at_level(logging.WARNING):
        for name in ("one", "two"):
            listener.end_test(name, {})
    (warning,) = caplog.records
    assert warning.getMessage().startswith("results lack something: /full/one: No space left on device (")
    assert tidied == [True, True]
    assert not hasattr(listener, "start_test")


# -- sentences are found everywhere in a suite, and malformed ones are reported, before anything runs


def suite_of(folder: Path, text: str) -> Suite:
    path = folder / "suite.robot"
    path.write_text(text, encoding="utf-8")
    return Suite.from_file_system(path)


def steps(suite: Suite) -> list[SuiteSentences.KeywordCall]:
    """Return what the tests share, and what each of them calls."""
    own = [step for test in suite.tests for step in SuiteSentences.steps_of(test)]
    return [*SuiteSentences.shared_steps(suite), *own]


def found(folder: Path, text: str) -> dict[str, int]:
    """Sentence -> line, of those that can be judged before the run."""
    result = {}
    for step in steps(suite_of(folder, text)):
        sentence = SuiteSentences.sentence(step)
        if sentence is not None and not step.needs_the_run():
            path, _, line = step.where.rpartition(":")
            assert path == str(folder / "suite.robot")
            result[sentence] = int(line)
    return result


def test_sentences_are_found_everywhere_in_a_suite(tmp_path: Path):
    text = """\
*** Settings ***
Suite Setup       Run Keywords    Log    x    AND    imix ≥ 1
Suite Teardown    imix ≥ 2
Test Setup        imix ≥ 3
*** Test Cases ***
One
    imix ≥ 4
    IF    True
        imix ≥ 5
    ELSE
        imix ≥ 6
    END
    FOR    ${i}    IN RANGE    2
        imix ≥ 7
    END
    TRY
        imix ≥ 8
    EXCEPT    AS    ${error}
        imix ≥ 9
    FINALLY
        imix ≥ 10
    END
    WHILE    False
        imix ≥ 11
    END
    Run Keyword    imix ≥ 12
    imix ≥ 13    expect=FAIL
    [Teardown]    imix ≥ 14
*** Keywords ***
Own
    [Setup]    imix ≥ 15
    imix ≥ 16
    [Teardown]    imix ≥ 17
"""
    lines = found(tmp_path, text)
    assert sorted(lines, key=lambda item: int(item.split()[-1])) == [f"imix ≥ {number}" for number in range(1, 18)]
    assert lines["imix ≥ 4"] == 7
    assert lines["imix ≥ 16"] == 32


def test_sentences_are_found_in_templates(tmp_path: Path):
    text = """\
*** Test Cases ***
Embedded
    [Template]    ${traffic} unidirectional ≥ ${rate}
    imix    1 Mpps
    64b    2 Mpps
By Argument
    [Template]    Run Keyword
    imix bidirectional ≥ 3 Mpps each way
"""
    assert found(tmp_path, text) == {
        "imix unidirectional ≥ 1 Mpps": 4,
        "64b unidirectional ≥ 2 Mpps": 5,
        "imix bidirectional ≥ 3 Mpps each way": 8,
    }


@pytest.mark.parametrize(
    ("call", "sentences"),
    [
        ("Run Keyword    imix ≥ 1", ["imix ≥ 1"]),
        ("run_keyword_and_continue_on_failure    imix ≥ 1", ["imix ≥ 1"]),
        ("BuiltIn.Run Keyword    imix ≥ 1", ["imix ≥ 1"]),
        ("Run Keywords    imix ≥ 1    imix ≥ 2", ["imix ≥ 1", "imix ≥ 2"]),
        ("Run Keyword If    $x >= 3    imix ≥ 1    ELSE IF    $x <= 1    imix ≥ 2    ELSE    imix ≥ 3", [1, 2, 3]),
        ("Wait Until Keyword Succeeds    3x    1s    imix ≥ 1", ["imix ≥ 1"]),
        ("Repeat Keyword    3x    Run Keyword    imix ≥ 1", ["imix ≥ 1"]),
        ("Run Keyword And Expect Error    FAIL:*    imix ≥ 1", []),
        ("Run Keyword And Ignore Error    imix ≥ 1", []),
        ("Run Keywords    imix ≥ 1    AND    Run Keyword And Expect Error    FAIL:*    imix ≥ 2", ["imix ≥ 1"]),
        ("Run Keyword And Return Status    imix ≥ 1", []),
        ("Should Be True    2 >= 1", []),
        ("Run Keyword", []),
    ],
)
def test_sentences_are_found_in_keywords_that_call_others(tmp_path: Path, call: str, sentences: list[str | int]):
    wanted = [item if isinstance(item, str) else f"imix ≥ {item}" for item in sentences]
    assert list(found(tmp_path, f"*** Test Cases ***\nOne\n    {call}\n")) == wanted


def test_sentences_with_variables_of_the_run_are_not_checked_before(tmp_path: Path):
    text = """\
*** Variables ***
${RATE}    5 Mpps
*** Test Cases ***
Known
    imix unidirectional ≥ ${RATE}
Looped
    FOR    ${rate}    IN    1    2
        64b unidirectional ≥ ${rate}
    END
Set
    VAR    ${Rate}    3
    128b unidirectional ≥ ${rate}
Result
    ${rate} =    Evaluate    3
    256b unidirectional ≥ ${rate}
*** Keywords ***
Argument
    [Arguments]    ${rate}=1
    512b unidirectional ≥ ${rate}
Embedded ${rate:.*} Argument
    1024b unidirectional ≥ ${rate}
"""
    assert list(found(tmp_path, text)) == ["imix unidirectional ≥ ${RATE}"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("imix unidirectional 70% line rate", "compares nothing; expected ≥ or ≤"),
        ("64b unidirectional => 5 Mpps", "compares nothing ('=>' is no comparison here)"),
        ("64b  unidirectional ≥ 5 Mpps", "'64b  unidirectional ≥ 5 Mpps' has two spaces inside"),
        ("64b unidirectional ≥  ${RATE}", "has two spaces inside"),
        ("64b unidirectional ≥ 5 Mpps    expect=FAIL", None),
        ("64b Frames Of My Own    5", None),
        ("Log    64b", None),
    ],
)
def test_malformed_sentences_are_refused_with_the_reason(tmp_path: Path, line: str, says: str | None):
    own = {"64b Frames Of My Own"}
    (step,) = steps(suite_of(tmp_path, f"*** Test Cases ***\nOne\n    {line}\n"))
    problem = SuiteSentences.malformed(step, CATALOGUE, own.__contains__)
    assert (says in problem) if says and problem else problem is says
