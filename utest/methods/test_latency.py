"""Latency: bounds of a statistic from a coarse histogram, and the verdict of a sentence."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linerate.counts.latency import LatencyCount, Statistic, bucket_end
from linerate.counts.trial import DirectionCount, Load, Outcome
from linerate.errors import SentenceError
from linerate.methods.latency import latency
from linerate.methods.sequential import TrialConditions
from linerate.sla.goals import read_goal
from linerate.sla.requirement import Quantity
from linerate.sla.sentence import parse
from linerate.sla.verdict import Ruling, Verdict
from linerate.traffic.catalogue import Catalogue
from support.paths import VARIABLES

QUICK = read_goal(VARIABLES / "goals", "quick")
CATALOGUE = Catalogue.read(VARIABLES / "profiles")
SAMPLES = st.lists(st.floats(0.5, 9e5), min_size=1, max_size=200)


def bucket(usec: float) -> int:
    """TRex's bucket, computed the plain way."""
    if usec < 10:
        return 0
    unit = 10 ** (len(str(int(usec))) - 1)
    return int(usec // unit) * unit


def count(samples: list[float], lost: int = 0, has_minimum: bool = True) -> LatencyCount:
    histogram: dict[int, int] = {}
    for item in samples:
        histogram[bucket(item)] = histogram.get(bucket(item), 0) + 1
    return LatencyCount(
        0,
        1,
        sent=len(samples) + lost,
        received=len(samples),
        mean=sum(samples) / len(samples),
        maximum=max(samples),
        minimum=min(samples) if has_minimum else None,
        jitter=1.0,
        histogram=histogram,
    )


@given(SAMPLES, st.sampled_from(["p1", "p50", "p90", "p99", "p99.9", "min", "max", "mean"]), st.booleans())
def test_true_statistic_lies_within_the_bounds(samples: list[float], name: str, has_minimum: bool):
    statistic = Statistic.read(name)
    ordered = sorted(samples)
    exact = {"min": ordered[0], "max": ordered[-1], "mean": sum(samples) / len(samples)}.get(name)
    if exact is None:
        exact = ordered[max(1, math.ceil((statistic.share or 0) * len(samples) - 1e-9)) - 1]
    found = count(samples, has_minimum=has_minimum).bounds(statistic)
    assert found is not None
    assert found.low - 1e-9 <= exact <= found.high + 1e-9


@given(st.floats(0, 1e6))
def test_bucket_ends_where_the_next_begins(usec: float):
    key = bucket(usec)
    assert key <= usec < bucket_end(key)
    assert bucket(bucket_end(key)) == bucket_end(key)


@pytest.mark.parametrize("word", ["p0", "p100", "p101", "median", "p", "99", "p99,9"])
def test_unknown_statistic_is_refused(word: str):
    with pytest.raises(SentenceError, match="no statistic of latency"):
        Statistic.read(word)


@pytest.mark.parametrize(
    ("word", "frames"), [("p50", 100), ("p90", 100), ("p99", 1000), ("p99.9", 10_000), ("max", 100), ("mean", 100)]
)
def test_percentile_needs_ten_frames_beyond_it(word: str, frames: int):
    assert Statistic.read(word).frames_needed == frames


def judged(sentence: str, *counts: LatencyCount, lost: int = 0, sent: int = 100_000) -> Verdict:
    requirement = parse(sentence, CATALOGUE)

    def measure(load: Load, duration: float) -> Outcome:
        directions = tuple(
            DirectionCount(direction, 1 - direction, 100_000, sent, sent - lost)
            for direction in range(requirement.directions)
        )
        return Outcome(load, duration, duration, 0.0, directions, latency=counts)

    return latency(requirement, Load(100_000.0), QUICK, measure, 10e9, TrialConditions())


FAST, SLOW = [8.0] * 1500, [8.0] * 1450 + [450.0] * 50


def test_bounds_on_one_side_of_the_limit_decide():
    assert judged("64b unidirectional latency p99 ≤ 20 µs at 100 kpps", count(FAST)).ruling is Ruling.PASS
    failed = judged("64b unidirectional latency p99 ≤ 20 µs at 100 kpps", count(SLOW))
    assert failed.ruling is Ruling.FAIL
    assert "p99 400 to 500 µs" in failed.message


def test_limit_within_the_bucket_is_inconclusive_with_possible_limits():
    found = judged("64b unidirectional latency p99 ≤ 420 µs at 100 kpps", count(SLOW))
    assert found.ruling is Ruling.INCONCLUSIVE
    assert "at most 400 or at least 500 µs" in found.reason


def test_worse_direction_decides():
    found = judged("64b bidirectional latency p99 ≤ 20 µs at 100 kpps each way", count(FAST), count(SLOW))
    assert found.ruling is Ruling.FAIL


def test_lost_frames_fail_a_latency():
    found = judged("64b unidirectional latency mean ≤ 1 ms at 100 kpps", count(FAST), lost=10)
    assert found.ruling is Ruling.FAIL
    assert "later than any limit" in found.reason


def test_lower_load_can_only_prove_a_late_latency():
    fast = judged("64b unidirectional latency max ≤ 20 µs at 100 kpps", count(FAST), sent=50_000)
    late = judged("64b unidirectional latency max ≤ 20 µs at 100 kpps", count(SLOW), sent=50_000)
    assert (fast.ruling, late.ruling) == (Ruling.INCONCLUSIVE, Ruling.FAIL)


def test_too_few_probe_frames_are_inconclusive():
    found = judged("64b unidirectional latency p99 ≤ 20 µs at 100 kpps", count(FAST[:500]))
    assert found.ruling is Ruling.INCONCLUSIVE
    assert "has room for 500 probe frames" in found.reason
    lost = judged("64b unidirectional latency p99 ≤ 20 µs at 100 kpps", count(FAST[:500], lost=1000))
    assert "only 500 of 1500" in lost.reason
    nothing = judged("64b unidirectional latency p99 ≤ 20 µs at 100 kpps")
    assert nothing.ruling is Ruling.INCONCLUSIVE
    assert "reported no latency" in nothing.reason


def test_jitter_is_judged_like_a_latency():
    assert judged("64b unidirectional jitter ≤ 2 µs at 100 kpps", count(FAST)).ruling is Ruling.PASS
    assert judged("64b unidirectional jitter <= 0.5 us at 100 kpps", count(FAST)).ruling is Ruling.FAIL


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("64b unidirectional latency p99 ≤ 10 µs", "needs a load; expected for example 'at 5 Mpps' or"),
        ("64b unidirectional latency p99 ≤ 10 Mpps at 1 Mpps", "does not fit 'latency'; expected 'µs'"),
        ("64b unidirectional latency p99 ≥ 10 µs at 1 Mpps", "takes ≤, not ≥"),
        ("64b bidirectional latency p99 ≤ 10 µs in total at 1 Mpps each way", "a time has no total"),
        ("64b unidirectional latency p99 jitter ≤ 10 µs at 1 Mpps", "keep one"),
        ("64b unidirectional ≥ 1 Mpps for a while", "is not a time; expected for example 'for 30 min'"),
        ("64b unidirectional ≥ 1 Mpps for 25 h", "at most 24 h"),
    ],
)
def test_wrong_sentence_is_refused_with_a_fix(sentence: str, message: str):
    with pytest.raises(SentenceError) as caught:
        parse(sentence, CATALOGUE)
    assert message in str(caught.value)


