"""A trial's outcome from what the client's process reports: counters, and counts of probe frames with their quirks."""

from __future__ import annotations

import base64
import json
import math
import struct
import tracemalloc
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.core.bounds import UNKNOWN, Bounds
from lineproof.core.counter_names import is_error
from lineproof.core.latency import LatencyCount, Resolution, Statistic
from lineproof.core.trial import UNDER_WAY, Fault, Load, Outcome, Tolerance, Trial, read_trial
from lineproof.errors import TestbedError
from lineproof.generators.base import Direction
from lineproof.generators.trex.client.running_traffic import SNAPSHOT_SHARES
from lineproof.generators.trex.client.service import CounterReading, Snapshot, TrialCounts
from lineproof.generators.trex.outcomes import (
    HIGHEST,
    LARGEST,
    fine_histogram,
    make_outcome,
    probe_counts,
    sending_bounds,
)
from lineproof_bench.server.statistics import fine
from support.made_testbeds import probe_group
from support.paths import DATA

BOTH = (Direction(0, 1), Direction(1, 0, swapped=True))
FIRST = 5000.0
"""The server's clock before the first frame."""
NOTHING = {"opackets": 0, "ipackets": 0, "obytes": 0, "ibytes": 0, "oerrors": 0, "ierrors": 0}


def certain_loss_ratio(outcome: Outcome) -> float:
    """Return the share of the worst direction's frames that the router certainly lost."""
    trial = read_trial(1, outcome, Tolerance())
    return max(trial.lost_frames(row).low / row.offered for row in outcome.directions)


def answer(after: dict[int, dict[str, int]], **other: Any) -> TrialCounts:
    """Return what a trial counted; ports not named stood still."""
    before = {port: {**NOTHING, "opackets": 5, "ipackets": 7} for port in (0, 1)}
    counts = {port: {**before[port], **after.get(port, {})} for port in before}
    quiet = {
        "links": {0: True, 1: True},
        "complaints": [],
        "finished": True,
        "first": FIRST,
        "clocks": [30.0, 29.9, 30.1],
        "drained": 0.02,
    }
    ended = FIRST + other.pop("ended", 1.03)
    readings = {
        "before": CounterReading(FIRST, FIRST, before, 3.0),
        "at_end": CounterReading(ended - 0.001, ended, counts, 3.0, 0.5),
        "after": CounterReading(ended, ended, counts, other.pop("queue_full", 3.0)),
    }
    return TrialCounts(**{"started": 1e9, "cpu_util": 12.5, **readings, **quiet, **other})


FULL = {0: {"opackets": 1005, "ipackets": 987}, 1: {"opackets": 1005, "ipackets": 1007}}


def test_counts_are_differences_of_totals_and_those_of_three_moments_are_kept() -> None:
    asked = answer(FULL)
    at_end = {**asked.at_end.ports, 0: {**asked.at_end.ports[0], "ipackets": 900}}
    outcome = make_outcome(replace(asked, at_end=replace(asked.at_end, ports=at_end)), Load(1000), 1.0, BOTH)
    counted = [(row.intended, row.offered, row.forwarded) for row in outcome.directions]
    assert counted == [(1000, 1000, 1000), (1000, 1000, 980)]
    assert outcome.problems == () and outcome.readings["cpu_util"] == 12.5
    assert {moment: kept["0.ipackets"] for moment, kept in outcome.counters.items()} == {
        "before": 7,
        "ended": 900,
        "after": 987,
    }
    assert set(outcome.counters["after"]) == {f"{port}.{name}" for port in (0, 1) for name in NOTHING}


