"""The rule of gate: when runs can be compared, and what is proven worse."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lineproof.core.bounds import Bounds
from lineproof.core.doubts import OwnPart
from lineproof.core.goal import read_goal
from lineproof.core.latency import LatencyCount
from lineproof.core.registry import quantities
from lineproof.core.sentence import parse
from lineproof.core.traffic.catalogue import Catalogue
from lineproof.core.trial import DirectionCount, Fault, Load, Outcome, Problem, Trial
from lineproof.evidence.gate import ComparedSentence, ComparisonRule, Proven, compare_runs, compare_sentences
from lineproof.evidence.records import MarginRecord, RequirementRecord
from lineproof.evidence.run import RunFolder, read_run
from lineproof.evidence.summary import SentenceRow, measured, sentence_rows
from lineproof.generators.base import GeneratorPort
from support.evidence_builders import ENVIRONMENT, RUN, promised, requirement_record, trial_record
from support.made_runs import FORWARDS, LOAD, LOSES, RECOVERS, Sentence, around, made_run
from support.paths import VARIABLES

QUICK = read_goal(VARIABLES / "goals", "quick")


def row(words: str, sample: tuple[float, ...] = (), margin: tuple[float, float | None] | None = None, **more: Any):
    reason = "" if more.pop("finished", True) else "time"
    record = requirement_record(sentence=words, **more)
    search = None if margin is None else MarginRecord(RUN, True, 1, "T", words, *margin, reason, 9.0)
    return SentenceRow(record, sample, 0.0, search=search)


def compared(*couples: tuple[SentenceRow, SentenceRow], allowed: float = 0.01) -> list[ComparedSentence]:
    rule = ComparisonRule(allowed=allowed)
    sentences = [ComparedSentence(*couple, rule) for couple in couples]
    compare_sentences(sentences, rule)
    return sentences


def state(before: SentenceRow, after: SentenceRow) -> Proven:
    return compared((before, after))[0].state


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
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
        (((1.10, 1.11), True), ((1.0, 1.05), False), Proven.WORSE),  # enough, however it would have ended
        (((1.10, 1.11), True), ((1.108, None), False), Proven.NOTHING_PROVEN),  # at least as much is carried
    ],
)
def test_an_unfinished_search_proves_what_its_ends_prove_and_no_more(old: Any, new: Any, expected: Proven):
    sides = [row(LOAD, margin=ends, finished=finished) for ends, finished in (old, new)]
    assert state(*sides) is expected


def test_a_loss_is_related_to_the_threshold_as_that_of_the_baseline_may_be_none():
    none, to_nothing = (0.0,) * 7, LOSES.replace("2 %", "0 %")
    (found,) = compared((row(LOSES, none), row(LOSES, tuple(around(0.1, 1, 0.1, 7)))))
    assert found.state is Proven.WORSE and found.change is not None and found.change.of == "the threshold"
    assert state(row(to_nothing, none), row(to_nothing, none)) is Proven.NOTHING_PROVEN
    assert state(row(to_nothing, none), row(to_nothing, (*none, 1e-5))) is Proven.NOT_COMPARED


def test_equal_runs_are_called_worse_in_less_than_one_of_twenty_pairs():
    """A/A: 70 pairs of runs of the same router, with 12 sentences each; 5 % of 70 and three standard deviations."""
    chance = random.Random(20261122)

    def equal() -> SentenceRow:
        return row(FORWARDS, tuple(5e6 * (1 + chance.gauss(0, 0.02)) for _ in range(7)))

    for allowed, most in ((0.001, 8), (0.01, 2)):
        pairs = ([(equal(), equal()) for _ in range(12)] for _ in range(70))
        states = [{each.state for each in compared(*pair, allowed=allowed)} for pair in pairs]
        assert sum(Proven.WORSE in found or Proven.BETTER in found for found in states) <= most


def test_a_real_regression_is_found_among_many_equal_sentences():
    equal = [(row(FORWARDS, tuple(around(5e6, n))), row(FORWARDS, tuple(around(5e6, 50 + n)))) for n in range(20)]
    slower = row(FORWARDS, tuple(around(5e6, 99))), row(FORWARDS, tuple(around(4.9e6, 98)))
    found = compared(*equal, slower)
    assert [item.state for item in found] == [Proven.NOTHING_PROVEN] * 20 + [Proven.WORSE]
    # what is shown agrees with what is decided
    assert all(item.change is not None and item.change.high is not None for item in found)
    assert found[-1].change.high < -0.01 and found[-1].change.confidence == pytest.approx(1 - 0.05 / 21)


def test_a_trial_without_an_upper_bound_is_not_left_out():
    (found,) = compared((row(RECOVERS, (0.5, 0.5)), row(RECOVERS, (0.5, float("inf"), 0.5))))
    assert found.state is Proven.NOT_COMPARED and "1 of 3 trials" in found.why_not


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"software": "linux"}, "other platform: box with vpp → box with linux"),
        ({"testbed": "lab2"}, "other testbed: lab → lab2"),
        ({"versions": {"generator.server": "TRex v3.06"}}, "other generator: TRex v3.08 → TRex v3.06"),
        ({"ports": (GeneratorPort(0, "", 25e9, True, "net_ice"),)}, "other generator: "),
        ({"generator_card": {"card": "x710"}}, "other generator: "),
        ({"goal": QUICK.model_copy(update={"risk": 0.04})}, "other risk of goal 'quick': 0.05 → 0.04"),
        ({"simulated": True}, "other testbed: lab → lab (SIMULATED)"),
        ({"closed": False}, "new was never closed"),
    ],
)
def test_runs_of_other_conditions_are_not_comparable(tmp_path: Path, changes: Any, words: str):
    old, new = made_run(tmp_path, "old", Sentence(LOAD)), made_run(tmp_path, "new", Sentence(LOAD), **changes)
    (problem,) = compare_runs([read_run(old)], [read_run(new)], ComparisonRule()).problems
    assert problem.startswith(words)


def test_another_firmware_is_what_is_compared(tmp_path: Path):
    newer: dict[str, Any] = {"versions": {"router.version": "25.02", "generator.server": "TRex v3.08"}}
    old, new = made_run(tmp_path, "old", Sentence(LOAD)), made_run(tmp_path, "new", Sentence(LOAD), **newer)
    found = compare_runs([read_run(old)], [read_run(new)], ComparisonRule())
    assert found.problems == [] and found.differences == ["router.version: 24.10 → 25.02"]


def test_the_same_words_with_another_meaning_are_not_compared():
    old = row(FORWARDS, (5e6, 5.1e6))
    other = {"goal": QUICK.model_copy(update={"risk": 0.04})}
    for change in ({"mean_size": 128.0}, {"link_bps": 25e9}, other, {"load_pps": 1e6}, promised(LOAD)):
        new = replace(old, record=replace(old.record, **change))
        assert state(old, new) is Proven.NOT_COMPARED


def test_runs_of_several_suites_are_paired_by_suite(tmp_path: Path):
    def run(name: str, suite: str):
        return read_run(made_run(tmp_path, name, Sentence(LOAD), suite=suite))

    one, two, three, four = run("1", "A"), run("2", "B"), run("3", "B"), run("4", "C")
    found = compare_runs([one, two], [three, four], ComparisonRule())
    assert [(pair.before, pair.after) for pair in found.pairs] == [(two, three), (None, four)]
    assert [problem[-6:] for problem in found.problems] == ["'A': 1", "'C': 4"]
    (pair,) = compare_runs([one], [four], ComparisonRule()).pairs
    assert pair.before is one  # the only ones: Robot names a suite by how it was called


# -- a run's sentences as rows: demand, figures and margin in the sentence's own unit


LINK = 10e9
SECOND = Bounds(1.0, 1.0)


def trial(number: int, forwarded: int, problems: tuple[Problem, ...] = (), **readings: float) -> Trial:
    counts = (DirectionCount(0, 1, 1_000_000, 1_000_000, forwarded),)
    probe = (LatencyCount(0, 1, 1000, 1000, 20.0, 90.0, histogram={10: 990, 80: 10}),)
    return Trial(number, Outcome(Load(1e6), 1.0, 1.0, 0.0, counts, readings=readings, latency=probe), problems, SECOND)


def sentence_row(folder: Path, sentence: str, trials: Sequence[Trial], verdict: str = "PASS") -> SentenceRow:
    run = RunFolder.create(folder, RUN)
    run.write_environment(ENVIRONMENT)
    for each in trials:
        run.add(replace(trial_record(), sentence=sentence, trial=each))
    run.add(requirement_record(sentence=sentence, verdict=verdict))
    run.close()
    (found,) = sentence_rows(read_run(run.path))
    return found


@pytest.mark.parametrize(
    ("sentence", "words", "figure"),
    [
        ("64b unidirectional ≥ 50% line rate", "≥ 50% line rate", 100 * 990_000 / (LINK / 672)),
        ("64b unidirectional forwards ≥ 500 Mbit/s L2", "≥ 500 Mbit/s L2", 990_000 * 512),
        ("64b unidirectional costs ≤ 20 µJ/packet at 1 Mpps", "≤ 20 µJ/packet", 1e6 * 19 / 990_000),
        ("64b unidirectional latency mean ≤ 50 µs at 1 Mpps", "mean ≤ 50 µs", math.inf),
        ("64b unidirectional reorders ≤ 1 % at 1 Mpps", "≤ 1%", 1.0916),
    ],
)
def test_a_quantity_has_its_figure_in_the_sentences_unit(sentence: str, words: str, figure: float) -> None:
    record = requirement_record(sentence=sentence)
    found = measured(record.promise, trial(1, 990_000, power_watts=19.0))
    assert record.requirement.demand == words
    assert found == pytest.approx(figure, rel=1e-3)


def test_the_worse_direction_counts_unless_the_sentence_says_in_total() -> None:
    counts = tuple(DirectionCount(a, 1 - a, 10**6, 10**6, frames) for a, frames in ((0, 900_000), (1, 800_000)))
    both = Trial(1, Outcome(Load(1e6), 1.0, 1.0, 0.0, counts), (), SECOND)
    sentences = [f"64b bidirectional ≥ 500 kpps {scope}" for scope in ("each way", "in total")]
    each, total = (requirement_record(sentence=sentence).promise for sentence in sentences)
    assert measured(each, both) == 800_000
    assert measured(total, both) == 1_700_000


@pytest.mark.parametrize("sentence", [f"64b unidirectional {quantity.example}" for quantity in quantities().values()])
def test_the_promise_of_a_record_is_the_one_that_was_judged(sentence: str) -> None:
    """Each quantity, also after the record was written and read."""
    requirement = parse(sentence, Catalogue.read(VARIABLES / "profiles"))
    load = requirement.quantity.load(requirement, LINK, Load(LINK / 672))
    own = OwnPart(lossless_pps=5e6, received_pps=6e6)
    promise = requirement.promise(QUICK, load, LINK, own)
    record = requirement_record(sentence=sentence, own_part=own)
    again = RequirementRecord.from_json(json.dumps(record.to_json()).encode()).promise
    assert again == promise


@pytest.mark.parametrize("sample", [(-2e-3, -1e-3), (1e-3, 2e-3), (-1e-3, 2e-3)])
def test_an_interval_holds_its_mean(tmp_path: Path, sample: tuple[float, ...]) -> None:
    made = sentence_row(tmp_path, "64b unidirectional costs ≤ 1 µJ/packet above idle at 1 Mpps", [])
    found = replace(made, sample=sample).measured
    assert found is not None and found.low is not None and found.high is not None
    assert found.low <= found.estimate <= found.high


def test_a_threshold_that_is_missed_has_a_margin_below_zero(tmp_path: Path) -> None:
    found = sentence_row(tmp_path, "64b unidirectional ≥ 1 Mpps", [trial(1, 600_000)], "FAIL")
    assert found.margin == pytest.approx((-0.4, -0.4))
    assert found.lost == pytest.approx(0.4)
    energy = "64b unidirectional costs ≤ 20 µJ/packet at 1 Mpps"
    above = sentence_row(tmp_path / "c", energy, [trial(1, 10**6, power_watts=22.0)])
    assert above.margin == pytest.approx((-0.1, -0.1))


def test_trials_that_do_not_count_are_set_aside(tmp_path: Path) -> None:
    spoilt = trial(2, 5, (Problem(Fault.LINK_DOWN, "port 1"),))
    bounded = trial(3, 10**6 - 100, (Problem(Fault.COPIES, "port 0 to 1", 900.0),))
    found = sentence_row(tmp_path, "64b unidirectional forwards ≥ 500 kpps", [trial(1, 10**6), spoilt, bounded])
    assert found.sample == (10**6, 10**6 - 1000)
    assert found.set_aside == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"low": 1.0819, "high": 1.08501}, "carries 108.1 % to 108.6 % of it"),
        ({"low": 1.02, "high": 1.02}, "carries 102 % of it"),
        (
            {"low": 1.0, "high": None, "limit": "line rate", "reason": "deadline: 0 of 9 s"},
            "carries ≥ 100 % of it (line rate); the search is unfinished: deadline: 0 of 9 s",
        ),
    ],
)
def test_words_never_promise_more_than_was_found(changes: dict[str, Any], words: str) -> None:
    fields: dict[str, Any] = {"reason": "", **changes}
    assert str(MarginRecord(RUN, True, 1, "T", LOAD, seconds=12.0, **fields)) == words
