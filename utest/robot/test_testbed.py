"""Robot's side: errors that nobody foresaw, one testbed for several suites, what sentences and keywords say."""

from __future__ import annotations

import errno
import logging
import re
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest
from robot.api import SkipExecution
from robot.api import TestSuite as Suite
from robot.errors import ExecutionFailed, RobotError
from robot.libdoc import LibraryDocumentation

from lineproof.core.goal import read_goal
from lineproof.core.quantity import Reason
from lineproof.core.rule import Ruling
from lineproof.core.sentence import parse
from lineproof.core.trial import Fault, Load, Tolerance, read_trial
from lineproof.core.verdict import Verdict
from lineproof.errors import ConfigError, Inconclusive, SentenceError, SlaFailure, TestbedError
from lineproof.evidence.gate import ComparisonRule, gate
from lineproof.evidence.records import MarginRecord
from lineproof.evidence.run import read_run
from lineproof.generators.base import Method
from lineproof.procedures.search.margin import Margin
from lineproof.robot import Lineproof, acceptance, characterisation, studies
from lineproof.robot import sentences as SuiteSentences
from lineproof.robot.acceptance import AcceptanceKeywords
from lineproof.robot.characterisation import CharacterisationKeywords
from lineproof.robot.library import CalmListener
from lineproof.robot.sentences import METHODS, plain
from lineproof.robot.shared import VARIABLES, Judged, Shared, check_names
from lineproof.robot.studies import StudyKeywords
from lineproof.studies.study import AT_LEAST
from support import robot_run
from support.catalogue import CATALOGUE
from support.evidence_builders import requirement_record
from support.made_testbeds import router
from support.model_bench import PROJECT
from support.paths import ROOT
from support.study_builders import SMALL, measurements, results_of, study_of
from support.surface import LIBRARIES


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


KILLED = """Ahead
    64b 1-flow ≥ 1 Mpps
    ${library} =    Get Library Instance    Lineproof
    Evaluate    os.kill($library.session.testbed.belongings.programs[0].pid, 9)
    Sleep    0.5 s
After
    Run On Router    uname
"""


@pytest.mark.slow
def test_a_process_that_died_is_named_by_each_keyword_after_and_at_the_end(tmp_path: Path):
    found = robot_run.run(tmp_path, robot_run.write_tests(tmp_path, KILLED), "-v", "GOAL:quick")
    died = "the testbed's process 'server' ended with signal 9"
    assert found.tests["Ahead"][0] == "PASS" and found.tests["After"][1].startswith(died)
    assert f"[ WARN ] {died}" in found.console and "noticed by `Close Testbed`" in found.console


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
        "    IF    False    Run Keyword    64b 1-flow ≥ 1 furlongs\n",
        encoding="utf-8",
    )
    for suite in (tmp_path, second):
        found = robot_run.run(tmp_path, suite)
        status, message = found.tests["Two"]
        assert status == "FAIL" and f"{second}:5: '64b 1-flow ≥ 1 furlongs'" in message, found.console


@pytest.mark.slow
def test_a_wrong_sentence_fails_its_own_test_alone_before_any_traffic_and_is_said_once(tmp_path: Path):
    tests = "Right\n    64b 1-flow ≥ 1 Mpps\nWrong\n    64b 1-flow ≥ 1 furlong\nTorn\n    64b ≥ 1 Mpps  goal=quick\n"
    suite = robot_run.write_tests(tmp_path, tests)
    found = robot_run.run(tmp_path, suite, "-v", "GOAL:quick")
    assert [status for status, _ in found.tests.values()] == ["PASS", "FAIL", "FAIL"], found.console
    assert found.tests["Wrong"][1].startswith(f"{suite}:10: '64b 1-flow ≥ 1 furlong'")
    assert found.tests["Torn"][1].startswith(f"{suite}:12: '64b ≥ 1 Mpps  goal=quick' has two spaces inside")
    assert found.console.count("unit 'furlong'") == 1
    (left,) = (tmp_path / "results").iterdir()
    assert gate([read_run(left)], [], ComparisonRule()).answer is Ruling.INCONCLUSIVE
    alone = robot_run.run(tmp_path, suite, "-v", "GOAL:quick", "-t", "Wrong")
    assert alone.message == found.tests["Wrong"][1] and alone.console.count("unit 'furlong'") == 1
    assert "Nothing was measured: " in alone.console and re.findall("Evidence:|Next:", alone.console) == []
    assert len(list(tmp_path.glob("results/*/allure/allurerc.json"))) == 2


