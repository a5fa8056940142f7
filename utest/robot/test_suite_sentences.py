"""Sentences are found everywhere in a suite, and malformed ones are reported, before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from robot.api import TestSuite as Suite

from lineproof.robot import suite_sentences as SuiteSentences
from support.catalogue import CATALOGUE


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
