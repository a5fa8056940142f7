"""Ways to a wrong verdict that an expert for the losing side tried: what the testbed did, and how sums are made."""

from __future__ import annotations

import pytest

from lineproof.core.trial import DirectionCount, Fault, Load, Outcome, Problem
from lineproof.core.verdict import Ruling, Verdict
from support.known_router import run

PPS = 1_000_000
ONE, BOTH = "64b unidirectional ≥ 1 Mpps", "64b bidirectional ≥ 1 Mpps each way"
FORWARDS = "64b unidirectional forwards ≥ 1 Mpps at 1 Mpps"


def trial(
    *counts: tuple[int, int],
    elapsed: float = 1.0,
    problems: tuple[Problem, ...] = (),
    backlogs: tuple[int | None, ...] = (),
    seconds: float = 1.0,
) -> Outcome:
    """A trial with (offered, forwarded) of each direction."""
    known = backlogs or (0,) * len(counts)
    rows = [
        DirectionCount(place, place ^ 1, PPS, offered, came, backlog=queued)
        for place, ((offered, came), queued) in enumerate(zip(counts, known, strict=True))
    ]
    return Outcome(Load(PPS), seconds, elapsed * seconds, 0.0, tuple(rows), problems)


GOOD, BOTH_GOOD = trial((PPS, PPS)), trial((PPS, PPS), (PPS, PPS))


def judged(sentence: str, *rows: Outcome, goal: str = "standard", again: int = 0) -> Verdict:
    """The verdict where the trials are *rows*; the last *again* of them repeat in turn, or the last one."""
    left = list(rows)
    circle = left[-(again or 1) :]

    def measure(load: Load, duration: float) -> Outcome:
        row = left.pop(0) if left else circle[0]
        circle.append(circle.pop(0))
        return Outcome(row.load, duration, row.elapsed * duration, 0.0, row.directions, row.problems)

    return run(sentence, measure, goal)


def test_a_generator_that_stalls_fails_no_router() -> None:
    found = judged(FORWARDS, trial((PPS // 2, PPS // 2)), GOOD)
    assert found.ruling is Ruling.PASS and found.figures["forwarded_pps"] == PPS


def test_a_stray_frame_hides_no_outage() -> None:
    sentence = "64b bidirectional forwards ≥ 1 Mpps each way at 1 Mpps each way"
    assert judged(sentence, trial((PPS, 0), (PPS, PPS)), BOTH_GOOD).ruling is Ruling.FAIL
    assert judged(sentence, trial((PPS, 0), (PPS, PPS + 1)), BOTH_GOOD).ruling is Ruling.FAIL


def test_loss_that_the_testbed_explains_is_in_no_sum() -> None:
    down = Problem(Fault.LINK_DOWN, "port 0", directions=((0, 1),))
    found = judged(BOTH, trial((PPS, PPS // 2), (PPS, PPS - 1), problems=(down,)), BOTH_GOOD)
    assert found.ruling is Ruling.PASS
    assert "500000 of them are explained by the testbed" in found.message


@pytest.mark.parametrize("spoilt", [trial((980_000, 980_000)), trial((PPS, PPS), elapsed=1.2)])
def test_trials_that_prove_nothing_do_not_dilute_loss(spoilt: Outcome) -> None:
    lossy = trial((PPS, PPS - 30_500))
    assert judged(ONE, lossy, GOOD).ruling is Ruling.FAIL
    assert judged(ONE, lossy, spoilt, GOOD).ruling is Ruling.FAIL


def test_frames_that_come_back_at_another_port_are_lost() -> None:
    crossed = trial((PPS, 700_000), (PPS, 1_300_000))
    assert judged(BOTH, crossed, crossed, crossed, BOTH_GOOD).ruling is Ruling.FAIL


def test_what_is_offered_beyond_the_load_may_be_lost() -> None:
    assert judged(ONE, trial((PPS + 4000, PPS + 2000))).ruling is Ruling.PASS
    assert judged(ONE, trial((PPS + 4000, PPS - 2000))).ruling is Ruling.FAIL


def test_an_unknown_backlog_hides_no_known_one() -> None:
    hidden = trial((PPS, PPS), (PPS, PPS), backlogs=(PPS // 2, None))
    assert judged(BOTH, hidden, goal="quick").ruling is Ruling.INCONCLUSIVE


def test_losing_a_frame_does_not_excuse_a_backlog() -> None:
    queued = trial((PPS, PPS), backlogs=(200_000,))
    lossy = trial((PPS, PPS - 1), backlogs=(200_000,))
    assert judged(ONE, queued, queued, queued, lossy, GOOD, goal="quick").ruling is Ruling.INCONCLUSIVE


def test_spoilt_trials_are_counted_through_longer_ones() -> None:
    spoilt = trial((PPS, PPS), problems=(Problem(Fault.GENERATOR, "a hiccup"),))
    queued = trial((PPS, PPS), backlogs=(15_000,))
    found = judged(ONE, spoilt, spoilt, queued, spoilt, spoilt, GOOD)
    assert found.ruling is Ruling.INCONCLUSIVE


def test_each_direction_may_be_bad_in_its_own_trial() -> None:
    rows = [trial(*[(PPS, PPS - (place == at)) for place in range(8)]) for at in range(8)]
    sentence = "64b bidirectional on 4 pairs ≥ 1 Mpps each way"
    assert judged(sentence, *rows, again=8).ruling is Ruling.PASS


def test_in_total_does_not_dilute_the_loss_of_a_direction() -> None:
    lossy = trial((PPS, PPS - 39_000), *[(PPS, PPS)] * 7)
    sentence = "64b bidirectional on 4 pairs ≥ 8 Mpps in total"
    assert judged(sentence, lossy, trial(*[(PPS, PPS)] * 8)).ruling is Ruling.FAIL


def test_a_sending_that_was_too_short_blames_nobody() -> None:
    assert judged(ONE, trial((PPS, 970_000), elapsed=0.5)).ruling is Ruling.INCONCLUSIVE
    assert judged(ONE, trial((PPS, PPS), elapsed=float("nan"))).ruling is Ruling.INCONCLUSIVE
    assert judged(ONE, trial((0, 0))).ruling is Ruling.INCONCLUSIVE
