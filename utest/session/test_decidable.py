"""A sentence that its goal could never decide is refused before any traffic."""

from __future__ import annotations

import pytest

from lineproof.errors import SentenceError
from lineproof.project import Project
from lineproof.session.plan import PROBE_SHARE, Plan
from support.paths import ROOT


def plan(goal: str) -> Plan:
    return Plan.read(Project(ROOT), "netgate6100", "vpp", "simulated", goal)


@pytest.mark.parametrize("goal", ["csit-ndr", "csit-pdr"])
def test_a_goal_of_searches_judges_nothing(goal: str) -> None:
    assert plan(goal).measurable("64b unidirectional ≥ 1 Mpps").pairs == 1
    with pytest.raises(SentenceError, match=f"goal '{goal}' is for searches and judges nothing"):
        plan(goal).requirement("64b unidirectional ≥ 1 Mpps")


@pytest.mark.parametrize(("goal", "fewest"), [("standard", 8), ("quick", 4), ("rfc2544", 60)])
def test_a_soak_is_as_long_as_a_pass_at_least(goal: str, fewest: int) -> None:
    found = plan(goal)
    assert found.requirement(f"64b unidirectional ≥ 1 Mpps for {fewest} s").duration_sum == fewest
    if goal != "rfc2544":  # a soak of its has one trial at least
        with pytest.raises(SentenceError, match=f"expected 'for' at least {fewest} s"):
            found.requirement(f"64b unidirectional ≥ 1 Mpps for {fewest - 1} s")


@pytest.mark.parametrize("goal", ["standard", "quick", "rfc2544"])
@pytest.mark.parametrize("words", ["latency p99.9 ≤ 100 µs", "pdv p99 ≤ 100 µs", "reorders ≤ 0.1%"])
def test_a_percentile_needs_room_for_its_probe_frames(goal: str, words: str) -> None:
    found = plan(goal)
    needed = found.probes_needed(found.measurable(f"64b unidirectional {words} at 1 kpps"))
    least = needed / PROBE_SHARE / found.goal.final_trial_duration
    found.requirement(f"64b unidirectional {words} at {1.01 * least:.0f} pps")
    with pytest.raises(SentenceError, match="probe frames that goal"):
        found.requirement(f"64b unidirectional {words} at {0.99 * least:.0f} pps")


def test_no_sample_shows_that_nothing_is_reordered() -> None:
    with pytest.raises(SentenceError, match="expected more than that"):
        plan("standard").requirement("64b unidirectional reorders ≤ 0% at 1 Mpps")
