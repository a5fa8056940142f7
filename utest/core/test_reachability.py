"""Mistakes that a little slow traffic shows before any trial: crossed cables, directions that carry nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.reachability import ALL_RATIO, DIRECTION_STEP, NothingArrives, check_arrival, check_reachability
from lineproof.core.trial import DirectionCount, Load, Outcome
from lineproof.errors import TestbedError
from support import robot_run

SENT = [1000, 1250, 1500, 1750]
DIRECTIONS = [(0, 1), (1, 0), (2, 3), (3, 2)]


def outcome(received: list[int], sent: list[int] | None = None) -> Outcome:
    counts = zip(DIRECTIONS, sent or SENT, received, strict=True)
    directions = tuple(DirectionCount(tx, rx, offered, offered, forwarded) for (tx, rx), offered, forwarded in counts)
    return Outcome(Load(1000.0), 1.0, 1.0, 0.0, directions)


def test_frames_that_arrive_at_the_expected_port_pass():
    check_reachability(outcome(SENT))
    check_reachability(outcome([980, 1200, 1400, 1000]))  # a slow router passes too
    check_reachability(outcome([1010, 1250, 1500, 1750]))  # a few frames of a switch


@given(st.permutations(range(4)))
def test_any_crossed_cables_are_found(order: list[int]):
    received = [SENT[item] for item in order]
    if order == [0, 1, 2, 3]:
        check_reachability(outcome(received))
        return
    with pytest.raises(TestbedError, match=r"received \d+ frames, and \d+ were to arrive there"):
        check_reachability(outcome(received))
    assert [round(1000 * (1 + DIRECTION_STEP * index)) for index in range(4)] == SENT


def test_what_the_testbeds_file_tells_is_said_first():
    for received in ([1000, 1250, 0, 1750], [1250, 1000, 1500, 1750]):
        with pytest.raises(
            TestbedError, match=r"; most likely: its 'network' is another; else check (the|which) cable"
        ):
            check_reachability(outcome(received), lambda: "its 'network' is another")


def test_a_direction_that_carries_nothing_is_named():
    with pytest.raises(TestbedError, match="none of 1500 frames sent from the generator's port 2 came back at port 3"):
        check_reachability(outcome([1000, 1250, 0, 1750]))
    # a bridge that does not forward yet sends its own frames
    with pytest.raises(NothingArrives, match="3 of 1500 frames sent from the generator's port 2 came back at port 3"):
        check_reachability(outcome([1000, 1250, 3, 1750]))
    with pytest.raises(TestbedError, match="port 0 sends nothing"):
        check_reachability(outcome([0, 1250, 1500, 1750], [0, 1250, 1500, 1750]))


@pytest.mark.parametrize(
    ("received", "says"),
    [
        ([0, 1250, 1500, 1750], "of 1000 frames of 'mine' .* 0 came back at port 1"),
        ([1000, 600, 1500, 1750], "of 1250 frames of 'mine' .* 600 came back at port 0"),
        ([2000, 1250, 1500, 1750], "of the frames of 'mine' 2000 arrived at port 1, and 1000 were sent there"),
    ],
)
def test_traffic_with_its_own_addresses_must_be_forwarded(received: list[int], says: str):
    check_arrival("mine", outcome(SENT), "why", ALL_RATIO)
    with pytest.raises(TestbedError, match=says):
        check_arrival("mine", outcome(received), "why", ALL_RATIO)


@pytest.mark.slow
@pytest.mark.parametrize("networks", [("16", "49", "17", "48"), ("48", "16", "17", "49")], ids=["pairs", "sides"])
def test_crossed_cables_end_the_suite_before_any_sentence(tmp_path: Path, networks: tuple[str, ...]):
    variables = robot_run.project(tmp_path) / "variables"
    box = yaml.safe_load((variables / "platforms" / "netgate6100.yaml").read_text())
    box["platform"] = "fourport"
    box["software"] = {"vpp": {**box["software"]["vpp"], "interfaces": ["a0", "a1", "a2", "a3"]}}
    (variables / "platforms" / "fourport.yaml").write_text(yaml.safe_dump(box))
    sides = [
        {"address": f"100.65.{n}.1/24", "peer": f"100.65.{n}.2", "network": f"{behind}.0.0.0/8"}
        for n, behind in enumerate(networks, 1)
    ]
    testbed = variables / "testbeds" / "simulated.yaml"
    testbed.write_text(testbed.read_text() + yaml.safe_dump({"pairs": 2, "sides": sides}))
    suite = robot_run.write_suite(tmp_path, "64b unidirectional ≥ 1 Mpps", setup="Open Testbed For    fourport")
    found = robot_run.run(tmp_path, suite, "-v", f"PROJECT:{tmp_path / 'project'}")
    assert "were to arrive there" in found.message and "check which cable leads where" in found.message
    assert "FAIL:" not in found.message


@pytest.mark.slow
def test_traffic_that_the_router_does_not_forward_is_inconclusive(tmp_path: Path):
    variables = robot_run.project(tmp_path) / "variables"
    profile = "from trex_stl_lib.api import *\n\nclass Ours:\n    def get_streams(self, direction=0, **kwargs):\n"
    packet = "Ether() / IP(src='16.0.0.1', dst='10.0.0.2') / UDP() / ('x' * 18)"
    profile += f"        return [STLStream(packet=STLPktBuilder(pkt={packet}), mode=STLTXCont(pps=1))]\n\n"
    (tmp_path / "nowhere.py").write_text(profile + "def register():\n    return Ours()\n")
    entry = f"{{kind: trex, name: nowhere, file: {tmp_path / 'nowhere.py'}, about: a test}}"
    (variables / "profiles" / "own.yaml").write_text(f"entries:\n  - {entry}\n")
    suite = robot_run.write_suite(tmp_path, "nowhere unidirectional ≥ 1 Mpps")
    found = robot_run.run(tmp_path, suite, "-v", f"PROJECT:{tmp_path / 'project'}", "-v", "GOAL:quick")
    assert found.message.startswith("INCONCLUSIVE: "), found.message
    assert "0 came back at port 1; what is not set up is not lost: the router has no route for them" in found.message
