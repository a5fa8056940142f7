"""A run of a study: what it adds to, what it is refused for, how it ends, whether its pages agree with its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lineproof.commands.main import main
from lineproof.errors import LineproofError, TestbedError
from lineproof.evidence.recorder import Recorder
from lineproof.evidence.records import EnvironmentRecord
from lineproof.evidence.resume import FINGERPRINTS
from lineproof.evidence.run_files import CHAINED
from lineproof.session.session import Session
from lineproof.studies import runner
from lineproof.studies.carrying import SESSIONS, Carried, OtherTestbed
from lineproof.studies.history import BLOCKS, GAPS_REPEATED, JUDGED, read_results
from lineproof.studies.page import check_page, write_page
from lineproof.studies.preparing import CODE, PreparedStudy, prepare_study
from lineproof.studies.results import StudyResults
from lineproof.studies.runner import StudyRun
from lineproof.studies.study import visits_of
from support.evidence_builders import RUN
from support.study_builders import SMALL, measurements, study_project, text

VERSIONS = {"generator.server": "v3.08", "router.version": "v26.10", "router.rx placement": "one queue"}
NAME = "netgate6100, vpp"


def prepared_in(folder: Path, repeats: int | None = None, text: str = SMALL) -> PreparedStudy:
    return prepare_study(study_project(folder, text), "small", "simulated", "quick", repeats)


def kept(
    prepared: PreparedStudy, folder: Path, values: tuple[float | None, ...] = (33.4, 33.6), **changed: Any
) -> Carried:
    """The run RUN of *prepared* with *values* of the baseline, as the next one finds it. *changed*: its environment."""
    run = StudyRun(prepared, folder)
    environment = run._environment(RUN)
    sessions = {SESSIONS: {NAME: {"versions": VERSIONS, "configuration": {}}}}
    extra = {**environment.extra, **sessions, **changed.pop("extra", {})}
    changed = {key: {**getattr(environment, key), **value} for key, value in changed.items()}
    recorder = Recorder(folder, RUN, replace(environment, extra=extra, **changed), CHAINED)
    run._recorder = recorder
    run._keep_inputs()
    for record in measurements(prepared.study, {"vpp": values}):
        recorder.folder.add(replace(record, run=RUN, requirement=0))
    recorder.close()
    return Carried.of(folder / RUN, prepared)


pytestmark = pytest.mark.slow


@pytest.fixture
def prepared(tmp_path: Path) -> PreparedStudy:
    return prepared_in(tmp_path)


def going_on(prepared: PreparedStudy, folder: Path, carried: Carried) -> StudyRun:
    """A run that has begun, and opened nothing yet."""
    run = StudyRun(prepared, folder, carried)
    run._recorder = Recorder(folder, "20261123T130000Z-abcdef", run._environment(RUN), CHAINED)
    run._keep_inputs()
    carried.copy_to(run._recorder)
    return run


def closed(run: StudyRun) -> StudyResults:
    run._recorder.close()
    return read_results(run._recorder.folder.path)


def prepared_run(prepared: PreparedStudy, folder: Path) -> EnvironmentRecord:
    return StudyRun(prepared, folder)._environment(RUN)


def opened(prepared: PreparedStudy, versions: Mapping[str, str]) -> Session:
    parts = {
        "router": SimpleNamespace(configuration=dict, is_black_box=True, host_key=""),
        "generator": SimpleNamespace(headroom=None, known_limits=None, ports=(), bypassed=False),
        "testbed": SimpleNamespace(host=None),
    }
    found = SimpleNamespace(plan=prepared.plan, versions=lambda: dict(versions), interfaces={}, **parts)
    return cast(Session, found)


@pytest.mark.parametrize(
    ("changed", "prints", "says"),
    [
        ({"host": {"name": "elsewhere"}}, {}, "host was 'elsewhere' and is '"),
        ({"host": {"cpu": "Z80"}}, {}, "CPU was 'Z80' and is '"),
        ({"host": {"kernel": "2.4"}}, {}, "kernel was '2.4' and is '"),
        (
            {"extra": {"goal": {"goal": "standard"}}},
            {"file goals/quick.yaml": "of another"},
            "goal was 'standard' and is 'quick'; ",
        ),
        (
            {},
            {"study file": "of another"},
            "the study file has changed; go on with its own options, or run the study again",
        ),
        ({"code": {"version": "0.0", "commit": "abc"}}, {CODE: "0"}, "it was made by 'Lineproof 0.0, commit abc"),
        ({}, {CODE: "0"}, "the code of Lineproof "),
    ],
)
def test_what_is_not_the_same_adds_nothing(
    tmp_path: Path, prepared: PreparedStudy, changed: dict[str, Any], prints: dict[str, str], says: str
) -> None:
    extra = {**changed.get("extra", {}), FINGERPRINTS: {**prepared.fingerprints(), **prints}}
    with pytest.raises(TestbedError) as raised:
        kept(prepared, tmp_path / "results", **{**changed, "extra": extra})
    assert str(raised.value).startswith(f"run '{RUN}' cannot be resumed: {says}")


def test_a_commit_of_something_else_is_the_same_lineproof(tmp_path: Path, prepared: PreparedStudy) -> None:
    assert kept(prepared, tmp_path / "results", code={"version": "0.0"}).records


@pytest.mark.parametrize("name", ["router.version", "generator.server"])
def test_another_router_or_generator_adds_nothing(tmp_path: Path, prepared: PreparedStudy, name: str) -> None:
    run = going_on(prepared, tmp_path / "results", kept(prepared, tmp_path / "results"))
    with pytest.raises(OtherTestbed) as raised:
        run._note(opened(prepared, {**VERSIONS, name: "v1"}))
    assert f"{NAME} is not what run {RUN} measured: {name} was '{VERSIONS[name]}' and is 'v1'; " in str(raised.value)
    # and what has never been opened is compared with nothing
    run._known.clear()
    run._note(opened(prepared, {**VERSIONS, name: "v1"}))
    with pytest.raises(OtherTestbed, match="is not what this run measured"):
        run._note(opened(prepared, VERSIONS))


def test_the_same_router_goes_on_and_the_run_says_what_it_has_of_another(
    tmp_path: Path, prepared: PreparedStudy
) -> None:
    carried = kept(prepared, tmp_path / "results", extra={SESSIONS: {
        NAME: {"versions": VERSIONS, "configuration": {}},
        "netgate6100, linux": {"versions": {"router.version": "6.8"}, "configuration": {}},
    }})  # fmt: skip
    run = going_on(prepared, tmp_path / "results", carried)
    run._note(opened(prepared, {**VERSIONS, "generator.leftover": "ports given back", "router.rx placement": "two"}))
    environment: EnvironmentRecord = run._recorder.environment
    assert environment.versions["router.version"] == "v26.10"
    sessions = environment.extra[SESSIONS]
    assert sessions["netgate6100, linux"]["carried_from"] == RUN and "carried_from" not in sessions[NAME]
    assert f"2 of 2 measurements carried over from run {RUN}." in text(closed(run))


def test_a_session_that_another_router_answers_ends_the_run(
    tmp_path: Path, prepared: PreparedStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no gap, which the rest of the study would be measured after."""
    run = StudyRun(prepared, tmp_path / "results")

    def other(_: object) -> Session:
        raise OtherTestbed("another one")

    monkeypatch.setattr(run, "_set_up", other)
    with pytest.raises(OtherTestbed):
        run.run()
    assert run.measured == 0