class Stuck:
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


FOREIGN = KeyError("x"), RecursionError(), MemoryError(), OSError(5, "I/O error", "/x"), AssertionError("stdin")
OWN = SlaFailure("FAIL: x"), TestbedError("y"), RobotError("z"), SkipExecution("skip")


@pytest.mark.parametrize("error", [*FOREIGN, *OWN])
def test_a_foreign_error_of_a_keyword_is_the_testbeds_and_others_stay(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Lineproof()

    def broken(*_: object) -> None:
        raise error

    monkeypatch.setitem(library.keywords, "close_testbed", broken)
    with pytest.raises((Exception,)) as caught:
        library.run_keyword("close_testbed", [])
    if error in OWN:
        assert caught.value is error
    else:
        assert isinstance(caught.value, TestbedError) and type(error).__name__ not in str(caught.value)


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


@pytest.mark.parametrize(
    ("call", "sentences"),
    [
        ("run_keyword_and_continue_on_failure    imix ≥ 1", ["imix ≥ 1"]),
        ("BuiltIn.Run Keyword    imix ≥ 1", ["imix ≥ 1"]),
        ("Run Keywords    imix ≥ 1    imix ≥ 2", ["imix ≥ 1", "imix ≥ 2"]),
        ("Run Keyword If    $x >= 3    imix ≥ 1    ELSE IF    $x <= 1    imix ≥ 2    ELSE    imix ≥ 3", [1, 2, 3]),
        ("Wait Until Keyword Succeeds    3x    1s    imix ≥ 1", ["imix ≥ 1"]),
        ("Run Keyword And Expect Error    FAIL:*    imix ≥ 1", []),
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
    ("line", "refused"),
    [
        ("64b unidirectional => 5 Mpps", True),
        ("64b unidirectional ≥  ${RATE}", True),
        ("64b unidirectional ≥ 5 Mpps    expect=FAIL", False),
        ("64b unidirectional ≥ 5 Mpps    expect=${x}", False),
        ("64b unidirectional ≥ 5 Mpps    expect=NO", True),
        ("64b Frames Of My Own    5", False),
        ("Log    64b", False),
    ],
)
def test_malformed_sentences_are_refused(tmp_path: Path, line: str, refused: bool):
    own = {"64b Frames Of My Own"}
    (step,) = steps(suite_of(tmp_path, f"*** Test Cases ***\nOne\n    {line}\n"))
    assert bool(SuiteSentences.malformed(step, CATALOGUE, own.__contains__)) is refused


def keywords_of(verdict: Verdict, expected: str = "PASS") -> AcceptanceKeywords:
    """Return the keywords where *verdict* is that of the sentence."""
    recorder = MagicMock()
    recorder.keep_verdict.return_value = requirement_record()
    session = MagicMock(simulated=True)
    session.plan.link_bps.return_value = 10e9
    session.traffic.reconnected = session.revived = ""
    shared = Shared(opened=[("suite", session)], recorder=recorder)
    shared.judged = Judged(verdict.requirement, expected, verdict)
    return AcceptanceKeywords(shared)


def verdict_of(ruling: Ruling, *details: str) -> Verdict:
    requirement, goal = parse("64b unidirectional ≥ 1 kpps", CATALOGUE), read_goal(PROJECT.goals, "quick")
    trial = read_trial(1, router()(Load(1000.0), 1.0), Tolerance())
    promise = requirement.promise(goal, Load(1000.0), 10e9)
    return Verdict(requirement, promise, ruling, Reason("lost 2 % (of 7) at 1 kpps", details), (trial,))


def test_a_plot_that_cannot_be_drawn_costs_no_verdict(monkeypatch: Any, caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: Any, **__: Any) -> str:
        raise ZeroDivisionError("no such axis")

    monkeypatch.setattr(acceptance, "sentence_plot", broken)
    monkeypatch.setattr(acceptance, "add_to_test_message", print)
    keywords = keywords_of(verdict_of(Ruling.PASS))
    keywords.keep_evidence()
    keywords.verdict_should_be_as_expected()
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "no plot of the trials: an error of Lineproof's own (lineproof/robot/acceptance.py, line " in warning
    (table,) = keywords.shared.shown
    assert "<table" in table


@pytest.mark.parametrize(
    ("ruling", "expected", "error", "says"),
    [
        (Ruling.FAIL, "PASS", SlaFailure, "FAIL: 64b unidirectional ≥ 1 kpps: lost 2 % (of 7) at 1 kpps\n  of {0}\n"),
        (Ruling.INCONCLUSIVE, "PASS", Inconclusive, "INCONCLUSIVE: 64b unidirectional ≥ 1 kpps: lost 2 %"),
        (Ruling.PASS, "FAIL", Inconclusive, "INCONCLUSIVE: 64b unidirectional ≥ 1 kpps: FAIL was expected\n  PASS: "),
        (Ruling.FAIL, "INCONCLUSIVE", Inconclusive, "INCONCLUSIVE: 64b unidirectional ≥ 1 kpps: INCONCLUSIVE was e"),
        (Ruling.PASS, "PASS", None, "PASS: 64b unidirectional ≥ 1 kpps: lost 2 %\n  changed or copied"),
        (Ruling.FAIL, "FAIL", None, "FAIL, as expected: 64b unidirectional ≥ 1 kpps: lost 2 %"),
    ],
)
def test_a_test_passes_with_the_verdict_that_it_expects_in_narrow_lines(
    ruling: Ruling, expected: str, error: type[Exception] | None, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(acceptance, "add_to_test_message", said.append)
    long = " ".join(["figure"] * 12)
    keywords = keywords_of(verdict_of(ruling, f"of {long}", Fault.CHANGED.value), expected)
    try:
        keywords.verdict_should_be_as_expected()
    except (SlaFailure, Inconclusive) as raised:
        assert type(raised) is error
        said.append(str(raised))
    (message,) = said
    assert re.sub(r"\n? {4,}", " ", message).startswith(says.format(long))
    assert message.endswith("the promise is kept: remove expect=FAIL") is ((ruling, expected) == (Ruling.PASS, "FAIL"))
    assert all(len(line) <= 79 for line in message.splitlines())


def test_every_keyword_has_a_name_of_its_own_tags_and_an_example() -> None:
    sources = [*map(str, (ROOT / "resources").glob("*.resource")), *LIBRARIES]
    keywords = [word for source in sources for word in LibraryDocumentation(source).keywords]
    assert [word.name for word in keywords if not word.tags or "Example" not in word.doc] == []
    names = {plain(word.name) for word in keywords}
    assert len(names) == len(keywords)
    assert METHODS.keys() <= names and set(METHODS.values()) == set(Method)


@pytest.mark.parametrize(("name", "meant"), [("GAOL", "GOAL"), ("TESTBED=lab", "TESTBED"), ("goals", "GOAL")])
def test_a_misspelt_variable_is_refused(name: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"did you mean '-v {meant}:"):
        check_names([name], "")
    check_names(["goal", "TOKEN", *VARIABLES, name], f"Log    ${{{name}}}")


@pytest.mark.parametrize("time", ["1e30 s", "-1e30", "inf", "1e8", timedelta(days=400)])
@pytest.mark.parametrize("name", ["duration", "deadline"])
def test_a_time_that_no_run_takes_is_refused_with_the_longest_one(name: str, time: Any) -> None:
    convert = Lineproof.ROBOT_LIBRARY_CONVERTERS[timedelta]
    assert convert("2 min") == convert(120) == timedelta(minutes=2)
    with pytest.raises(SentenceError, match=f"'{name}': expected more than 0 and at most 10,000,000 s, not "):
        span = time if isinstance(time, timedelta) else convert(time)
        getattr(CharacterisationKeywords, "Send Traffic")(Mock(), "64b 1-flow", "1 Mpps", **{name: span})


RATE, PASS = "64b unidirectional ≥ 5 Mpps", Ruling.PASS


def searched(
    monkeypatch: pytest.MonkeyPatch, search: Mock, sentence: str = RATE, ruling: Ruling = PASS, wanted: str = "on"
) -> str:
    """Return what the keyword adds to the message of such a verdict. *search*: the characteriser's."""
    monkeypatch.setattr(characterisation, "CharacterisationWork", lambda *terms: nullcontext(Mock()))
    monkeypatch.setattr(characterisation, "margin", search)

    def keep(number: int, sentence: str, **found: Any) -> MarginRecord:
        return MarginRecord("run", True, number, "T", sentence, **found)

    kept = SimpleNamespace(number=1, keep_margin=keep)
    verdict: Any = SimpleNamespace(ruling=ruling, requirement=parse(sentence, CATALOGUE))
    judged = Judged(verdict.requirement, "PASS", verdict)
    shared: Any = SimpleNamespace(records=kept, sentence=judged, verdict=verdict)
    CharacterisationKeywords(shared).search_for_more(wanted)
    return "\n".join(judged.more)


@pytest.mark.parametrize(
    ("sentence", "ruling", "wanted", "searches"),
    [
        (RATE, PASS, "on", 1),
        (RATE, PASS, "off", 0),
        (RATE, Ruling.FAIL, "on", 0),
        (RATE, Ruling.INCONCLUSIVE, "on", 0),
        ("64b unidirectional latency p99 ≤ 1 ms at 1 Mpps", PASS, "on", 0),
        ("64b unidirectional loses ≤ 1% at 1 Mpps", PASS, "on", 0),
    ],
)
def test_only_a_pass_of_a_rate_is_followed_by_a_search(
    monkeypatch: pytest.MonkeyPatch, sentence: str, ruling: Ruling, wanted: str, searches: int
):
    search = Mock(return_value=Margin(1.08, None, limit="line rate"))
    assert searched(monkeypatch, search, sentence, ruling, wanted) == ""
    assert search.call_count == searches


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), AssertionError("of ours"), KeyError("x")])
def test_whatever_goes_wrong_in_a_search_is_one_line_of_the_result(monkeypatch: pytest.MonkeyPatch, error: Exception):
    told = searched(monkeypatch, Mock(side_effect=error))
    assert told.startswith("margin: ") and "\n" not in told


