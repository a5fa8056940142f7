"""A trial's outcome from what the client's process reports: counters, and counts of probe frames with their quirks."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.core.bounds import UNKNOWN, Bounds
from lineproof.core.latency import LatencyCount, Statistic
from lineproof.core.trial import UNDER_WAY, Fault, Load, Outcome, Trial
from lineproof.errors import TestbedError
from lineproof.generators.base import Direction
from lineproof.generators.trex.client.running_traffic import SNAPSHOT_SHARES
from lineproof.generators.trex.client.service import CounterReading, TrialCounts
from lineproof.generators.trex.outcomes import (
    HIGHEST,
    fine_histogram,
    make_outcome,
    probe_counts,
    sending_bounds,
)
from lineproof_bench.server.statistics import fine
from support.made_testbeds import probe_group

FORTH, BOTH = (Direction(0, 1),), (Direction(0, 1), Direction(1, 0, swapped=True))
FIRST = 5000.0
"""The server's clock before the first frame."""
NOTHING = {"opackets": 0, "ipackets": 0, "obytes": 0, "ibytes": 0, "oerrors": 0, "ierrors": 0}
SENT, CAME = 5, 7
"""Frames that each port had counted before."""
ALL = {port: {"opackets": SENT + 1000, "ipackets": CAME + 1000} for port in (0, 1)}
FULL = {**ALL, 0: {"opackets": SENT + 1000, "ipackets": CAME + 980}}
"""20 of 1000 frames towards port 0 are lost."""


def answer(after: dict[int, dict[str, int]], **other: Any) -> TrialCounts:
    """Return what a trial counted; ports not named stood still."""
    before = {port: {**NOTHING, "opackets": SENT, "ipackets": CAME} for port in (0, 1)}
    counts = {port: {**before[port], **after.get(port, {})} for port in before}
    ended = FIRST + other.pop("ended", 1.03)
    usual = {
        "started": 1e9,
        "first": FIRST,
        "before": CounterReading(FIRST, FIRST, before, 3.0),
        "at_end": CounterReading(ended - 0.001, ended, counts, 3.0, 0.5),
        "after": CounterReading(ended, ended, counts, other.pop("queue_full", 3.0)),
        "finished": True,
        "drained": 0.02,
        "clocks": [30.0, 29.9, 30.1],
        "links": {0: True, 1: True},
        "cpu_util": 12.5,
    }
    return TrialCounts(**{**usual, **other})


def outcome(after: dict[int, dict[str, int]] = ALL, directions: tuple[Direction, ...] = BOTH, **other: Any) -> Outcome:
    """Return that of a trial of 1 s at 1000 frames/s; *other*: of :func:`answer`, and the links' ``speeds``."""
    speeds = other.pop("speeds", None)
    return make_outcome(answer(after, **other), Load(1000), 1.0, directions, speeds=speeds)


def counted(port: int, counts: dict[int, dict[str, int]] = FULL, **more: int) -> dict[int, dict[str, int]]:
    return {**counts, port: {**counts[port], **more}}


@pytest.mark.parametrize(
    ("change", "fault", "words"),
    [
        ({"after": counted(0, oerrors=4)}, Fault.UNSENT, "port 0 failed to send 4 frames"),
        ({"after": counted(1, opackets=1)}, Fault.COUNTERS, "opackets of generator port 1 fell by 4"),
        ({"links": {0: True, 1: False}}, Fault.LINK_DOWN, "generator port 1"),
        ({"complaints": ["port 0 reports an error"]}, Fault.GENERATOR, "port 0 reports an error"),
        ({"finished": False}, Fault.STRETCHED, "still sending after 1.0 s, stopped"),
        # a thousandth more or less is none
        ({"clocks": [29.88, 29.9, 30.1]}, None, ""),
        ({"clocks": [30.2, 29.9, 30.1]}, Fault.CLOCK, "the server's went on by 30.200 s"),
        ({"clocks": [15.0, 29.9, 30.1]}, Fault.CLOCK, "the server's went on by 15.000 s"),
        # a full queue alone is none, nor are errors at a port without loss
        ({"queue_full": 50.0}, None, ""),
        ({"after": counted(1, ierrors=500)}, None, ""),
        ({"after": counted(0, ierrors=19)}, Fault.GENERATOR, "port 0 received 19 frames with errors, or missed them"),
        ({"after": counted(0, ierrors=15), "cards": {0: {"rx_missed_errors": 15}}}, Fault.GENERATOR, "_errors 15)"),
        ({"cpu_util": None}, Fault.CPU_BOUND, "its load is not known, and a transmit queue was full 0 times"),
        ({"cpu_util": 0.0, "queue_full": 53.0}, Fault.CPU_BOUND, "its load is not known, and a transmit queue was"),
        ({"cpu_util": 0.0}, None, ""),
        ({"after": ALL, "cpu_util": None}, None, ""),
        # the load was lower: what was lost all the same is the router's
        ({"after": ALL, "cards": {0: {"rx_xoff_packets": 40}}}, Fault.PAUSED, "port 0: rx_xoff_packets 40"),
    ],
)
def test_each_fault_of_the_generator_is_a_problem(change: dict[str, Any], fault: Fault | None, words: str) -> None:
    found = outcome(**{"after": FULL, **change})
    assert [item.fault for item in found.problems] == ([fault] if fault else [])
    assert all(words in item.detail for item in found.problems)


