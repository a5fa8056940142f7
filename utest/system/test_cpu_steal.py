import pytest

from lineproof.system.cpu_clock import cpu_times, steal_percent, steal_text


def test_steal_is_a_share_of_all_cpu_time():
    before = {"user": 10.0, "idle": 80.0, "steal": 0.0, "guest": 5.0}
    after = {"user": 20.0, "idle": 160.0, "steal": 10.0, "guest": 9.0}
    assert steal_percent(before, after) == pytest.approx(10)
    assert steal_text(steal_percent(before, after)) == "10.0 %"


def test_steal_that_is_not_reported_is_unknown_and_not_zero():
    now = cpu_times()
    assert steal_percent(now, now) is None
    assert steal_percent({"user": 1.0}, {"user": 2.0}) is None
    assert steal_text(None) == "not known"


def test_a_container_without_times_has_no_steal_and_no_error(monkeypatch: pytest.MonkeyPatch):
    def missing() -> None:
        raise FileNotFoundError("/proc/stat")

    monkeypatch.setattr("psutil.cpu_times", missing)
    assert cpu_times() == {} and steal_percent(cpu_times(), cpu_times()) is None
