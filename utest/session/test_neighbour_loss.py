"""A FAIL while the router had lost the address of the generator's port: which one stands, which one proves nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lineproof.counts.neighbours import NeighbourEntry
from lineproof.counts.telemetry import Telemetry
from lineproof.routers.base import Side
from lineproof.session.neighbour_loss import ipv6_sides, lost_beside_unaddressed, why_unaddressed
from lineproof.sla.verdict import Ruling, Verdict
from support.lossy_verdict import PLAN, verdict

NAMES = {0: "in0", 1: "in1"}
GONE = NeighbourEntry("in1", "100.65.2.2", "02:00:00:00:00:02", fix="SET IT")
THERE = NeighbourEntry("in0", "100.65.1.2", "02:00:00:00:00:01", "02:00:00:00:00:01", True)


def reason(found: Verdict, *neighbours: NeighbourEntry) -> str:
    return why_unaddressed(found, Telemetry(1.0, {}, neighbours=neighbours), NAMES)


def test_what_could_not_be_addressed_is_not_the_routers_loss() -> None:
    found = reason(verdict("64b unidirectional ≥ 100 kpps", 100_000), THERE, GONE)
    assert "no neighbour entry for 100.65.2.2 on in1" in found and "'SET IT' on the router sets it" in found


@pytest.mark.parametrize(
    ("sentence", "lost"),
    [
        # the entry of the side that frames come from does not matter
        ("64b unidirectional ≥ 100 kpps", None),
        # what the other direction loses is clear loss
        ("64b bidirectional ≥ 100 kpps each way", (100_000, 50_000)),
        ("64b bidirectional loses ≤ 1% at 100 kpps each way", (100_000, 50_000)),
        ("64b bidirectional forwards ≥ 100 kpps each way", (100_000, 50_000)),
    ],
)
def test_a_fail_that_has_another_cause_stands(sentence: str, lost: tuple[int, int] | None) -> None:
    if lost is None:
        gone = NeighbourEntry("in0", "100.65.1.2", "02:00:00:00:00:01")
        assert reason(verdict(sentence, 100_000), gone) == ""
    else:
        assert reason(verdict(sentence, *lost), GONE) == ""


def test_a_fail_that_stands_says_which_loss_is_not_the_routers() -> None:
    after = Telemetry(1.0, {}, neighbours=(GONE,))
    failed = verdict("64b bidirectional ≥ 100 kpps each way", 100_000, 50_000)
    said = lost_beside_unaddressed(failed, after, NAMES)
    assert "no neighbour entry for 100.65.2.2 on in1: the loss of 0 → 1 is not its forwarding's" in said
    assert "'SET IT' on the router sets it" in said
    for other in (verdict("64b bidirectional ≥ 100 kpps each way", 100_000, 0), replace(failed, ruling=Ruling.PASS)):
        assert lost_beside_unaddressed(other, after, NAMES) == ""
    assert lost_beside_unaddressed(failed, Telemetry(1.0, {}, neighbours=(THERE,)), NAMES) == ""


@pytest.mark.parametrize("quantity", ["≥ 100 kpps", "loses ≤ 1% at 100 kpps", "forwards ≥ 100 kpps"])
def test_a_fail_of_the_spared_direction_alone_proves_nothing(quantity: str) -> None:
    assert reason(verdict(f"64b bidirectional {quantity} each way", 100_000, 0), GONE)


def test_nothing_that_was_read_right_or_not_read_changes_a_verdict() -> None:
    failed = verdict("64b unidirectional ≥ 100 kpps", 100_000)
    assert reason(failed) == reason(failed, THERE) == ""
    learned = NeighbourEntry("in1", "100.65.2.2", "02:00:00:00:00:02", "02:00:00:00:00:02", False)
    assert reason(failed, learned) == ""
    assert reason(verdict("64b unidirectional ≥ 100 kpps", 0, ruling=Ruling.PASS), GONE) == ""


def test_an_entry_with_another_address_is_as_good_as_none() -> None:
    other = NeighbourEntry("in1", "100.65.2.2", "02:00:00:00:00:02", "02:00:00:00:00:99", True)
    assert "has 02:00:00:00:00:99" in reason(verdict("64b unidirectional ≥ 100 kpps", 100_000), other)


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
    assert bool(reason(verdict(sentence, 100_000), gone)) is spared


def test_the_ipv6_address_of_a_peer_is_that_of_the_traffic_words() -> None:
    (side,) = ipv6_sides((Side("in1", "100.65.2.1/24", "100.65.2.2", "", "48.0.0.0/8"),), PLAN.catalogue)
    assert side.peer == "2001:2::6441:202"
