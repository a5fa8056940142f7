"""Times in testbed files, and what is said while something is waited for."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from lineproof.testbed.waiting_time import PROGRESS_INTERVAL, Seconds, WaitProgress, in_units

SECONDS: TypeAdapter[float] = TypeAdapter(Seconds)


@pytest.mark.parametrize(
    ("written", "seconds"), [(30, 30.0), (1.5, 1.5), ("30 s", 30.0), ("10 min", 600.0), ("2h", 7200.0), ("0 s", 0.0)]
)
def test_a_time_is_a_number_of_seconds_or_has_a_unit(written: object, seconds: float) -> None:
    assert SECONDS.validate_python(written) == seconds


@pytest.mark.parametrize("written", ["soon", "10", "10 days", "-1 s", -1, "1e9 h", "999999 h", float("nan")])
def test_other_times_are_refused(written: object) -> None:
    with pytest.raises(ValidationError):
        SECONDS.validate_python(written)


def test_a_time_is_written_as_people_do() -> None:
    assert [in_units(value) for value in (0.5, 12, 90, 600, 7200)] == ["0.5 s", "12 s", "90 s", "10 min", "2 h"]


def test_a_wait_is_announced_at_once_when_its_reason_changes_and_from_time_to_time() -> None:
    clock, lines = [0.0], list[str]()
    progress = WaitProgress("testbed 'lab'", 600, lines.append, lambda: clock[0])
    for moment, why in (
        (0, "alice has it"),
        (1, "alice has it"),
        (2, "bob has it"),
        (PROGRESS_INTERVAL + 3, "bob has it"),
    ):
        clock[0] = moment
        progress.note(why)
    assert lines == [
        "waiting for testbed 'lab', at most 10 min: alice has it",
        "waiting for testbed 'lab', 2 s of at most 10 min: bob has it",
        f"waiting for testbed 'lab', {PROGRESS_INTERVAL + 3:.0f} s of at most 10 min: bob has it",
    ]
    assert not progress.is_over
    clock[0] = 600
    assert progress.is_over
