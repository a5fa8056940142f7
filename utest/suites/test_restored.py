"""Findings on the router at the end of a run are in its evidence, whichever way it ends."""

from __future__ import annotations

import html
from pathlib import Path

import pytest

from lineproof.evidence.integrity import check_integrity
from lineproof.evidence.run import read_run
from support import robot_run
from support.command_line import lineproof

pytestmark = pytest.mark.slow

OTHER = "vppctl set ip neighbor TenGigabitEthernet3/0/0 100.65.1.2 02:00:00:00:00:77 static"
OURS = "set ip neighbor TenGigabitEthernet3/0/0 100.65.1.2 02:00:00:00:00:01 static"


@pytest.mark.parametrize("end", ["Close Testbed", "No Operation", "Fail"])
def test_what_somebody_has_set_since_is_in_the_record_the_report_and_on_the_sheet(tmp_path: Path, end: str) -> None:
    suite = robot_run.write_suite(tmp_path, "64b 1-flow unidirectional ≥ 1 Mpps", f"Run On Router    {OTHER}")
    suite.write_text(suite.read_text().replace("Teardown    Close Testbed", f"Teardown    {end}"))
    done = robot_run.run(tmp_path, suite, "-v", "GOAL:quick")
    (folder,) = (tmp_path / "results").iterdir()
    run = read_run(folder)
    (found,) = run.environment.router_configuration.afterwards
    assert OURS in found and "02:00:00:00:00:77" in found and run.environment.ended is not None, done.console
    assert not check_integrity(folder).altered and (folder / "manifest.json").exists()
    assert found in html.unescape((folder / "summary.html").read_text())
    assert lineproof(tmp_path, "signoff", str(folder), "--draft", "--html-only").returncode == 0
    assert found in html.unescape((folder / "signoff-draft.html").read_text())
