"""Traffic words through the whole chain: frames counted on the wire."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import robot_run

# The frames that came back, and how many different pairs of addresses are in them.
COUNTED = "Evaluate    [(len(seen), len({frame[26:34] for frame in seen})) for seen in $frames.values()]"


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
