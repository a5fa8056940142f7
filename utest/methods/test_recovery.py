"""Recovery: the bounds of the recovery time from counts, and the verdict of a sentence."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.core.goal import read_goal
from lineproof.core.sentence import parse
from lineproof.core.step_down import CountSnapshot, StepDown
from lineproof.core.trial import DirectionCount, Load, Outcome
from lineproof.core.verdict import Ruling, Verdict
from lineproof.errors import TestbedError
from lineproof.methods.recovery import OverloadPhases, recovery
from lineproof.methods.rfc2544.recovery import recovery as rfc2544_recovery
from lineproof.methods.sequential import TrialConditions
from lineproof.methods.trials import CharacterisationTerms
from support.catalogue import CATALOGUE
from support.known_router import RANK
from support.paths import VARIABLES

QUICK, RFC2544 = (read_goal(VARIABLES / "goals", name) for name in ("quick", "rfc2544"))

LINE = 14_880_952.0


class Router:
    """Forwards *capacity* frames/s; loses a tenth for *lag* s after an overload; a buffer of *backlog* frames drains.

    *collapsed*: frames/s that it forwards while it is overloaded (None: its capacity). ``burst``: frames lost *later* s
    after the change. *step*: s by which the time of the change is unknown; *noise*: frames by which counts differ.
    """

    def __init__(self, capacity=5e6, lag=0.0, backlog=0, step=0.01, noise=0, later=None, collapsed=None):
        self.capacity, self.lag, self.backlog, self.step = capacity, lag, backlog, step
        self.noise, self.later, self.collapsed, self.burst = noise, later, collapsed, 25_000
        self.random = random.Random(1)
        self.asked: list[tuple[float, float, float, float, float]] = []

    def __call__(self, first: Load, seconds: float, second: Load, after: float, every: float) -> StepDown:
        self.asked.append((first.pps, seconds, second.pps, after, every))
        overloaded = first.pps > self.capacity
        carried = self.collapsed if overloaded and self.collapsed is not None else self.capacity
        lost_first = max(0.0, first.pps - carried) * seconds

        def at(time: float) -> CountSnapshot:
            if time <= 0:
                offered, lost = first.pps * (seconds + time), max(0.0, first.pps - carried) * (seconds + time)
                waiting = self.backlog
            else:
                offered = first.pps * seconds + second.pps * time
                beyond = max(0.0, second.pps - self.capacity) * time
                lost = lost_first + 0.1 * second.pps * min(time, self.lag) * overloaded + beyond
                if overloaded and self.later is not None and time > self.later:
                    lost += self.burst
                waiting = max(0.0, self.backlog - max(0.0, self.capacity - second.pps) * time)
            blur = self.random.randint(-self.noise, self.noise)
            came = max(0, int(offered - lost - waiting) + blur)
            return CountSnapshot((int(offered),), (came,))

        samples = tuple(at(self.step + every * number) for number in range(1, int((after - self.step) / every)))
        noise, self.noise, self.backlog = self.noise, 0, self.backlog
        end = at(after)
        self.noise = noise
        row = DirectionCount(0, 1, *end.offered, *end.offered, *end.forwarded)
        outcome, rate = Outcome(first, seconds + after, seconds + after, 0.0, (row,)), second.pps
        return StepDown(outcome, second, at(-self.step), at(self.step), samples, (rate * 0.999, rate * 1.001))


def judged(sentence: str, router: Router, load: float = 6e6, goal=QUICK) -> Verdict:
    requirement = parse(sentence, CATALOGUE)
    return recovery(requirement, Load(load), goal, router, 10e9, TrialConditions())


@given(
    lag=st.floats(0, 3),
    step=st.floats(0.001, 0.2),
    noise=st.sampled_from([0, 100, 2000]),
    backlog=st.sampled_from([0, 4096, 100_000]),
)
def test_true_recovery_time_lies_within_the_bounds(lag: float, step: float, noise: int, backlog: int):
    found = Router(lag=lag, step=step, noise=noise, backlog=backlog)(Load(6e6), 10.0, Load(3e6), 5.0, 0.1)
    span = found.recovery(0)
    assert span is not None
    # loss below the resolution of the counts cannot be seen
    unseen = found.undetectable_loss(0) / 3e5
    # and the clock is the frames sent, at a rate that is known to 0.1 %
    assert span.low <= lag * 1.002 + 1e-6 and span.high >= lag * 0.998 - unseen


def test_shorter_sample_interval_gives_narrower_bounds():
    spans = [
        Router(lag=1.0, step=step)(Load(6e6), 10.0, Load(3e6), 5.0, every).recovery(0)
        for step, every in ((0.2, 0.1), (0.001, 0.01))
    ]
    assert all(span is not None for span in spans)
    wide, narrow = (span.high - span.low for span in spans if span is not None)
    assert narrow < 0.1 < wide


def test_draining_buffer_delays_the_upper_bound():
    span = Router(backlog=2_000_000)(Load(6e6), 10.0, Load(3e6), 5.0, 0.1).recovery(0)
    assert span is not None and span.low == 0 and 0.9 < span.high < 1.3


def test_loss_without_end_has_no_upper_bound():
    span = Router(capacity=2e6)(Load(6e6), 10.0, Load(3e6), 5.0, 0.1).recovery(0)
    assert span is not None and span.low > 4 and math.isinf(span.high)


# -- the verdict -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", [1.3, 2.0, 2.6, 2.9])
def test_loss_after_the_limit_fails_however_late_it_is(when: float):
    router = Router(later=when)
    router.burst = 60_000
    assert judged("64b unidirectional recovers in ≤ 1 s", router).ruling is Ruling.FAIL


@pytest.mark.parametrize("limit", ["200 ms", "1 s", "5 s"])
@pytest.mark.parametrize("collapsed", [None, 1e6])
@pytest.mark.parametrize("noise", [0, 20_000])
def test_router_that_goes_on_losing_frames_has_not_recovered(limit: str, collapsed: float | None, noise: int):
    """Not even one that carried less in the overload than the load after it: it carried that before."""
    router = Router(lag=math.inf, collapsed=collapsed, step=0.001, noise=noise)
    assert judged(f"64b unidirectional recovers in ≤ {limit}", router).ruling is Ruling.FAIL


def test_direction_that_was_overwhelmed_before_spares_no_other_one():
    class OneWeakDirection(Router):
        def __call__(self, *phases):
            self.capacity, self.lag = 2e6, 0.0
            weak = super().__call__(*phases)
            self.capacity, self.lag = 5e6, 1.5
            found = super().__call__(*phases)

            def joined(first: CountSnapshot, second: CountSnapshot) -> CountSnapshot:
                return CountSnapshot((first.offered[0], second.offered[0]), (first.forwarded[0], second.forwarded[0]))

            rows = (weak.outcome.directions[0], replace(found.outcome.directions[0], tx_port=1, rx_port=0))
            return replace(
                found,
                outcome=replace(found.outcome, directions=rows),
                before=joined(weak.before, found.before),
                after=joined(weak.after, found.after),
                samples=tuple(joined(*pair) for pair in zip(weak.samples, found.samples, strict=True)),
            )

    assert judged("64b bidirectional recovers in ≤ 1 s", OneWeakDirection()).ruling is Ruling.FAIL
    assert judged("64b bidirectional recovers in ≤ 2 s", OneWeakDirection()).ruling is Ruling.INCONCLUSIVE


@settings(max_examples=60)
@given(
    late=st.lists(st.sampled_from([None, 0.5, 1.3, 2.0, 2.7, 2.95]), min_size=9, max_size=9),
    frames=st.lists(st.just(0) | st.integers(0, 200_000) | st.integers(20_000, 50_000), min_size=9, max_size=9),
    more=st.lists(st.tuples(st.integers(0, 8), st.integers(1, 10**6) | st.integers(20_000, 50_000)), max_size=3),
    lag=st.sampled_from([0.0, 0.5, 0.9]),
    collapsed=st.sampled_from([None, 1e6]),
    goal=st.sampled_from([QUICK, RFC2544]),
    noise=st.sampled_from([0, 2000]),
)
def test_losing_more_frames_later_never_makes_a_verdict_better(late, frames, more, lag, collapsed, goal, noise):
    class Bursts(Router):
        def __call__(self, *phases):
            number = len(self.asked) - 1
            if number >= 0:
                self.later, self.burst = late[number], counts[number]
            return super().__call__(*phases)

    counts = list(frames)
    first = judged("64b unidirectional recovers in ≤ 1 s", Bursts(lag=lag, collapsed=collapsed, noise=noise), goal=goal)
    for number, extra in more:
        counts[number] += extra
    second = judged(
        "64b unidirectional recovers in ≤ 1 s", Bursts(lag=lag, collapsed=collapsed, noise=noise), goal=goal
    )
    assert second.ruling is not Ruling.PASS or first.ruling is Ruling.PASS
    # a burst that is about as large as what the counts leave open makes a repetition prove nothing
    if all(count == 0 or count >= 20_000 for count in [*frames, *counts]):
        assert RANK[second.ruling] <= RANK[first.ruling]


def test_goal_sets_the_length_of_the_overload():
    assert OverloadPhases.of(QUICK, 2.0) == OverloadPhases(10.0, 4.0, 0.1)
    assert OverloadPhases.of(RFC2544, 60.0) == OverloadPhases(60.0, 90.0, 0.1)
    router = Router()
    judged("64b unidirectional recovers in ≤ 2 s", router, goal=RFC2544)
    assert router.asked[:2] == [(3e6, 1.0, 3e6, 3.0, 0.1), (6e6, 60.0, 3e6, 4.0, 0.1)]


# -- RFC 2544 ---------------------------------------------------------------------------------------------------------


def test_rfc_2544_overload_is_110_percent_but_at_most_line_rate():
    router = Router(lag=0.5)
    found = rfc2544_recovery(router, 64, Load(5e6), LINE, CharacterisationTerms())
    assert [row[:3] for row in router.asked] == [pytest.approx((5.5e6, 60.0, 2.75e6))] * 3
    assert found.mean is not None and found.mean.low <= 0.5 <= found.mean.high and len(found.trials) == 3
    assert found.deviations[0].source == "RFC 2544 26.5"
    short = rfc2544_recovery(Router(), 64, Load(LINE * 0.95), LINE, CharacterisationTerms(), repeats=1, overload_for=10)
    assert short.overload.pps == LINE and "here: trials of 10 s" in str(short)


def test_rfc_2544_recovery_without_a_figure_has_a_reason():
    never = rfc2544_recovery(Router(lag=1e9), 64, Load(5e6), LINE, CharacterisationTerms(), repeats=1, after=10)
    assert never.mean is None and "more than" in str(never)
    fast = rfc2544_recovery(Router(capacity=LINE), 64, Load(LINE), LINE, CharacterisationTerms())
    assert fast.times == () and fast.ended.startswith("the router was not overloaded") and len(fast.trials) == 1

    def breaks(*phases: object) -> StepDown:
        raise TestbedError("the generator went away")

    broken = rfc2544_recovery(breaks, 64, Load(5e6), LINE, CharacterisationTerms())
    assert broken.ended == "inconclusive: the testbed broke down: the generator went away" and broken.times == ()


# -- the words ---------------------------------------------------------------------------------------------------------
