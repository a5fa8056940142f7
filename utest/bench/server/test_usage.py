"""The generator's CPU, as the embedded server tells it: each second's load, the latest first, and TRex's smooth one."""

from __future__ import annotations

from lineproof_bench.backend import Utilisation
from lineproof_bench.server.statistics import Statistics
from support.server_support import FakeBackend


class Busy(FakeBackend):
    """As busy as is said."""

    percent = 0.0

    def utilisation(self) -> Utilisation:
        return Utilisation(self.percent, 3.0)


def reported(statistics: Statistics) -> list[int]:
    (core,) = statistics.utilisation()["cpu"]
    found: list[int] = core["history"]
    return found


def test_cpu_load_of_each_second_is_reported() -> None:
    backend, clock = Busy(), [0.0]
    statistics = Statistics(backend, lambda: clock[0])
    for moment, percent in ((0.5, 99.0), (1.0, 40.0), (1.9, 99.0), (2.0, 60.0)):
        clock[0], backend.percent = moment, percent
        statistics.sample_cpu()
    assert reported(statistics) == [60, 40] + [0] * 18


def test_the_smooth_load_follows_the_raw_one_by_a_quarter_each_second() -> None:
    backend, clock = Busy(), [0.0]
    statistics = Statistics(backend, lambda: clock[0])
    backend.percent = 80.0
    for second in (1, 2):
        clock[0] = second
        statistics.sample_cpu()
    found = statistics.overall()
    assert (found["m_cpu_util_raw"], found["m_cpu_util"], found["m_rx_cpu_util"]) == (80.0, 35.0, 3.0)
    assert statistics.port(0)["m_cpu_util"] == 35.0
