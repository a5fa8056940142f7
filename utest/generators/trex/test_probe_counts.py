"""Proofs by TRex's counts of probe frames, with the quirks of its coarse histogram; its fine one is a stranger's."""

from __future__ import annotations

import base64
import json
import math
import struct
import tracemalloc
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lineproof.core.bounds import UNKNOWN, Bounds
from lineproof.core.latency import LatencyCount, Resolution, Statistic
from lineproof.errors import TestbedError
from lineproof.generators.trex.outcomes import HIGHEST, LARGEST, fine_histogram, probe_counts
from lineproof_bench.server.statistics import fine
from support.made_testbeds import probe_group
from support.paths import DATA

SECONDS = 1.0
NAMES = ["p1", "p50", "p90", "p99", "p99.9", "min", "max", "mean"]
Samples = list[float | None]
"""The latencies in µs of frames sent one after the other; None: lost."""

RUNS = st.tuples(st.none() | st.sampled_from([1e6, 1.2e6]) | st.floats(0.5, 2e6), st.integers(1, 60))
SAMPLES: st.SearchStrategy[Samples] = st.lists(RUNS | st.tuples(st.just(5.0), st.integers(1, 200)), min_size=1).map(
    lambda runs: [usec for usec, frames in runs for _ in range(frames)][:1000]
)
STATISTICS = st.builds(Statistic, st.sampled_from(NAMES)) | st.builds(
    Statistic, st.sampled_from([name for name in NAMES if name != "min"]), st.just(True)
)


