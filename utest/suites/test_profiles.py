"""Traffic words through the whole chain: sentences on the simulated testbed, frames counted on the wire."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import robot_run

SENTENCES = (
    "imix-csit unidirectional ≥ 10% line rate",
    "genome:aaaaddg bidirectional ≥ 10% line rate each way",
    "64b 256-networks bidirectional ≥ 1 Mpps each way",
    "64b 1M-flows bidirectional ≥ 1 Mpps each way",
    "64b tcp 2000-flows unidirectional ≥ 1 Mpps",
)

# The frames that came back, and how many different pairs of addresses are in them.
COUNTED = "Evaluate    [(len(seen), len({frame[26:34] for frame in seen})) for seen in $frames.values()]"


@pytest.mark.slow
def test_the_words_pass_through_client_server_and_model(tmp_path: Path) -> None:
    found = robot_run.run(tmp_path, robot_run.write_suite(tmp_path, *SENTENCES), "-v", "GOAL:quick")
    assert found.status == 0, found.console
    assert robot_run.processes_of(tmp_path) == []


@pytest.mark.netns
def test_exactly_as_many_flows_are_on_the_wire(tmp_path: Path) -> None:
    steps = (
        "${frames} =    Capture Forwarded Frames    64b 256-networks    1000    600    ${True}",
        f"${{counted}} =    {COUNTED}",
        "Should Be Equal    ${counted}    ${{[(600, 256), (600, 256)]}}",
        "${frames} =    Capture Forwarded Frames    64b 2000-flows    4000    3000",
        f"${{counted}} =    {COUNTED}",
        "Should Be Equal    ${counted}    ${{[(3000, 2000)]}}",
        "${frames} =    Capture Forwarded Frames    64b tcp 10k-flows    4000    3000",
        f"${{counted}} =    {COUNTED}",
        "Should Be Equal    ${counted}    ${{[(3000, 3000)]}}",
    )
    setup = "Open Testbed For    linux_router    software=linux    testbed=netns"
    found = robot_run.run(tmp_path, robot_run.write_suite(tmp_path, *steps, setup=setup))
    assert found.status == 0, found.console
    assert robot_run.processes_of(tmp_path) == []
