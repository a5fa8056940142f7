"""How long a trial waits for frames in transit, with the test's own clock."""

from collections.abc import Callable
from typing import Any

import pytest

from lineproof.generators.trex.client.running_traffic import wait_for_drain

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


def test_a_short_wait_if_too_few_frames_were_sent_and_none_is_missing() -> None:
    assert 0.1 <= wait(lambda _: counts(80, 80), [AHEAD])[1] < 0.2
    # lagging counters
    after, took = wait(lambda now: counts(*((100, 100) if now > 0.05 else (80, 80))), [AHEAD])
    assert after["0"]["opackets"] == 107 and took < 0.1


@pytest.mark.parametrize(
    ("count", "terms", "seconds"),
    [
        # no frame has come for a while
        (lambda now: counts(100, 99), {}, 1.6),
        # frames come, at most for the whole drain
        (lambda now: counts(100, 60 + int(10 * now)), {}, 2),
        # counters are updated once a second
        (lambda now: counts(100, 100 if now > 1.5 else 60), {}, 1.55),
        # extra frames of one direction do not end the wait of the other
        (lambda now: counts(100, 100 if now > 1 else 90, 100, 150), {"directions": [AHEAD, BACK]}, 1.05),
        # the testbed's clock, with a minimum
        (lambda now: counts(100, 0), {"speed": 4}, 0.4),
        (lambda now: counts(100, 0), {"speed": 1000}, 0.1),
        (lambda now: counts(100, 0), {"drain": 0}, 0.1),
    ],
)
def test_missing_frames_are_waited_for_while_they_come(count: Count, terms: dict[str, Any], seconds: float) -> None:
    after, took = wait(count, **{"directions": [AHEAD], **terms})
    assert took == pytest.approx(seconds, abs=0.06 if seconds in (1.55, 1.05) else 0.01)
    assert after["1"]["ipackets"] == 11 + count(took)["1"]["ipackets"]
