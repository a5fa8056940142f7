"""Latency under load is measured at the shares of the throughput that a search found, in each direction."""

from datetime import timedelta

import pytest

from lineproof.core.bounds import Bounds
from lineproof.errors import SentenceError
from lineproof.procedures.latency import LATENCY_UNDER_LOAD
from lineproof.procedures.search import SEARCH
from support.pure_router import PureRouter, prepared, run_on

WORDS = "64b bidirectional"


def measured(router, **terms):
    run = run_on(router)
    found = SEARCH.measure(run, WORDS)
    router.asked.clear()
    return found, LATENCY_UNDER_LOAD.measure(run, WORDS, found, **terms)


@pytest.mark.parametrize("ratio", ["PDR", "NDR"])
def test_probes_are_sent_alone_and_at_a_tenth_half_and_nine_tenths(ratio):
    router = PureRouter()
    found, result = measured(router, ratio=ratio)
    lower = found[ratio].lower.pps
    assert router.asked == [(1001, 10), *((pytest.approx(share * lower), 10) for share in (0.1, 0.5, 0.9))]
    assert [(point.share, point.direction) for point in result.points[:3]] == [
        (0, "0 → 1"),
        (0, "1 → 0"),
        (0.1, "0 → 1"),
    ]
    assert len(result.points) == 8 and not result.ended


def test_no_more_than_a_tenth_of_a_small_load_is_probes():
    run = run_on(PureRouter(2e4))
    LATENCY_UNDER_LOAD.measure(run, WORDS, SEARCH.measure(run, WORDS))
    probes = [probe.pps for *_, probe in prepared(run) if probe]
    assert probes == pytest.approx([1000, 200, 1000, 1000], rel=0.02)


def test_each_direction_has_its_own_figures():
    _, result = measured(PureRouter())
    for point, fastest in zip(result.points, (10, 20) * 4, strict=True):
        least, median, *_, most = point.figures
        assert least == median == Bounds(fastest, fastest + 10)
        assert most == Bounds(fastest + 30, fastest + 40)


def test_a_throughput_that_was_not_found_has_no_shares():
    with pytest.raises(SentenceError, match="none was found: PDR"):
        measured(PureRouter(10.0))


def test_what_was_measured_before_the_deadline_is_kept():
    run = run_on(PureRouter())
    found = SEARCH.measure(run, WORDS)
    run.deadline = run.sent + 25
    result = LATENCY_UNDER_LOAD.measure(run, WORDS, found, duration=timedelta(seconds=10))
    assert [point.share for point in result.points] == [0, 0, 0.1, 0.1] and result.ended.startswith("deadline: ")
