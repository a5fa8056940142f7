"""What a run that is gone on with may add to, what it is refused for, and what its page says of it."""

from __future__ import annotations

import html
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lineproof.errors import TestbedError
from lineproof.evidence.recorder import Recorder
from lineproof.evidence.records import EnvironmentRecord
from lineproof.evidence.resume import FINGERPRINTS
from lineproof.evidence.run_files import CHAINED
from lineproof.session.session import Session
from lineproof.studies.carrying import SESSIONS, Carried, OtherTestbed
from lineproof.studies.forms import markdown, text
from lineproof.studies.history import BLOCKS, GAPS_REPEATED, JUDGED, read_results
from lineproof.studies.page import page
from lineproof.studies.preparing import CODE, PreparedStudy
from lineproof.studies.results import StudyResults
from lineproof.studies.runner import StudyRun
from support.evidence_builders import RUN
from support.study_builders import SMALL
from support.study_runs import NAME, VERSIONS, kept, prepared_in

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
    router = SimpleNamespace(configuration=dict, is_black_box=True)
    generator = SimpleNamespace(headroom=None, known_limits=None, ports=())
    found = SimpleNamespace(
        plan=prepared.plan, versions=lambda: dict(versions), router=router, generator=generator, interfaces={}
    )
    return cast(Session, found)


@pytest.mark.parametrize(
    ("changed", "prints", "says"),
    [
        ({"host": {"name": "elsewhere"}}, {}, "host was 'elsewhere' and is '"),
        ({"host": {"cpu": "Z80"}}, {}, "CPU was 'Z80' and is '"),
        ({"host": {"kernel": "2.4"}}, {}, "kernel was '2.4' and is '"),
        (
            {"extra": {"goal": {"goal": "standard"}}},
            {"goal file": "of another"},
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
    assert any(says in words for words in run.foreword()) and says in page(closed(run))


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
    for shown in (text(found), markdown(found), page(found)):
        folded = " ".join(html.unescape(shown).replace("\\", "").split())
        assert words in folded and figures in folded


def test_other_titles_and_explanations_say_nothing(tmp_path: Path, prepared: PreparedStudy) -> None:
    kept(prepared, tmp_path / "results")
    same = prepared_in(tmp_path, text=f"{SMALL}  explained:\n    one flow: {{linux: another kernel}}\n")
    assert JUDGED not in StudyRun(same, tmp_path, Carried.of(tmp_path / "results" / RUN, same))._history