@pytest.mark.parametrize(("repeats", "word"), [(4, "raised"), (1, "lowered")])
def test_another_number_of_blocks_is_said_for_good(
    tmp_path: Path, prepared: PreparedStudy, repeats: int, word: str
) -> None:
    """Who looks at a result and then measures more finds differences that are none more often than once in 20."""
    results = tmp_path / "results"
    first = kept(prepared, results, (33.4, 33.6, 33.5, 33.3))
    assert not StudyRun(prepared, results, first)._history.keys() & {BLOCKS, GAPS_REPEATED}
    other = prepared_in(tmp_path, repeats)
    run = going_on(other, results, Carried.of(results / RUN, other))
    words = f"WARNING: blocks were {word} from 2 to {repeats} after the first 2 were read: 95 % no longer holds."
    assert run.foreword()[-1] == words and words in " ".join(text(closed(run)).split())
    # the run that goes on with that one says so too
    again = going_on(other, results, Carried.of(run._recorder.folder.path, other))
    assert again.foreword()[-1] == words
    again._recorder.close()


def test_gaps_that_are_measured_again_are_said_with_their_reasons(tmp_path: Path, prepared: PreparedStudy) -> None:
    results = tmp_path / "results"
    run = going_on(prepared, results, kept(prepared, results, (33.4, None, 33.5, None)))
    (first, second) = run._recorder.environment.extra[GAPS_REPEATED]
    assert first["measurement"] == "block 1, last: vpp, one flow" and "the link" in first["reason"]
    assert first["run"] == second["run"] == RUN
    says = f"2 gaps of run {RUN} measured again"
    assert any(says in words for words in run.foreword()) and says in text(closed(run))


