"""Generators' own ceilings are measured, kept in files, and spare routers a FAIL."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.ceilings import OwnLatency, Watch, own_latency, read_calibration, write_calibration
from lineproof.core.doubts import USABLE_SHARE
from lineproof.core.latency import LatencyCount
from lineproof.core.rule import Ruling
from lineproof.core.trial import Fault, Load, Outcome, Problem
from lineproof.procedures.calibrate import MOST_SEARCH_TRIALS, SEARCH_WIDTH, find_ceiling
from lineproof.procedures.trials import TrialSeries
from support.ceilings import CATALOGUE, FAILING, GOAL, LINE, NOW, calibration, ceiling, measured_limits, promise, ruled
from support.pure_router import PureRouter

LATENCY = OwnLatency(load_pps=1e6, frames=9, mean_us=4.2, p99_low_us=0, p99_high_us=10)


SHARES = st.floats(0.002, 1.2).map(lambda share: share * LINE)


@given(SHARES, SHARES, st.sampled_from([1, 2]))
def test_both_ceilings_are_found_within_the_width(sends: float, receives: float, directions: int):
    loop = PureRouter(receives, ceiling=sends, directions=directions)
    highest = find_ceiling(TrialSeries(loop), LINE)
    most = min(sends, LINE)
    # what the trials' tolerance lets pass counts as offered
    assert most * (1 - 2 * SEARCH_WIDTH) <= highest.offered <= min(LINE, most * (1 + SEARCH_WIDTH))
    carried = min(most, receives)
    assert carried * (1 - 2 * SEARCH_WIDTH) - 1 <= highest.lossless <= carried + 1
    assert highest.received == pytest.approx(carried, abs=1)
    assert len(loop.asked) <= 2 + 3 * MOST_SEARCH_TRIALS


def test_one_trial_without_loss_is_not_enough():
    class Lucky(PureRouter):
        def __call__(self, load: Load, duration: float) -> Outcome:
            self.capacity = LINE if not self.asked else LINE / 2
            return super().__call__(load, duration)

    assert find_ceiling(TrialSeries(Lucky()), LINE).lossless <= LINE / 2 + 1


def test_frames_that_the_generator_missed_are_a_ceiling():
    missed = (Problem(Fault.GENERATOR, "frames missed"),)

    def measure(load: Load, duration: float) -> Outcome:
        return replace(PureRouter(LINE / 2)(load, duration), problems=missed if load.pps > LINE / 2 else ())

    lossless = find_ceiling(TrialSeries(measure), LINE).lossless
    assert lossless == pytest.approx(LINE / 2, rel=2 * SEARCH_WIDTH)


def test_own_latency_is_of_the_worse_direction():
    slow = LatencyCount(1, 0, 100, 100, 7.0, 30.0, 2.0, {0: 98, 20: 2})
    quick = replace(slow, tx_port=0, rx_port=1, mean=4.0)
    worse = own_latency(Outcome(Load(1e6), 1.0, 1.0, 0.0, (), latency=(quick, slow)))
    assert worse == OwnLatency(load_pps=1e6, frames=100, mean_us=7.0, p99_low_us=20.0, p99_high_us=30.0, minimum_us=2.0)
    assert own_latency(Outcome(Load(1e6), 1.0, 1.0, 0.0, ())) is None


# -- the file


def test_calibration_is_read_as_written(tmp_path: Path):
    written = calibration(ceiling(latency=LATENCY))
    path = write_calibration(tmp_path / "new", written)
    assert read_calibration(tmp_path / "new", "lab", "box") == written
    assert path.read_text().startswith("# ")
    assert [entry.name for entry in path.parent.iterdir()] == ["lab-box.yaml"]


def test_other_ceilings_of_the_same_generator_are_kept(tmp_path: Path):
    def kept(*again: Any, **other: object) -> dict[str, float]:
        write_calibration(tmp_path, calibration(*again, **other))
        read = read_calibration(tmp_path, "lab", "box")
        assert read is not None
        return {entry.traffic: entry.lossless_pps for entry in read.ceilings}

    kept(ceiling("64b"), ceiling("imix"))
    assert kept(ceiling("64b", lossless=1e6)) == {"imix": LINE / 2, "64b": 1e6}
    assert kept(ceiling("64b"), versions={"server": "v3.09"}) == {"64b": LINE / 2}


def test_profiles_are_compared_by_content():
    known = measured_limits(ceiling("64b var2"))
    assert known.entry(CATALOGUE.profile(["64b"]), False) is not None
    assert known.entry(CATALOGUE.profile(["64b"]), True) is None
    assert known.entry(CATALOGUE.profile(["64b", "1-flow"]), False) is None


@pytest.mark.parametrize(
    ("changed", "stale", "unfit"),
    [
        ({"now": NOW + timedelta(days=89)}, "", ""),
        ({"now": NOW + timedelta(days=91)}, "91 days old", ""),
        ({"server": "v3.09"}, "was v3.08, and is v3.09 now", ""),
        ({"server": None}, "", ""),
        ({"link_bps": 25e9}, "", "10 Gbit/s; now: real generator, 'hardware' testbed, 25 Gbit/s"),
        ({"kind": "netns"}, "", "now: real generator, 'netns' testbed"),
        ({"simulated": True}, "", "now: simulated generator"),
    ],
)
def test_calibration_is_stale_by_age_or_version_and_unfit_for_another_testbed(
    changed: dict[str, Any], stale: str, unfit: str
):
    known = replace(measured_limits(), **changed)
    for words, part in ((known.why_stale, stale), (known.why_unfit, unfit)):
        assert part in words and bool(part) == bool(words)


# -- what it makes of a verdict


@pytest.mark.parametrize(
    ("percent", "known", "lost", "ruling"),
    [
        (45, measured_limits(), 0.6, Ruling.FAIL),  # 40 % of line rate came back
        (55, measured_limits(), 0.505, Ruling.INCONCLUSIVE),  # 49 %, of the 50 % that the generator receives
        # it receives less while it sends all it can
        (45, measured_limits(ceiling(received_pps=LINE / 3)), 0.6, Ruling.INCONCLUSIVE),
    ],
)
def test_what_came_back_of_a_forwarding_rate_is_compared_with_the_ceiling(percent, known, lost, ruling):
    assert ruled(promise(f"64b unidirectional forwards ≥ {percent}% line rate", known), LINE, lost=lost) is ruling


@given(
    st.sampled_from([FAILING, "64b unidirectional loses ≤ 1% at 60% line rate"]),
    st.floats(0.01, 1.0),
    st.floats(0.01, 1.0),
    st.floats(0, 1.0),
)
def test_a_ceiling_only_changes_fail_to_inconclusive(sentence: str, offered: float, lossless: float, lost: float):
    known = measured_limits(ceiling(lossless=lossless * LINE))
    alone, near = (ruled(promise(sentence, limits), offered * LINE, lost) for limits in (None, known))
    assert near is alone or (alone, near) == (Ruling.FAIL, Ruling.INCONCLUSIVE)
    # else frames sent beyond the load may be the lost ones
    if alone is Ruling.FAIL and sentence == FAILING and lost > 0.01 and lossless < 0.99:
        assert (near is Ruling.FAIL) == (round(offered * LINE) <= USABLE_SHARE * lossless * LINE)


def watch(load: float = LINE / 2, trials: int = 20, seconds: float = 1.0, lossy: int = 0, most: int = 0) -> Watch:
    return Watch(goal="standard", load_pps=load, trials=trials, lossy=lossy, most_lost=most, trial_duration=seconds)


@pytest.mark.parametrize(
    ("watched", "is_clean"),
    [
        (None, False),
        (watch(), True),
        (watch(trials=10), False),  # less than 1 / risk
        (watch(trials=2, seconds=10.0), True),
        (watch(load=0.4 * LINE), False),  # at a lower load than the sentence's
        (watch(lossy=1, most=3), False),
    ],
)
def test_a_generator_is_clean_where_it_was_watched_for_long_enough(watched: Watch | None, is_clean: bool):
    assert promise(FAILING, measured_limits(ceiling(watched=watched))).own.is_clean(GOAL.risk) is is_clean
