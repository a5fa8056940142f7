"""The generator's own ceilings: how they are found, and what they make of a verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linerate.ceilings.calibration import (
    OwnLatencyEntry,
    entry,
    read_calibration,
    write_calibration,
)
from linerate.ceilings.headroom import SHARE, Headroom, applied
from linerate.counts.latency import LatencyCount
from linerate.counts.trial import DirectionCount, Fault, Load, Outcome, Problem, Tolerance, Trial, judge
from linerate.errors import ConfigError, TestbedError
from linerate.generators.base import Direction, GeneratorPort
from linerate.generators.streams import streams
from linerate.methods.ceiling import LEAST, MOST, WIDTH, headroom, own_latency
from linerate.methods.trials import Terms
from linerate.session.bypass import check_bypassed
from linerate.sla.sentence import parse
from linerate.sla.verdict import Ruling, Verdict
from support.ceilings import CATALOGUE, FAILING, GOAL, LINE, LINK, NOW, beside, calibration, ceiling, content, failed

WAYS = (Direction(0, 1), Direction(1, 0, swapped=True))


class Loop:
    """A generator on its own cable. ``sends`` and ``receives``: frames/s of each port; beyond *receives* it loses."""

    def __init__(self, sends: float, receives: float, directions: int = 1, faults: tuple[Problem, ...] = ()) -> None:
        self.sends, self.receives, self.directions, self.faults, self.asked = (
            sends,
            receives,
            directions,
            faults,
            list[float](),
        )

    def __call__(self, load: Load, duration: float) -> Outcome:
        self.asked.append(load.pps)
        offered = round(min(load.pps, self.sends) * duration)
        back = round(min(offered, self.receives * duration))
        directions = tuple(
            DirectionCount(n, 1 - n, round(load.pps * duration), offered, back) for n in range(self.directions)
        )
        return Outcome(load, duration, duration, 0.0, directions, self.faults)


def test_a_generator_without_limits_is_asked_twice():
    loop = Loop(2 * LINE, 2 * LINE)
    found = headroom(loop, LINE, Terms())
    assert (found.offered, found.lossless) == (LINE, pytest.approx(LINE))
    assert loop.asked == [LINE, LINE]


@given(
    st.floats(0.002, 1.2).map(lambda share: share * LINE),
    st.floats(0.002, 1.2).map(lambda share: share * LINE),
    st.sampled_from([1, 2]),
)
def test_both_ceilings_are_found_within_the_width_and_never_promised_beyond(
    sends: float, receives: float, directions: int
):
    loop = Loop(sends, receives, directions)
    found = headroom(loop, LINE, Terms())
    most = min(sends, LINE)
    # what the trials' tolerance lets pass counts as offered
    assert most * (1 - 2 * WIDTH) <= found.offered <= min(LINE, most * (1 + WIDTH))
    carried = min(most, receives)
    assert carried * (1 - 2 * WIDTH) - 1 <= found.lossless <= carried + 1
    assert found.received == pytest.approx(carried, abs=1)
    assert len(loop.asked) <= 2 + 3 * MOST


def test_one_lucky_trial_is_not_believed():
    class Lucky(Loop):
        def __call__(self, load: Load, duration: float) -> Outcome:
            self.receives = LINE if not self.asked else LINE / 2
            return super().__call__(load, duration)

    assert headroom(Lucky(LINE, LINE), LINE, Terms()).lossless <= LINE / 2 + 1


def test_what_the_generator_says_it_missed_is_a_ceiling_and_no_spoilt_trial():
    missed = (Problem(Fault.GENERATOR, "frames missed"),)

    def measure(load: Load, duration: float) -> Outcome:
        return Loop(LINE, LINE / 2, faults=missed if load.pps > LINE / 2 else ())(load, duration)

    assert headroom(measure, LINE, Terms()).lossless == pytest.approx(LINE / 2, rel=2 * WIDTH)


@pytest.mark.parametrize(
    ("loop", "words"),
    [
        (Loop(LINE, 0), "with the router bypassed frames are lost even at"),
        (Loop(0, LINE), "does not offer even"),
        (Loop(LINE, LINE, faults=(Problem(Fault.LINK_DOWN, "port 0"),)), "could not be calibrated: .*link was down"),
    ],
)
def test_a_broken_bench_is_not_calibrated(loop: Loop, words: str):
    with pytest.raises(TestbedError, match=words):
        headroom(loop, LINE, Terms())


def test_nothing_is_looked_for_far_below_the_line():
    with pytest.raises(TestbedError):
        headroom(Loop(LINE, LEAST * LINE / 3), LINE, Terms())


def test_the_latency_is_of_the_worse_direction():
    slow = LatencyCount(1, 0, 100, 100, 7.0, 30.0, 1.0, 2.0, {0: 98, 20: 2})
    quick = replace(slow, tx_port=0, rx_port=1, mean=4.0)
    found = own_latency(Outcome(Load(1e6), 1.0, 1.0, 0.0, (), latency=(quick, slow)))
    assert found is not None
    assert (found.mean, found.p99_low, found.p99_high, found.minimum, found.pps) == (7.0, 20.0, 30.0, 2.0, 1e6)
    assert own_latency(Outcome(Load(1e6), 1.0, 1.0, 0.0, ())) is None


# -- the file


def test_a_file_is_read_as_it_was_written(tmp_path: Path):
    latency = OwnLatencyEntry(load_pps=1e6, frames=9, mean_us=4.2, p99_low_us=0, p99_high_us=10)
    written = content(ceiling(latency=latency))
    path = write_calibration(tmp_path / "new", written)
    found = read_calibration(tmp_path / "new", "lab", "box")
    assert found is not None
    assert found.content == written
    assert found.path == path
    assert path.read_text().startswith("# ")
    assert [entry.name for entry in path.parent.iterdir()] == ["lab-box.yaml"]


def test_there_may_be_none(tmp_path: Path):
    assert read_calibration(tmp_path, "lab", "box") is None


def test_ceilings_of_the_same_generator_stay_beside_new_ones(tmp_path: Path):
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
def test_a_wrong_file_says_where(tmp_path: Path, old: str, new: str, words: str):
    path = write_calibration(tmp_path, content())
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ConfigError, match=words):
        read_calibration(tmp_path, "lab", "box")


def test_a_result_becomes_an_entry():
    found = headroom(Loop(LINE, LINE / 2), LINE, Terms())
    kept = entry(CATALOGUE.profile(["64b"]), True, found, None, 1.0, 0.4, NOW)
    assert kept.lossless_pps == pytest.approx(found.lossless)
    assert (kept.traffic, kept.direction, kept.trials, kept.when) == ("64b", "bidirectional", len(found.trials), NOW)


def test_a_profile_is_known_by_what_it_is():
    known = calibration(ceiling("64b var2"))
    assert known.ceiling(CATALOGUE.profile(["64b"]), False, CATALOGUE) is not None
    assert known.ceiling(CATALOGUE.profile(["64b"]), True, CATALOGUE) is None
    assert known.ceiling(CATALOGUE.profile(["64b", "1-flow"]), False, CATALOGUE) is None


def test_age_and_version_make_it_stale_and_another_bench_unfit():
    known = calibration()
    assert known.stale("v3.08", NOW + timedelta(days=89)) == ""
    assert "91 days old" in known.stale("v3.08", NOW + timedelta(days=91))
    assert "was v3.08, and is v3.09 now" in known.stale("v3.09", NOW)
    assert known.stale(None, NOW) == ""
    assert known.unfit("hardware", LINK) == ""
    assert "at 10 Gbit/s, and the ports run at 25" in known.unfit("hardware", 25e9)
    assert "is 'netns' now" in known.unfit("netns", LINK)


# -- what it makes of a verdict


def test_a_fail_near_or_above_the_ceiling_is_inconclusive_and_says_why():
    found = applied(failed(FAILING, 0.99 * LINE / 2), beside())
    assert found.outcome is Ruling.INCONCLUSIVE
    assert "so near the generator's own ceiling" in found.message
    assert "7.44 Mpps of 64b unidirectional without loss (calibrated on 2026-11-21" in found.message
    assert "lost 10 %" in found.message
    assert found.ceiling is not None
    assert found.ceiling["lossless_pps"] == pytest.approx(LINE / 2)


@pytest.mark.parametrize("lost_at_full_load", [0, 1])
def test_trials_below_the_ceiling_fail_whatever_one_at_full_load_lost(lost_at_full_load: int):
    def trial(number: int, offered: float, lost: int) -> Trial:
        frames = round(offered)
        count = DirectionCount(0, 1, round(LINE / 2), frames, frames - lost)
        return judge(number, Outcome(Load(LINE / 2), 1.0, 1.0, 0.0, (count,)), Tolerance())

    trials = (trial(1, LINE / 2, lost_at_full_load), *(trial(place, LINE / 4, 150_000) for place in range(2, 7)))
    verdict = Verdict(parse(FAILING, CATALOGUE), GOAL, Ruling.FAIL, "lost 4 %", trials, LINK, {})
    assert applied(verdict, beside()).outcome is Ruling.FAIL


@pytest.mark.parametrize(
    ("change", "offered"),
    [
        (lambda: beside(), 0.97 * LINE / 2),
        (lambda: beside(ceiling("imix")), 0.99 * LINE / 2),
        (lambda: beside(ceiling(bidirectional=True)), 0.99 * LINE / 2),
        (lambda: beside(link_bps=25e9), 0.99 * LINE / 2),
        (lambda: beside(ceiling(lossless=LINE)), LINE),
    ],
    ids=["below", "another profile", "another direction", "other ports", "no ceiling below the line"],
)
def test_a_fail_stays(change: Callable[[], Headroom], offered: float):
    verdict = failed(FAILING, offered)
    assert applied(verdict, change()) is verdict


def test_less_offered_than_asked_is_what_counts():
    verdict = failed("64b unidirectional ≥ 100% line rate", 0.4 * LINE)
    assert applied(verdict, beside()) is verdict


def test_a_forwarding_rate_is_held_against_what_must_come_back():
    below, above = (failed(f"64b unidirectional forwards ≥ {n}% line rate", LINE) for n in (45, 55))
    assert applied(below, beside()) is below
    assert applied(above, beside()).outcome is Ruling.INCONCLUSIVE
    # a generator that receives less while it sends all it can
    assert applied(below, beside(ceiling(received_pps=LINE / 3))).outcome is Ruling.INCONCLUSIVE


def test_cycles_are_the_routers_own_count():
    verdict = failed("64b unidirectional costs ≤ 100 cycles/packet at 60% line rate", 0.6 * LINE)
    assert applied(verdict, beside()) is verdict


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
def test_it_only_ever_takes_a_fail_away(
    sentence: str, ruling: Ruling, offered: float, lossless: float, lost: float, days: int
):
    verdict = failed(sentence, offered * LINE, ruling, lost)
    known = Headroom.of(
        calibration(ceiling(lossless=lossless * LINE)), CATALOGUE, "hardware", LINK, None, NOW + timedelta(days=days)
    )
    found = applied(verdict, known)
    if found is not verdict:
        assert (verdict.outcome, found.outcome) == (Ruling.FAIL, Ruling.INCONCLUSIVE)
        assert replace(found, outcome=verdict.outcome, reason=verdict.reason, ceiling=None) == verdict
    else:
        assert found.outcome is ruling
    if ruling is Ruling.FAIL and sentence == FAILING and lost > 0.01 and lossless < 0.99:
        near = round(offered * LINE) > SHARE * lossless * LINE
        assert (found.outcome is Ruling.INCONCLUSIVE) == near


def test_the_words_say_what_is_used_and_what_is_stale():
    assert str(beside()) == "calibration lab-box.yaml of 2026-11-21 (1 ceilings)"
    old = Headroom.of(calibration(), CATALOGUE, "hardware", LINK, "v3.09", NOW + timedelta(days=100))
    assert "STALE: it is 100 days old and the generator was v3.08" in str(old)
    assert "is not used: it was measured at 10 Gbit/s" in str(beside(link_bps=25e9))
    assert "STALE" in applied(failed(FAILING, LINE / 2), old).message
    assert old.record()["stale"]


def test_the_clock_is_told_in_the_words_of_latency():
    latency = OwnLatencyEntry(load_pps=1e6, frames=900, mean_us=4.2, p99_low_us=0, p99_high_us=10, minimum_us=2)
    known = beside(ceiling(latency=latency))
    words = known.clock(CATALOGUE.profile(["64b"]), False)
    assert words.startswith(
        "with the router bypassed it tells at least 2 µs, 4.2 µs on average, p99 0 to 10 µs at 1 Mpps"
    )
    assert known.clock(CATALOGUE.profile(["64b"]), True) == ""
    assert beside().clock(CATALOGUE.profile(["64b"]), False) == ""


# -- is the router really bypassed?


ONE_FLOW = CATALOGUE.profile(["64b", "1-flow"])
PORTS = tuple(GeneratorPort(n, f"02:00:00:00:00:0{n}", LINK, True, "test") for n in range(2))


def came_back(change: Callable[[bytearray], None] = lambda frame: None) -> dict[int, list[bytes]]:
    found = {}
    for direction in WAYS:
        frame = bytearray.fromhex(streams(ONE_FLOW, direction)[0].frame)
        frame[6:12] = bytes.fromhex(PORTS[direction.tx_port].mac.replace(":", ""))
        change(frame)
        found[direction.rx_port] = [b"\xff" * 60, bytes(frame)]
    return found


def routed(frame: bytearray) -> None:
    frame[22] -= 1


def bridged(frame: bytearray) -> None:
    frame[6:12] = bytes(6)


def test_frames_as_they_were_sent_are_let_pass():
    check_bypassed(came_back(), ONE_FLOW, WAYS, PORTS)


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        (came_back(routed), "a router is still between .* time to live 63, sent with 64; connect"),
        (came_back(bridged), "something is still between .* came from 00:00:00:00:00:00"),
        ({0: came_back()[0]}, "no frame came from the generator's port 0 to its port 1; connect"),
    ],
)
def test_a_router_in_between_is_refused(frames: dict[int, list[bytes]], words: str):
    with pytest.raises(TestbedError, match=words):
        check_bypassed(frames, ONE_FLOW, WAYS, PORTS)