@pytest.mark.parametrize(
    ("ended", "shares", "elapsed", "uncertainty"),
    [
        (1.03, (), 1.0, 0.03),
        (2.0, (), 1.0, 1.0),
        # faster than it was asked to send
        (0.6, (), 0.3, 0.3),
        (1.03, (0.0, 0.5, 1.0), 1.0, 0.001),
        # the first frame left within the first half
        (1.03, (0.5, 0.9, 1.0), 1.0, 0.001),
        # a frame left after 99 %
        (2.03, (0.0, 0.01, 0.3, 0.7, 0.99), 1.996, 0.035),
    ],
)
def test_elapsed_has_an_uncertainty(
    ended: float, shares: tuple[float, ...], elapsed: float, uncertainty: float
) -> None:
    # a possible duration is taken; otherwise elapsed - uncertainty is certainly reached
    took = 2.0 if ended > 2 else 1.0
    found = make_outcome(answer(ALL, ended=ended, snapshots=sent_in(took, *shares)), Load(1000), 1.0, BOTH)
    # 1000 intervals of the 999 between the frames
    assert found.elapsed == pytest.approx(elapsed, rel=1.1e-3)
    assert found.readings["elapsed_uncertainty"] == pytest.approx(uncertainty, abs=2.1e-3)


def test_elapsed_is_on_the_testbeds_clock() -> None:
    found = make_outcome(answer(FULL), Load(1000), 20.0, BOTH, clock_speed=20)
    assert found.elapsed == 20.0 and found.readings["drain"] == pytest.approx(0.4)
    assert found.readings["elapsed_uncertainty"] == pytest.approx(0.6, abs=0.03)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"after": {**FULL, 0: {**FULL[0], "ierrors": 19}}}, Fault.GENERATOR),
        ({"after": {**FULL, 0: {**FULL[0], "oerrors": 4}}}, Fault.UNSENT),
        ({"after": {**FULL, 1: {"opackets": 1, "ipackets": 1007}}}, Fault.COUNTERS),
        ({"links": {0: True, 1: False}}, Fault.LINK_DOWN),
        ({"complaints": ["port 0 reports an error"]}, Fault.GENERATOR),
        ({"finished": False}, Fault.STRETCHED),
    ],
)
def test_each_fault_of_the_generator_is_a_problem(change: dict[str, Any], fault: Fault) -> None:
    after = change.pop("after", FULL)
    found = make_outcome(answer(after, **change), Load(1000), 1.0, BOTH)
    assert [item.fault for item in found.problems] == [fault]


@pytest.mark.parametrize("sent", [1005, 800])
def test_a_full_queue_is_a_reading_and_no_problem(sent: int) -> None:
    after = {**FULL, 0: {**FULL[0], "opackets": sent}}
    found = make_outcome(answer(after, queue_full=50.0), Load(1000), 1.0, BOTH)
    assert found.problems == () and found.readings["queue_full"] == 47


@pytest.mark.parametrize(
    ("errors", "said", "certain"),
    [
        ({0: 19}, ["19 frames"], 0.001),  # of 20 frames lost towards port 0 one is the router's
        ({0: 20}, ["20 frames"], 0.0),
        ({1: 500}, [], 0.02),  # at a port without loss
        ({0: 20, 1: 3}, ["20 frames"], 0.0),
    ],
)
def test_generator_errors_explain_only_as_much_loss_as_they_count(
    errors: dict[int, int], said: list[str], certain: float
) -> None:
    after = {port: {**counts, "ierrors": errors.get(port, 0)} for port, counts in FULL.items()}
    found = make_outcome(answer(after), Load(1000), 1.0, BOTH)
    assert found.readings["ierrors"] == sum(errors.values())
    assert [item.detail for item in found.problems] == [
        f"port 0 received {words} with errors, or missed them" for words in said
    ]
    assert certain_loss_ratio(found) == pytest.approx(certain)


def reading(moment: float, sent: tuple[int, int], received: tuple[int, int], took: float = 0.001) -> Snapshot:
    """A reading during the sending, *took* s long."""
    return Snapshot(FIRST + moment, FIRST + moment + took, dict(enumerate(sent)), dict(enumerate(received)))


def sent_in(seconds: float, *shares: float, under_way: int = 0, took: float = 0.001) -> list[Snapshot]:
    """Readings at *shares* of a trial of 1000 frames each way that takes *seconds*."""
    return [
        reading(seconds * share, (counted := round(1000 * share),) * 2, (counted - under_way, counted), took)
        for share in shares
    ]


