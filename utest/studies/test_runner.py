"""A study whose testbed does not open ends with the testbed's own words."""

from __future__ import annotations

from pathlib import Path

import pytest

from lineproof.errors import TestbedError
from lineproof.session.session import Session
from lineproof.studies import runner
from lineproof.studies.runner import StudyRun
from lineproof.studies.study import visits_of
from support.study_builders import SMALL
from support.study_runs import prepared_in


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
