"""The verdict of a sentence about latency or packet delay variation, from the probe frames of its trials."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.counts.latency import LatencyCount
from lineproof.counts.trial import DirectionCount, Fault, Load, Outcome, Problem
from lineproof.errors import SentenceError
from lineproof.methods.latency import latency
from lineproof.methods.sequential import TrialConditions
from lineproof.sla.goals import Goal, read_goal
from lineproof.sla.requirement import Quantity
from lineproof.sla.sentence import parse
from lineproof.sla.verdict import Ruling, Verdict
from lineproof.traffic.catalogue import Catalogue
from support.paths import VARIABLES

QUICK = read_goal(VARIABLES / "goals", "quick")
CATALOGUE = Catalogue.read(VARIABLES / "profiles")


def count(histogram: dict[int, int], lost: int = 0, direction: int = 0, **more: int) -> LatencyCount:
    """Probe frames of 10 µs and more by bucket, in order."""
    received = sum(histogram.values())
    return LatencyCount(
        direction,
        1 - direction,
        sent=received + lost,
        received=received,
        mean=0.0,
        maximum=float(max(histogram, default=0)),
        histogram=histogram,
        **more,
    )


def judged(
    sentence: str,
    *counts: LatencyCount,
    lost: int = 0,
    sent: int = 100_000,
    goal: Goal = QUICK,
    problems: tuple[Problem, ...] = (),
) -> Verdict:
    requirement = parse(sentence, CATALOGUE)

    def measure(load: Load, duration: float) -> Outcome:
        directions = tuple(
            DirectionCount(direction, 1 - direction, 100_000, sent, sent - lost)
            for direction in range(requirement.directions)
        )
        return Outcome(load, duration, duration, 0.0, directions, problems, latency=counts)

    return latency(requirement, Load(100_000.0), goal, measure, 10e9, TrialConditions())


FAST, SLOW = {10: 1500}, {10: 1450, 400: 50}


@pytest.mark.parametrize(
    ("histogram", "limits"),
    [
        # TRex counts a frame of 10 µs in its bucket 10, and one of 20 µs in the next
        ({10: 1500}, {9.9: Ruling.FAIL, 10: Ruling.INCONCLUSIVE, 19.9: Ruling.INCONCLUSIVE, 20: Ruling.PASS}),
        ({400: 1500}, {399: Ruling.FAIL, 400: Ruling.INCONCLUSIVE, 450: Ruling.INCONCLUSIVE, 500: Ruling.PASS}),
    ],
)
def test_the_edges_of_a_bucket_and_the_limits_that_a_message_asks_for_agree(
    histogram: dict[int, int], limits: dict[float, Ruling]
):
    for limit, ruling in limits.items():
        found = judged(f"64b unidirectional latency p99 ≤ {limit:g} µs at 100 kpps", count(histogram))
        assert found.ruling is ruling, limit
        if ruling is Ruling.INCONCLUSIVE:
            low, high = min(histogram), max(limits)
            assert (
                f"p99 is {low} to {high:g} µs, by which a limit of {limit:g} µs may be kept or missed: the generator's"
                f" histogram is too coarse; expected a limit of less than {low} or at least {high:g} µs"
            ) in found.message


def test_bounds_on_one_side_of_the_limit_decide():
    assert judged("64b unidirectional latency p99 ≤ 20 µs at 100 kpps", count(FAST)).ruling is Ruling.PASS
    failed = judged("64b unidirectional latency p99 ≤ 20 µs at 100 kpps", count(SLOW))
    assert failed.ruling is Ruling.FAIL
    assert "p99 400 to 500 µs" in failed.message


def test_limit_within_the_bucket_is_inconclusive_with_possible_limits():
    found = judged("64b unidirectional latency p99 ≤ 420 µs at 100 kpps", count(SLOW))
    assert found.ruling is Ruling.INCONCLUSIVE
    assert "less than 400 or at least 500 µs" in found.reason


def test_worse_direction_decides():
    found = judged("64b bidirectional latency p99 ≤ 20 µs at 100 kpps each way", count(FAST), count(SLOW, direction=1))
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
    found = judged("64b unidirectional latency p99 ≤ 20 µs at 100 kpps", count({10: 500}))
    assert found.ruling is Ruling.INCONCLUSIVE
    assert "has room for 500 probe frames" in found.reason
    lost = judged("64b unidirectional latency p99 ≤ 20 µs at 100 kpps", count({10: 500}, lost=1000))
    assert lost.ruling is Ruling.INCONCLUSIVE and "only 500 of 1500" in lost.reason
    nothing = judged("64b unidirectional latency p99 ≤ 20 µs at 100 kpps")
    assert nothing.ruling is Ruling.INCONCLUSIVE
    assert "reported no latency" in nothing.reason


def test_probe_frames_that_the_router_lost_are_beyond_any_limit():
    forgiving = QUICK.with_loss_ratio(0.01)
    sentence = "64b unidirectional latency {} ≤ 20 µs at 100 kpps"
    for statistic, ruling in (("p99", Ruling.FAIL), ("p95", Ruling.PASS), ("max", Ruling.FAIL), ("mean", Ruling.FAIL)):
        found = judged(sentence.format(statistic), count(FAST, lost=20), lost=900, goal=forgiving)
        assert found.ruling is ruling
    assert "beyond any limit, because of lost probe frames" in found.reason
    # the ports counted every frame: the generator did not recognise its probes
    unknown = judged(sentence.format("max"), count(FAST, lost=20), goal=forgiving)
    assert unknown.ruling is Ruling.INCONCLUSIVE
    assert "20 of 1520 probe frames did not come back" in unknown.reason


@pytest.mark.parametrize(
    "sentence", ["latency max ≤ 100 µs", "latency p99 ≤ 100 µs", "latency mean ≤ 1 ms", "pdv max ≤ 1 ms"]
)
@pytest.mark.parametrize(
    ("probes", "says"),
    [
        (
            LatencyCount(0, 1, 1500, 1500, 9.0, 90.0, histogram={10: 1450}),
            "50 of 1500 received probe frames are missing",
        ),
        (
            LatencyCount(0, 1, 1500, 1500, 9.0, 1.2e6, histogram={0: 1500, 10: 1000}),
            "500 of 1500 received probe frames came",
        ),
        (
            LatencyCount(0, 1, 1500, 1500, 9.0, 90.0, histogram={10: 1501}),
            "has 1501 probe frames, and it received 1500",
        ),
    ],
)
def test_a_histogram_without_all_received_frames_passes_nothing(sentence: str, probes: LatencyCount, says: str):
    found = judged(f"64b unidirectional {sentence} at 100 kpps", probes)
    assert found.ruling is Ruling.INCONCLUSIVE
    assert says in found.reason


def test_frames_later_than_1_s_fail():
    probes = LatencyCount(0, 1, 1500, 1500, 9.0, 1.2e6, histogram={10: 1450})
    found = judged("64b unidirectional latency max ≤ 100 µs at 100 kpps", probes)
    assert found.ruling is Ruling.FAIL and "max at least 1e+06 µs" in found.message


def test_fast_frames_pass_in_bucket_0():
    probes = LatencyCount(0, 1, 1500, 1500, 5.0, 9.0, histogram={0: 4000})
    assert judged("64b unidirectional latency max ≤ 10 µs at 100 kpps", probes).ruling is Ruling.PASS


def test_a_problem_spares_the_direction_that_it_is_in():
    stray = Problem(Fault.SURPLUS, "a stray frame", frames=1, directions=((0, 1),))
    down = Problem(Fault.LINK_DOWN, "port 0", directions=((0, 1),))
    sentence = "64b bidirectional latency p99 ≤ 20 µs at 100 kpps each way"
    slow, fast = count(SLOW, direction=1), count(FAST)
    assert judged(sentence, fast, slow, problems=(stray,)).ruling is Ruling.FAIL
    mirrored = (count(SLOW), count(FAST, direction=1))
    assert judged(sentence, *mirrored, problems=(down,)).ruling is Ruling.INCONCLUSIVE
    # one frame does not excuse many late ones
    assert judged(sentence, *mirrored, problems=(stray,)).ruling is Ruling.FAIL


def test_delay_variation_is_judged_by_the_histogram():
    sentence = "64b unidirectional pdv {} at 100 kpps"
    assert judged(sentence.format("p90 ≤ 10 µs"), count(SLOW)).ruling is Ruling.PASS
    failed = judged(sentence.format("p99 <= 350 us"), count(SLOW))
    assert failed.ruling is Ruling.FAIL
    assert "packet delay variation p99 380 to 490 µs" in failed.message
    assert judged(sentence.format("p99 ≤ 400 µs"), count(SLOW)).ruling is Ruling.INCONCLUSIVE


def test_jitter_is_refused_with_what_to_write():
    with pytest.raises(SentenceError, match=r"'jitter' has several meanings.*'pdv p99.9 ≤ 50 µs at 1 Mpps'"):
        parse("64b unidirectional jitter ≤ 10 µs at 1 Mpps", CATALOGUE)


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("64b unidirectional latency p99 ≤ 10 µs", "needs a load; expected for example 'at 5 Mpps' or"),
        ("64b unidirectional latency p99 ≤ 10 Mpps at 1 Mpps", "does not fit 'latency'; expected 'µs'"),
        ("64b unidirectional latency p99 ≥ 10 µs at 1 Mpps", "takes ≤, not ≥"),
        ("64b bidirectional latency p99 ≤ 10 µs in total at 1 Mpps each way", "a time has no total"),
        ("64b unidirectional latency p99 pdv p99 ≤ 10 µs at 1 Mpps", "keep one"),
        ("64b unidirectional pdv ≤ 10 µs at 1 Mpps", "'pdv' says no statistic; expected for example 'pdv p99 ≤"),
        ("64b unidirectional pdv min ≤ 10 µs at 1 Mpps", "no statistic of packet delay variation"),
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


PROBES = st.sampled_from(
    [
        count(FAST),
        count(SLOW),
        replace(count({0: 1500}), maximum=8.0),
        replace(count({0: 1500}), maximum=1.2e6),
        replace(count(FAST), histogram={10: 1400}),
    ]
)
EVENTS = st.lists(
    st.tuples(PROBES, st.sampled_from([(0, 100_000), (10, 100_000), (0, 50_000), (10, 50_000)])),
    min_size=1,
    max_size=25,
)
"""Probe frames of a trial, and frames lost and sent. The limit below lies within the bucket of the slow ones."""

Events = list[tuple[LatencyCount, tuple[int, int]]]
RANK = {Ruling.FAIL: 0, Ruling.INCONCLUSIVE: 1, Ruling.PASS: 2}


def ruled(events: Events, statistic: str) -> Ruling:
    requirement = parse(f"64b unidirectional latency {statistic} ≤ 420 µs at 100 kpps", CATALOGUE)
    rows = iter([*events, *([events[-1]] * 100)])

    def measure(load: Load, duration: float) -> Outcome:
        probes, (lost, sent) = next(rows)
        direction = DirectionCount(0, 1, 100_000, sent, sent - lost)
        return Outcome(load, duration, duration, 0.0, (direction,), latency=(probes,))

    return latency(requirement, Load(100_000.0), QUICK, measure, 10e9, TrialConditions()).ruling


def with_later_frame(probes: LatencyCount, to: int) -> LatencyCount:
    """100 frames of the fastest bucket are in the bucket *to* instead, or in none, as if later than 1 s."""
    first = min(probes.histogram)
    histogram = {**probes.histogram, first: probes.histogram[first] - 100}
    if to < 1_000_000:
        histogram[to] = histogram.get(to, 0) + 100
    return replace(probes, histogram=histogram, maximum=max(probes.maximum, to), out_of_order=100)


@given(EVENTS, st.sampled_from(["p99", "p50", "max", "mean"]), st.data())
def test_lost_and_later_frames_never_improve_a_verdict(events: Events, statistic: str, data: st.DataObject):
    place = data.draw(st.integers(0, len(events) - 1))
    probes, (lost, sent) = events[place]
    gone = (
        replace(count({10: 1400}), sent=1500) if probes.histogram == FAST else replace(probes, sent=probes.sent + 100)
    )
    worse = data.draw(
        st.sampled_from(
            [
                (probes, (lost + 20_000, sent)),
                (gone, (lost, sent)),
                (gone, (lost + 100, sent)),
                *((with_later_frame(probes, to), (lost, sent)) for to in (400, 5000, 900_000, 1_200_000)),
            ]
        )
    )
    assert RANK[ruled([*events[:place], worse, *events[place + 1 :]], statistic)] <= RANK[ruled(events, statistic)]


def test_one_trial_above_the_clear_loss_ratio_decides():
    found = judged("64b unidirectional latency p99 ≤ 20 µs at 100 kpps", count(FAST), lost=90_000)
    assert (found.ruling, len(found.trials)) == (Ruling.FAIL, 1)
