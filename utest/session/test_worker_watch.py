"""The work of a router's workers is read between the trials of a sentence, and disturbs none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from lineproof.core.trial import Load, Outcome
from lineproof.errors import TestbedError
from lineproof.session import router_watch
from lineproof.session.router_watch import WorkerWatch

LOAD = Load(1e6)


class Watched:
    """Trials of 2 s with a router whose readings are *counts* in turn; *events*: what happened."""

    def __init__(self, *counts: Mapping[str, float] | TestbedError) -> None:
        self.counts, self.events = list(counts), list[str]()
        watch = WorkerWatch(self.work, self.trial)
        self.measure = watch.measure

    def work(self) -> Mapping[str, float]:
        self.events.append("read")
        found = self.counts.pop(0)
        if isinstance(found, TestbedError):
            raise found
        return found

    def trial(self, load: Load, duration: float, during: Any = None) -> Outcome:
        self.events.append("trial")
        return Outcome(load, duration, duration, 0.0, (), readings={"cpu_util": 1.0})


def test_a_trial_has_the_rates_of_its_seconds_of_traffic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router_watch, "EVERY", 0.0)
    run = Watched({"a": 10.0, "b": 5.0}, {"a": 12.0, "b": 1.0, "c": 1.0}, {"a": 13.0, "b": 2.0, "c": 2.0})
    # those of b have been reset, those of c were not there before
    assert run.measure(LOAD, 2.0).readings == {"cpu_util": 1.0, "a": 1.0}
    assert run.measure(LOAD, 2.0).readings == {"cpu_util": 1.0, "a": 0.5, "b": 0.5, "c": 0.5}
    assert run.events == ["read", "trial", "read", "trial", "read"]


def test_of_many_short_trials_the_first_is_read_and_few_others() -> None:
    run = Watched({"a": 10.0}, {"a": 12.0})
    assert [len(run.measure(LOAD, 2.0).readings) for _ in range(9)] == [2] + 8 * [1]
    assert run.events.count("read") == 2


@pytest.mark.parametrize("shown", [{}, TestbedError("the link dropped")])
def test_a_router_that_shows_nothing_is_not_asked_again(shown: Any) -> None:
    for counts in ([shown], [{"a": 10.0}, shown]):
        run = Watched(*counts)
        assert [run.measure(LOAD, 2.0).readings for _ in range(3)] == 3 * [{"cpu_util": 1.0}]


def test_a_trial_that_reads_the_router_itself_is_left_alone() -> None:
    run = Watched()
    run.measure(LOAD, 2.0, lambda wait: None)
    assert run.events == ["trial"]
