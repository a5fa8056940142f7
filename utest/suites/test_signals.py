"""How a run of Robot ends: a signal is named, the testbed closed in time, and what was found on the router is kept."""

from __future__ import annotations

import html
import re
import time
from pathlib import Path

import pytest

from lineproof.evidence.run import read_run
from lineproof.evidence.run_files import check_integrity
from support import robot_run
from support.command_line import lineproof

pytestmark = pytest.mark.slow

SENTENCE = "64b 1-flow unidirectional ≥ 1 Mpps"


def test_twice_inside_a_command_of_a_router_that_stands_still(tmp_path: Path) -> None:
    """The second signal comes while the testbed is being closed."""
    suite = robot_run.write_suite(
        tmp_path,
        SENTENCE,
        "${library} =    Get Library Instance    Lineproof",
        # what the testbed's process is asked is never answered
        "Evaluate    os.kill($library.session.testbed.belongings.programs[0].pid, signal.SIGSTOP)",
        *(f"Evaluate    threading.Timer({after}, os.kill, (os.getpid(), 2)).start()" for after in (0.5, 1.5)),
        "Run On Router    uname -a    limit=50 s",
    )
    began = time.monotonic()
    found = robot_run.run(tmp_path, suite, *robot_run.short_goal(tmp_path), "-v", "GOAL:quick", limit=100)
    assert time.monotonic() - began < 90
    assert found.message.startswith("interrupted by Ctrl-C"), found.message
    assert found.console.count("The testbed is being closed, which takes a minute at most.") == 1
    assert "could not be restored in full" in found.console and "ip route del" in found.console
    written = found.console + (tmp_path / "out" / "output.xml").read_text(encoding="utf-8")
    assert not re.search(r"Traceback|SSH link to the router broke|terminated by signal", written)
    (folder,) = (path.parent for path in tmp_path.glob("results/*/requirements.jsonl"))
    assert [item.verdict for item in read_run(folder).requirements] == ["PASS"]
    assert check_integrity(folder).altered == ()
    assert robot_run.processes_of(tmp_path) == [] and not list((tmp_path / "runtime" / "lineproof").iterdir())


OTHER = "vppctl set ip neighbor TenGigabitEthernet3/0/0 100.65.1.2 02:00:00:00:00:77 static"
OURS = "set ip neighbor TenGigabitEthernet3/0/0 100.65.1.2 02:00:00:00:00:01 static"


@pytest.mark.parametrize("end", ["Close Testbed", "No Operation", "Fail"])
def test_what_somebody_has_set_since_is_in_the_record_the_report_and_on_the_sheet(tmp_path: Path, end: str) -> None:
    suite = robot_run.write_suite(tmp_path, SENTENCE, f"Run On Router    {OTHER}")
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
