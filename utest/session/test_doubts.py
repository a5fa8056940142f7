"""A FAIL is in doubt where frames arrived damaged, were held up by pauses or had no address."""

from __future__ import annotations

from pathlib import Path

import pytest

from lineproof.core.causes import Cause, Role, Stage
from lineproof.core.neighbours import NeighbourEntry
from lineproof.core.pause_names import Pauses
from lineproof.core.telemetry import Telemetry
from lineproof.core.verdict import Ruling, Verdict
from lineproof.routers.base import Side
from lineproof.session.damaged_loss import damaged_since, why_damaged
from lineproof.session.neighbour_loss import ipv6_sides, lost_beside_unaddressed, why_unaddressed
from lineproof.session.pause_loss import why_paused
from lineproof.simulation.faults import parse_fault
from support.lossy_verdict import PLAN, verdict
from support.simulated_session import judged, opened

NAMES = {0: "in0", 1: "in1"}
ONE, BOTH = "64b unidirectional ≥ 100 kpps", "64b bidirectional ≥ 100 kpps each way"
MANY = Pauses(received=1000)
GONE = NeighbourEntry("in1", "100.65.2.2", "02:00:00:00:00:02")
THERE = NeighbourEntry("in0", "100.65.1.2", "02:00:00:00:00:01", "02:00:00:00:00:01", True)
by_loss = pytest.mark.parametrize("quantity", ["≥ 100 kpps", "loses ≤ 1% at 100 kpps", "forwards ≥ 100 kpps"])


def unaddressed(found: Verdict, *neighbours: NeighbourEntry) -> str:
    return why_unaddressed(found, Telemetry(1.0, {}, neighbours=neighbours), NAMES)


def doubts(found: Verdict, frames: int) -> list[bool]:
    """Return whether each doubt speaks where so many frames of the direction 0 → 1 can be excused."""
    damaged, paused = why_damaged(found, {"in0": frames}, NAMES), why_paused(found, {"in1": MANY}, NAMES)
    return [bool(words) for words in (damaged, paused, unaddressed(found, THERE, GONE))]


@by_loss
def test_each_direction_is_judged_by_itself(quantity: str) -> None:
    sentence = f"64b bidirectional {quantity} each way"
    assert doubts(verdict(sentence, 50_000, 0), 11 * 50_000) == [True] * 3
    assert doubts(verdict(sentence, 50_000, 50_000), 11 * 50_000) == [False] * 3
    assert doubts(verdict(sentence, 0, 50_000), 11 * 50_000) == [False] * 3


def test_a_pass_stays() -> None:
    assert doubts(verdict(ONE, 0, ruling=Ruling.PASS), 9) == [False] * 3


# -- frames that arrived damaged


def reading(**counts: int) -> Telemetry:
    causes = [Cause(Stage.ARRIVING, name, "in0", count, Role.REASON) for name, count in counts.items()]
    other = Cause(Stage.ARRIVING, "rx_missed", "in0", 99)
    return Telemetry(1.0, {}, causes=(*causes, other))


@pytest.mark.parametrize(
    "name", ["rx_crc_errors", "ethtool rx_crc_errors_phy", "sysctl mac_stats.crc_errs", "arriving_fcs"]
)
def test_frames_that_arrived_damaged_are_known_by_every_systems_name(name: str) -> None:
    before, after = Telemetry(1.0, {}), reading(**{name: 5})
    assert damaged_since(before, after, ["in0", "in1"]) == {"in0": 5}
    assert damaged_since(after, after, ["in0"]) == {}


def test_a_count_under_two_names_counts_once() -> None:
    assert damaged_since(reading(), reading(rx_crc_errors=5, fcs=4), ["in0"]) == {"in0": 5}


@by_loss
@pytest.mark.parametrize(
    ("damaged", "stands"),
    [
        ({"in0": 11 * 2000}, False),
        # a few trials' loss at most, of the interface that they leave by, of another one, none
        ({"in0": 2000}, True),
        ({"in1": 11 * 2000}, True),
        ({"in7": 11 * 2000}, True),
        ({}, True),
    ],
)
def test_only_as_many_lost_frames_as_arrived_damaged_are_the_cables(
    quantity: str, damaged: dict[str, int], stands: bool
) -> None:
    found = why_damaged(verdict(f"64b unidirectional {quantity}", 2000), damaged, NAMES)
    assert (found == "") is stands