def reading(moment: float, sent: tuple[int, int], received: tuple[int, int], took: float = 0.001) -> CounterReading:
    """A reading during the sending, *took* s long."""
    frames = [{"opackets": SENT + sent[port], "ipackets": CAME + received[port]} for port in (0, 1)]
    return CounterReading(FIRST + moment, FIRST + moment + took, {port: {**NOTHING, **frames[port]} for port in (0, 1)})


def sent_in(seconds: float, *shares: float, under_way: int = 0, took: float = 0.001) -> list[CounterReading]:
    """Readings at *shares* of a trial of 1000 frames each way that takes *seconds*."""
    return [
        reading(seconds * share, (frames := round(1000 * share),) * 2, (frames - under_way, frames), took)
        for share in shares
    ]


PROBES = probe_group({}, sent=9, received=9, tx_port=1, rx_port=0)


@pytest.mark.parametrize("seconds", [1.0, 10.0])
@pytest.mark.parametrize("phase", [0.0, 0.05, 0.3, 0.6, 0.95])
def test_a_card_that_counts_once_a_second_makes_no_trial_shorter(seconds: float, phase: float) -> None:
    """Sending took 4 % longer than it should have."""
    took, readings = 1.04 * seconds, []
    for share in (0.0, 0.005, *SNAPSHOT_SHARES, 1.001, 1.02, 1.035):
        shown = max(0.0, (share * seconds - phase) // 1 + phase)
        frames = min(1000, round(1000 * shown / took))
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
        readings.append(CounterReading(moment - early, moment + late, {0: {"opackets": sent}}))
    least, most = sending_bounds(0.0, times[-1] + data.draw(st.floats(0, 0.2)), readings, {0: len(times)})
    took = (times[-1] - times[0]) * len(times) / (len(times) - 1)
    assert least - 1e-9 <= took <= most + 1e-9


@pytest.mark.parametrize(
    ("under", "lost", "took", "shares", "expected"),
    [
        (50, 0, 0.0, (0.2, 0.8, 0.9), 50),
        (0, 0, 0.0, (0.2, 0.8, 0.9), 0),
        # those that were lost before the first of these readings are not under way
        (50, 20, 0.0, (0.2, 0.8, 0.9), 30),
        # between the two counters of a reading as many were sent
        (50, 0, 0.03, (0.2, 0.8, 0.9), 20),
        # too early
        (50, 0, 0.0, (0.06, 0.08, 0.2, 0.8, 0.9), 50),
        (50, 0, 0.0, (0.02, 0.06, 0.8, 0.9), None),
        (50, 0, 0.0, (0.8, 0.9), None),
    ],
)
def test_frames_under_way_are_those_of_every_reading(
    under: int, lost: int, took: float, shares: tuple[float, ...], expected: int | None
) -> None:
    readings = sent_in(1.0, *shares, under_way=under, took=took)
    found = outcome(counted(0, ALL, ipackets=CAME + 1000 - lost), snapshots=readings, latency=[PROBES])
    # port 0 received fewer: those from port 1
    assert found.readings.get(f"{UNDER_WAY}1") == expected and f"{UNDER_WAY}0" not in found.readings


def test_a_card_that_counts_once_a_second_shows_nothing_under_way() -> None:
    stale = [reading(moment, (round(1000 * moment),) * 2, (700, 700)) for moment in (0.8, 0.85, 0.9, 0.95)]
    assert f"{UNDER_WAY}1" not in outcome(snapshots=stale, latency=[PROBES]).readings


@pytest.mark.parametrize(
    ("carried", "shares", "expected"),
    [
        (1.0, SNAPSHOT_SHARES, 0),
        # a shortage that a queue of 50 frames hides
        (0.98, SNAPSHOT_SHARES, 20),
        # an overload: it is full, and frames are lost until the end
        (0.1, SNAPSHOT_SHARES, 50),
        (0.1, SNAPSHOT_SHARES[:-6], None),
    ],
)
def test_a_queue_of_50_frames_shows_whatever_is_lost_beside_it(
    carried: float, shares: tuple[float, ...], expected: int | None
) -> None:
    readings = [reading(share, (round(1000 * share), 0), (0, round(1000 * carried * share))) for share in shares]
    came = CAME + min(1000, round(1000 * carried) + 50)
    counts = {0: {"opackets": SENT + 1000}, 1: {"ipackets": came}}
    assert outcome(counts, FORTH, snapshots=readings).directions[0].backlog == expected


@pytest.mark.parametrize(("shares", "expected"), [((0.1, 0.8, 0.9), 0), ((0.1, 0.85, 0.9), None)])
def test_a_burst_of_lost_frames_is_no_queue(shares: tuple[float, ...], expected: int | None) -> None:
    lost = [min(200, max(0, round(1000 * share) - 200)) for share in shares]
    readings = [
        reading(share, (round(1000 * share), 0), (0, round(1000 * share) - gone))
        for share, gone in zip(shares, lost, strict=True)
    ]
    counts = {0: {"opackets": SENT + 1000}, 1: {"ipackets": CAME + 800}}
    assert outcome(counts, FORTH, snapshots=readings).directions[0].backlog == expected


def test_what_a_port_sends_unasked_hides_no_loss_and_excuses_no_more_than_it_is() -> None:
    # port 1 sends in no direction, and the router returned its frames to it
    found = outcome({**ALL, 1: {"opackets": SENT + 20, "ipackets": CAME + 970 + 20}}, FORTH)
    assert [(problem.fault, problem.frames) for problem in found.problems] == [
        (Fault.OVER_OFFERED, 20),
        (Fault.FOREIGN, 20),
    ]
    trial = Trial(1, found, found.problems, Bounds(1.0, 1.0))
    assert trial.lost_frames(found.directions[0]) == Bounds(0.0, 30.0)


@pytest.mark.parametrize(("speed", "frames"), [(10e9, 17), (0.0, None)])
def test_a_pause_of_the_generator_explains_no_more_frames_than_came_meanwhile(speed: float, frames: int | None) -> None:
    # five pauses of 3.4 ms
    half = {0: {"opackets": SENT + 1000}, 1: {"ipackets": CAME + 500}}
    (problem,) = outcome(half, FORTH, cards={1: {"tx_xoff_packets": 5}}, speeds={1: speed}).problems
    assert problem.fault is Fault.PAUSING and problem.directions == ((0, 1),) and problem.frames == frames


@pytest.mark.parametrize(("errors", "named"), [(100, True), (99, False)])
def test_probe_frames_that_a_card_counts_as_errors_name_themselves(errors: int, named: bool) -> None:
    told = {0: {"opackets": SENT + 1000}, 1: {"ipackets": CAME + 900, "ierrors": errors}}
    (problem,) = outcome(told, FORTH, latency=[probe_group({}, sent=100, received=0)]).problems
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


def probed(*args: Any, **more: Any) -> LatencyCount:
    (found,) = probe_counts([probe_group(*args, **more)])
    return found


def as_trex_counts(samples: Sequence[float | None], stale: int = 0, hdrh: bool = False) -> LatencyCount:
    """Return what TRex counts: bucket 0 has at least *stale* frames, if it is there, and none is later than 1 s."""
    came = [usec for usec in samples if usec is not None]
    histogram = Counter(bucket(usec) for usec in came if usec < 1e6)
    if histogram[0]:
        histogram[0] = max(stale, histogram[0])
    text = fine(Counter(map(int, came))) if hdrh else ""
    return probed(+histogram, len(samples), len(came), max(came, default=0.0), hdrh=text)


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


@given(st.dictionaries(st.integers(0, 16_777_215), st.integers(1, 2**40), max_size=50))
def test_a_fine_histogram_is_read_as_it_was_recorded(frames: dict[int, int]) -> None:
    expected = Counter[int]()
    for usec, count in frames.items():
        width = 2 ** max(0, usec.bit_length() - 11)
        expected[usec - usec % width] += count
    assert fine_histogram(fine(frames)) == expected


PLAIN = struct.pack(">IIIIQQd", 0x1C849313, 1, 0, 3, 1, HIGHEST, 1.0)


def sealed(plain: bytes, cookie: int = 0x1C849314) -> str:
    data = zlib.compress(plain, 9)
    return base64.b64encode(struct.pack(">II", cookie, len(data)) + data).decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not base64!",
        "A" * 300_000,
        sealed(PLAIN + b"\x02", cookie=0x1C849301),
        sealed(PLAIN[:39]),
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
