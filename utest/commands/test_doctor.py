"""'lineproof doctor': a testbed that is fit, one with mistakes, a served bench; and 'lineproof restore'."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from lineproof.commands.main import main
from lineproof.project import Project
from lineproof.routers.journal import Change, ChangeJournal, Occasion
from lineproof.session.plan import Plan
from lineproof.session.session import Session
from lineproof.system.ssh_shell import SshShell
from lineproof_bench.shells.machine import Builtin, CommandOutput, Machine, Memory, common_commands
from support import robot_run, router_rig
from support.command_line import lineproof
from support.embedded_server import EmbeddedServer, embedded_server
from support.hostile_ssh import Guard, HostileServer, OpenHouse
from support.robot_run import environment
from support.router_rig import Rig
from support.served_bench import ServedBench, served

pytestmark = pytest.mark.slow


def doctor(folder: Path, *arguments: str, root: Path = robot_run.ROOT) -> subprocess.CompletedProcess[str]:
    (folder / "calibrations").mkdir(exist_ok=True)
    return lineproof(folder, "doctor", *arguments, "--calibrations", str(folder / "calibrations"), cwd=root)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedBench]:
    with served(tmp_path_factory.mktemp("bench"), "--bare") as found:
        yield found


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


def test_a_router_that_differs_from_the_platforms_file_is_a_warning(tmp_path: Path, bench: ServedBench):
    changes = ('"22.02"', '"24.06"'), ("workers: 3", "workers: 2"), ("rx_queues: 3", "rx_queues: 4")
    found = of_lab(tmp_path, changed(tmp_path, bench, *changes, file="platforms/netgate6100"))
    assert found.returncode == 0, found.stdout + found.stderr
    # this hardware is a simulation, and says so itself
    assert "hardware testbed" in found.stdout and "warning  testbed: SIMULATED: " in found.stdout
    shown = [line for line in found.stdout.splitlines() if line.startswith("warning  router facts: ")]
    assert [line.split("'")[1] for line in shown] == ["version", "workers", "rx_queues", "rx_queues"]
    assert "says 24.06, the router reports v22.02" in shown[0] and "says 2, the router has 3" in shown[1]


def test_a_server_that_counts_latency_coarsely_is_a_warning(tmp_path: Path) -> None:
    home = robot_run.project(tmp_path)
    file = home / "variables" / "testbeds" / "simulated.yaml"
    file.write_text(file.read_text(encoding="utf-8") + "habits: [{kind: coarse latency}]\n", encoding="utf-8")
    found = doctor(tmp_path, "simulated", "--platform", "netgate6100", "--listen", "0", root=home)
    assert "warning  latency: counted in histograms of one digit" in found.stdout, found.stdout


@pytest.mark.netns
def test_the_netns_testbed_passes(tmp_path: Path):
    found = doctor(tmp_path, "netns", "--platform", "linux_router", "--traffic")
    assert found.returncode == 0, found.stdout + found.stderr
    assert "card: Lineproof's embedded server on network namespaces (by its driver)" in found.stdout
    assert "ok       traffic: " in found.stdout
    assert robot_run.processes_of(tmp_path) == []


# -- the generator's host, over its login: a Linux machine on which TRex is badly placed


CARDS = (
    ("0000:01:00.0", "igb", "8086:1521", 8, 0, "eno1"),
    ("0000:03:00.0", "i40e", "8086:1572", 4, 0, "enp3s0f0"),
    ("0000:81:00.0", "i40e", "8086:1572", 4, 1, "enp3s0f1"),
)
"""Address, driver, identifiers, lanes of 8, node, interface."""
FILES = {
    "/etc/os-release": 'PRETTY_NAME="Ubuntu 24.04 (SIMULATED)"\nID=simulated\n',
    **{
        f"/sys/devices/pci0000:00/{address}/{name}": text
        for address, driver, identifiers, lanes, node, interface in CARDS
        for name, text in {
            "uevent": f"DRIVER={driver}\nPCI_CLASS=20000\nPCI_ID={identifiers}\n",
            "numa_node": f"{node}\n",
            "current_link_width": f"{lanes}\n",
            "max_link_width": "8\n",
            "current_link_speed": "8.0 GT/s PCIe\n",
            "max_link_speed": "8.0 GT/s PCIe\n",
            f"net/{interface}/uevent": f"INTERFACE={interface}\n",
        }.items()
    },
}
X710 = "Ethernet controller: Intel Corporation Ethernet Controller X710 for 10GbE SFP+ (rev 02)"


def machine() -> Machine:
    def said(text: str) -> Builtin:
        return lambda arguments, line: CommandOutput(text)

    files = {path: (lambda line, text=text: text) for path, text in FILES.items()}
    tools = {
        "ethtool": said("driver: i40e\nfirmware-version: 4.26 0x8000143f 0.0.0\n"),
        "lscpu": said("CPU(s): 24\nModel name:   a processor\nNUMA node(s): 2\n"),
        "lspci": said("".join(f"{address} {X710}\n" for address, *_ in CARDS)),
        "uname": said("6.8.0-simulated\n"),
    }
    no_router: Any = None
    return Machine({**common_commands(files), **tools}, no_router, Memory())


@contextmanager
def trex_host_server(folder: Path, guard: type[Guard] = OpenHouse) -> Iterator[str]:
    """The machine at 127.0.0.1, until the context ends: its login as YAML of a testbed file."""
    host = machine()

    async def answer(process: Any) -> None:
        output = host.run(process.command)
        process.stdout.write(output.stdout.encode())
        process.stderr.write(output.stderr.encode())
        process.exit(output.status)

    with closing(HostileServer(folder, guard, process_factory=answer)) as server:
        yield f"{{user: trex, port: {server.port}, key: {server.key}, known_hosts: {server.known}}}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """One core for ports on two nodes."""
    places = {"cores": 1, "numa": [0, 1], "pci": ["0000:03:00.0", "0000:81:00.0"]}
    with embedded_server(tmp_path_factory.mktemp("server"), clock_speed=20, places=places) as found:
        yield found


def with_host(folder: Path, bench: ServedBench, server: EmbeddedServer, ssh: str, more: str = "") -> Path:
    old = f"sync_port: {bench.sync}, async_port: {bench.events}"
    new = f"sync_port: {server.rpc}, async_port: {server.facts['pub_port']}, ssh: {ssh}"
    return changed(folder, bench, (old, f"{new}{more}"))


def test_the_generators_host_is_read_and_what_is_badly_placed_is_named(
    tmp_path: Path, bench: ServedBench, server: EmbeddedServer
):
    with trex_host_server(tmp_path) as ssh:
        root = with_host(tmp_path, bench, server, ssh, ", card: lineproof_model")
        found = of_lab(tmp_path, root)
        checks = json.loads(of_lab(tmp_path, root, "--json").stdout)["checks"]
    assert found.stderr == ""
    lines = found.stdout.splitlines()
    (facts,) = [check["details"] for check in checks if check["check"] == "generator host" and check["state"] == "ok"]
    for each in (
        "operating system: Ubuntu 24.04 (SIMULATED)",
        "card of 0000:03:00.0: model Intel Corporation Ethernet Controller X710 for 10GbE SFP+ (rev 02), driver i40e,"
        " firmware 4.26 0x8000143f 0.0.0, PCIe x4 8 GT/s of x8 8 GT/s, NUMA node 0",
    ):
        assert each in facts, facts
    assert any("0000:81:00.0" in line and "runs at PCIe x4 8 GT/s and can x8 8 GT/s" in line for line in lines)
    assert any("ok       port 1: " in line and line.endswith(", 1 core for its pair, NUMA node 1") for line in lines)
    assert any("ok       port 0: " in line and ", firmware 4.26 0x8000143f 0.0.0, 1 core " in line for line in lines)


def test_a_host_that_refuses_the_login_is_a_warning(tmp_path: Path, bench: ServedBench, server: EmbeddedServer):
    with trex_host_server(tmp_path, Guard) as ssh:
        found = of_lab(tmp_path, with_host(tmp_path, bench, server, ssh))
    (line,) = [line for line in found.stdout.splitlines() if "generator host" in line]
    assert line.startswith("warning  generator host: what it is is not read: the generator's host at 127.0.0.1:")
    assert "refuses the login of 'trex'" in line


SET = "vppctl set ip neighbor TenGigabitEthernet3/0/0 100.65.1.2 02:00:00:00:00:01 static"


def unprepared(home: Path) -> Path:
    """The project *home*, whose testbed ``lab`` says ``prepare: none``."""
    file = home / "variables" / "testbeds" / "lab.yaml"
    file.write_text(file.read_text().replace("prepare: configure", "prepare: none"), encoding="utf-8")
    return home


def test_a_missing_neighbour_is_wrong_and_ends_a_run_before_any_traffic(tmp_path: Path) -> None:
    with served(tmp_path, "--bare") as bench:
        home = unprepared(bench.project(tmp_path))
        found = lineproof(tmp_path, "doctor", "lab", "--platform", "netgate6100", cwd=home)
        suite = robot_run.write_suite(tmp_path, "64b 1-flow ≥ 10 kpps")
        run = robot_run.run(tmp_path, suite, "-v", f"PROJECT:{home}", "-v", "TESTBED:lab", "-v", "GOAL:quick")
    (line,) = [row for row in found.stdout.splitlines() if "router neighbour 100.65.1.2" in row]
    assert line.startswith("wrong  ") and f"'{SET}' on the router sets it" in line
    assert "if the router's next hop is another address, fix 'peer' of 'sides'" in line
    message = run.tests["The Test"][1]
    assert "no neighbour entry for 100.65.1.2" in message and SET in message, message


def test_an_ipv6_entry_that_is_there_is_read_too(tmp_path: Path) -> None:
    with served(tmp_path) as bench:
        home = unprepared(bench.project(tmp_path))
        with closing(SshShell(bench.router)) as shell:
            entry = "TenGigabitEthernet3/0/0 2001:2::6441:102 02:00:00:00:00:99 static"
            assert shell(f"vppctl set ip neighbor {entry}", 10).status == 0
        found = lineproof(tmp_path, "doctor", "lab", "--platform", "netgate6100", "--listen", "0", cwd=home)
    (line,) = [row for row in found.stdout.splitlines() if "router neighbour 2001:" in row]
    assert (
        line.startswith("wrong  ") and "has 02:00:00:00:00:99, and the generator's port has 02:00:00:00:00:01" in line
    )


def test_a_card_that_drops_what_the_router_sends_is_named_where_no_frame_comes_back(
    tmp_path: Path, bench: ServedBench
) -> None:
    root = changed(tmp_path, bench, ("48.0.0.0/8", "20.0.0.0/8"), ("02:00:00:00:00:02", "02:aa:00:00:00:91"))
    printed = of_lab(tmp_path, root, "--traffic").stdout
    words = "the router sends to 02:aa:00:00:00:91, and the card is 02:00:00:00:00:02: it drops such frames"
    assert f"warning  port 1: {words}" in printed
    (traffic,) = [line for line in printed.splitlines() if line.startswith("wrong    traffic: ")]
    assert f"of port 1: {words}" in traffic and "of port 0" not in traffic


def test_a_run_names_swapped_interfaces_as_doctor_does(tmp_path: Path, bench: ServedBench) -> None:
    first, second = "TenGigabitEthernet3/0/0", "TenGigabitEthernet3/0/1"
    swapped = f"[{first}, {second}]", f"[{second}, {first}]"
    root = changed(tmp_path, bench, swapped, file="platforms/netgate6100")
    printed = of_lab(tmp_path, root)
    said = re.findall("^wrong    (router interface .*)$", printed.stdout, re.MULTILINE)
    assert printed.returncode == 1 and len(said) == 2
    suite = robot_run.write_suite(root, "64b unidirectional ≥ 1 kpps", setup="Open Testbed For    netgate6100")
    found = robot_run.run(tmp_path, suite, "-v", "TESTBED:lab", "-v", "GOAL:quick")
    words = " ".join(found.console.split())
    assert "nothing was judged: the generator's port" in words and "0 PASS" not in words, found.console
    assert all(" ".join(line.replace(": has", " has").split()) in words for line in said)


MOST_SLEEP = 2.0
"""Seconds of pauses in this process, such as between two looks at a link."""
MOST_COMMANDS = 28
"""Commands on the router, one after the other. On a management network each takes tenths of a second."""


def test_doctor_pauses_for_2_s_and_asks_the_router_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pauses, asked = [], []
    sleep, call = time.sleep, SshShell.__call__

    def counted_sleep(seconds: float) -> None:
        pauses.append(seconds)
        sleep(seconds)

    def counted_call(shell: SshShell, command: str, limit: float) -> object:
        asked.append(command)
        return call(shell, command, limit)

    with served(tmp_path) as bench:
        home = bench.project(tmp_path)
        for name, value in environment(tmp_path).items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(home)
        monkeypatch.setattr(time, "sleep", counted_sleep)
        monkeypatch.setattr(SshShell, "__call__", counted_call)
        status = main(["doctor", "lab", "--platform", "netgate6100", "--listen", "0"])
    assert status == 0, capsys.readouterr().out
    assert sum(pauses) <= MOST_SLEEP, pauses
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
