"""Energy per packet: power by forwarding rate, with what the meter leaves open."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.counts.trial import DirectionCount, Fault, Load, Outcome, Problem
from lineproof.methods.energy import ABOVE_IDLE_UNCERTAINTY, IDLE_POWER, POWER, UNCERTAINTY, energy
from lineproof.methods.sequential import TrialConditions
from lineproof.sla.goals import read_goal
from lineproof.sla.sentence import parse
from lineproof.sla.verdict import Ruling, Verdict
from lineproof.traffic.catalogue import Catalogue
from support.paths import VARIABLES

CATALOGUE = Catalogue.read(VARIABLES / "profiles")
METER = "measured by a meter of this test"


@dataclass
class Bench:
    """A router that forwards *rate* frames/s at most, and a meter. ``watts``: of the trials, in turn."""

    watts: tuple[float, ...] = (19.0,)
    uncertainty: float = 0.0
    rate: float = 15.1e6
    sent: float = 1.0
    problems: tuple[Problem, ...] = ()
    readings: dict[str, float] = field(default_factory=dict)
    count: int = 0

    def measure(self, load: Load, duration: float) -> Outcome:
        power = self.watts[self.count % len(self.watts)]
        self.count += 1
        offered = round(self.sent * load.pps * duration)
        forwarded = round(min(self.rate, self.sent * load.pps) * duration)
        known = {POWER: power, UNCERTAINTY: self.uncertainty, **self.readings}
        counts = (DirectionCount(0, 1, round(load.pps * duration), offered, forwarded),)
        return Outcome(load, duration, duration, 0.0, counts, self.problems, known)

    def judged(self, words: str, load: float = 15.1e6) -> Verdict:
        requirement = parse(f"64b 1-flow unidirectional costs {words}", CATALOGUE)
        goal = read_goal(VARIABLES / "goals", "quick")
        return energy(requirement, Load(load), goal, self.measure, METER, 100e9, TrialConditions())


@pytest.mark.parametrize(("words", "ruling"), [("≤ 1.5 µJ/packet", Ruling.PASS), ("≤ 1.2 uJ/packet", Ruling.FAIL)])
def test_energy_is_power_by_rate(words: str, ruling: Ruling) -> None:
    verdict = Bench().judged(words)
    assert verdict.ruling is ruling
    assert verdict.figures["energy_uj"] == pytest.approx(1.258, abs=5e-4)
    assert "1.258 µJ/packet: 19 W while 15.1 Mpps" in verdict.reason and METER in verdict.reason


def test_a_mean_that_the_meter_leaves_open_is_no_fail() -> None:
    """Eight of nine trials are good; their mean with the other is at most the limit, or above, as the meter errs."""
    verdict = Bench((4.0, *[1.0] * 8), uncertainty=1.0, rate=181_907).judged("≤ 11 µJ/packet")
    assert verdict.ruling is Ruling.INCONCLUSIVE
    assert "the meter's uncertainty leaves open whether that is at most 11" in verdict.reason
    assert Bench((400.0, *[1.0] * 8), uncertainty=1.0, rate=181_907).judged("≤ 11 µJ/packet").ruling is Ruling.FAIL


def test_trials_beyond_the_limit_are_counted_where_the_mean_leaves_it_open() -> None:
    verdict = Bench((1.0, 1.0, 4.0), uncertainty=1.0, rate=181_907).judged("≤ 11 µJ/packet")
    assert verdict.ruling is Ruling.FAIL
    assert "; 5 of 15 trials are certainly beyond 11" in verdict.reason


def test_loss_does_not_matter_but_what_was_not_forwarded_takes_part_in_no_packet() -> None:
    verdict = Bench(rate=7.55e6).judged("≤ 3 µJ/packet")
    assert verdict.ruling is Ruling.PASS
    assert verdict.figures["energy_uj"] == pytest.approx(2.517, abs=1e-3)


def test_a_meter_that_leaves_it_open_proves_nothing() -> None:
    verdict = Bench(uncertainty=0.5).judged("≤ 1.26 µJ/packet")
    assert verdict.ruling is Ruling.INCONCLUSIVE
    assert "1.258 µJ/packet (1.225 to 1.291): the meter's uncertainty leaves open" in verdict.reason
    assert Bench(uncertainty=0.5).judged("≤ 1.3 µJ/packet").ruling is Ruling.PASS
    assert Bench(uncertainty=0.5).judged("≤ 1.2 µJ/packet").ruling is Ruling.FAIL


def test_above_idle_is_the_difference() -> None:
    bench = Bench(uncertainty=0.5, readings={IDLE_POWER: 16.0, ABOVE_IDLE_UNCERTAINTY: 0.1})
    verdict = bench.judged("≤ 0.21 µJ/packet above idle")
    assert verdict.ruling is Ruling.PASS
    assert verdict.figures["energy_above_idle_uj"] == pytest.approx(0.1987, abs=1e-4)
    assert "(16 W idle)" in verdict.reason


@pytest.mark.parametrize("idle", [18.95, 19.0, 25.0])
def test_a_meter_that_shows_no_load_proves_nothing_above_idle(idle: float) -> None:
    bench = Bench(readings={IDLE_POWER: idle, ABOVE_IDLE_UNCERTAINTY: 0.1})
    verdict = bench.judged("≤ 5 µJ/packet above idle")
    assert verdict.ruling is Ruling.INCONCLUSIVE
    assert "the meter shows no more under load than idle" in verdict.reason


def test_without_a_figure_nothing_is_proven() -> None:
    assert Bench().judged("≤ 9 µJ/packet above idle").ruling is Ruling.INCONCLUSIVE
    assert Bench(rate=0).judged("≤ 9 µJ/packet").ruling is Ruling.INCONCLUSIVE
    spoilt = Bench(problems=(Problem(Fault.COUNTERS, "the meter did not answer"),)).judged("≤ 9 µJ/packet")
    assert spoilt.ruling is Ruling.INCONCLUSIVE and "the meter did not answer" in spoilt.reason


def test_a_lower_load_than_asked_proves_only_what_holds_even_there() -> None:
    assert Bench(sent=0.9).judged("≤ 1.5 µJ/packet").ruling is Ruling.PASS
    assert Bench(sent=0.9).judged("≤ 1.3 µJ/packet").ruling is Ruling.INCONCLUSIVE
    assert Bench(sent=0.9).judged("≤ 1.5 µJ/packet at 15.1 Mpps").ruling is Ruling.INCONCLUSIVE


@given(
    watts=st.lists(st.floats(0.1, 1e4), min_size=1, max_size=5),
    uncertainty=st.floats(0, 50),
    rate=st.floats(1e3, 15e6),
    limit=st.floats(1e-3, 1e4),
    more=st.floats(1, 10),
)
def test_more_power_or_fewer_frames_never_help(
    watts: list[float], uncertainty: float, rate: float, limit: float, more: float
) -> None:
    words = f"≤ {limit:.6f} µJ/packet"
    first = Bench(tuple(watts), uncertainty, rate).judged(words)
    for worse in (
        Bench(tuple(item * more for item in watts), uncertainty, rate),
        Bench(tuple(watts), uncertainty, rate / more),
    ):
        assert (first.ruling, worse.judged(words).ruling) != (Ruling.FAIL, Ruling.PASS)
    if first.ruling is Ruling.PASS:
        assert first.figures["energy_uj_high"] <= limit * 1.001
