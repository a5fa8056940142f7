"""A router without IPv6, whose ports have an MTU of 1500: what it is not set up for is not held against it."""

from __future__ import annotations

import json

import pytest
import yaml

from support import robot_run

pytestmark = pytest.mark.slow

SUITE = """\
*** Settings ***
Resource    {root}/resources/acceptance.resource
Resource    {root}/resources/characterisation.resource
Suite Setup    Open Testbed For    netgate6100    software=vpp
Suite Teardown    Close Testbed

*** Test Cases ***
IPv6
    128b ipv6 unidirectional ≥ 5 kpps

Jumbo
    9000b bidirectional ≥ 5 kpps each way

Latency Of IPv6
    128b ipv6 unidirectional latency p99 ≤ 10 ms at 10 kpps

Forwards Jumbo
    9000b unidirectional forwards ≥ 5 kpps

Longest
    1514b unidirectional ≥ 5 kpps

Too Much
    64b 1-flow unidirectional ≥ 14 Mpps

Search
    Search Throughput Of    128b ipv6 unidirectional
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> robot_run.RobotRun:
    folder = tmp_path_factory.mktemp("setup")
    option = robot_run.short_goal(folder)
    variables = folder / "project" / "variables"
    testbed, platform = variables / "testbeds" / "simulated.yaml", variables / "platforms" / "netgate6100.yaml"
    text = testbed.read_text(encoding="utf-8")
    assert "set_up: [ipv6, vlan, mpls]" in text
    testbed.write_text(text.replace("set_up: [ipv6, vlan, mpls]", "set_up: [vlan]"), encoding="utf-8")
    box = yaml.safe_load(platform.read_text(encoding="utf-8"))
    box["model"].setdefault("nic", {})["mtu"] = 1500
    platform.write_text(yaml.safe_dump(box), encoding="utf-8")
    suite = folder / "suite.robot"
    suite.write_text(SUITE.format(root=robot_run.ROOT), encoding="utf-8")
    return robot_run.run(folder, suite, *option, "-v", "GOAL:quick")


@pytest.mark.parametrize("name", ["IPv6", "Latency Of IPv6", "Search"])
def test_ipv6_is_inconclusive(done: robot_run.RobotRun, name: str):
    _, message = done.tests[name]
    assert message.startswith("INCONCLUSIVE: "), message
    assert "0 came back at port 1" in message and "the router does not forward IPv6" in message


@pytest.mark.parametrize("name", ["Jumbo", "Forwards Jumbo"])
def test_jumbo_frames_are_inconclusive(done: robot_run.RobotRun, name: str):
    _, message = done.tests[name]
    assert message.startswith("INCONCLUSIVE: "), message
    assert "an MTU is too small for frames of 9000 bytes with FCS (packets of 8982 bytes)" in message


def test_what_it_is_set_up_for_is_judged(done: robot_run.RobotRun):
    assert done.tests["Longest"][0] == "PASS", done.tests["Longest"][1]
    assert done.tests["Too Much"][1].startswith("FAIL: ")


def test_no_trial_of_them_is_on_record(done: robot_run.RobotRun):
    (folder,) = (done.folder / "results").iterdir()
    trials = [json.loads(line) for line in (folder / "trials.jsonl").read_text().splitlines()]
    assert {trial["test"] for trial in trials} == {"Longest", "Too Much"}
