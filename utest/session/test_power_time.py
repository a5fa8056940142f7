"""Which time a power meter's figures cover: that of the trial, and nothing before it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from linerate.counts.trial import Fault, Load
from linerate.session.power import PoweredTrials
from support.power_bench import PowerBench

LOAD = Load(1e6)
PHASES = (0.0, 0.01, 0.3, 0.5, 0.99)


def watts(powered: PoweredTrials) -> tuple[float, float, float]:
    """Least and most figure of a trial, and the idle power."""
    found = powered.outcome(LOAD, 1.0)
    assert not found.problems, found.problems
    names = ("power_least_watts", "power_most_watts", "idle_power_watts")
    least, most, idle = (found.readings[name] for name in names)
    return least, most, idle


@pytest.mark.parametrize("pause", [0.0, 2.0, 100.0, 3000.0])
def test_an_energy_counter_does_not_count_the_pause_before_a_trial(pause: float) -> None:
    bench = PowerBench(answer=0.1)
    powered = bench.powered(kind="rapl")
    for _ in range(3):
        bench.sleep(pause)
        assert watts(powered) == pytest.approx((15.0, 15.0, 5.0))


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("keys", [{}, {"interval": 1, "settle": 1}, {"interval": 5, "settle": 5}])
@pytest.mark.parametrize("averages", [False, True])
def test_a_gauge_that_is_renewed_now_and_then_shows_the_trial_alone(
    keys: dict[str, Any], phase: float, averages: bool
) -> None:
    bench = PowerBench()
    interval = keys.get("interval", 1.0)
    bench.gauge = bench.renewed(interval, phase * interval, interval if averages else 0.0)
    powered = bench.powered(kind="ipmi", **keys)
    for _ in range(3):
        bench.sleep(3.3)
        assert watts(powered) == pytest.approx((15.0, 15.0, 5.0))


def test_idle_power_is_not_that_of_the_traffic_just_before() -> None:
    for kind in ("rapl", "ipmi"):
        bench = PowerBench()
        bench.gauge = bench.renewed(1.0, 0.9, 1.0)
        bench.measure(LOAD, 10.0, lambda wait: None)  # the warm-up
        assert watts(bench.powered(kind=kind)) == pytest.approx((15.0, 15.0, 5.0))


def test_a_reading_of_the_doctor_is_one_figure_of_now() -> None:
    bench = PowerBench()
    powered = bench.powered(kind="rapl")
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
    powered = bench.powered(kind="csv", file=file, interval=interval)
    for _ in range(3):
        bench.sleep(0.77 * interval)
        assert watts(powered) == pytest.approx((15.0, 15.0, 5.0))


@pytest.mark.parametrize("ahead", [-1.5, 0.9])
def test_a_clock_that_differs_a_little_makes_no_old_line_a_new_one(tmp_path: Path, ahead: float) -> None:
    bench, file = PowerBench(ahead=ahead), tmp_path / "power.csv"
    bench.log(file, 1.0, 0.5)
    bench.sleep(3)
    powered = bench.powered(kind="csv", file=file, interval=1, settle=1)
    for _ in range(3):
        assert watts(powered) == pytest.approx((15.0, 15.0, 5.0))


@pytest.mark.parametrize(("interval", "late", "ahead"), [(5.0, 0.0, 0.0), (1.0, 4.0, 0.0), (1.0, 0.0, 3.0)])
def test_a_file_without_a_figure_of_the_trial_itself_proves_nothing(
    tmp_path: Path, interval: float, late: float, ahead: float
) -> None:
    bench, file = PowerBench(ahead=ahead), tmp_path / "power.csv"
    bench.log(file, interval, late=late)
    bench.sleep(4 * interval + late)
    found = bench.powered(kind="csv", file=file, interval=1).outcome(LOAD, 1.0)
    assert [problem.fault for problem in found.problems] == [Fault.READING]
    assert "power_watts" not in found.readings
    assert str(file) in found.problems[0].detail and "clocks" in found.problems[0].detail
