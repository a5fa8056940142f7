"""'lineproof doctor' of testbeds with mistakes and of a served bench; and 'lineproof restore'."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lineproof.commands.main import main
from lineproof.project import Project
from lineproof.routers.journal import Change, ChangeJournal, Occasion
from lineproof.session.plan import Plan
from lineproof.session.session import Session
from lineproof.system.ssh_shell import SshShell
from support import robot_run, router_rig
from support.command_line import lineproof
from support.robot_run import environment
from support.router_rig import Rig
from support.served_bench import ServedBench, served

pytestmark = pytest.mark.slow


def doctor(folder: Path, *arguments: str, root: Path = robot_run.ROOT) -> subprocess.CompletedProcess[str]:
    (folder / "calibrations").mkdir(exist_ok=True)
    return lineproof(folder, "doctor", *arguments, "--calibrations", str(folder / "calibrations"), cwd=root)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedBench]:
    with served(tmp_path_factory.mktemp("bench"), "--bare") as bench:
        yield bench


def changed(folder: Path, bench: ServedBench, *changes: tuple[str, str], file: str = "testbeds/lab") -> Path:
    """A project whose testbed ``lab`` is *bench*, with *changes* of one of its files."""
    root = bench.project(folder)
    path = root / "variables" / f"{file}.yaml"
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.unlink()
    path.write_text(text, encoding="utf-8")
    return root


def of_lab(folder: Path, root: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return doctor(folder, "lab", "--platform", "netgate6100", "--listen", "0.2", *more, root=root)


@pytest.mark.netns
def test_the_netns_testbed_passes(tmp_path: Path):
    done = doctor(tmp_path, "netns", "--platform", "linux_router", "--traffic")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "card: Lineproof's embedded server on network namespaces (by its driver)" in done.stdout
    assert "ok       traffic: " in done.stdout
    assert robot_run.processes_of(tmp_path) == []


SET = "vppctl set ip neighbor TenGigabitEthernet3/0/0 100.65.1.2 02:00:00:00:00:01 static"


def test_a_missing_or_wrong_neighbour_is_wrong_and_ends_a_run_before_any_traffic(tmp_path: Path) -> None:
    """IPv6 entries are read, too."""
    with served(tmp_path, "--bare") as bench:
        home = changed(tmp_path, bench, ("prepare: configure", "prepare: none"))
        with closing(SshShell(bench.router)) as shell:
            entry = "TenGigabitEthernet3/0/0 2001:2::6441:102 02:00:00:00:00:99 static"
            assert shell(f"vppctl set ip neighbor {entry}", 10).status == 0
        printed = of_lab(tmp_path, home).stdout
        suite = robot_run.write_suite(tmp_path, "64b 1-flow ≥ 10 kpps")
        run = robot_run.run(tmp_path, suite, "-v", f"PROJECT:{home}", "-v", "TESTBED:lab", "-v", "GOAL:quick")
    (missing,) = re.findall(r"^wrong +router neighbour 100\.65\.1\.2: (.*)", printed, re.MULTILINE)
    assert f"'{SET}' on the router sets it" in missing
    assert "if the router's next hop is another address, fix 'peer' of 'sides'" in missing
    (other,) = re.findall(r"^wrong +router neighbour 2001:\S+: (.*)", printed, re.MULTILINE)
    assert "has 02:00:00:00:00:99, and the generator's port has 02:00:00:00:00:01" in other
    message = run.tests["The Test"][1]
    assert "no neighbour entry for 100.65.1.2" in message and SET in message, message


def test_a_card_that_drops_what_the_router_sends_is_named_where_no_frame_comes_back(
    tmp_path: Path, bench: ServedBench
) -> None:
    root = changed(tmp_path, bench, ("48.0.0.0/8", "20.0.0.0/8"), ("02:00:00:00:00:02", "02:aa:00:00:00:91"))
    printed = of_lab(tmp_path, root, "--traffic").stdout
    dropped = "the router sends to 02:aa:00:00:00:91, and the card is 02:00:00:00:00:02: it drops such frames"
    assert f"warning  port 1: {dropped}" in printed
    (traffic,) = [line for line in printed.splitlines() if line.startswith("wrong    traffic: ")]
    assert f"of port 1: {dropped}" in traffic and "of port 0" not in traffic


def test_a_run_names_swapped_interfaces_as_doctor_does(tmp_path: Path, bench: ServedBench) -> None:
    first, second = "TenGigabitEthernet3/0/0", "TenGigabitEthernet3/0/1"
    swapped = f"[{first}, {second}]", f"[{second}, {first}]"
    root = changed(tmp_path, bench, swapped, file="platforms/netgate6100")
    printed = of_lab(tmp_path, root)
    said = re.findall("^wrong    (router interface .*)$", printed.stdout, re.MULTILINE)
    assert printed.returncode == 1 and len(said) == 2
    suite = robot_run.write_suite(root, "64b unidirectional ≥ 1 kpps", setup="Open Testbed For    netgate6100")
    ran = robot_run.run(tmp_path, suite, "-v", "TESTBED:lab", "-v", "GOAL:quick")
    console = " ".join(ran.console.split())
    assert "nothing was judged: the generator's port" in console and "0 PASS" not in console, ran.console
    assert all(" ".join(line.replace(": has", " has").split()) in console for line in said)


MOST_COMMANDS = 28
"""Commands on the router, one after the other. On a management network each takes tenths of a second."""


def test_doctor_asks_the_router_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked, call = [], SshShell.__call__

    def counted_call(shell: SshShell, command: str, limit: float) -> object:
        asked.append(command)
        return call(shell, command, limit)

    with served(tmp_path) as bench:
        home = bench.project(tmp_path)
        for name, value in environment(tmp_path).items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(home)
        monkeypatch.setattr(SshShell, "__call__", counted_call)
        status = main(["doctor", "lab", "--platform", "netgate6100", "--listen", "0"])
    assert status == 0, capsys.readouterr().out
    assert 5 <= len(asked) <= MOST_COMMANDS, asked


# -- 'lineproof restore', and what doctor says of a router on which something is left


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
    journal = ChangeJournal.claim(Occasion(name, "vpp"), *shell.connection.host_keys())
    journal.add(ADDRESS)
    rig.run(" ".join(ADDRESS.do))
    journal.close()
    shell.close()
    return name


def test_what_is_left_is_shown_and_then_undone(rig: Rig, leftover: str) -> None:
    state = rig.state()
    listed = rig.restore("--dry-run", "--json")
    answer = json.loads(listed.stdout)
    assert (listed.returncode, answer["router"], answer["undone"]) == (1, leftover, False)
    assert answer["commands"] == [" ".join(ADDRESS.undo)]
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
