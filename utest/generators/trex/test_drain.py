"""How long a trial waits for frames in transit, with the test's own clock."""

from collections.abc import Callable
from typing import Any

import pytest

from lineproof.generators.trex.client.drain import wait_for_drain

Count = Callable[[float], dict[str, Any]]
BEFORE: dict[str, Any] = {port: {"opackets": 7, "ipackets": 11} for port in ("0", "1")}
AHEAD, BACK = (0, 1), (1, 0)


def wait(
    count: Count, directions: list[tuple[int, int]], drain: float = 2.0, speed: float = 1.0
) -> tuple[dict[str, Any], float]:
    """The final counters and the wait in wall s; *count*: frames sent and received by a time in wall s."""
    now = [0.0]

    def read() -> dict[str, Any]:
        return {
            port: {name: BEFORE[port][name] + value for name, value in counts.items()}
            for port, counts in count(now[0]).items()
        }

    def sleep(seconds: float) -> None:
        assert seconds >= 0
        now[0] += seconds + 1e-6

    after, took = wait_for_drain(
        read(), read, BEFORE, directions, {0: 100, 1: 100}, drain, speed, lambda: now[0], sleep
    )
    return dict(after), took


def counts(sent: int, received: int, back_sent: int = 0, back_received: int = 0) -> dict[str, Any]:
    return {"0": {"opackets": sent, "ipackets": back_received}, "1": {"opackets": back_sent, "ipackets": received}}


@pytest.mark.parametrize("sent", [99, 100])
def test_no_wait_if_no_frame_is_missing(sent: int) -> None:
    assert wait(lambda _: counts(sent, sent), [AHEAD])[1] == 0
    assert wait(lambda _: counts(sent, sent, 100, 103), [AHEAD, BACK])[1] == 0


def test_the_wait_for_a_missing_frame_ends_when_none_has_come_for_a_while() -> None:
    assert wait(lambda _: counts(100, 99), [AHEAD])[1] == pytest.approx(1.6, abs=0.01)


def test_the_wait_lasts_as_long_as_frames_come_at_most_the_whole_drain() -> None:
    after, took = wait(lambda now: counts(100, 60 + int(10 * now)), [AHEAD])
    assert after["1"]["ipackets"] > 85 and took == pytest.approx(2, abs=0.01)


def test_counters_that_are_updated_once_a_second_do_not_end_the_wait() -> None:
    after, took = wait(lambda now: counts(100, 100 if now > 1.5 else 60), [AHEAD])
    assert after["1"]["ipackets"] == 111 and 1.5 < took < 1.6


def test_extra_frames_of_one_direction_do_not_end_the_wait_of_the_other() -> None:
    after, took = wait(lambda now: counts(100, 100 if now > 1 else 90, 100, 150), [AHEAD, BACK])
    assert after["1"]["ipackets"] == 111 and 1 < took < 1.1


def test_the_wait_uses_the_testbeds_clock_with_a_minimum() -> None:
    assert wait(lambda _: counts(100, 0), [AHEAD], speed=4)[1] == pytest.approx(0.4, abs=0.01)
    assert wait(lambda _: counts(100, 0), [AHEAD], speed=1000)[1] == pytest.approx(0.1, abs=0.01)
    assert wait(lambda _: counts(100, 0), [AHEAD], drain=0)[1] == pytest.approx(0.1, abs=0.01)


def test_a_short_wait_if_too_few_frames_were_sent_and_none_is_missing() -> None:
    assert 0.1 <= wait(lambda _: counts(80, 80), [AHEAD])[1] < 0.2
    # lagging counters
    after, took = wait(lambda now: counts(*((100, 100) if now > 0.05 else (80, 80))), [AHEAD])
    assert after["0"]["opackets"] == 107 and took < 0.1
