"""Lines of ``lineproof doctor`` about a router that a file describes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lineproof.commands.router_checks import _planned_changes
from lineproof.routers.changes import Change
from support import router_rig
from support.described_router import description


@pytest.mark.parametrize(("name", "saved"), [("saving", True), ("undoing", False)])
def test_a_dry_run_lists_what_is_saved_before_the_changes(name: str, saved: bool) -> None:
    change = Change(("a", "b"), ("c",), lines=True)
    session: Any = SimpleNamespace(
        plan=SimpleNamespace(testbed=SimpleNamespace(prepare="configure"), command_file=description(name)),
        generator=SimpleNamespace(connected=True),
        router=SimpleNamespace(planned_changes=lambda: ((change,), "")),
    )
    (check,) = _planned_changes(session, True)
    first, *lines = check.finding.splitlines()
    assert first.startswith("a run makes 1 change, undone at its end")
    expected = ["copy running-config flash:before    (before them, so that they can be undone)"] if saved else []
    assert [line.strip() for line in lines] == [*expected, "a / b    (undone by: c)"]


@pytest.mark.slow
def test_a_line_that_is_typed_first_and_refused_is_named(tmp_path: Path) -> None:
    with router_rig.described(tmp_path, "undoing") as rig:
        file = tmp_path / "project" / "variables" / "shells" / "undoing.yaml"
        file.write_text(file.read_text().replace("[terminal length 0]", "[terminal length 0, screen wide]"))
        found = rig.lineproof("doctor", "lab", "--platform", "box").stdout
    refused = "'screen wide', which is typed first, is refused: '% Invalid input detected at '^' marker.'; fix"
    assert f"warning  router terminal: {refused} 'terminal.first' in variables/shells/undoing.yaml\n" in found, found
    assert "terminal length" not in found