def test_an_interrupt_ends_the_search_and_the_run(monkeypatch: pytest.MonkeyPatch):
    ending = ExecutionFailed("Execution terminated by signal", exit=True)
    with pytest.raises(ExecutionFailed):
        searched(monkeypatch, Mock(side_effect=ending))


def sample(vpp: list[float], linux: list[float | None], **figures: float) -> dict[str, Any]:
    """Values of the baseline and of a variant, with *figures* of each."""
    return {"values": {"vpp": vpp, "linux": linux}, "figures": figures}


SURVIVOR = sample([33.6, 33.7] * 5, [None, None, 4.32, None, None])
OFFERED = sample([97.0] * 10, [97.0] * 5, **{AT_LEAST: 1.0})
MORE = sample([30.0, 30.1] * 5, [35.0, 35.1] * 3)
WIDE = sample([30.0, 50.0, 40.0, 35.0, 45.0] * 2, [35.0, 45.0, 41.0, 39.0, 40.0])
FEW = sample([30.0, 50.0, 40.0, 35.0], [35.0, 45.0])
# what was measured and the half of the interval
ASIDE = sample([30.0, 50.0, 40.0, 35.0, 45.0] * 2, [39.0, 49.0, 45.0, 43.0, 44.0])
# first and last of five blocks: 10 % more within each, which may be the variant's difference
DRIFTING = sample(
    [100.1, 109.9, 99.9, 110.1, 100.0, 110.0, 100.2, 109.8, 99.8, 110.2], [104.9, 105.0, 105.1, 105.0, 105.0]
)
STEADY = sample([100.0] * 10, [100.5] * 5)
NOTHING = sample([0.0] * 10, [0.0] * 5)
FIGURE, DIFFERENCE, NONE = "figure_should_be", "difference_should_be", "not proven"
ALL, MET = "every_figure_should_be_measured", "published_figures_should_be_met"


