"""Another try is only for a machine that others use: a quiet one has no excuse."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support import patience
from support.patience import undisturbed, unsent


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """One second of it for each reading, of which others had ``taken`` CPU seconds."""
    found = {"now": 0.0, "away": 0.0, "taken": 0.0}

    def passed() -> float:
        found["now"] += 1.0
        return found["now"]

    def away() -> float:
        found["away"] += found["taken"]
        return found["away"]

    monkeypatch.setattr("support.patience.time.monotonic", passed)
    monkeypatch.setattr(patience, "taken_away", away)
    monkeypatch.setattr("support.patience.os.cpu_count", lambda: 2)
    return found


def results(*counts: int) -> Iterator[int]:
    return iter(counts)


def test_frames_unsent_on_a_quiet_machine_fail_at_once(clock: dict[str, float]) -> None:
    tries = results(1, 0)
    with pytest.raises(AssertionError, match=r"1 frames unsent; others had 0\.00"):
        undisturbed(lambda: next(tries), unsent)


def test_one_that_others_use_gets_another_try(clock: dict[str, float]) -> None:
    clock["taken"] = 0.2
    tries = results(3, 2, 0, 5)
    assert undisturbed(lambda: next(tries), unsent) == 0
    assert next(tries) == 5


@pytest.mark.parametrize(("taken", "outcome"), [(0.2, pytest.fail.Exception), (1.5, pytest.skip.Exception)])
def test_the_last_try_skips_only_where_others_had_much(
    clock: dict[str, float], taken: float, outcome: type[Exception]
) -> None:
    clock["taken"] = taken
    with pytest.raises(outcome, match="had no time for it"):
        undisturbed(lambda: 1, unsent, tries=3)


def test_more_than_was_asked_for_is_never_excused(clock: dict[str, float]) -> None:
    clock["taken"] = 1.5
    with pytest.raises(AssertionError, match="1 frames more"):
        undisturbed(lambda: -1, unsent)
