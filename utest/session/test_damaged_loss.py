"""A FAIL of a router whose card counted CRC errors: as many lost frames are the cable's, and no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from lineproof.counts.causes import Cause, Role, Stage
from lineproof.counts.telemetry import Telemetry
from lineproof.session.damaged_loss import damaged_since, why_damaged
from lineproof.simulation.faults import parse_fault
from lineproof.sla.verdict import Ruling
from support.lossy_verdict import verdict
from support.simulated_session import judged, opened

NAMES = {0: "in0", 1: "in1"}


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


@pytest.mark.parametrize("quantity", ["≥ 100 kpps", "loses ≤ 1% at 100 kpps", "forwards ≥ 100 kpps"])
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


def test_each_direction_is_judged_by_itself() -> None:
    sentence = "64b bidirectional ≥ 100 kpps each way"
    assert why_damaged(verdict(sentence, 2000, 0), {"in0": 22000}, NAMES)
    assert why_damaged(verdict(sentence, 2000, 2000), {"in0": 22000}, NAMES) == ""


def test_a_pass_stays() -> None:
    assert why_damaged(verdict("64b unidirectional ≥ 100 kpps", 0, ruling=Ruling.PASS), {"in0": 9}, NAMES) == ""


@pytest.mark.slow
@pytest.mark.parametrize(("of", "ruling"), [("damaged cable", Ruling.INCONCLUSIVE), ("router", Ruling.FAIL)])
def test_a_cable_that_damages_frames_makes_no_fail(tmp_path: Path, of: str, ruling: Ruling) -> None:
    with opened(tmp_path) as session:
        session.traffic.check_reachability()
        session.cause_fault(parse_fault("one-way loss", start=0, port=0, share=0.01, of=of))
        found = judged(session, "64b 1-flow unidirectional ≥ 1 Mpps")
    assert found.ruling is ruling, found.message
    assert ("by the router's own count of CRC errors: " in found.message) is (of == "damaged cable")
