"""When a PASS may be called RFC 2544 throughput."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lineproof.counts.trial import HOST_COUNTS, Load, Outcome
from lineproof.sla.verdict import Ruling
from support.known_router import router, run, timed


def test_only_rfc2544_goal_with_one_frame_size_is_rfc2544_throughput():
    assert run("64b unidirectional ≥ 5 Mpps", router(6e6), "rfc2544").is_rfc2544_throughput
    assert not run("imix unidirectional ≥ 1 Mpps", router(6e6), "rfc2544").is_rfc2544_throughput
    assert not run("64b unidirectional ≥ 5 Mpps", router(4e6), "rfc2544").is_rfc2544_throughput
    assert not run("64b unidirectional ≥ 5 Mpps", router(6e6), "standard").is_rfc2544_throughput


@pytest.mark.parametrize(("drops", "labelled"), [(None, True), ({"rx-miss": 0}, True), ({"rx-miss": 60}, False)])
def test_frames_that_a_router_dropped_unseen_take_the_label_of_rfc2544(drops: dict[str, int] | None, labelled: bool):
    found = run("64b unidirectional ≥ 5 Mpps", router(6e6), "rfc2544")
    assert replace(found, router_drops=drops).is_rfc2544_throughput is labelled


@pytest.mark.parametrize(("reading", "labelled"), [(None, True), (0.0, True), (1.0, False)])
def test_counts_of_a_host_that_no_switch_checked_carry_no_label_of_rfc2544(reading: float | None, labelled: bool):
    forwards = router(6e6)

    def measure(load: Load, duration: float) -> Outcome:
        found = forwards(load, duration)
        return found if reading is None else replace(found, readings={**found.readings, HOST_COUNTS: reading})

    found = run("64b unidirectional ≥ 5 Mpps", measure, "rfc2544")
    assert found.ruling is Ruling.PASS and found.is_rfc2544_throughput is labelled
    assert ("no RFC 2544 throughput: the host that sends counted its frames itself" in found.message) is not labelled
    assert "no RFC 2544" not in run("64b unidirectional ≥ 5 Mpps", measure, "standard").message


def test_the_label_of_rfc_2544_needs_the_whole_load():
    sure = run("64b unidirectional ≥ 5 Mpps", timed(1.0, 0.003), "rfc2544")
    assert sure.is_rfc2544_throughput
    assert [trial.outcome.load.pps for trial in sure.trials] == [5e6, pytest.approx(5e6 * (1 + 0.003 / 60), rel=1e-6)]
    assert not run("64b unidirectional ≥ 5 Mpps", timed(1.0, 0.2), "rfc2544").is_rfc2544_throughput
    assert not run("64b unidirectional ≥ 100% line rate", timed(1.0), "rfc2544").is_rfc2544_throughput