ALL = {0: {"opackets": 1005, "ipackets": 1007}, 1: {"opackets": 1005, "ipackets": 1007}}
PROBES = probe_group({}, sent=9, received=9, tx_port=1, rx_port=0)


@pytest.mark.parametrize("seconds", [1.0, 10.0])
@pytest.mark.parametrize("phase", [0.0, 0.05, 0.3, 0.6, 0.95])
def test_a_card_that_counts_once_a_second_makes_no_trial_shorter(seconds: float, phase: float) -> None:
    """Sending took 4 % longer than it should have."""
    took, readings = 1.04 * seconds, []
    for share in (0.0, 0.005, *SNAPSHOT_SHARES, 1.001, 1.02, 1.035):
        counted = max(0.0, (share * seconds - phase) // 1 + phase)
        frames = min(1000, round(1000 * counted / took))
        readings.append(reading(share * seconds, (frames,) * 2, (frames,) * 2))
    found = make_outcome(answer(ALL, ended=took + 0.02, snapshots=readings), Load(1000 / seconds), seconds, BOTH)
    assert found.elapsed + found.readings["elapsed_uncertainty"] >= took


@given(st.data())
def test_the_bounds_contain_the_time_that_frames_were_sent(data: st.DataObject) -> None:
    pauses = data.draw(st.lists(st.floats(0, 0.2), min_size=2, max_size=40))
    start = data.draw(st.floats(0, 0.05))
    times = [start + sum(pauses[:number]) for number in range(len(pauses))]
    readings = []
    for moment in sorted(data.draw(st.lists(st.floats(0, times[-1] + 0.1), max_size=20))):
        early, late = (data.draw(st.floats(0, 0.1)) for _ in range(2))
        sent = sum(time <= moment for time in times)
        readings.append(Snapshot(moment - early, moment + late, {0: sent}, {}))
    least, most = sending_bounds(0.0, times[-1] + data.draw(st.floats(0, 0.2)), readings, {0: len(times)})
    took = (times[-1] - times[0]) * len(times) / (len(times) - 1)
    assert least - 1e-9 <= took <= most + 1e-9


@pytest.mark.parametrize(
    ("server", "is_wrong"), [(30.0, False), (30.1, False), (29.88, False), (30.2, True), (15.0, True)]
)
def test_a_server_whose_clock_is_wrong_is_not_believed(server: float, is_wrong: bool) -> None:
    found = make_outcome(answer(ALL, clocks=[server, 29.9, 30.1]), Load(1000), 1.0, BOTH)
    assert [problem.fault for problem in found.problems] == [Fault.CLOCK] * is_wrong


@pytest.mark.parametrize(
    ("after", "early", "late", "expected"),
    [
        ("ALL", 0, 30, [(0, 0), (0, 30)]),
        ("ALL", 20, 30, [(0, 0), (0, 10)]),
        ("ALL", 40, 30, [(0, 0), (0, 0)]),
        # frames that may have been lost at once are no early queue, and lost ones were not under way
        ("FULL", 25, 50, [(0, 0), (20, 25)]),
        ("FULL", 0, 30, [(0, 0), (20, 10)]),
    ],
)
def test_queues_grew_by_what_is_under_way_at_the_end_and_was_not_soon_after_the_start(
    after: str, early: int, late: int, expected: list[tuple[int, int]]
) -> None:
    readings = sent_in(1.0, 0.06, 0.1, under_way=early) + sent_in(1.0, 0.9, 0.97, under_way=late)
    counts = {"ALL": ALL, "FULL": FULL}[after]
    found = make_outcome(answer(counts, snapshots=readings), Load(1000), 1.0, BOTH)
    # port 0 received fewer: those from port 1
    assert [(item.lost, item.backlog) for item in found.directions] == expected


@pytest.mark.parametrize("shares", [(), (0.1, 0.2), (1.0,)])
def test_without_a_reading_near_the_end_nothing_is_known_to_be_under_way(shares: tuple[float, ...]) -> None:
    found = make_outcome(answer(ALL, snapshots=sent_in(1.0, *shares)), Load(1000), 1.0, BOTH)
    assert [item.backlog for item in found.directions] == [None, None]


@pytest.mark.parametrize(
    ("under", "lost", "took", "shares", "expected"),
    [
        (50, 0, 0.0, (0.2, 0.3, 0.8, 0.9), 50),
        (0, 0, 0.0, (0.2, 0.3, 0.8, 0.9), 0),
        # those that were lost before the first of these readings are not under way
        (50, 20, 0.0, (0.2, 0.3, 0.8, 0.9), 30),
        # between the two counters of a reading as many were sent
        (50, 0, 0.03, (0.2, 0.3, 0.8, 0.9), 20),
        # too early
        (50, 0, 0.0, (0.06, 0.08, 0.2, 0.3, 0.8, 0.9), 50),
        (50, 0, 0.0, (0.02, 0.06, 0.8, 0.9), None),
        (50, 0, 0.0, (0.8, 0.9, 0.95), None),
    ],
)
def test_frames_under_way_are_those_of_every_reading(
    under: int, lost: int, took: float, shares: tuple[float, ...], expected: int | None
) -> None:
    after = {**ALL, 0: {"opackets": 1005, "ipackets": 1007 - lost}}
    readings = sent_in(1.0, *shares, under_way=under, took=took)
    found = make_outcome(answer(after, snapshots=readings, latency=[PROBES]), Load(1000), 1.0, BOTH)
    # port 0 received fewer: those from port 1
    assert found.readings.get(f"{UNDER_WAY}1") == expected and f"{UNDER_WAY}0" not in found.readings


def test_a_card_that_counts_once_a_second_shows_nothing_under_way() -> None:
    stale = [reading(moment, (round(1000 * moment),) * 2, (700, 700)) for moment in (0.8, 0.85, 0.9, 0.95)]
    found = make_outcome(answer(ALL, snapshots=stale, latency=[PROBES]), Load(1000), 1.0, BOTH)
    assert f"{UNDER_WAY}1" not in found.readings


@pytest.mark.parametrize(("cpu", "queue_full"), [(None, 0.0), (0.0, 744_048.0)])
def test_a_load_that_is_not_known_is_no_load_of_zero(cpu: float | None, queue_full: float) -> None:
    lossy = make_outcome(answer(FULL, cpu_util=cpu, queue_full=3.0 + queue_full), Load(1000), 1.0, BOTH)
    assert "cpu_util" not in lossy.readings
    (problem,) = lossy.problems
    assert problem.fault is Fault.CPU_BOUND and "its load is not known" in problem.detail
    whole = make_outcome(answer(ALL, cpu_util=cpu, queue_full=3.0 + queue_full), Load(1000), 1.0, BOTH)
    assert whole.problems == () and "cpu_util" not in whole.readings
    idle = make_outcome(answer(FULL, cpu_util=0.0), Load(1000), 1.0, BOTH)
    assert idle.problems == () and idle.readings["cpu_util"] == 0


@pytest.mark.parametrize(
    ("name", "error"),
    [("rx_missed_errors", True), ("rx_crc_errors", True), ("rx_out_of_buffer_drops", True), ("rx_good_packets", False)],
)
def test_counters_of_errors_are_known_by_their_names(name: str, error: bool) -> None:
    assert is_error(name) is error


def test_what_a_port_sends_unasked_hides_no_loss_and_excuses_no_more_than_it_is() -> None:
    # port 1 sends in no direction, and the router returned its frames to it
    told = answer({0: {"opackets": 1005}, 1: {"opackets": 5 + 20, "ipackets": 7 + 970 + 20}})
    found = make_outcome(told, Load(1000), 1.0, BOTH[:1])
    assert [(problem.fault, problem.frames) for problem in found.problems] == [
        (Fault.OVER_OFFERED, 20),
        (Fault.FOREIGN, 20),
    ]
    trial = Trial(1, found, found.problems, Bounds(1.0, 1.0))
    assert trial.lost_frames(found.directions[0]) == Bounds(0.0, 30.0)


def test_pause_frames_are_a_fault_of_their_own_and_no_limit_of_the_generator() -> None:
    less = {0: {"opackets": 605}, 1: {"ipackets": 607}}
    paused = answer(less, cards={0: {"rx_xoff_packets": 40, "tx_xoff_packets": 3}})
    found = make_outcome(paused, Load(1000), 1.0, BOTH[:1])
    assert [problem.detail for problem in found.problems] == ["port 0: rx_xoff_packets 40"]
    trial = read_trial(1, found, Tolerance())
    assert {problem.fault for problem in trial.problems} == {Fault.PAUSED}
    # the load was lower: what was lost all the same is the router's
    assert not Fault.PAUSED.may_cost and found.readings["card.0.rx_xoff_packets"] == 40


def test_a_pause_of_the_generator_explains_no_more_frames_than_came_meanwhile() -> None:
    lost = answer({0: {"opackets": 1005}, 1: {"ipackets": 507}}, cards={1: {"tx_xoff_packets": 5}})
    found = make_outcome(lost, Load(1000), 1.0, BOTH[:1], speeds={1: 10e9})
    (problem,) = found.problems
    assert problem.fault is Fault.PAUSING and problem.directions == ((0, 1),) and problem.fault.may_cost
    # five pauses of 3.4 ms
    assert problem.frames == 17
    trial = read_trial(1, found, Tolerance())
    assert trial.lost_frames(found.directions[0]).low == 500 - 17
    (unknown,) = make_outcome(lost, Load(1000), 1.0, BOTH[:1], speeds={1: 0.0}).problems
    assert unknown.frames is None


def test_errors_without_loss_are_readings_with_the_cards_own_counters() -> None:
    noisy = answer({0: {"opackets": 1005}, 1: {"ipackets": 1007, "ierrors": 4}}, cards={1: {"rx_crc_errors": 4}})
    found = make_outcome(noisy, Load(1000), 1.0, BOTH[:1])
    assert found.problems == () and found.readings["ierrors"] == 4 and found.readings["card.1.rx_crc_errors"] == 4
    lossy = answer(FULL | {0: {**FULL[0], "ierrors": 15}}, cards={0: {"rx_missed_errors": 15}})
    (problem,) = make_outcome(lossy, Load(1000), 1.0, BOTH).problems
    assert problem.frames == 15 and "rx_missed_errors 15)" in problem.detail


@pytest.mark.parametrize(("errors", "named"), [(100, True), (99, False)])
def test_probe_frames_that_a_card_counts_as_errors_name_themselves(errors: int, named: bool) -> None:
    told = {0: {"opackets": 1005}, 1: {"ipackets": 907, "ierrors": errors}}
    miscounted = answer(told, latency=[probe_group({}, sent=100, received=0)])
    (problem,) = make_outcome(miscounted, Load(1000), 1.0, BOTH[:1]).problems
    assert ("trex-core, issue 1222" in problem.detail) == named


NAMES = ["p1", "p50", "p90", "p99", "p99.9", "min", "max", "mean"]
RUNS = st.tuples(st.none() | st.sampled_from([5.0, 1e6, 1.2e6]) | st.floats(0.5, 2e6), st.integers(1, 60))
SAMPLES: st.SearchStrategy[list[float | None]] = st.lists(RUNS, min_size=1).map(
    lambda runs: [usec for usec, frames in runs for _ in range(frames)][:1000]
)
"""The latencies in µs of frames sent one after the other; None: lost."""

STATISTICS = st.builds(Statistic, st.sampled_from(NAMES)) | st.builds(
    Statistic, st.sampled_from([name for name in NAMES if name != "min"]), st.just(True)
)


def bucket(usec: float) -> int:
    """TRex's coarse bucket, computed the plain way."""
    if usec < 10:
        return 0
    unit = 10 ** (len(str(int(usec))) - 1)
    return int(usec // unit) * unit


def counted(*args: Any, **more: Any) -> LatencyCount:
    (found,) = probe_counts([probe_group(*args, **more)])
    return found


def as_trex_counts(samples: Sequence[float | None], stale: int = 0, hdrh: bool = False) -> LatencyCount:
    """Return what TRex counts: bucket 0 has at least *stale* frames, if it is there, and none is later than 1 s."""
    came = [usec for usec in samples if usec is not None]
    histogram = Counter(bucket(usec) for usec in came if usec < 1e6)
    if histogram[0]:
        histogram[0] = max(stale, histogram[0])
    text = fine(Counter(map(int, came))) if hdrh else ""
    return counted(+histogram, len(samples), len(came), max(came, default=0.0), hdrh=text)


def bounds(count: LatencyCount, statistic: Statistic | str) -> Bounds | None:
    wanted = Statistic(statistic) if isinstance(statistic, str) else statistic
    spread = count.spread()
    return spread.bounds(wanted) if spread else None


def exact(samples: Sequence[float | None], statistic: Statistic) -> float:
    """The statistic of all frames sent: a lost one is later than any limit."""
    ordered = sorted(math.inf if usec is None else usec for usec in samples)
    if statistic.name == "mean":
        found = math.fsum(ordered) / len(ordered)
    elif statistic.share is None:
        found = ordered[0 if statistic.name == "min" else -1]
    else:
        found = ordered[max(1, math.ceil(statistic.share * len(ordered) - 1e-9)) - 1]
    return found - ordered[0] if statistic.variation else found


@settings(max_examples=500)
@given(SAMPLES, st.integers(0, 1000), st.booleans(), STATISTICS)
def test_true_statistic_lies_within_the_bounds(
    samples: list[float | None], stale: int, hdrh: bool, statistic: Statistic
) -> None:
    found, true = bounds(as_trex_counts(samples, stale, hdrh), statistic), exact(samples, statistic)
    if math.isnan(true):  # no frame came, from which others could vary
        assert found == UNKNOWN
    else:
        assert found is not None and found.low - 1e-6 <= true <= found.high + 1e-6


@given(st.lists(st.floats(0.5, 9e5), min_size=1, max_size=200), st.sampled_from(["min", "max", "mean"]), st.booleans())
def test_bounds_are_one_bucket_where_all_is_known(samples: list[float], name: str, hdrh: bool) -> None:
    slow = samples if hdrh else [max(10.0, usec) for usec in samples]
    found = bounds(as_trex_counts(slow, hdrh=hdrh), name)
    assert found is not None and found.high <= (1 + 1.001 * found.low if hdrh else 2 * found.low + 1e-6)


@pytest.mark.parametrize(
    ("count", "statistic", "expected", "doubt"),
    [
        # the bucket 0 may be of an earlier trial, and frames later than 1 s are in none
        (as_trex_counts([8.0] * 1000), "max", Bounds(0, math.inf), "1,000 of 1,000 received probe frames came"),
        (as_trex_counts([8.0] * 300 + [50.0] * 700, 1000), "p10", Bounds(0, 60), "300 of 1,000 received"),
        (as_trex_counts([8.0] * 300 + [50.0] * 700, 1000), "max", Bounds(50, math.inf), "known: 50 µs"),
        # the maximum is of an earlier trial
        (counted({50: 1000}, 1000, 1000, 3e6), "max", Bounds(50, 60), "one digit; expected TRex started with '--hdrh'"),
        (as_trex_counts([8.0, 1.5e6], hdrh=True), "max", Bounds(1_499_136, 1_500_160), ""),
        # an empty fine histogram of several cores is not taken for the coarse one
        (counted({20: 1000}, 1000, 1000, hdrh=fine({})), "max", Bounds(20, 30), "with '--software' and one core"),
    ],
)
def test_the_bounds_are_these(count: LatencyCount, statistic: str, expected: Bounds, doubt: str) -> None:
    assert bounds(count, statistic) == expected and doubt in count.doubt


def test_the_sizes_of_a_direction_are_one_sample_and_a_direction_is_by_itself() -> None:
    small, large = (probe_group({}, n, n, hdrh=fine({usec: n})) for n, usec in ((1800, 20), (200, 50_000)))
    first, second = probe_counts([small, large, {**small, "tx_port": 1, "rx_port": 0}])
    assert bounds(first, "p80") == Bounds(20, 21) and bounds(first, "p95") == Bounds(49_984, 50_016)
    assert bounds(second, "p95") == Bounds(20, 21)
    assert counted({}, 1000, 0, hdrh=fine({})).resolution is Resolution.THREE_DIGITS


# -- the fine histogram, which a stranger's server sends


@given(st.dictionaries(st.integers(0, 16_777_215), st.integers(1, 2**40), max_size=50))
def test_a_fine_histogram_is_read_as_it_was_recorded(frames: dict[int, int]) -> None:
    expected = Counter[int]()
    for usec, count in frames.items():
        width = 2 ** max(0, usec.bit_length() - 11)
        expected[usec - usec % width] += count
    assert fine_histogram(fine(frames)) == expected


def test_the_fine_histograms_of_a_real_trex_are_its_coarse_ones_but_finer() -> None:
    groups = json.loads((DATA / "trex-latency-v3.08.json").read_text(encoding="utf-8"))
    for group in groups:
        coarse = Counter[str]()
        for usec, frames in fine_histogram(group["hdrh"]).items():
            coarse[str(bucket(usec))] += frames
        assert coarse == group["histogram"]
    (found,) = probe_counts(groups)
    assert found.received == sum(found.histogram.values()) == 601 and bounds(found, "max") == Bounds(4640, 4644)


PLAIN = struct.pack(">IIIIQQd", 0x1C849313, 1, 0, 3, 1, HIGHEST, 1.0)


def sealed(plain: bytes, cookie: int = 0x1C849314) -> str:
    data = zlib.compress(plain, 9)
    return base64.b64encode(struct.pack(">II", cookie, len(data)) + data).decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "AAAA",
        "not base64!",
        "é" * 40,
        "A" * 300_000,
        sealed(PLAIN + b"\x02", cookie=0x1C849301),
        sealed(PLAIN[:39]),
        sealed(b"\x00" + PLAIN[1:]),
        sealed(PLAIN[:8] + b"\x01" + PLAIN[9:]),  # another first counter
        sealed(PLAIN.replace(struct.pack(">Q", HIGHEST), struct.pack(">Q", 2**62))),
        sealed(PLAIN[:12] + struct.pack(">I", 5) + PLAIN[16:]),
        sealed(PLAIN + b"\xff" * 9),  # more zeros than counters
        sealed(PLAIN + b"\x02" * 15_361),
        sealed(PLAIN + b"\x82"),  # cut within a number
        fine({5: 7})[:-8],
    ],
)
def test_what_is_no_histogram_of_trex_is_refused(text: str) -> None:
    with pytest.raises(TestbedError, match="is no histogram of TRex's"):
        fine_histogram(text)


@given(st.binary(max_size=60), st.text(max_size=60))
def test_any_bytes_are_a_histogram_or_refused(data: bytes, text: str) -> None:
    for stranger in (text, sealed(data), sealed(PLAIN + data), base64.b64encode(data).decode()):
        try:
            found = fine_histogram(stranger)
        except TestbedError:
            continue
        assert all(0 <= usec < 2**24 and frames > 0 for usec, frames in found.items())


def test_a_bomb_is_not_unzipped() -> None:
    bomb = sealed(PLAIN + bytes(100 << 20))
    assert len(bomb) < LARGEST
    tracemalloc.start()
    try:
        with pytest.raises(TestbedError):
            fine_histogram(bomb)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
