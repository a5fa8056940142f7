"""How long a trial waits for frames that are still under way, on a clock of the test's own."""

from collections.abc import Callable
from typing import Any

import pytest

from linerate.generators.trex.client.drain import drained

Count = Callable[[float], dict[str, Any]]
BEFORE: dict[str, Any] = {port: {"opackets": 7, "ipackets": 11} for port in ("0", "1")}
AHEAD, BACK = (0, 1), (1, 0)


def wait(
    count: Count, directions: list[tuple[int, int]], drain: float = 2.0, speed: float = 1.0
) -> tuple[dict[str, Any], float]:
    """The counters taken and the wait in wall s; *count* tells what was sent and received at a time of the wall."""
    now = [0.0]

    def read() -> dict[str, Any]:
        return {
            port: {name: BEFORE[port][name] + value for name, value in counts.items()}
            for port, counts in count(now[0]).items()
        }

    def sleep(seconds: float) -> None:
        assert seconds >= 0
        now[0] += seconds + 1e-6

    after, took = drained(read(), read, BEFORE, directions, {0: 100, 1: 100}, drain, speed, lambda: now[0], sleep)
    return dict(after), took


def counts(sent: int, came: int, back_sent: int = 0, back_came: int = 0) -> dict[str, Any]:
    return {"0": {"opackets": sent, "ipackets": back_came}, "1": {"opackets": back_sent, "ipackets": came}}


@pytest.mark.parametrize("sent", [99, 100])
def test_nothing_missing_means_no_wait(sent: int) -> None:
    assert wait(lambda _: counts(sent, sent), [AHEAD])[1] == 0
    assert wait(lambda _: counts(sent, sent, 100, 103), [AHEAD, BACK])[1] == 0


def test_standing_counters_do_not_end_the_wait_for_a_missing_frame() -> None:
    assert wait(lambda _: counts(100, 99), [AHEAD])[1] == pytest.approx(2, abs=0.01)


def test_a_frame_that_comes_after_a_pause_is_counted_and_ends_the_wait() -> None:
    after, took = wait(lambda now: counts(100, 100 if now > 1.5 else 60), [AHEAD])
    assert after["1"]["ipackets"] == 111 and 1.5 < took < 1.6


def test_a_surplus_of_one_way_does_not_end_the_wait_of_the_other() -> None:
    after, took = wait(lambda now: counts(100, 100 if now > 1 else 90, 100, 150), [AHEAD, BACK])
    assert after["1"]["ipackets"] == 111 and 1 < took < 1.1


def test_the_wait_is_on_the_clock_of_the_bench_but_never_nothing() -> None:
    assert wait(lambda _: counts(100, 0), [AHEAD], speed=4)[1] == pytest.approx(0.5, abs=0.01)
    assert wait(lambda _: counts(100, 0), [AHEAD], speed=1000)[1] == pytest.approx(0.1, abs=0.01)
    assert wait(lambda _: counts(100, 0), [AHEAD], drain=0)[1] == pytest.approx(0.1, abs=0.01)


def test_too_little_sent_of_which_nothing_is_missing_is_looked_at_for_a_moment() -> None:
    assert 0.1 <= wait(lambda _: counts(80, 80), [AHEAD])[1] < 0.2
    # the counters lagged
    after, took = wait(lambda now: counts(*((100, 100) if now > 0.05 else (80, 80))), [AHEAD])
    assert after["0"]["opackets"] == 107 and took < 0.1
