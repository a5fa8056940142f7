"""Generators' own ceilings are measured, kept in files of any content, and spare routers a FAIL."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.ceilings.calibration import (
    OwnLatencyEntry,
    ceiling_entry,
    read_calibration,
    write_calibration,
)
from lineproof.ceilings.headroom import USABLE_SHARE, MeasuredLimits, apply_ceilings
from lineproof.core.latency import LatencyCount
from lineproof.core.sentence import parse
from lineproof.core.trial import DirectionCount, Fault, Load, Outcome, Problem, Tolerance, Trial, assess_trial
from lineproof.core.verdict import Ruling, Verdict
from lineproof.errors import ConfigError, LineproofError
from lineproof.generators.base import GeneratorPort, directions_of
from lineproof.generators.streams import profile_streams
from lineproof.methods.ceiling import MOST_SEARCH_TRIALS, SEARCH_WIDTH, find_ceiling, own_latency
from lineproof.methods.trials import CharacterisationTerms
from lineproof.session.bypass import check_router_bypassed
from support import hostile
from support.ceilings import (
    CATALOGUE,
    FAILING,
    GOAL,
    LINE,
    LINK,
    NOW,
    calibration,
    ceiling,
    content,
    failed,
    measured_limits,
)


class Loop:
    """A generator on its own cable. ``sends`` and ``receives``: frames/s of each port; beyond *receives* it loses."""

    def __init__(self, sends: float, receives: float, directions: int = 1, faults: tuple[Problem, ...] = ()) -> None:
        self.sends, self.receives, self.directions, self.faults = sends, receives, directions, faults
        self.asked = list[float]()

    def __call__(self, load: Load, duration: float) -> Outcome:
        self.asked.append(load.pps)
        offered = round(min(load.pps, self.sends) * duration)
        back = round(min(offered, self.receives * duration))
        directions = tuple(
            DirectionCount(n, 1 - n, round(load.pps * duration), offered, back) for n in range(self.directions)
        )
        return Outcome(load, duration, duration, 0.0, directions, self.faults)


def test_generator_at_line_rate_needs_two_trials():
    loop = Loop(2 * LINE, 2 * LINE)
    found = find_ceiling(loop, LINE, CharacterisationTerms())
    assert (found.offered, found.lossless) == (LINE, pytest.approx(LINE))
    assert loop.asked == [LINE, LINE]


@given(
    st.floats(0.002, 1.2).map(lambda share: share * LINE),
    st.floats(0.002, 1.2).map(lambda share: share * LINE),
    st.sampled_from([1, 2]),
)
def test_both_ceilings_are_found_within_the_width(sends: float, receives: float, directions: int):
    loop = Loop(sends, receives, directions)
    found = find_ceiling(loop, LINE, CharacterisationTerms())
    most = min(sends, LINE)
    # what the trials' tolerance lets pass counts as offered
    assert most * (1 - 2 * SEARCH_WIDTH) <= found.offered <= min(LINE, most * (1 + SEARCH_WIDTH))
    carried = min(most, receives)
    assert carried * (1 - 2 * SEARCH_WIDTH) - 1 <= found.lossless <= carried + 1
    assert found.received == pytest.approx(carried, abs=1)
    assert len(loop.asked) <= 2 + 3 * MOST_SEARCH_TRIALS


def test_one_trial_without_loss_is_not_enough():
    class Lucky(Loop):
        def __call__(self, load: Load, duration: float) -> Outcome:
            self.receives = LINE if not self.asked else LINE / 2
            return super().__call__(load, duration)

    assert find_ceiling(Lucky(LINE, LINE), LINE, CharacterisationTerms()).lossless <= LINE / 2 + 1


def test_frames_that_the_generator_missed_are_a_ceiling():
    missed = (Problem(Fault.GENERATOR, "frames missed"),)

    def measure(load: Load, duration: float) -> Outcome:
        return Loop(LINE, LINE / 2, faults=missed if load.pps > LINE / 2 else ())(load, duration)

    assert find_ceiling(measure, LINE, CharacterisationTerms()).lossless == pytest.approx(
        LINE / 2, rel=2 * SEARCH_WIDTH
    )


def test_own_latency_is_of_the_worse_direction():
    slow = LatencyCount(1, 0, 100, 100, 7.0, 30.0, 2.0, {0: 98, 20: 2})
    quick = replace(slow, tx_port=0, rx_port=1, mean=4.0)
    found = own_latency(Outcome(Load(1e6), 1.0, 1.0, 0.0, (), latency=(quick, slow)))
    assert found is not None
    assert (found.mean, found.p99_low, found.p99_high, found.minimum, found.pps) == (7.0, 20.0, 30.0, 2.0, 1e6)
    assert own_latency(Outcome(Load(1e6), 1.0, 1.0, 0.0, ())) is None


# -- the file


def test_calibration_is_read_as_written(tmp_path: Path):
    latency = OwnLatencyEntry(load_pps=1e6, frames=9, mean_us=4.2, p99_low_us=0, p99_high_us=10)
    written = content(ceiling(latency=latency))
    path = write_calibration(tmp_path / "new", written)
    found = read_calibration(tmp_path / "new", "lab", "box")
    assert found is not None
    assert found.content == written
    assert found.path == path
    assert path.read_text().startswith("# ")
    assert [entry.name for entry in path.parent.iterdir()] == ["lab-box.yaml"]


def test_missing_calibration_is_none(tmp_path: Path):
    assert read_calibration(tmp_path, "lab", "box") is None


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
        ("lossless_pps:", "losless_pps:", r"lab-box\.yaml:\d+: unknown key 'ceilings\.0\.losless_pps'; did you mean"),
        ("testbed: lab", "testbed: lib", "says 'testbed: lib'; in a file of this name expected 'lab'"),
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


def test_entry_has_the_figures_of_the_ceiling():
    found = find_ceiling(Loop(LINE, LINE / 2), LINE, CharacterisationTerms())
    kept = ceiling_entry(CATALOGUE.profile(["64b"]), True, found, None, 1.0, 0.4, NOW)
    assert kept.lossless_pps == pytest.approx(found.lossless)
    assert (kept.traffic, kept.direction, kept.trials, kept.measured_at) == (
        "64b",
        "bidirectional",
        len(found.trials),
        NOW,
    )


def test_profiles_are_compared_by_content():
    known = calibration(ceiling("64b var2"))
    assert known.ceiling(CATALOGUE.profile(["64b"]), False, CATALOGUE) is not None
    assert known.ceiling(CATALOGUE.profile(["64b"]), True, CATALOGUE) is None
    assert known.ceiling(CATALOGUE.profile(["64b", "1-flow"]), False, CATALOGUE) is None


def test_calibration_is_stale_by_age_or_version_and_unfit_for_another_testbed():
    known = calibration()
    assert known.why_stale("v3.08", NOW + timedelta(days=89)) == ""
    assert "91 days old" in known.why_stale("v3.08", NOW + timedelta(days=91))
    assert "was v3.08, and is v3.09 now" in known.why_stale("v3.09", NOW)
    assert known.why_stale(None, NOW) == ""
    assert known.why_unfit("hardware", LINK, False) == ""
    assert "at 10 Gbit/s, and the ports run at 25" in known.why_unfit("hardware", 25e9, False)
    assert "is 'netns' now" in known.why_unfit("netns", LINK, False)


def test_a_calibration_of_a_simulated_generator_is_not_used_for_a_real_one():
    real = calibration()
    modelled = replace(real, content=real.content.model_copy(update={"simulated": True}))
    assert modelled.why_unfit("hardware", LINK, True) == real.why_unfit("hardware", LINK, False) == ""
    assert "a simulated generator, and the generator is real now" in modelled.why_unfit("hardware", LINK, False)
    assert "a real generator, and the generator is simulated now" in real.why_unfit("hardware", LINK, True)
    assert not modelled.content.same_generator(real.content)


# -- what it makes of a verdict


@pytest.mark.parametrize("lost_at_full_load", [0, 1])
def test_lossy_trials_below_the_ceiling_stay_a_fail(lost_at_full_load: int):
    def trial(number: int, offered: float, lost: int) -> Trial:
        frames = round(offered)
        count = DirectionCount(0, 1, round(LINE / 2), frames, frames - lost)
        return assess_trial(number, Outcome(Load(LINE / 2), 1.0, 1.0, 0.0, (count,)), Tolerance())

    trials = (trial(1, LINE / 2, lost_at_full_load), *(trial(place, LINE / 4, 150_000) for place in range(2, 7)))
    verdict = Verdict(parse(FAILING, CATALOGUE), GOAL, Ruling.FAIL, "lost 4 %", trials, LINK, {})
    assert apply_ceilings(verdict, measured_limits()).ruling is Ruling.FAIL


@pytest.mark.parametrize(
    ("change", "offered"),
    [
        (lambda: measured_limits(), 0.97 * LINE / 2),
        (lambda: measured_limits(ceiling("imix")), 0.99 * LINE / 2),
        (lambda: measured_limits(ceiling(bidirectional=True)), 0.99 * LINE / 2),
        (lambda: measured_limits(link_bps=25e9), 0.99 * LINE / 2),
        (lambda: measured_limits(ceiling(lossless=LINE)), LINE),
    ],
    ids=["below", "another profile", "another direction", "other ports", "no ceiling below the line"],
)
def test_fail_stays_without_a_near_ceiling(change: Callable[[], MeasuredLimits], offered: float):
    verdict = failed(FAILING, offered)
    assert apply_ceilings(verdict, change()) is verdict


def test_offered_load_is_compared_with_the_ceiling():
    verdict = failed("64b unidirectional ≥ 100% line rate", 0.4 * LINE)
    assert apply_ceilings(verdict, measured_limits()) is verdict


def test_threshold_of_a_forwarding_rate_is_compared_with_the_ceiling():
    below, above = (failed(f"64b unidirectional forwards ≥ {n}% line rate", LINE) for n in (45, 55))
    assert apply_ceilings(below, measured_limits()) is below
    found = apply_ceilings(above, measured_limits())
    assert found.ruling is Ruling.INCONCLUSIVE
    assert found.ceiling is not None and found.ceiling["lossless_pps"] == pytest.approx(LINE / 2)
    # a generator that receives less while it sends all it can
    assert apply_ceilings(below, measured_limits(ceiling(received_pps=LINE / 3))).ruling is Ruling.INCONCLUSIVE


def test_fail_of_a_cost_stays():
    verdict = failed("64b unidirectional costs ≤ 100 cycles/packet at 60% line rate", 0.6 * LINE)
    assert apply_ceilings(verdict, measured_limits()) is verdict


SENTENCES = (
    FAILING,
    "64b unidirectional forwards ≥ 60% line rate",
    "64b unidirectional loses ≤ 1% at 60% line rate",
    "64b unidirectional latency p99 ≤ 100 µs at 60% line rate",
    "64b unidirectional costs ≤ 100 cycles/packet at 60% line rate",
)


@given(
    st.sampled_from(SENTENCES),
    st.sampled_from(Ruling),
    st.floats(0, 1.0),
    st.floats(0.01, 1.0),
    st.floats(0, 1.0),
    st.integers(0, 200),
)
def test_ceiling_only_changes_fail_to_inconclusive(
    sentence: str, ruling: Ruling, offered: float, lossless: float, lost: float, days: int
):
    verdict = failed(sentence, offered * LINE, ruling, lost)
    known = MeasuredLimits.of(
        calibration(ceiling(lossless=lossless * LINE)),
        CATALOGUE,
        "hardware",
        LINK,
        None,
        False,
        NOW + timedelta(days=days),
    )
    found = apply_ceilings(verdict, known)
    if found is not verdict:
        assert (verdict.ruling, found.ruling) == (Ruling.FAIL, Ruling.INCONCLUSIVE)
        assert replace(found, ruling=verdict.ruling, reason=verdict.reason, ceiling=None) == verdict
    else:
        assert found.ruling is ruling
    if ruling is Ruling.FAIL and sentence == FAILING and lost > 0.01 and lossless < 0.99:
        near = round(offered * LINE) > USABLE_SHARE * lossless * LINE
        assert (found.ruling is Ruling.INCONCLUSIVE) == near


def test_an_old_calibration_is_recorded_as_stale():
    old = MeasuredLimits.of(calibration(), CATALOGUE, "hardware", LINK, "v3.09", False, NOW + timedelta(days=100))
    record = old.record()
    assert (record["file"], record["used"], bool(record["stale"])) == ("lab-box.yaml", True, True)
    assert old.clock_text(CATALOGUE.profile(["64b"]), False) == ""


def test_frames_that_come_back_unchanged_pass_the_bypass_check():
    profile, directions = CATALOGUE.profile(["64b", "1-flow"]), directions_of((0, 1), bidirectional=True)
    ports = [GeneratorPort(n, f"02:00:00:00:00:0{n}", LINK, True, "test") for n in range(2)]
    frames: dict[int, list[bytes]] = {}
    for direction in directions:
        frame = bytearray.fromhex(profile_streams(profile, direction)[0].frame)
        frame[6:12] = bytes.fromhex(ports[direction.tx_port].mac.replace(":", ""))
        frames[direction.rx_port] = [b"\xff" * 60, bytes(frame)]
    check_router_bypassed(frames, profile, directions, ports)


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
            found.why_stale("v3.08", datetime.now(UTC))
        except LineproofError as error:
            assert str(error).startswith(str(path)) and str(error).isprintable() and not RAW.search(str(error))
