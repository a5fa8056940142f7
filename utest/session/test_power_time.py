"""Which time a power meter's figures cover: that of the trial, and nothing before it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from lineproof.core.trial import Fault, Load, Measure
from support.power_bench import PowerBench

LOAD = Load(1e6)
PHASES = (0.0, 0.01, 0.3, 0.5, 0.99)


def watts(sentence: Measure) -> tuple[float, float, float]:
    """Least and most figure of a trial, and the idle power."""
    found = sentence(LOAD, 1.0)
    assert not found.problems, found.problems
    names = ("power_least_watts", "power_most_watts", "idle_power_watts")
    least, most, idle = (found.readings[name] for name in names)
    return least, most, idle


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("keys", [{}, {"interval": 1, "settle": 1}, {"interval": 5, "settle": 5}])
@pytest.mark.parametrize("averages", [False, True])
def test_a_gauge_that_is_renewed_now_and_then_shows_the_trial_alone(
    keys: dict[str, Any], phase: float, averages: bool
) -> None:
    bench = PowerBench()
    interval = keys.get("interval", 1.0)
    bench.gauge = bench.renewed(interval, phase * interval, interval if averages else 0.0)
    sentence = bench.powered(**keys).of_sentence()
    for _ in range(3):
        bench.sleep(3.3)
        assert watts(sentence) == pytest.approx((15.0, 15.0, 5.0))


def test_a_reading_of_the_doctor_is_one_figure_of_now() -> None:
    bench = PowerBench()
    powered = bench.powered()
    bench.measure(LOAD, 10.0, lambda wait: None)
    assert powered.watts() == pytest.approx(5.0)
    bench.measure(LOAD, 10.0, lambda wait: None)
    assert powered.watts() == pytest.approx(5.0)


@pytest.mark.parametrize("interval", [1, 5, 30])
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("averages", [False, True])
def test_a_line_from_before_the_traffic_does_not_count(
    tmp_path: Path, interval: float, phase: float, averages: bool
) -> None:
    bench, file = PowerBench(), tmp_path / "power.csv"
    bench.log(file, interval, phase * interval, averages)
    bench.sleep(2 * interval)
    sentence = bench.powered(kind="csv", file=file, interval=interval).of_sentence()
    for _ in range(3):
        bench.sleep(0.77 * interval)
        assert watts(sentence) == pytest.approx((15.0, 15.0, 5.0))


@pytest.mark.parametrize("ahead", [-1.5, 0.9])
def test_a_clock_that_differs_a_little_makes_no_old_line_a_new_one(tmp_path: Path, ahead: float) -> None:
    bench, file = PowerBench(ahead=ahead), tmp_path / "power.csv"
    bench.log(file, 1.0, 0.5)
    bench.sleep(3)
    sentence = bench.powered(kind="csv", file=file, interval=1, settle=1).of_sentence()
    for _ in range(3):
        assert watts(sentence) == pytest.approx((15.0, 15.0, 5.0))


@pytest.mark.parametrize(("interval", "late", "ahead"), [(5.0, 0.0, 0.0), (1.0, 4.0, 0.0), (1.0, 0.0, 3.0)])
def test_a_file_without_a_figure_of_the_trial_itself_proves_nothing(
    tmp_path: Path, interval: float, late: float, ahead: float
) -> None:
    bench, file = PowerBench(ahead=ahead), tmp_path / "power.csv"
    bench.log(file, interval, late=late)
    bench.sleep(4 * interval + late)
    found = bench.powered(kind="csv", file=file, interval=1).of_sentence()(LOAD, 1.0)
    assert [problem.fault for problem in found.problems] == [Fault.READING]
    assert "power_watts" not in found.readings
    assert str(file) in found.problems[0].detail and "clocks" in found.problems[0].detail


def test_each_sentence_has_an_idle_power_of_its_own() -> None:
    bench = PowerBench()
    bench.gauge = bench.renewed(1.0, 0.3, 1.0)
    powered = bench.powered()
    for idle in (5.0, 9.0, 6.0):
        bench.change_idle(idle)  # its fans
        sentence = powered.of_sentence()
        for _ in range(3):
            assert watts(sentence) == pytest.approx((idle + 10, idle + 10, idle))
            bench.sleep(2)


def test_the_readings_of_a_trial_say_when_they_were_taken() -> None:
    bench = PowerBench()
    sentence = bench.powered(interval=1, settle=2).of_sentence()
    first, second = (sentence(LOAD, 1.0) for _ in range(2))
    for found in (first, second):
        known = found.readings
        assert known["power_began"] - found.started == pytest.approx(2)
        assert known["power_ended"] - known["power_began"] == pytest.approx(3)
        assert known["idle_power_began"] == pytest.approx(first.started - 3)
        assert known["idle_power_ended"] == pytest.approx(first.started)


def test_an_idle_power_that_was_not_there_is_read_before_the_next_trial() -> None:
    bench = PowerBench()
    sentence = bench.powered().of_sentence()
    bench.gauge = lambda when: math.nan
    assert [problem.fault for problem in sentence(LOAD, 1.0).problems] == [Fault.READING]
    bench.gauge = bench.watts
    assert watts(sentence) == pytest.approx((15.0, 15.0, 5.0))