def test_sentence_is_parsed():
    found = parse("64b bidirectional latency p99.9 <= 1.5 ms at 50% line rate each way for 2 min", CATALOGUE)
    assert found.quantity is Quantity.LATENCY
    assert (str(found.statistic), found.threshold.number, found.duration_sum) == ("p99.9", 1500.0, 120.0)


EVENTS = st.lists(
    st.sampled_from(
        [(FAST, 0, 100_000), (SLOW, 0, 100_000), (FAST, 10, 100_000), (FAST, 0, 50_000), (FAST, 10, 50_000)]
    ),
    min_size=1,
    max_size=25,
)
"""Probe frames, frames lost, frames sent of a trial; the limit below lies within the bucket of the slow ones."""

RANK = {Ruling.FAIL: 0, Ruling.INCONCLUSIVE: 1, Ruling.PASS: 2}


def ruled(events: list[tuple[list[float], int, int]]) -> Ruling:
    requirement = parse("64b unidirectional latency p99 ≤ 420 µs at 100 kpps", CATALOGUE)
    rows = iter([*events, *([events[-1]] * 100)])

    def measure(load: Load, duration: float) -> Outcome:
        samples, lost, sent = next(rows)
        direction = DirectionCount(0, 1, 100_000, sent, sent - lost)
        return Outcome(load, duration, duration, 0.0, (direction,), latency=(count(samples),))

    return latency(requirement, Load(100_000.0), QUICK, measure, 10e9, TrialConditions()).ruling


@given(EVENTS, st.data())
def test_more_loss_never_improves_a_latency_verdict(events: list[tuple[list[float], int, int]], data: st.DataObject):
    place = data.draw(st.integers(0, len(events) - 1))
    samples, lost, sent = events[place]
    worse = [*events[:place], (samples, lost + 20_000, sent), *events[place + 1 :]]
    assert RANK[ruled(worse)] <= RANK[ruled(events)]


def test_one_trial_above_the_clear_loss_ratio_decides():
    found = judged("64b unidirectional latency p99 ≤ 20 µs at 100 kpps", count(FAST), lost=90_000)
    assert (found.ruling, len(found.trials)) == (Ruling.FAIL, 1)