@pytest.mark.parametrize(
    ("measured", "claim", "arguments", "says"),
    [
        (SURVIVOR, ALL, (), "INCONCLUSIVE: SIMULATED: 1 figure not measured: one flow, linux: values of 1 of 5 blocks"),
        (SURVIVOR, FIGURE, ("≥", 1.0), "INCONCLUSIVE: SIMULATED: one flow, linux was not measured: values of 1 of 5"),
        (
            SURVIVOR,
            DIFFERENCE,
            (NONE,),
            "INCONCLUSIVE: SIMULATED: one flow, linux: values of 1 of 5 blocks",
        ),
        (
            SURVIVOR,
            MET,
            (),
            "FAIL: SIMULATED: 1 of 2 published figures met, expected 95 %: one flow, linux: not ",
        ),
        (OFFERED, FIGURE, ("≥", 95.0), ""),
        (OFFERED, FIGURE, ("≤", 40.0), "FAIL: SIMULATED: one flow, linux: ≥ 97 percent of line, expected ≤ 40"),
        (OFFERED, FIGURE, ("≥", 98.0), "INCONCLUSIVE: SIMULATED: one flow, linux: ≥ 97 percent of line: it did not"),
        (OFFERED, FIGURE, ("≤", 98.0), "INCONCLUSIVE: SIMULATED: one flow, linux: ≥ 97 percent of line: it did not"),
        (OFFERED, FIGURE, ("≤", 97.0), "INCONCLUSIVE: SIMULATED: one flow, linux: ≥ 97 percent of line: it did not"),
        (OFFERED, MET, (), "FAIL: SIMULATED: 0 of 2 published figures met"),
        (OFFERED, DIFFERENCE, ("less",), "INCONCLUSIVE: SIMULATED: one flow, linux: not proven: some values are only"),
        (MORE, DIFFERENCE, ("more",), ""),
        (MORE, DIFFERENCE, ("less",), "FAIL: SIMULATED: one flow, linux: +16"),
        (MORE, DIFFERENCE, (NONE,), "FAIL: SIMULATED: one flow, linux: +16"),
        (WIDE, DIFFERENCE, ("more",), "FAIL: SIMULATED: one flow, linux: not proven at 95 %"),
        (WIDE, DIFFERENCE, (NONE,), ""),
        (FEW, DIFFERENCE, (NONE,), "INCONCLUSIVE: SIMULATED: one flow, linux: not proven at 95 %"),
        (WIDE, DIFFERENCE, (NONE, 50), ""),
        (WIDE, DIFFERENCE, (NONE, 5), "INCONCLUSIVE: SIMULATED: one flow, linux: not proven at 95 %"),
        (ASIDE, DIFFERENCE, (NONE, 20), "INCONCLUSIVE: SIMULATED: one flow, linux: not proven at 95 %"),
        (DRIFTING, DIFFERENCE, (NONE, 5), "INCONCLUSIVE: SIMULATED: one flow, linux: not proven at 95 %"),
        (STEADY, DIFFERENCE, (NONE, 1.5), ""),
        # no per cent of nothing
        (NOTHING, DIFFERENCE, (NONE, 5), "INCONCLUSIVE: SIMULATED: one flow, linux: not proven at 95 %"),
    ],
)
def test_a_claim_of_a_study_holds_or_says_why_not(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    measured: dict[str, Any],
    claim: str,
    arguments: tuple[object, ...],
    says: str,
) -> None:
    added: list[str] = []
    monkeypatch.setattr(studies, "add_to_test_message", added.append)
    blocks = len(measured["values"]["vpp"]) // 2
    study = study_of(tmp_path, SMALL.replace("repeats: 2", f"repeats: {blocks}"))
    study = study.model_copy(update={"measures": {"one flow": study.measures["one flow"]}})
    claims = StudyKeywords(Shared(), lambda: tmp_path)
    claims._read = results_of(study, measurements(study, **measured))
    place = () if claim in (ALL, MET) else ("one flow", "linux")
    if not says:
        getattr(claims, claim)(*place, *arguments)
        # how large a difference may be is in the test's message
        assert bool(added) is (claim == DIFFERENCE)
        assert "more" in arguments or all("; measured " in text and "±" in text for text in added)
        return
    with pytest.raises(SlaFailure if says.startswith("FAIL") else Inconclusive) as raised:
        getattr(claims, claim)(*place, *arguments)
    assert str(raised.value).startswith(says)
