"""Latency through both TRex clients' processes against the embedded server, whose histogram has TRex's quirks."""

from __future__ import annotations

from pathlib import Path

import pytest

from lineproof.core.rule import Ruling
from lineproof.simulation.faults import parse_fault
from support.simulated_session import judged, opened
from support.trex_profile_support import CLIENTS

pytestmark = pytest.mark.slow
SENTENCE = "64b 1-flow unidirectional latency {} at 100 kpps"
"""At this load the modelled router takes less than 10 µs: many probe frames are in the bucket 0."""


@pytest.mark.parametrize("client", CLIENTS)
def test_fast_frames_pass_and_late_ones_do_not(tmp_path: Path, client: str) -> None:
    with opened(tmp_path, client=client) as session:
        passed = judged(session, SENTENCE.format("p99 ≤ 100 µs"))
        assert passed.ruling is Ruling.PASS, passed.message
        (count,) = passed.trials[-1].outcome.latency
        assert count.histogram.get(0, 0) > 0, "the frames are in the bucket in doubt"
        session.cause_fault(parse_fault("late frames", start=1, share=0.05, every=True))
        for statistic in ("p99 ≤ 100 µs", "max ≤ 100 µs", "mean ≤ 1 ms"):
            found = judged(session, SENTENCE.format(statistic))
            (count,) = found.trials[-1].outcome.latency
            assert count.unplaced > 0 and count.maximum == 1.5e6
            # of 5 % late ones; how many exactly depends on how the delays of each trial fell
            assert sum(count.histogram.values()) > 0.98 * count.received, "the bucket 0 of an earlier trial hides them"
            assert found.ruling is Ruling.INCONCLUSIVE, found.message
            assert "later than 1 s" in str(found.reason)


@pytest.mark.parametrize("client", CLIENTS)
def test_late_frames_fail_where_no_earlier_trial_hides_them(tmp_path: Path, client: str) -> None:
    with opened(tmp_path, client=client) as session:
        session.cause_fault(parse_fault("late frames", start=0, share=0.05))
        found = judged(session, SENTENCE.format("p99 ≤ 100 µs"))
        assert found.ruling is Ruling.FAIL, found.message
        assert "p99 at least 1e+06 µs" in found.message