@pytest.mark.slow
@pytest.mark.parametrize(("of", "ruling"), [("damaged cable", Ruling.INCONCLUSIVE), ("router", Ruling.FAIL)])
def test_a_cable_that_damages_frames_makes_no_fail(tmp_path: Path, of: str, ruling: Ruling) -> None:
    with opened(tmp_path) as session:
        session.traffic.check_reachability()
        session.cause_fault(parse_fault("one-way loss", start=0, port=0, share=0.01, of=of))
        found = judged(session, "64b 1-flow unidirectional ≥ 1 Mpps")
    assert found.ruling is ruling, found.message
    assert ("by the router's own count of CRC errors: " in found.message) is (of == "damaged cable")


# -- pauses


@by_loss
@pytest.mark.parametrize(
    "paused",
    [
        # the interface that frames come in by, one of no direction, and one that sent them
        {"in0": MANY},
        {"in2": MANY},
        {"in1": Pauses(sent=1000)},
        # one pause frame stops 10 Gbit/s for 3.4 ms: 0.3 % of the trial
        {"in1": Pauses(received=1)},
    ],
)
def test_loss_that_no_pause_explains_stands(quantity: str, paused: dict[str, Pauses]) -> None:
    assert why_paused(verdict(f"64b unidirectional {quantity}", 50_000), paused, NAMES) == ""


def test_the_loss_of_a_few_frames_by_a_single_pause_proves_nothing() -> None:
    assert why_paused(verdict(ONE, 300), {"in1": Pauses(received=1)}, NAMES)


def test_a_latency_that_pauses_may_have_made_proves_nothing_in_their_direction_only() -> None:
    found = verdict("64b unidirectional latency p99 ≤ 1 ms at 100 kpps", 0)
    assert why_paused(found, {"in1": Pauses(received=1)}, NAMES)
    assert why_paused(found, {"in0": MANY}, NAMES) == ""


# -- neighbour entries


def test_a_fail_that_stands_is_said_to_have_loss_that_is_not_the_routers() -> None:
    failed = verdict(BOTH, 100_000, 50_000)
    assert "the loss of 0 → 1 is not" in lost_beside_unaddressed(failed, Telemetry(1.0, {}, neighbours=(GONE,)), NAMES)
    assert lost_beside_unaddressed(failed, Telemetry(1.0, {}, neighbours=(THERE,)), NAMES) == ""
    for other in (verdict(BOTH, 100_000, 0), verdict(BOTH, 100_000, 50_000, ruling=Ruling.PASS)):
        assert lost_beside_unaddressed(other, Telemetry(1.0, {}, neighbours=(GONE,)), NAMES) == ""


def test_nothing_that_was_read_right_or_not_read_changes_a_verdict() -> None:
    failed = verdict(ONE, 100_000)
    learned = NeighbourEntry("in1", "100.65.2.2", "02:00:00:00:00:02", "02:00:00:00:00:02", False)
    sender = NeighbourEntry("in0", "100.65.1.2", "02:00:00:00:00:01")
    assert unaddressed(failed) == unaddressed(failed, THERE) == unaddressed(failed, learned) == ""
    assert unaddressed(failed, sender) == ""


def test_an_entry_with_another_address_is_as_good_as_none() -> None:
    other = NeighbourEntry("in1", "100.65.2.2", "02:00:00:00:00:02", "02:00:00:00:00:99", True)
    assert "has 02:00:00:00:00:99" in unaddressed(verdict(ONE, 100_000), other)


@pytest.mark.parametrize(
    ("sentence", "address", "spared"),
    [
        ("128b ipv6 unidirectional ≥ 100 kpps", "2001:2::6441:202", True),
        ("128b ipv6 unidirectional ≥ 100 kpps", "100.65.2.2", False),
        ("128b unidirectional ≥ 100 kpps", "2001:2::6441:202", False),
        ("128b mpls unidirectional ≥ 100 kpps", "100.65.2.2", True),
    ],
)
def test_only_the_entry_that_the_frames_need_excuses_their_loss(sentence: str, address: str, spared: bool) -> None:
    gone = NeighbourEntry("in1", address, "02:00:00:00:00:02")
    assert bool(unaddressed(verdict(sentence, 100_000), gone)) is spared


def test_the_ipv6_address_of_a_peer_is_that_of_the_traffic_words() -> None:
    (side,) = ipv6_sides((Side("in1", "100.65.2.1/24", "100.65.2.2", "", "48.0.0.0/8"),), PLAN.catalogue)
    assert side.peer == "2001:2::6441:202"
