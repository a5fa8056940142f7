"""The contract of every quantity that is registered: a new one passes it before its author writes a test."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from lineproof.core.bounds import UNKNOWN, Bounds
from lineproof.core.deciding import OPEN, shown_by
from lineproof.core.phrases import percent
from lineproof.core.quantity import Need, Promise, Quantity
from lineproof.core.registry import quantities
from lineproof.core.rule import Ruling
from lineproof.core.sentence import parse
from lineproof.core.trial import DirectionCount, Fault, Load, Outcome, Problem, Trial, loss_ratio, unended
from support.catalogue import CATALOGUE
from support.made_testbeds import promised
from support.made_trials import FRAMES, SENTENCES, Made, Way, ruling_of

ALL = list(quantities().values())
GOOD, TWO = Made((Way(),)), Made((Way(), Way()))
every = pytest.mark.parametrize("quantity", ALL, ids=str)


def promises_of(quantity: Quantity) -> list[Promise]:
    """Return the sentences of a quantity that the tests know, or its example."""
    words = SENTENCES.get(quantity.name, (quantity.example,))
    return [promised(f"64b unidirectional {one}") for one in words]


@every
def test_its_declaration_is_whole_and_its_example_is_its_sentence(quantity: Quantity) -> None:
    assert quantity.title and quantity.units and quantity.chart in ("rates", "range", "histogram")
    assert quantity.name == quantity.name.strip().lower() and " " not in quantity.word
    requirement = parse(f"64b unidirectional {quantity.example}", CATALOGUE)
    assert requirement.quantity is quantity and quantity.needs <= set(get_args(Need))
    assert quantity.probes(requirement, 0.05) >= ("probes" in quantity.needs)
    for promise in promises_of(quantity):
        assert promise.quantity is quantity and promise.load_pps > 0 and quantity.trial_seconds(promise) > 0
        assert 0 < quantity.gentle_load(Load(promise.load_pps)).pps <= promise.load_pps
        assert quantity.plain(promise, "≤ 1", "at a load")


@every
def test_a_trial_that_shows_nothing_is_unknown_and_not_zero(quantity: Quantity) -> None:
    for promise in promises_of(quantity):
        empty = Outcome(Load(FRAMES), 1.0, 1.0, 0.0, (DirectionCount(0, 1, FRAMES, 0, 0),))
        trial = Trial(1, empty, (Problem(Fault.COUNTERS, "made up"), Problem(Fault.READING, "made up")), Bounds(1, 1))
        figures = promise.figures([trial])
        assert all(not promise.limit.keeps(promise.limit.worse_end(figure)) for figure in figures)
        assert all(promise.limit.keeps(promise.limit.better_end(figure)) for figure in figures)
        if quantity.needs - {"load"}:
            bare = replace(GOOD.trial(), outcome=replace(GOOD.trial().outcome, readings={}, latency=()))
            assert set(promise.figures([bare])) == {UNKNOWN}


@every
def test_a_trial_in_which_the_run_was_ended_speaks_both_ways(quantity: Quantity) -> None:
    for promise in promises_of(quantity):
        assert shown_by(unended(GOOD.trial()), promise) == OPEN


@every
def test_a_sound_router_passes_and_figures_lie_between_two_ends(quantity: Quantity) -> None:
    for promise in promises_of(quantity):
        for made in (GOOD, TWO):
            assert ruling_of(promise, [made] * 60) is Ruling.PASS
            trials = [made.trial(number) for number in range(1, 4)]
            for figures in (promise.figures(trials[:1]), promise.figures(trials), promise.figures(trials, 5)):
                assert len(figures) in (1, len(made.ways)) and all(one.low <= one.high for one in figures)


@every
def test_a_router_that_is_bad_in_every_way_fails(quantity: Quantity) -> None:
    late, lossy = Way(late=600, disorder=600, recovery=(5.0, 6.0), slower=1), Way(lost=40_000, probes_lost=400)
    bad = [Made((way,), watts=900.0, cycles=4000.0, vectors=20.0) for way in (late, lossy, Way(copies=600))]
    for promise in promises_of(quantity):
        if promise.load_pps == FRAMES or quantity.name == "recovers":  # else too little was offered to convict
            assert Ruling.FAIL in {ruling_of(promise, [made] * 60) for made in bad}


UNREAD = {
    "cycles": replace(GOOD, problems=((Fault.COUNTERS, None, (), 0.0),)),
    "gathers": replace(GOOD, problems=((Fault.COUNTERS, None, (), 0.0),)),
    "energy": replace(GOOD, watts=float("nan")),
    "recovers": Made((Way(recovery=(float("nan"), 1.0)),)),
}
"""A trial whose figure was not read, of each quantity whose trials together have their median."""


@pytest.mark.parametrize("name", UNREAD)
def test_one_of_nine_trials_that_was_not_read_costs_no_verdict(name: str) -> None:
    unread, dear = UNREAD[name], replace(TWO, watts=60.0, cycles=900.0, vectors=20.0, ways=(Way(recovery=(5, 6)),))
    for words in SENTENCES[name]:
        promise = replace(promised(f"64b unidirectional {words}"), load_pps=FRAMES)
        assert promise.figures([unread.trial()]) == (UNKNOWN,)
        for kind, ruling in (GOOD, Ruling.PASS), (dear, Ruling.FAIL):
            trials = [kind.trial(number) for number in range(1, 9)]
            assert promise.figures([*trials, unread.trial(9)]) == promise.figures(trials)
            assert ruling_of(promise, [kind, unread, *[kind] * 58]) is ruling


@every
def test_trials_that_are_alike_have_the_figure_of_one(quantity: Quantity) -> None:
    for promise in promises_of(quantity):
        one, many = promise.figures([GOOD.trial(1)]), promise.figures([GOOD.trial(number) for number in range(1, 9)])
        # that of a sample is known better from more of it
        assert all(a.low <= b.high + 1e-9 and b.low <= a.high + 1e-9 for a, b in zip(one, many, strict=True))


@every
def test_perfect_trials_mend_a_figure_and_never_make_it_worse(quantity: Quantity) -> None:
    worst = Made((Way(lost=3000, late=600, probes_lost=10, disorder=40, backlog=5000, recovery=(2.5, 2.6)),))
    for promise in promises_of(quantity):
        limit, trials = promise.limit, [worst.trial(1), worst.trial(2)]
        sign = -1 if limit.at_least else 1
        few, some, many = (promise.figures(trials, perfect)[0] for perfect in (1, 5, 58))
        for end in (limit.better_end, limit.worse_end):
            assert sign * end(few) >= sign * end(some) - 1e-9 and sign * end(some) >= sign * end(many) - 1e-9


@every
def test_its_words_have_one_line_and_its_record_names_units(quantity: Quantity) -> None:
    bare = replace(GOOD.trial(), outcome=replace(GOOD.trial().outcome, readings={}, latency=()))
    for promise in promises_of(quantity):
        for ruling in Ruling:
            for trials in ([GOOD.trial()], [GOOD.trial(1), GOOD.trial(2)], [bare]):
                reason = quantity.reason(promise, ruling, trials)
                assert reason.summary and all("\n" not in line for line in (reason.summary, *reason.details))
        figures = quantity.named_figures(promise, [GOOD.trial()])
        assert all(isinstance(value, (int, float)) for value in figures.values())
        assert quantity.shown(promise, [GOOD.trial()]).low <= quantity.shown(promise, [GOOD.trial()]).high


@pytest.mark.parametrize(
    "words",
    ["each way", "in total", "loses ≤ 1% each way at 1 Mpps each way", "loses ≤ 1% in total at 1 Mpps each way"],
)
def test_a_fail_says_one_figure_of_what_its_trials_lost(words: str) -> None:
    promise = promised(f"64b bidirectional {'' if 'loses' in words else '≥ 1 Mpps '}{words}")
    rows = tuple(DirectionCount(at, 1 - at, FRAMES, FRAMES, FRAMES - lost) for at, lost in ((0, FRAMES // 3), (1, 0)))
    doubt = Problem(Fault.OVER_OFFERED, "made up", FRAMES / 1000)
    trial = Trial(1, Outcome(Load(FRAMES), 1.0, 1.0, 0.0, rows), (doubt,), Bounds(1, 1))
    reason = promise.quantity.reason(promise, Ruling.FAIL, [trial])
    assert f"lost {percent(loss_ratio([trial], promise.in_total))} (" in str(reason)
