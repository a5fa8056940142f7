"""One rule for compare and gate: when runs can be compared, and what is proven worse."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lineproof.evidence.compared_runs import (
    ComparisonRule,
    Proven,
    compare_rows,
    compare_runs,
    pair_runs,
    why_not_comparable,
)
from lineproof.evidence.records import MarginRecord
from lineproof.evidence.run import read_run
from lineproof.evidence.sentence_rows import SentenceRow
from support.evidence_builders import RUN, promised, requirement_record
from support.made_runs import FORWARDS, LOAD, RECOVERS, Sentence, around, made_run

GOAL = {"goal": {"goal": "quick", "duration_sum": 5.0}, "suite": "Box"}


def row(words: str, sample: tuple[float, ...] = (), margin: tuple[float, float | None] | None = None, **more: Any):
    finished = more.pop("finished", True)
    record = requirement_record(sentence=words, **more)
    search = None if margin is None else MarginRecord(RUN, True, 1, "T", words, *margin, finished, "time", 9.0)
    return SentenceRow(record, sample, 0.0, search=search)


def state(before: SentenceRow, after: SentenceRow, rule: ComparisonRule | None = None) -> Proven:
    return compare_rows([(before, after, True)], rule or ComparisonRule())[0].state


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ((1.10, 1.11), (1.00, 1.001), Proven.WORSE),
        ((1.10, 1.11), (1.09, 1.10), Proven.NOTHING_PROVEN),  # they touch
        ((1.10, 1.11), (1.07, 1.088), Proven.WORSE),  # apart by 1.1 %
        ((1.10, 1.11), (1.07, 1.09), Proven.NOTHING_PROVEN),  # apart by 0.9 %
        ((1.10, 1.11), (1.13, 1.14), Proven.BETTER),
        ((1.10, None), (1.10, None), Proven.NOTHING_PROVEN),  # both carry all that can be sent
        ((1.10, None), (1.05, 1.06), Proven.WORSE),
        ((1.05, 1.06), (1.10, None), Proven.BETTER),
    ],
)
def test_margins_are_worse_where_they_are_apart_by_more_than_is_allowed(old: Any, new: Any, expected: Proven):
    assert state(row(LOAD, margin=old), row(LOAD, margin=new)) is expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (((1.10, 1.11), True), ((1.0, None), False), Proven.NOT_COMPARED),
        (((1.0, None), False), ((1.10, 1.11), True), Proven.NOT_COMPARED),
        (((1.10, 1.11), True), ((1.0, 1.05), False), Proven.WORSE),  # enough, however it would have ended
        (((1.10, 1.11), True), ((1.108, None), False), Proven.NOTHING_PROVEN),  # at least as much is carried
    ],
)
def test_an_unfinished_search_proves_what_its_ends_prove_and_no_more(old: Any, new: Any, expected: Proven):
    sides = [row(LOAD, margin=ends, finished=finished) for ends, finished in (old, new)]
    assert state(*sides) is expected


def test_equal_runs_are_called_worse_in_less_than_one_of_twenty_pairs():
    """A/A: 70 pairs of runs of the same router, with 12 sentences each."""
    chance = random.Random(20261122)

    def equal() -> SentenceRow:
        return row(FORWARDS, tuple(5e6 * (1 + chance.gauss(0, 0.02)) for _ in range(7)))

    for allowed, most in ((0.0, 8), (0.01, 2)):  # 5 % of 70 and three standard deviations, of worse and better together
        found = [
            compare_rows([(equal(), equal(), True) for _ in range(12)], ComparisonRule(allowed=allowed))
            for _ in range(70)
        ]
        called = sum(any(item.state in (Proven.WORSE, Proven.BETTER) for item in pair) for pair in found)
        assert called <= most


def test_a_real_regression_is_found_among_many_equal_sentences():
    equal = [(row(FORWARDS, tuple(around(5e6, n))), row(FORWARDS, tuple(around(5e6, 50 + n))), True) for n in range(20)]
    slower = row(FORWARDS, tuple(around(5e6, 99))), row(FORWARDS, tuple(around(4.9e6, 98))), True
    found = compare_rows([*equal, slower], ComparisonRule())
    assert [item.state for item in found] == [Proven.NOTHING_PROVEN] * 20 + [Proven.WORSE]
    # what is shown agrees with what is decided
    assert all(item.change is not None and item.change.high is not None for item in found)
    assert found[-1].change.high < -0.01 and found[-1].change.confidence == pytest.approx(1 - 0.05 / 21)


def test_a_trial_without_an_upper_bound_is_not_left_out():
    found = compare_rows(
        [(row(RECOVERS, (0.5, 0.5)), row(RECOVERS, (0.5, float("inf"), 0.5)), True)], ComparisonRule()
    )[0]
    assert found.state is Proven.NOT_COMPARED and "1 of 3 trials" in found.why_not


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"platform": "otherbox"}, "other platform: box with vpp → otherbox with vpp"),
        ({"software": "linux"}, "other platform: box with vpp → box with linux"),
        ({"testbed": "lab2"}, "other testbed: lab → lab2"),
        ({"versions": {"generator.server": "TRex v3.06"}}, "other generator: TRex v3.08 → TRex v3.06"),
        ({"ports": ({"driver": "net_ice", "speed_bps": 25e9},)}, "other generator: "),
        ({"extra": {**GOAL, "generator_card": {"card": "x710"}}}, "other generator: "),
        ({"extra": {**GOAL, "goal": {"goal": "standard"}}}, "other goal: quick → standard"),
        (
            {"extra": {**GOAL, "goal": {"goal": "quick", "duration_sum": 9.0}}},
            "other goal: in 'quick' duration_sum was 5.0, is 9.0",
        ),
        ({"simulated": True}, "new is simulated, old is not"),
        ({"closed": False}, "new was never closed"),
    ],
)
def test_runs_of_other_conditions_are_not_comparable(tmp_path: Path, changes: Any, words: str):
    old, new = made_run(tmp_path, "old", Sentence(LOAD)), made_run(tmp_path, "new", Sentence(LOAD), **changes)
    reasons = why_not_comparable(read_run(old), read_run(new))
    assert len(reasons) == 1 and reasons[0].startswith(words)


def test_another_firmware_is_what_is_compared(tmp_path: Path):
    newer: dict[str, Any] = {"versions": {"router.version": "25.02", "generator.server": "TRex v3.08"}}
    old, new = made_run(tmp_path, "old", Sentence(LOAD)), made_run(tmp_path, "new", Sentence(LOAD), **newer)
    (found,) = compare_runs([(read_run(old), read_run(new))], ComparisonRule())
    assert found.reasons == () and found.differences == ("router.version: 24.10 → 25.02",)


def test_the_same_words_with_another_meaning_are_not_compared():
    old = row(FORWARDS, (5e6, 5.1e6))
    demand = promised(LOAD)["demand"]
    for change in ({"mean_size": 128.0}, {"link_bps": 25e9}, {"goal": "standard"}, {"demand": demand}):
        new = replace(old, record=replace(old.record, **change))
        assert state(old, new) is Proven.NOT_COMPARED


def test_runs_of_several_suites_are_paired_by_suite(tmp_path: Path):
    def run(name: str, suite: str):
        return read_run(made_run(tmp_path, name, Sentence(LOAD), extra={**GOAL, "suite": suite}))

    one, two, three, four = run("1", "A"), run("2", "B"), run("3", "B"), run("4", "C")
    pairs, problems = pair_runs([one, two], [three, four])
    assert pairs == [(two, three)]
    assert problems == ["the baseline has no run of suite 'C' for 4", "suite 'A' of the baseline (1) was not run"]
    assert pair_runs([one], [four]) == ([(one, four)], [])  # the only ones: Robot names a suite by how it was called