def bucket(usec: float) -> int:
    """TRex's coarse bucket, computed the plain way."""
    if usec < 10:
        return 0
    unit = 10 ** (len(str(int(usec))) - 1)
    return int(usec // unit) * unit


@dataclass
class Generator:
    """Counts probe frames as TRex does, trial after trial.

    Its bucket 0 only grows, none is later than 1 s, and its maximum leaves out the frames that come before the end of
    a period in which more than ten had come. ``phase``: s from the start of a trial to the end of a period of 0.5 s.
    ``hdrh``: whether it has a fine histogram too.
    """

    most_short: int = 0
    phase: float = 0.1
    hdrh: bool = False

    def count(self, samples: Sequence[float | None], seconds: float = SECONDS) -> LatencyCount:
        gap = seconds / len(samples)
        rows = [(place * gap + usec / 1e6, place, usec) for place, usec in enumerate(samples) if usec is not None]
        arrived, latest, late, maximum = sorted(rows), -1, 0, 0.0
        periods = [math.floor((moment - self.phase) / 0.5) for moment, _, _ in arrived]
        for (_, place, usec), period in zip(arrived, periods, strict=True):
            late += place < latest
            latest = max(latest, place)
            if sum(other < period for other in periods[:12]) > 10:
                maximum = max(maximum, usec)
        histogram = Counter(bucket(usec) for _, _, usec in arrived if usec < 1e6)
        self.most_short = max(self.most_short, histogram[0])
        if histogram[0]:
            histogram[0] = self.most_short
        text = fine(Counter(int(usec) for _, _, usec in arrived)) if self.hdrh else ""
        return counted(+histogram, len(samples), len(arrived), maximum, hdrh=text, out_of_order=late, seconds=seconds)


def counted(*args: Any, seconds: float = SECONDS, **more: Any) -> LatencyCount:
    (found,) = probe_counts([probe_group(*args, **more)], seconds)
    return found


def bounds(count: LatencyCount, statistic: Statistic | str) -> Bounds | None:
    wanted = Statistic(statistic) if isinstance(statistic, str) else statistic
    spread = count.spread()
    return spread.bounds(wanted) if spread else None


def exact(samples: Samples, statistic: Statistic) -> float:
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
@given(SAMPLES, st.integers(0, 1000), st.floats(0, 0.5), st.booleans(), STATISTICS)
def test_true_statistic_lies_within_the_bounds(
    samples: Samples, earlier: int, phase: float, hdrh: bool, statistic: Statistic
) -> None:
    found = bounds(Generator(earlier, phase, hdrh).count(samples), statistic)
    if found is None:
        assert not any(samples)
        return
    true = exact(samples, statistic)
    if math.isnan(true):  # no frame came, from which others could vary
        assert found == UNKNOWN
        return
    assert found.low - 1e-6 <= true and true <= found.high + 1e-6


@given(st.lists(st.floats(0.5, 9e5), min_size=1, max_size=200), st.sampled_from(["min", "max", "mean"]), st.booleans())
def test_bounds_are_one_bucket_where_all_is_known(samples: list[float], name: str, hdrh: bool) -> None:
    slow: Samples = list(samples) if hdrh else [max(10.0, usec) for usec in samples]
    found = bounds(Generator(500, hdrh=hdrh).count(slow), name)
    assert found is not None and found.high <= (1 + 1.001 * found.low if hdrh else 2 * found.low + 1e-6)


@given(SAMPLES, st.integers(0, 1000), st.floats(0, 0.5), st.floats(0.2, 5))
@example([1e6, *[None] * 599, *[8.0] * 399, 60e3], 1000, 0.05, 1.0)  # overtaken before the maximum counts
@example([max(8.0, 1.1e6 - 2999.0 * place) for place in range(1000)], 1000, 0.15, 3.0)  # held up, then sent at once
@example([1e6, *[None] * 349, *[8.0] * 650], 1000, 0.15, 3.0)  # not followed by any for 1 s
def test_a_frame_that_may_be_late_is_in_no_coarse_bucket(
    samples: Samples, earlier: int, phase: float, seconds: float
) -> None:
    fast = sum(usec is not None and usec < 1e6 for usec in samples)
    found = Generator(earlier, phase).count(samples, seconds)
    assert sum(frames for key, frames in found.histogram.items() if key < 1e6) <= fast


SHORT: Samples = [8.0] * 1000
SOME_LATE: Samples = [1.5e6 if place % 10 == 5 else 8.0 for place in range(1000)]
EXACT = [
    (Generator().count(SHORT), "max", Bounds(0, 10)),
    (Generator(most_short=5000).count(SHORT), "max", Bounds(0, 10)),
    # so many out of order may be late
    (counted({0: 1000}, 1000, 1000, 8.0, out_of_order=10), "p98", Bounds(0, 10)),
    (counted({0: 1000}, 1000, 1000, 8.0, out_of_order=10), "max", Bounds(0, math.inf)),
    (counted({0: 1000}, 1000, 1000, 1.5e6, out_of_order=100), "max", Bounds(0, math.inf)),
    # the bucket 0 is of an earlier trial
    (Generator(1000).count([8.0] * 300 + [50.0] * 700), "max", Bounds(50, 60)),
    (Generator(1000).count([8.0] * 300 + [50.0] * 700), "p50", Bounds(50, 60)),
    (Generator(1000).count([8.0] * 300 + [50.0] * 700), "p10", Bounds(0, 10)),
    # the maximum is of an earlier trial
    (counted({50: 1000}, 1000, 1000, 3e6), "max", Bounds(50, 60)),
    (Generator(1000, hdrh=True).count(SOME_LATE), "max", Bounds(1_499_136, 1_500_160)),
]


@pytest.mark.parametrize(("count", "statistic", "expected"), EXACT)
def test_the_bounds_are_these(count: LatencyCount, statistic: str, expected: Bounds | None) -> None:
    assert bounds(count, statistic) == expected


def test_frames_later_than_1_s_are_late_though_no_coarse_bucket_has_them() -> None:
    found = Generator().count(SOME_LATE)
    assert (found.histogram[1_000_000], found.maximum) == (100, 1.5e6)
    assert bounds(found, "max") == Bounds(1e6, math.inf)
    assert bounds(found, "p95") == Bounds(1e6, math.inf)
    assert "100 of 1000 received probe frames are missing" in found.doubt


def test_the_sizes_of_a_direction_are_one_sample_and_a_direction_is_by_itself() -> None:
    small, large = (probe_group({}, n, n, hdrh=fine({usec: n})) for n, usec in ((1800, 20), (200, 50_000)))
    first, second = probe_counts([small, large, {**small, "tx_port": 1, "rx_port": 0}], SECONDS)
    assert bounds(first, "p80") == Bounds(20, 21) and bounds(first, "p95") == Bounds(49_984, 50_016)
    assert bounds(second, "p95") == Bounds(20, 21)


def test_an_empty_fine_histogram_of_several_cores_is_not_taken_for_the_coarse_one() -> None:
    found = counted({20: 1000}, 1000, 1000, hdrh=fine({}))
    assert bounds(found, "max") == Bounds(20, 30) and found.resolution is Resolution.ONE_DIGIT
    assert "'--software' and one core" in found.doubt
    assert "'--hdrh'" in counted({20: 1000}, 1000, 1000).doubt
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
    (found,) = probe_counts(groups, SECONDS)
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
