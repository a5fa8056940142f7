"""The five points of the rule, the numbers of the goals, properties for every quantity, and several runs."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lineproof.core.bounds import Bounds, Limit
from lineproof.core.deciding import Asked, TrialConditions, decide
from lineproof.core.doubts import OwnPart, with_doubts
from lineproof.core.goal import read_goal
from lineproof.core.latency import LatencyCount
from lineproof.core.quantity import Promise, Reason
from lineproof.core.rule import Asking, Rule, Ruling, Shares
from lineproof.core.sentence import parse
from lineproof.core.trial import (
    DRAIN,
    EXAMINED,
    HOST_COUNTS,
    DirectionCount,
    Fault,
    Load,
    Measure,
    Outcome,
    Problem,
    Tolerance,
    Trial,
    read_trial,
    unended,
)
from lineproof.core.verdict import Try, Verdict, deviations_of_verdict, verdict_of
from lineproof.session.traffic import LONGEST_PAUSE
from support.catalogue import CATALOGUE
from support.fuzz import TIMES
from support.made_testbeds import (
    LINE_PPS,
    RANK,
    decided,
    down,
    goal_named,
    probe_frames,
    promised,
    router,
    slow,
    then,
    verdict_on,
)
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
from support.paths import VARIABLES

STANDARD, QUICK, STRICT = (goal_named(name).shares() for name in ("standard", "quick", "rfc2544"))
RATE = "64b unidirectional ≥ 5 Mpps"
ZERO = Limit(0.0)
"""A figure that keeps it is 0."""


def ruled(shares: Shares, *rows: tuple[float, ...] | tuple[Bounds, ...], forgiven: float = 0.5) -> tuple[Ruling, int]:
    """Return the ruling and after how many trials: *rows* of figures by direction, the last one again and again."""
    rule, seen = Rule(shares, ZERO, Limit(forgiven), len(rows[0])), list[list[Bounds]]()
    while rule.ruling is None:
        row = rows[min(len(seen), len(rows) - 1)]
        seen.append([item if isinstance(item, Bounds) else Bounds(item, item) for item in row])
        window = seen[-shares.most_trials :] if not shares.soak else seen[-shares.budget :]
        columns = list(zip(*window, strict=True))
        whole = [_sum(column, len(window)) for column in columns]
        completed = [_sum(column, max(len(window), shares.budget)) for column in columns]
        rule.add(seen[-1], whole, completed)
    return rule.ruling, len(seen)


def _sum(column: tuple[Bounds, ...], trials: int) -> Bounds:
    return Bounds(math.fsum(item.low for item in column) / trials, math.fsum(item.high for item in column) / trials)


@pytest.mark.parametrize(
    ("shares", "bad", "good"),
    [
        (STANDARD, 0, 8),
        (STANDARD, 1, 11),
        (STANDARD, 2, 15),
        (STANDARD, 3, 18),
        (QUICK, 0, 4),
        (QUICK, 1, 6),
        (STRICT, 0, 1),
    ],
)
def test_pass_after_so_many_good_trials_with_so_many_bad(shares: Shares, bad: int, good: int) -> None:
    rows = [(0.0,)] * 2 + [(0.1,), (0.0,), (0.0,)] * bad + [(0.0,)]
    assert ruled(shares, *rows) == (Ruling.PASS, good + bad)


@pytest.mark.parametrize(("shares", "trials"), [(STANDARD, 3), (QUICK, 2), (STRICT, 1)])
def test_fail_after_so_many_bad_trials_in_a_row(shares: Shares, trials: int) -> None:
    assert ruled(shares, (0.1,), forgiven=1.0) == (Ruling.FAIL, trials)


def test_a_trial_that_no_rest_of_the_budget_can_bring_back_is_a_fail() -> None:
    assert ruled(STANDARD, (0.061,), (0.0,), forgiven=0.001) == (Ruling.FAIL, 1)
    assert ruled(STANDARD, (0.059,), (0.0,), forgiven=0.001)[0] is Ruling.PASS


def test_a_pass_needs_every_direction_and_a_fail_one_that_counts_their_number() -> None:
    assert ruled(STANDARD, (0.0, 0.1), (0.1, 0.0), (0.0, 0.0)) == (Ruling.PASS, 12)
    assert ruled(STANDARD, (0.0, 0.1)) == (Ruling.FAIL, 4)
    assert ruled(STANDARD, (0.0,) * 7 + (0.1,)) == (Ruling.FAIL, 5)


def test_a_wide_figure_counts_at_its_worse_end_for_a_pass_and_at_its_better_end_for_a_fail() -> None:
    wide = Bounds(0.0, 1.0)
    assert ruled(STANDARD, (wide,)) == (Ruling.INCONCLUSIVE, 8)
    assert ruled(STANDARD, (wide,), (0.0,), forgiven=1.0) == (Ruling.PASS, 12)
    assert ruled(STANDARD, (wide,), (0.1,)) == (Ruling.FAIL, 4)


def test_odds_are_those_for_the_router_but_of_a_fail() -> None:
    asking = Asking(STANDARD, 1)
    for _ in range(3):
        asking.add([False], [True], True, True, 1.0)
    assert asking.answer is Ruling.FAIL and asking.odds(Ruling.FAIL) > 20
    assert asking.odds(Ruling.INCONCLUSIVE) == pytest.approx(1 / asking.odds(Ruling.FAIL))


def test_all_trials_together_must_agree() -> None:
    rows = [(0.02,), *[(0.0,)] * 10, (0.0,)]
    assert ruled(STANDARD, *rows, forgiven=0.001)[1] == 20
    assert ruled(STANDARD, (0.1,), forgiven=1.0)[0] is Ruling.FAIL


def test_a_soak_passes_at_its_end_and_fails_wherever_it_begins_to() -> None:
    soak = Shares(bad_share=0.40, good_share=0.12, risk=0.05, budget=60, soak=200)
    assert ruled(soak, (0.0,)) == (Ruling.PASS, 200)
    assert ruled(soak, *[(0.0,)] * 100, (0.1,)) == (Ruling.FAIL, 107)
    assert ruled(soak, *[(0.0,)] * 197, (0.1,)) == (Ruling.PASS, 200)


def test_a_long_trial_speaks_for_the_router_as_one_and_against_it_as_many() -> None:
    assert STANDARD.missed_weight(10) < STANDARD.missed_weight() / 3
    rule = Rule(STANDARD, ZERO, Limit(1.0), 1)
    for _ in range(9):
        rule.add([Bounds(1, 1)], [Bounds(1, 1)], [Bounds(0, 0)], length=10.0)
    assert rule.better.answer is None and rule.worse.answer is Ruling.FAIL


def test_the_window_of_a_short_soak_is_the_soak() -> None:
    promise = promised(f"{RATE} for 20 s")
    assert decided(promise, then((5, router()), (1, router(0.03)), (1, router()))).ruling is Ruling.FAIL
    assert decided(promise, then((5, router()), (1, router(0.01)), (1, router()))).ruling is Ruling.PASS


def test_a_soak_that_can_no_longer_pass_goes_on_until_its_small_samples_are_a_fail() -> None:
    late = router(probes=probe_frames({10: 1976, 900: 24}))
    decision = decided(promised("64b unidirectional latency p99 ≤ 100 µs at 1 Mpps for 2 min"), late)
    assert (decision.ruling, len(decision.trials) > 10) == (Ruling.FAIL, True)


@pytest.mark.parametrize(("problems", "blamed"), [((), "the probe frames"), ((down(),), "the testbed")])
def test_what_only_a_small_sample_leaves_open_is_not_the_testbeds(problems: tuple[Problem, ...], blamed: str) -> None:
    late = 60 if problems else 20
    testbed = router(probes=probe_frames({10: 2000 - late, 900: late}), problems=problems)
    verdict = verdict_on("64b unidirectional latency p99 ≤ 100 µs at 1 Mpps", testbed)
    assert verdict.ruling is Ruling.INCONCLUSIVE
    assert verdict.reason.details[0].startswith(f"{blamed} "), verdict.message


def test_no_order_of_loss_and_excuse_passes_a_router_that_loses() -> None:
    excused = router(0.01, problems=(down(),))
    for rows in (((3, excused), (1, router(0.01))), ((1, router(0.01)), (3, excused), (1, router(0.01)))):
        assert decided(promised(RATE), then(*rows)).ruling is Ruling.FAIL


def test_a_figure_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="low <= high"):
        Bounds(math.nan, 1.0)


# -- trials become a verdict, which is RFC 2544 throughput only under its terms


@pytest.mark.parametrize(
    ("sentence", "share", "ruling"),
    [
        ("≥ 100% line rate", 1e-5, Ruling.PASS),
        ("≥ 100% line rate", 1e-3, Ruling.FAIL),
        ("forwards ≥ 100% line rate", 1e-5, Ruling.PASS),
    ],
)
def test_beyond_99_98_percent_of_line_rate_the_clocks_are_allowed_for(
    sentence: str, share: float, ruling: Ruling
) -> None:
    capacity = 10e9 / 672 * (1 - share)
    assert verdict_on(f"64b unidirectional {sentence}", slow(capacity, queue=0)).ruling is ruling


LOOKED_AT = {f"{EXAMINED}1": 1000.0}


def test_only_rfc2544_goal_with_one_frame_size_is_rfc2544_throughput() -> None:
    assert verdict_on(RATE, router(readings=LOOKED_AT), "rfc2544").is_rfc2544_throughput
    assert not verdict_on("imix unidirectional ≥ 1 Mpps", router(readings=LOOKED_AT), "rfc2544").is_rfc2544_throughput
    assert not verdict_on(RATE, router(0.2, readings=LOOKED_AT), "rfc2544").is_rfc2544_throughput
    assert not verdict_on(RATE, router(readings=LOOKED_AT), "standard").is_rfc2544_throughput
    # it needs the whole load
    assert not verdict_on(RATE, router(late=0.001, readings=LOOKED_AT), "rfc2544").is_rfc2544_throughput
    line_rate = "64b unidirectional ≥ 100% line rate"
    assert not verdict_on(line_rate, router(readings=LOOKED_AT), "rfc2544").is_rfc2544_throughput
    # RFC 2544 section 10
    assert not verdict_on(RATE, router(), "rfc2544").is_rfc2544_throughput
    # counts of a host that a switch checked, or that none did
    for unchecked in (0.0, 1.0):
        counted = router(readings={**LOOKED_AT, HOST_COUNTS: unchecked})
        assert verdict_on(RATE, counted, "rfc2544").is_rfc2544_throughput is (unchecked == 0)


def test_where_no_frame_is_missing_none_can_be_the_generators_own_loss() -> None:
    unwatched = verdict_on(RATE, router(foreign=5000), own=OwnPart())
    assert Fault.FOREIGN.value in unwatched.message and Fault.UNWATCHED.value not in unwatched.message


@pytest.mark.parametrize(
    ("verdicts", "says"), [("FAIL INCONCLUSIVE", "try 3 of"), ("PASS", ""), ("INCONCLUSIVE", "try 2 of")]
)
def test_earlier_tries_that_did_not_pass_are_named(verdicts: str, says: str) -> None:
    tries = tuple(Try(f"run {name}", name, 0.0, 1.0) for name in verdicts.split())
    message = replace(verdict_on("64b unidirectional ≥ 1 Mpps", router()), tries=tries).message
    assert says in message and ("a FAIL" in message) is ("FAIL" in verdicts)
    assert bool(says) is ("of this sentence, after" in message)


@pytest.mark.parametrize(
    ("apart", "says"),
    [
        (("", ""), "evidence over all 3: 2.34"),
        (("vpp", ""), "over both on the router as it is now: 9.3"),
        (("vpp",) * 2, "at 1: vpp"),
    ],
)
def test_evidence_of_another_firmware_is_not_multiplied(apart: tuple[str, str], says: str) -> None:
    tries = (Try("a", "INCONCLUSIVE", 0.0, 0.25, apart=apart[0]), Try("b", "FAIL", 0.0, 0.4, apart=apart[1]))
    assert says in replace(verdict_on("64b unidirectional ≥ 1 Mpps", router()), tries=tries).message


@pytest.mark.parametrize("measure", [router(foreign=5000), router(0.2, problems=(down(),))])
def test_what_the_testbed_may_have_done_is_evidence_for_nobody_in_the_next_try(measure: Measure) -> None:
    spoilt = verdict_on(RATE, measure)
    assert (spoilt.ruling, spoilt.evidence and spoilt.evidence[0]) == (Ruling.INCONCLUSIVE, 1.0)


# -- properties of the rule, for every quantity: what must not happen whatever trials come


NAMES = sorted(SENTENCES)
SHARES = Shares(bad_share=0.40, good_share=0.12, risk=0.05, budget=60)
SOME = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
MANY = settings(SOME, max_examples=100 * TIMES)

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


def less_certain(made: Made, down: float, up: float) -> Made:
    """Return the same trial with so many seconds more between the ends of its time, and a meter that knows less."""
    seconds = (made.seconds[0] - down, made.seconds[1] + up)
    return replace(made, seconds=seconds, watts_error=made.watts_error + 10 * (down + up))


HOW = (
    *("fewer forwarded", "more queued", "more late", "all later", "more probes lost", "more copies"),
    *("more out of order", "more foreign", "recovers later", "more power", "more cycles"),
)


@pytest.mark.parametrize("name", NAMES)
@SOME
@given(data=st.data())
def test_what_changes_in_trials_moves_the_verdict_only_as_it_may(name: str, data: st.DataObject) -> None:
    promise, run, places = data.draw(promises(name)), data.draw(runs()), data.draw(PLACES)
    before = ruling_of(promise, run)
    towards_inconclusive = (before, Ruling.INCONCLUSIVE)

    def after(change: Callable[[Made], Made]) -> Ruling:
        return ruling_of(promise, [change(made) if place in places else made for place, made in enumerate(run)])

    # a router that did worse never improves it; where all frames are later, their delay varies no more
    how = data.draw(st.sampled_from([how for how in HOW if name != "pdv" or how != "all later"]))
    frames, index = data.draw(st.sampled_from([1, 100, 2000, FRAMES])), data.draw(st.integers(0, len(run[0].ways) - 1))
    ruling = after(lambda made: worse(made, index, how, frames))
    if how == "more copies" and name in ("latency", "pdv"):
        # the late frames may be those copies, and the first of each decides its delay (RFC 7679 3.5)
        assert ruling in towards_inconclusive
    else:
        assert RANK[ruling] <= RANK[before], how
    # a problem of the testbed, or an uncertain clock or meter, speaks for nobody
    problem = data.draw(problems(len(run[0].ways)))
    assert after(lambda made: replace(made, problems=(*made.problems, problem))) in towards_inconclusive
    down, up = data.draw(st.sampled_from([(0.001, 0.0), (0.0, 0.004), (0.02, 0.02)]))
    assert after(lambda made: less_certain(made, down, up)) in towards_inconclusive
    # directions and names of ports may be exchanged
    order = tuple(reversed(range(len(run[0].ways))))
    assert ruling_of(promise, [replace(made, order=order) for made in run]) is before


@pytest.mark.parametrize("own", [LOSSY, UNWATCHED])
@pytest.mark.parametrize("words", ["latency max", "pdv max"])
def test_a_probe_that_only_the_generator_may_have_lost_is_no_fail(own: OwnPart, words: str) -> None:
    promise = promised(f"64b unidirectional {words} ≤ 100 µs at 100 kpps", goal_named("quick"), own)
    for lost, probes, ruling in ((0, 1, Ruling.INCONCLUSIVE), (1, 1, Ruling.INCONCLUSIVE), (0, 10, Ruling.FAIL)):
        assert ruling_of(promise, [Made((Way(lost=lost, probes_lost=probes),))] * 30) is ruling


@SOME
@given(st.sampled_from([*SENTENCES["latency"], *SENTENCES["pdv"]]), st.integers(0, 200), st.integers(0, 1000))
def test_probe_frames_are_judged_alike_whatever_load_they_are_a_sample_of(words: str, lost: int, probes: int) -> None:
    made = Made((Way(lost=lost, probes_lost=probes),))

    def figures(times: int) -> Sequence[Bounds]:
        sentence = f"64b unidirectional {words.replace('100 kpps', f'{times}00 kpps')}"
        promise = promised(sentence, goal_named("quick"), UNWATCHED)
        trial = Trial(1, made.outcome(Load(times * FRAMES), 1.0), (), Bounds(1.0, 1.0))
        return promise.figures([with_doubts(trial, promise.conditions, promise.quantity.doubts)])

    assert figures(1) == figures(10)


INTERVALS = st.tuples(st.sampled_from([0.0, 0.0, 1.0, 2.0]), st.sampled_from([0.0, 0.0, 0.0, 2.0])).map(
    lambda ends: Bounds(ends[0], ends[0] + ends[1])
)
RUN_OF_INTERVALS = st.lists(INTERVALS, min_size=40, max_size=40)


def ruling_on(figures: list[Bounds]) -> Ruling:
    """Return the ruling on plain intervals of a figure whose whole is their mean."""
    rule = Rule(SHARES, Limit(1.0), Limit(1.0), 1)
    for number in range(1, len(figures) + 1):
        part = figures[:number]
        low, high = sum(one.low for one in part), sum(one.high for one in part)
        whole, completed = (Bounds(low / trials, high / trials) for trials in (number, SHARES.budget))
        if (ruling := rule.add([figures[number - 1]], [whole], [completed])) is not None:
            return ruling
    return Ruling.INCONCLUSIVE


@MANY
@given(RUN_OF_INTERVALS, st.lists(st.floats(0, 2), min_size=40, max_size=40))
def test_values_inside_the_intervals_never_have_the_opposite_ruling(figures: list[Bounds], inside: list[float]) -> None:
    values = [min(one.high, one.low + more) for one, more in zip(figures, inside, strict=True)]
    assert {ruling_on(figures), ruling_on([Bounds(value, value) for value in values])} != {Ruling.PASS, Ruling.FAIL}


# -- runs whose evidence is multiplied: one that is gone on with, and goals of several runs. The risk holds


OF_RUNS = goal_named("standard")
SLOW_RATE = "64b unidirectional ≥ 100 kpps"
FEW, LITTLE, MUCH = 1e-4, 5e-4, 0.02
"""Loss ratios of a trial that misses: forgiven in all, made up for by some good trials, made up for by few."""


def promise_of(runs: int = 1, budget: int = 60, sentence: str = SLOW_RATE) -> Promise:
    return promised(sentence, OF_RUNS.model_copy(update={"runs": runs, "budget": budget}))


def made(loss: float, run: str = "", *, is_down: bool = False) -> Trial:
    outcome = router(loss, problems=(down(),) if is_down else ())(Load(1e5), 1.0)
    return replace(read_trial(1, outcome, Tolerance()), run=run)


def ruling_over(promise: Promise, *runs: Sequence[Trial]) -> Ruling | None:
    """Return the ruling on runs, one after the other; PASS and FAIL end them."""
    asked, ruling = Asked(promise), None
    for number, run in enumerate(runs):
        for trial in run:
            ruling = asked.add(replace(trial, run=str(number))).rule.ruling
            if ruling in (Ruling.PASS, Ruling.FAIL):
                return ruling
    return ruling


def share_of(ruling: Ruling, missing: float, promise: Promise, most: int, stop: float, tries: int = 200) -> float:
    """Return how often runs one after the other come to *ruling*, where this share of the trials misses the limit.

    *most*: runs; *stop*: how often somebody interrupts one after a trial.
    """
    chance, count = random.Random(32), 0
    good, bad = made(0.0), made(FEW)
    for _ in range(tries):
        asked, answer = Asked(promise), None
        for number in range(most):
            answer = None
            while answer is None and chance.random() >= stop:
                trial = bad if chance.random() < missing else good
                answer = asked.add(replace(trial, run=str(number))).rule.ruling
            if answer in (Ruling.PASS, Ruling.FAIL):
                break
        count += answer is ruling
    return count / tries


RUNS = [(promise_of(budget=12), 6, 0.0), (promise_of(budget=12), 6, 0.1), (promise_of(3, 12), 4, 0.0)]


@pytest.mark.parametrize(("promise", "most", "stop"), RUNS, ids=["inconclusive", "interrupted", "three runs"])
def test_the_risk_of_a_wrong_verdict_holds_over_all_runs(promise: Promise, most: int, stop: float) -> None:
    goal = promise.goal
    assert goal.bad_share is not None and goal.good_share is not None
    sigma = (goal.risk * (1 - goal.risk) / 200) ** 0.5
    assert share_of(Ruling.PASS, goal.bad_share, promise, most, stop) < goal.risk + 2 * sigma
    assert share_of(Ruling.FAIL, goal.good_share, promise, most, stop) < goal.risk + 2 * sigma


def test_going_on_multiplies_the_evidence_with_a_new_budget() -> None:
    promise = promise_of(budget=12)
    close = [made(loss) for loss in [0.0, 0.0, FEW, 0.0] * 3]
    assert ruling_over(promise, close) is Ruling.INCONCLUSIVE
    earlier = [replace(trial, run="a", number=number) for number, trial in enumerate(close, 1)]
    fresh = decide(promise, router(), TrialConditions(), LINE_PPS)
    found = decide(promise, router(), TrialConditions(), LINE_PPS, earlier=earlier)
    assert (found.ruling, fresh.ruling) == (Ruling.PASS, Ruling.PASS)
    own = [trial for trial in found.trials if not trial.run]
    assert len(own) > len(fresh.trials), "the evidence was against the router"
    assert [trial.number for trial in found.trials] == list(range(1, len(found.trials) + 1))


@pytest.mark.parametrize(
    ("lost", "problems", "looks", "ruling"),
    [
        (0.0, (), [True, *[False] * 6, True], Ruling.PASS),
        (0.5, (), [True], Ruling.FAIL),
        (FEW, (), [True, False, False], Ruling.FAIL),
        (0.0, (Problem(Fault.CHANGED, "made up", 1e9),), [True] * 8, Ruling.INCONCLUSIVE),
    ],
    ids=["until it passes", "one trial decides", "until it fails", "after changed frames"],
)
def test_no_verdict_comes_before_a_look_at_frames(
    lost: float, problems: tuple[Problem, ...], looks: list[bool], ruling: Ruling
) -> None:
    asked, promise = list[bool](), promise_of()
    conditions = TrialConditions(before_trial=asked.append)
    decision = decide(promise, router(lost, problems=problems), conditions, LINE_PPS)
    assert (asked, decision.ruling) == (looks, ruling)


@pytest.mark.parametrize(("spared", "trials"), [(0, 2), (1, 3), (2, 4)])
def test_trials_go_on_after_a_fail_that_something_known_besides_undoes(spared: int, trials: int) -> None:
    excuse = Problem(Fault.AFTER_ROUTER, "made up")

    def weigh(lossy: Sequence[Trial]) -> Sequence[Trial]:
        return [replace(trial, problems=(excuse,)) for trial in lossy[:spared]] + list(lossy[spared:])

    decision = decide(promise_of(), router(0.04), TrialConditions(weigh=weigh), LINE_PPS)
    assert (decision.ruling, len(decision.trials)) == (Ruling.FAIL, trials)


def test_an_interrupted_run_is_one_with_that_which_goes_on() -> None:
    promise, lossy = promise_of(), made(LITTLE)
    whole = [lossy, *[made(0.0)] * 11]
    assert ruling_over(promise, whole) is ruling_over(promise, whole[:2], whole[2:]) is Ruling.PASS


def test_whoever_ends_the_run_in_each_bad_trial_gains_nothing() -> None:
    promise, good = promise_of(), made(0.0)
    cut = [[good] * 2 + [unended(good)]] * 20
    assert ruling_over(promise, *cut) is not Ruling.PASS, "each third trial may have missed the limit"
    seldom = [[good] * 4 + [unended(good)]] * 2
    assert ruling_over(promise, *seldom, [good] * 60) is Ruling.INCONCLUSIVE, "all of the second may have been lost"
    once = [[good] * 7 + [unended(good)], [good] * 3]
    assert (ruling_over(promise, *once), ruling_over(promise, *once, [good])) == (None, Ruling.PASS)
    assert ruling_over(promise, [unended(good)], [good] * 11) is Ruling.PASS, "nothing was counted before"
    soak = promise_of(sentence=f"{SLOW_RATE} for 20 s")
    assert ruling_over(soak, [good] * 19 + [unended(good)]) is not Ruling.PASS, "it promises all of its time"


def test_what_a_run_lost_beyond_what_is_forgiven_is_not_made_up_for_by_others() -> None:
    promise = promise_of(budget=12)
    doubtful = [made(0.0), *[made(MUCH, is_down=True)] * 11]
    assert ruling_over(promise, doubtful) is Ruling.INCONCLUSIVE
    assert ruling_over(promise, doubtful, *[[made(0.0)] * 12] * 20) is Ruling.INCONCLUSIVE


@pytest.mark.parametrize(
    ("failed", "others", "ruling"),
    [([FEW] * 3, 2, Ruling.INCONCLUSIVE), ([FEW] * 3, 4, Ruling.PASS), ([MUCH] * 3, 4, Ruling.FAIL)],
)
def test_three_runs_decide_together_failed_ones_too(failed: list[float], others: int, ruling: Ruling) -> None:
    promise, good = promise_of(3), [made(0.0)] * 8
    runs = [[made(loss) for loss in failed], *[good] * others]
    assert [ruling_over(promise, *runs[:count]) for count in (1, 2)] == [Ruling.INCONCLUSIVE] * 2
    assert ruling_over(promise, *runs) is ruling


def test_runs_that_decide_nothing_together_name_no_budget_that_is_left() -> None:
    asked, runs = Asked(promise_of(3)), ([made(FEW)] * 3, *[[made(0.0)] * 8] * 2)
    for number, run in enumerate(runs):
        for trial in run:
            asked.add(replace(trial, run=str(number)))
    message = verdict_of(asked.decision, asked.promise, parse(SLOW_RATE, CATALOGUE)).message
    assert "3 runs have ended" in message and "budget" not in message


LOSSES = st.lists(st.sampled_from([0.0, 0.0, 0.0, FEW, LITTLE, MUCH]), min_size=12, max_size=12)


@given(data=st.data(), runs=st.sampled_from([1, 2]), losses=st.lists(LOSSES, min_size=2, max_size=3))
def test_a_worse_trial_never_improves_the_verdict_of_several_runs(
    data: st.DataObject, runs: int, losses: list[list[float]]
) -> None:
    promise = promise_of(runs, budget=12)
    run, place = data.draw(st.integers(0, len(losses) - 1)), data.draw(st.integers(0, 11))
    worse = [list(of_run) for of_run in losses]
    worse[run][place] = max(worse[run][place], MUCH)
    before, after = (
        ruling_over(promise, *[[made(loss) for loss in part] for part in rows]) for rows in (losses, worse)
    )
    assert RANK[after or Ruling.INCONCLUSIVE] <= RANK[before or Ruling.INCONCLUSIVE]


# -- what a verdict declares of RFC 2544 section 23 and RFC 9971


def verdict(sentence: str, goal: str, **looked_at: float) -> Verdict:
    row = DirectionCount(0, 1, 1000, 1000, 1000)
    readings = {f"{name}.1": frames for name, frames in (looked_at or {"examined": 1000.0}).items()}
    probes = () if "unprobed" in looked_at else (LatencyCount(0, 1, 10, 10),)
    outcome = Outcome(Load(1000.0), 1.0, 1.0, 0.0, (row,), readings=readings, latency=probes)
    trials = (read_trial(1, outcome, Tolerance()),)
    requirement = parse(sentence, CATALOGUE)
    promise = requirement.promise(read_goal(VARIABLES / "goals", goal), outcome.load, 10e9)
    found = Verdict(requirement, promise, Ruling.PASS, Reason(""), trials)
    return replace(found, deviations=deviations_of_verdict(found))


@pytest.mark.parametrize(
    ("sentence", "goal", "sources"),
    [
        ("64b unidirectional ≥ 5 Mpps", "quick", ["RFC 9971"]),
        ("64b unidirectional loses ≤ 1% at 5 Mpps", "quick", ["RFC 9971"]),
        ("64b unidirectional ≥ 5 Mpps", "rfc2544", ["RFC 9971", "RFC 2544 23", "RFC 2544 23"]),
        ("64b unidirectional forwards ≥ 5 Mpps", "rfc2544", ["RFC 2544 23", "RFC 2544 23"]),
        ("64b unidirectional forwards ≥ 5 Mpps", "quick", []),
    ],
)
def test_deviations_follow_quantity_and_goal(sentence: str, goal: str, sources: list[str]) -> None:
    found = verdict(sentence, goal)
    assert [words.split(" asks")[0].split(" (")[0] for words in found.deviations] == sources
    assert ("are declared in its record" in found.message) is (goal == "rfc2544")


@pytest.mark.parametrize(
    ("looked_at", "words"),
    [
        ({"examined_slowly": 500.0}, "500 frames of slow traffic"),
        ({"none": 0.0}, "not looked"),
        ({"examined": 500.0, "unprobed": 0.0}, "no probe frames"),
    ],
)
def test_content_that_was_not_looked_at_is_named(looked_at: dict[str, float], words: str) -> None:
    found = verdict("64b unidirectional ≥ 5 Mpps", "quick", **looked_at).deviations[-1]
    assert "RFC 2544 10 asks for" in found and words in found


def test_the_pauses_that_are_declared_are_those_of_the_code() -> None:
    done = " ".join(verdict("64b unidirectional ≥ 5 Mpps", "rfc2544").deviations).split("here: ")[-1]
    assert f"at most {LONGEST_PAUSE:g} s before" in done
    assert f"{DRAIN:g} s after it" in done
