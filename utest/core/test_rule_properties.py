"""Properties of the rule for every quantity, on trials as the product sees them (design, section 3)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lineproof.core.bounds import Bounds, Limit
from lineproof.core.doubts import OwnPart
from lineproof.core.rule import Rule, Ruling, Shares
from support.fuzz import TIMES
from support.made_testbeds import RANK, goal_named, promised
from support.made_trials import (
    FRAMES,
    IDLE_WATTS,
    LOSSY,
    SENTENCES,
    UNWATCHED,
    Made,
    Way,
    problems,
    promises,
    ruling_of,
    runs,
)

NAMES = sorted(SENTENCES)
STANDARD = Shares(bad_share=0.40, good_share=0.12, risk=0.05, budget=60)
SOME = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
MANY = settings(SOME, max_examples=300 * TIMES)

PLACES = st.sets(st.integers(0, 12), min_size=1)


def _worse_way(way: Way, how: str, frames: int) -> Way:
    more = 1 + frames // 1000
    match how:
        case "fewer forwarded":
            return replace(way, lost=min(way.offered, way.lost + frames))
        case "more queued":
            return replace(way, backlog=way.backlog + frames)
        case "more late":
            return replace(way, late=min(1000 - way.probes_lost, way.late + more))
        case "all later":
            return replace(way, slower=1)
        case "more probes lost":
            return replace(way, probes_lost=way.probes_lost + min(5, max(0, 999 - way.late - way.probes_lost)))
        case "more copies":
            return replace(way, copies=way.copies + more)
        case "more out of order":
            return replace(way, disorder=way.disorder + more)
        case "more foreign":
            return replace(way, foreign=way.foreign + frames)
        case "recovers later":
            return replace(way, recovery=(way.recovery[0] + 1.0, way.recovery[1] + 1.0))
    return way


def worse(made: Made, index: int, how: str, frames: int) -> Made:
    """Return the same trial, with a router that did worse, in one direction."""
    if how == "more power":
        # of a meter that stands still nothing is known; one that moves says more
        return replace(made, watts=made.watts + 1.0 if made.watts > IDLE_WATTS else made.watts)
    if how == "more cycles":
        return replace(made, cycles=made.cycles + 60.0, vectors=made.vectors - 60.0)
    ways = (_worse_way(way, how, frames) if place == index else way for place, way in enumerate(made.ways))
    return replace(made, ways=tuple(ways))


HOW = (
    *("fewer forwarded", "more queued", "more late", "all later", "more probes lost", "more copies"),
    *("more out of order", "more foreign", "recovers later", "more power", "more cycles"),
)


@pytest.mark.parametrize("name", NAMES)
@SOME
@given(data=st.data())
def test_a_worse_trial_never_improves_the_verdict(name: str, data: st.DataObject) -> None:
    promise, run = data.draw(promises(name)), data.draw(runs())
    how, frames = data.draw(st.sampled_from(HOW)), data.draw(st.sampled_from([1, 100, 2000, FRAMES]))
    index, places = data.draw(st.integers(0, len(run[0].ways) - 1)), data.draw(PLACES)
    changed = [worse(made, index, how, frames) if place in places else made for place, made in enumerate(run)]
    assert RANK[ruling_of(promise, changed)] <= RANK[ruling_of(promise, run)], how


@pytest.mark.parametrize(("own", "probes"), [(LOSSY, 1), (UNWATCHED, 1), (UNWATCHED, 100)])
@pytest.mark.parametrize("words", ["latency max", "pdv max"])
def test_a_probe_that_only_the_generator_may_have_lost_is_no_fail(own: OwnPart, probes: int, words: str) -> None:
    promise = promised(f"64b unidirectional {words} ≤ 100 µs at 100 kpps", goal_named("quick"), own)
    for lost in (0, 1):
        assert ruling_of(promise, [Made((Way(lost=lost, probes_lost=probes),))] * 30) is Ruling.INCONCLUSIVE


@pytest.mark.parametrize("name", NAMES)
@SOME
@given(data=st.data())
def test_a_problem_moves_a_verdict_only_towards_inconclusive(name: str, data: st.DataObject) -> None:
    promise, run, places = data.draw(promises(name)), data.draw(runs()), data.draw(PLACES)
    more = data.draw(problems(len(run[0].ways)))
    changed = [
        replace(made, problems=(*made.problems, more)) if place in places else made for place, made in enumerate(run)
    ]
    assert ruling_of(promise, changed) in (ruling_of(promise, run), Ruling.INCONCLUSIVE)


@pytest.mark.parametrize("name", NAMES)
@SOME
@given(data=st.data())
def test_an_uncertain_clock_or_meter_moves_a_verdict_only_towards_inconclusive(name: str, data: st.DataObject) -> None:
    promise, run, places = data.draw(promises(name)), data.draw(runs()), data.draw(PLACES)
    down, up = data.draw(st.sampled_from([(0.001, 0.0), (0.0, 0.004), (0.02, 0.02)]))
    changed = [
        replace(
            made,
            seconds=(made.seconds[0] - down, made.seconds[1] + up),
            watts_error=made.watts_error + 10 * (down + up),
        )
        if place in places
        else made
        for place, made in enumerate(run)
    ]
    assert ruling_of(promise, changed) in (ruling_of(promise, run), Ruling.INCONCLUSIVE)


@pytest.mark.parametrize("name", NAMES)
@SOME
@given(data=st.data())
def test_directions_and_names_of_ports_may_be_exchanged(name: str, data: st.DataObject) -> None:
    promise, run = data.draw(promises(name)), data.draw(runs())
    order = tuple(data.draw(st.permutations(range(len(run[0].ways)))))
    assert ruling_of(promise, [replace(made, order=order) for made in run]) is ruling_of(promise, run)


INTERVALS = st.tuples(st.sampled_from([0.0, 0.0, 1.0, 2.0]), st.sampled_from([0.0, 0.0, 0.0, 2.0])).map(
    lambda ends: Bounds(ends[0], ends[0] + ends[1])
)
RUN_OF_INTERVALS = st.lists(INTERVALS, min_size=40, max_size=40)


def ruled(figures: list[Bounds]) -> Ruling:
    """Return the ruling on plain intervals of a figure whose whole is their mean."""
    rule = Rule(STANDARD, Limit(1.0), Limit(1.0), 1)
    for number in range(1, len(figures) + 1):
        part = figures[:number]
        low, high = sum(one.low for one in part), sum(one.high for one in part)
        whole, mended = (Bounds(low / trials, high / trials) for trials in (number, STANDARD.budget))
        if (ruling := rule.add([figures[number - 1]], [whole], [mended])) is not None:
            return ruling
    return Ruling.INCONCLUSIVE


@MANY
@given(RUN_OF_INTERVALS, st.lists(st.floats(0, 2), min_size=40, max_size=40))
def test_values_inside_the_intervals_never_have_the_opposite_ruling(figures: list[Bounds], inside: list[float]) -> None:
    values = [min(one.high, one.low + more) for one, more in zip(figures, inside, strict=True)]
    assert {ruled(figures), ruled([Bounds(value, value) for value in values])} != {Ruling.PASS, Ruling.FAIL}


@MANY
@given(RUN_OF_INTERVALS, st.integers(0, 39), st.floats(0, 2), st.floats(0, 2))
def test_a_wider_interval_moves_a_ruling_only_towards_inconclusive(
    figures: list[Bounds], place: int, down: float, up: float
) -> None:
    wider = list(figures)
    wider[place] = Bounds(figures[place].low - down, figures[place].high + up)
    assert ruled(wider) in (ruled(figures), Ruling.INCONCLUSIVE)
