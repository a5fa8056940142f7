"""A run of a study: what it adds to, what it is refused for, how it ends, whether its pages agree with its records."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lineproof.core.router_facts import RouterSetUp
from lineproof.errors import TestbedError
from lineproof.evidence.recorder import Recorder
from lineproof.evidence.records import EnvironmentRecord
from lineproof.session.session import Session
from lineproof.studies.results import read_results
from lineproof.studies.runner import CODE, SESSIONS, Carried, OtherTestbed, PreparedStudy, StudyRun, prepare_study
from support.evidence_builders import RUN
from support.study_builders import SMALL, measurements, study_project, text

VERSIONS = {"generator.server": "v3.08", "router.version": "v26.10", "router.rx placement": "one queue"}
NAME = "netgate6100, vpp"


def prepared_in(folder: Path, text: str = SMALL) -> PreparedStudy:
    return prepare_study(study_project(folder, text), "small", "simulated", "quick")


def kept(
    prepared: PreparedStudy,
    folder: Path,
    values: tuple[float | None, ...] = (33.4, 33.6),
    names: tuple[str, ...] = ("vpp",),
    **changed: Any,
) -> Carried:
    """The run RUN of *prepared* with *values* of variants, as the next one finds it. *changed*: its environment."""
    run = StudyRun(prepared, folder)
    environment = run._environment(RUN)
    sessions = {SESSIONS: {NAME: {"versions": VERSIONS, "configuration": {}}}}
    extra = {**environment.extra, **sessions, **changed.pop("extra", {})}
    changed = {key: {**getattr(environment, key), **value} for key, value in changed.items()}
    recorder = Recorder(folder, RUN, replace(environment, extra=extra, **changed))
    run._recorder = recorder
    run._keep_inputs()
    for record in measurements(prepared.study, dict.fromkeys(names, values)):
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
    run._recorder = Recorder(folder, "20261123T130000Z-abcdef", run._environment(RUN))
    run._keep_inputs()
    carried.copy_to(run._recorder)
    return run


def opened(prepared: PreparedStudy, versions: Mapping[str, str]) -> Session:
    parts = {
        "router": SimpleNamespace(configuration=RouterSetUp, is_black_box=True, host_key=""),
        "generator": SimpleNamespace(headroom=None, known_limits=None, ports=(), bypassed=False),
        "testbed": SimpleNamespace(host=None),
    }
    found = SimpleNamespace(plan=prepared.plan, versions=lambda: dict(versions), interfaces={}, **parts)
    return cast(Session, found)


@pytest.mark.parametrize(
    ("key", "then", "says"),
    [
        ("host", "elsewhere", "host was 'elsewhere' and is '"),
        ("study file", "0", "study file has changed; go on with its own options, or run the study again"),
        (CODE, "0", "code of Lineproof has changed"),
    ],
)
def test_what_is_not_the_same_adds_nothing(
    tmp_path: Path, prepared: PreparedStudy, key: str, then: str, says: str
) -> None:
    with pytest.raises(TestbedError) as raised:
        kept(prepared, tmp_path / "results", fingerprints={key: then})
    assert str(raised.value).startswith(f"run '{RUN}' cannot be resumed: {says}")


@pytest.mark.parametrize(
    "changed", [SMALL.replace("published:\n", "published:\n  tolerance: {percent: 40}\n"), SMALL.replace("4.32", "5")]
)
def test_what_judges_figures_is_not_chosen_after_some_were_seen(
    tmp_path: Path, prepared: PreparedStudy, changed: str
) -> None:
    kept(prepared, tmp_path / "results")
    with pytest.raises(TestbedError, match="study file has changed"):
        Carried.of(tmp_path / "results" / RUN, prepared_in(tmp_path, text=changed))


def test_a_run_whose_differences_were_seen_gets_no_second_try_of_its_gaps(tmp_path: Path) -> None:
    prepared = prepared_in(tmp_path, re.sub("  ramp: .*\n", "", SMALL))
    with pytest.raises(TestbedError, match="is complete, and its differences were seen"):
        kept(prepared, tmp_path / "results", (33.4, 33.6, None, 33.5), ("vpp", "linux"))


def test_other_titles_and_explanations_are_the_same_study(tmp_path: Path, prepared: PreparedStudy) -> None:
    kept(prepared, tmp_path / "results")
    text = f"{SMALL}  explained:\n    one flow: {{linux: another kernel}}\n".replace("title: Two", "title: The two")
    assert Carried.of(tmp_path / "results" / RUN, prepared_in(tmp_path, text=text)).records


@pytest.mark.parametrize("name", ["router.version", "generator.server"])
def test_another_router_or_generator_adds_nothing(tmp_path: Path, prepared: PreparedStudy, name: str) -> None:
    run = going_on(prepared, tmp_path / "results", kept(prepared, tmp_path / "results"))
    with pytest.raises(OtherTestbed) as raised:
        run._note(opened(prepared, {**VERSIONS, name: "v1"}))
    assert f"{NAME} is not what was measured before: {name} was '{VERSIONS[name]}' and is 'v1'; " in str(raised.value)
    # and what has never been opened is compared with nothing
    run._known.clear()
    run._note(opened(prepared, {**VERSIONS, name: "v1"}))
    with pytest.raises(OtherTestbed, match="is not what was measured before"):
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
    assert environment.extra[SESSIONS].keys() == {NAME, "netgate6100, linux"}
    run._recorder.close()
    assert f"2 of 2 measurements carried over from run {RUN}." in text(read_results(run._recorder.folder.path))


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
