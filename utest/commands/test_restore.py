"""'lineproof restore', and what doctor says of a router: what is left there, and what a run would change."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lineproof.project import Project
from lineproof.routers.base import SshShell
from lineproof.routers.journal import Change, ChangeJournal, Occasion
from lineproof.session.plan import Plan
from lineproof.session.session import Session
from support import router_rig
from support.command_line import lineproof
from support.router_rig import Rig

pytestmark = pytest.mark.slow

DOCTOR = ("doctor", "lab", "--platform", "box")
ADDRESS = Change(
    ("vppctl set interface ip address TenGigabitEthernet3/0/0 198.51.100.1/24",),
    ("vppctl set interface ip address del TenGigabitEthernet3/0/0 198.51.100.1/24",),
)


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with router_rig.simulated(tmp_path_factory.mktemp("rig")) as rig:
        yield rig


@pytest.fixture
def leftover(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> str:
    """A change that a killed run has left; returns the router's name."""
    monkeypatch.setenv("XDG_STATE_HOME", str(rig.folder / "runtime" / "state"))
    with_router = Session.of_router(Plan.read(Project(rig.folder / "project"), "box", None, "lab", "quick"))
    shell = SshShell(with_router.testbed.facts.router)
    shell.open()
    name = with_router.router.journal_name
    journal = ChangeJournal.claim(Occasion.now(name, "vpp"), *shell.connection.host_keys())
    journal.add(ADDRESS)
    rig.run(" ".join(ADDRESS.do))
    journal.close()
    shell.close()
    return name


def test_what_is_left_is_shown_and_then_undone(rig: Rig, leftover: str) -> None:
    state = rig.state()
    listed = rig.restore("--dry-run", "--json")
    found = json.loads(listed.stdout)
    assert (listed.returncode, found["router"], found["undone"]) == (1, leftover, False)
    assert found["commands"] == [" ".join(ADDRESS.undo)]
    shown = rig.lineproof(*DOCTOR, "--dry-run")
    assert re.search(
        r"^warning  router changes: left by an earlier run: 1 change of process .*"
        r"198\.51\.100\.1/24'\); the next"
        r" run undoes them, or now: lineproof restore lab --platform box$",
        shown.stdout,
        re.MULTILINE,
    ), shown.stdout
    assert rig.state() == state
    done = rig.restore()
    assert done.returncode == 0 and done.stdout.startswith("undid 1 change "), done
    assert "198.51.100.1" in state and "198.51.100.1" not in rig.state() and not rig.journals
    again = rig.restore()
    assert (again.returncode, again.stdout) == (0, f"nothing: no run has left a change on {leftover}\n")


def test_a_testbed_that_ends_with_its_run_has_nothing_to_restore(tmp_path: Path, rig: Rig) -> None:
    found = lineproof(tmp_path, "restore", "simulated", "--platform", "netgate6100", cwd=rig.folder / "project")
    assert found.returncode == 2 and "ends with each run, and nothing stays on it" in found.stderr