def test_another_tolerance_is_said_for_good(tmp_path: Path, prepared: PreparedStudy) -> None:
    """Whatever is outside would be inside of a wider one, chosen after the figures were seen."""
    results, head = tmp_path / "results", "published:\n"
    kept(prepared, results, (33.4, 33.6, 33.5, 33.3))
    wide = SMALL.replace(head, f"{head}  tolerance: {{percent: 40}}\n")
    wider = prepared_in(tmp_path, text=wide)
    run = going_on(wider, results, Carried.of(results / RUN, wider))
    words = "WARNING: the tolerance ('percent') was changed from 5.0 to 40.0 after 4 measurements."
    assert run.foreword()[-1] == words
    run._recorder.close()
    # the run that goes on with that one says so too, and what is changed there
    other = prepared_in(tmp_path, text=wide.replace("4.32", "5"))
    again = going_on(other, results, Carried.of(run._recorder.folder.path, other))
    figures = "WARNING: the published figures were changed after 4 measurements."
    assert again.foreword()[-2:] == (words, figures)
    found = closed(again)
    folded = " ".join(text(found).split())
    assert words in folded and figures in folded


def test_other_titles_and_explanations_say_nothing(tmp_path: Path, prepared: PreparedStudy) -> None:
    kept(prepared, tmp_path / "results")
    same = prepared_in(tmp_path, text=f"{SMALL}  explained:\n    one flow: {{linux: another kernel}}\n")
    assert JUDGED not in StudyRun(same, tmp_path, Carried.of(tmp_path / "results" / RUN, same))._history


def run_in(folder: Path, **changed: object) -> Path:
    run = kept(prepared_in(folder), folder / "results", (33.4, 33.6, 33.5, 33.3), **changed).folder
    write_page(read_results(run))
    return run


def edit(run: Path, before: str, after: str) -> None:
    """Change the page."""
    path = run / "study.html"
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [("SIMULATED", "MEASURED"), ("33.45", "35.45")])
def test_a_page_that_says_something_else_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], before: str, after: str
) -> None:
    run = run_in(tmp_path)
    assert main(["verify", str(run)]) == 0
    edit(run, before, after)
    assert main(["verify", str(run)]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert f"study.html is not what the records come to; 'lineproof study report {run.name}' makes it again" in shown
    write_page(read_results(run))
    assert main(["verify", str(run)]) == 0


@pytest.mark.slow
def test_what_is_no_page_of_the_run_is_named(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    (run / "study.html").unlink()
    (run / "study.html").symlink_to(tmp_path / "elsewhere")
    assert [item.file for item in check_page(run)[0]] == ["study.html"]
    (run / "measurements.jsonl").unlink()
    assert {item.file for item in check_page(run)[0]} == {"study.html"}
    assert main(["verify", str(run)]) == 1


@pytest.mark.slow
def test_altered_records_have_no_results(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    records = run / "measurements.jsonl"
    records.write_text(records.read_text(encoding="utf-8").replace('"value": 33.4', '"value": 35.4'), encoding="utf-8")
    assert main(["verify", str(run)]) == 1
    with pytest.raises(LineproofError, match=r"measurements\.jsonl"):
        read_results(run)


@pytest.mark.slow
def test_a_page_of_another_lineproof_may_have_other_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_in(tmp_path)
    monkeypatch.setattr("lineproof.studies.page.code_digest", lambda: "another")
    edit(run, "33.45", "35.45")
    problems, (note,) = check_page(run)
    assert problems == () and note.startswith("study.html is not what") and "another Lineproof made the run" in note
    assert main(["verify", str(run)]) == 0


@pytest.mark.slow
def test_what_rounds_differently_is_the_same(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    edit(run, "33.45", "33.450000000001")
    assert check_page(run) == ((), ())


@pytest.mark.slow
@pytest.mark.parametrize("error", [TestbedError("no port 0"), TimeoutError("no answer")])
def test_the_error_of_a_testbed_is_not_its_own_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Robot follows causes to their end when it shows an error: in a circle it finds none, and writes no output."""

    def refuse(*_: object, **__: object) -> Session:
        raise error

    monkeypatch.setattr(Session, "start", refuse)
    prepared = prepared_in(tmp_path)
    with pytest.raises(TestbedError) as raised:
        StudyRun(prepared, tmp_path / "results").run()
    assert str(error) in str(raised.value)
    causes: list[BaseException] = []
    cause: BaseException | None = raised.value
    while cause is not None:
        assert cause not in causes
        causes.append(cause)
        cause = cause.__cause__


def test_a_study_that_takes_as_long_as_foreseen_is_said_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session that the first variant opened, and the second uses, makes nothing look slow."""
    text = SMALL.replace("  linux: {software: linux}", "  linux: {software: vpp}")
    prepared = prepared_in(tmp_path, text=text)
    visits, clock = visits_of(prepared.study), [0.0]
    said: list[float] = []
    monkeypatch.setattr("lineproof.studies.runner.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(runner, "duration_text", str)
    for place, (_, left) in enumerate(runner._with_time_left(prepared, visits)):
        said.append(float(left))
        clock[0] = prepared.seconds(visits[: place + 1])[1]
    whole = prepared.seconds(visits)[1]
    assert said[0] == whole and all(left <= whole for left in said) and sorted(said, reverse=True) == said
