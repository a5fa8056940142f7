"""Generators' own ceilings are measured, kept in files of any content, and spare routers a FAIL."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.ceilings.calibration import (
    Watch,
    read_calibration,
    write_calibration,
)
from lineproof.ceilings.headroom import MeasuredLimits
from lineproof.core.ceiling import OwnLatency
from lineproof.core.doubts import USABLE_SHARE
from lineproof.core.latency import LatencyCount
from lineproof.core.rule import Ruling
from lineproof.core.trial import Fault, Load, Outcome, Problem
from lineproof.errors import ConfigError, LineproofError
from lineproof.methods.ceiling import MOST_SEARCH_TRIALS, SEARCH_WIDTH, find_ceiling, own_latency
from lineproof.methods.trials import CharacterisationTerms
from support import hostile
from support.ceilings import (
    CATALOGUE,
    FAILING,
    GOAL,
    LINE,
    NOW,
    ceiling,
    content,
    measured_limits,
    promise,
    ruled,
)
from support.pure_router import PureRouter


def test_generator_at_line_rate_needs_two_trials():
    loop = PureRouter(2 * LINE, ceiling=2 * LINE)
    found = find_ceiling(loop, LINE, CharacterisationTerms())
    assert (found.offered, found.lossless) == (LINE, pytest.approx(LINE))
    assert [pps for pps, _ in loop.asked] == [LINE, LINE]


@given(
    st.floats(0.002, 1.2).map(lambda share: share * LINE),
    st.floats(0.002, 1.2).map(lambda share: share * LINE),
    st.sampled_from([1, 2]),
)
def test_both_ceilings_are_found_within_the_width(sends: float, receives: float, directions: int):
    loop = PureRouter(receives, ceiling=sends, directions=directions)
    found = find_ceiling(loop, LINE, CharacterisationTerms())
    most = min(sends, LINE)
    # what the trials' tolerance lets pass counts as offered
    assert most * (1 - 2 * SEARCH_WIDTH) <= found.offered <= min(LINE, most * (1 + SEARCH_WIDTH))
    carried = min(most, receives)
    assert carried * (1 - 2 * SEARCH_WIDTH) - 1 <= found.lossless <= carried + 1
    assert found.received == pytest.approx(carried, abs=1)
    assert len(loop.asked) <= 2 + 3 * MOST_SEARCH_TRIALS


def test_one_trial_without_loss_is_not_enough():
    class Lucky(PureRouter):
        def __call__(self, load: Load, duration: float) -> Outcome:
            self.capacity = LINE if not self.asked else LINE / 2
            return super().__call__(load, duration)

    assert find_ceiling(Lucky(), LINE, CharacterisationTerms()).lossless <= LINE / 2 + 1


def test_frames_that_the_generator_missed_are_a_ceiling():
    missed = (Problem(Fault.GENERATOR, "frames missed"),)

    def measure(load: Load, duration: float) -> Outcome:
        return replace(PureRouter(LINE / 2)(load, duration), problems=missed if load.pps > LINE / 2 else ())

    assert find_ceiling(measure, LINE, CharacterisationTerms()).lossless == pytest.approx(
        LINE / 2, rel=2 * SEARCH_WIDTH
    )


def test_own_latency_is_of_the_worse_direction():
    slow = LatencyCount(1, 0, 100, 100, 7.0, 30.0, 2.0, {0: 98, 20: 2})
    quick = replace(slow, tx_port=0, rx_port=1, mean=4.0)
    found = own_latency(Outcome(Load(1e6), 1.0, 1.0, 0.0, (), latency=(quick, slow)))
    assert found == OwnLatency(load_pps=1e6, frames=100, mean_us=7.0, p99_low_us=20.0, p99_high_us=30.0, minimum_us=2.0)
    assert own_latency(Outcome(Load(1e6), 1.0, 1.0, 0.0, ())) is None


# -- the file


def test_calibration_is_read_as_written(tmp_path: Path):
    latency = OwnLatency(load_pps=1e6, frames=9, mean_us=4.2, p99_low_us=0, p99_high_us=10)
    written = content(ceiling(latency=latency))
    path = write_calibration(tmp_path / "new", written)
    found = read_calibration(tmp_path / "new", "lab", "box")
    assert found is not None
    assert found.content == written
    assert found.path == path
    assert path.read_text().startswith("# ")
    assert [entry.name for entry in path.parent.iterdir()] == ["lab-box.yaml"]


def test_other_ceilings_of_the_same_generator_are_kept(tmp_path: Path):
    write_calibration(tmp_path, content(ceiling("64b"), ceiling("imix")))
    write_calibration(tmp_path, content(ceiling("64b", lossless=1e6)))
    found = read_calibration(tmp_path, "lab", "box")
    assert found is not None
    assert {item.traffic: item.lossless_pps for item in found.content.ceilings} == {"imix": LINE / 2, "64b": 1e6}
    write_calibration(tmp_path, content(ceiling("64b"), server="v3.09"))
    found = read_calibration(tmp_path, "lab", "box")
    assert found is not None
    assert [item.traffic for item in found.content.ceilings] == ["64b"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (NOW.isoformat(), "2026-11-21T00:00:00", r"lab-box\.yaml:\d+: .*which time zone"),
        ("lossless_pps: 7440476.19", "lossless_pps: 74404760.19", "no rate is more than line_pps"),
    ],
)
def test_wrong_file_is_refused_with_its_line(tmp_path: Path, old: str, new: str, words: str):
    path = write_calibration(tmp_path, content())
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ConfigError, match=words):
        read_calibration(tmp_path, "lab", "box")


def test_profiles_are_compared_by_content():
    known = measured_limits(ceiling("64b var2"))
    assert known.ceiling(CATALOGUE.profile(["64b"]), False) is not None
    assert known.ceiling(CATALOGUE.profile(["64b"]), True) is None
    assert known.ceiling(CATALOGUE.profile(["64b", "1-flow"]), False) is None


@pytest.mark.parametrize(
    ("changed", "stale", "unfit"),
    [
        ({"now": NOW + timedelta(days=89)}, "", ""),
        ({"now": NOW + timedelta(days=91)}, "91 days old", ""),
        ({"server": "v3.09"}, "was v3.08, and is v3.09 now", ""),
        ({"server": None}, "", ""),
        ({"link_bps": 25e9}, "", "at 10 Gbit/s, and the ports run at 25"),
        ({"kind": "netns"}, "", "is 'netns' now"),
        ({"simulated": True}, "", "a real generator, and the generator is simulated now"),
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
    ("known", "offered"),
    [
        (measured_limits(), 0.97 * LINE / 2),
        (measured_limits(ceiling("imix")), 0.99 * LINE / 2),
        (measured_limits(ceiling(bidirectional=True)), 0.99 * LINE / 2),
        (measured_limits(link_bps=25e9), 0.99 * LINE / 2),
    ],
    ids=["below", "another profile", "another direction", "other ports"],
)
def test_fail_stays_without_a_near_ceiling(known: MeasuredLimits, offered: float):
    assert ruled(promise(FAILING, known), offered) is Ruling.FAIL


def test_loss_near_the_ceiling_may_be_the_generators():
    near = promise(FAILING, measured_limits())
    assert ruled(near, 0.99 * LINE / 2) is Ruling.INCONCLUSIVE
    assert ruled(near, LINE / 2, lost=0.0) is Ruling.PASS
    assert near.own.evidence["lossless_pps"] == pytest.approx(LINE / 2)


def test_what_came_back_of_a_forwarding_rate_is_compared_with_the_ceiling():
    below, above = (f"64b unidirectional forwards ≥ {n}% line rate" for n in (45, 55))
    # 40 % of line rate came back
    assert ruled(promise(below, measured_limits()), LINE, lost=0.6) is Ruling.FAIL
    # 49 % came back, of the 50 % that the generator receives
    assert ruled(promise(above, measured_limits()), LINE, lost=0.505) is Ruling.INCONCLUSIVE
    # a generator that receives less while it sends all it can
    slow = measured_limits(ceiling(received_pps=LINE / 3))
    assert ruled(promise(below, slow), LINE, lost=0.6) is Ruling.INCONCLUSIVE


@given(
    st.sampled_from([FAILING, "64b unidirectional loses ≤ 1% at 60% line rate"]),
    st.floats(0.01, 1.0),
    st.floats(0.01, 1.0),
    st.floats(0, 1.0),
)
def test_a_ceiling_only_changes_fail_to_inconclusive(sentence: str, offered: float, lossless: float, lost: float):
    known = measured_limits(ceiling(lossless=lossless * LINE))
    alone, found = (ruled(promise(sentence, *sources), offered * LINE, lost) for sources in ((), (known,)))
    assert found is alone or (alone, found) == (Ruling.FAIL, Ruling.INCONCLUSIVE)
    # else frames sent beyond the load may be the lost ones
    if alone is Ruling.FAIL and sentence == FAILING and lost > 0.01 and lossless < 0.99:
        assert (found is Ruling.FAIL) == (round(offered * LINE) <= USABLE_SHARE * lossless * LINE)


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
    promised = promise(FAILING, calibrated=measured_limits(ceiling(watched=watched)))
    assert promised.own.is_clean(GOAL.risk) is is_clean


def test_loss_that_may_be_the_generators_own_is_no_fail():
    few, many = 400 / (LINE / 2), 500 / (LINE / 2)
    lossy = promise(FAILING, calibrated=measured_limits(ceiling(watched=watch(lossy=3, most=200))))
    assert ruled(lossy, LINE / 2, few) is Ruling.INCONCLUSIVE and ruled(lossy, LINE / 2, many) is Ruling.FAIL
    clean = promise(FAILING, calibrated=measured_limits(ceiling(watched=watch())))
    assert ruled(clean, LINE / 2, few) is Ruling.FAIL


def test_the_generators_own_delay_is_the_end_of_its_slowest_frames():
    latency = OwnLatency(load_pps=1e6, frames=9, mean_us=4.2, p99_low_us=0, p99_high_us=10)
    assert promise(FAILING, calibrated=measured_limits(ceiling(latency=latency))).own.delay == 10


RAW = re.compile(r"Traceback|\[Errno|\b[A-Z][a-z]\w*Error\b")


@hostile.of(40)
@given(data=st.data())
def test_a_mutated_calibration_is_right_or_one_paragraph(tmp_path: Path, data: st.DataObject):
    latency = {"load_pps": 7e6, "frames": 1000, "mean_us": 3.0, "p99_low_us": 0.0, "p99_high_us": 10.0}
    watched = {"goal": "standard", "load_pps": 14e6, "trials": 14, "lossy": 0, "trial_duration": 5.0}
    right = write_calibration(tmp_path / "right", content(ceiling(latency=latency, watched=watched)))
    path = tmp_path / right.name
    path.write_bytes(data.draw(hostile.mutated(right.read_text())))
    with hostile.bounded():
        try:
            found = read_calibration(tmp_path, "lab", "box")
            assert found is not None
            assert replace(measured_limits(), calibration=found).why_stale is not None
        except LineproofError as error:
            assert str(error).startswith(str(path)) and str(error).isprintable() and not RAW.search(str(error))
