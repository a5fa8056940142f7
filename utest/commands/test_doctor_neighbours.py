"""'lineproof doctor' and `Configure Router` on routers whose neighbours are missing, or were learned."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from lineproof.routers.ssh_shell import SshShell
from support import robot_run
from support.command_line import lineproof
from support.served_bench import served

pytestmark = pytest.mark.slow

SET = {
    "vpp": "vppctl set ip neighbor TenGigabitEthernet3/0/0 100.65.1.2 02:00:00:00:00:01 static",
    "linux": "ip neigh replace 100.65.1.2 lladdr 02:00:00:00:00:01 nud permanent dev enp3s0f0",
    "pfsense": "arp -S 100.65.1.2 02:00:00:00:00:01",
}


def unprepared(home: Path) -> Path:
    """The project *home*, whose testbed ``lab`` says ``prepare: none``."""
    file = home / "variables" / "testbeds" / "lab.yaml"
    file.write_text(file.read_text().replace("prepare: configure", "prepare: none"), encoding="utf-8")
    return home


@pytest.mark.parametrize("software", sorted(SET))
def test_a_learned_neighbour_is_a_warning_with_the_command(software: str, tmp_path: Path) -> None:
    with served(tmp_path, "--learned-neighbours", "--software", software) as bench:
        home = unprepared(bench.project(tmp_path))
        words = ("doctor", "lab", "--platform", "netgate6100", "--software", software)
        found = lineproof(tmp_path, *words, cwd=home)
    (line,) = [row for row in found.stdout.splitlines() if "router neighbour 100.65.1.2" in row]
    assert line.startswith("warning  ") and f"'{SET[software]}' on the router sets it for good" in line, found.stdout
    assert "was learned, not set: it goes when it ages, because TRex answers ARP in service mode only" in line


def test_a_missing_neighbour_is_wrong_and_ends_a_run_before_any_traffic(tmp_path: Path) -> None:
    with served(tmp_path, "--bare") as bench:
        home = unprepared(bench.project(tmp_path))
        found = lineproof(tmp_path, "doctor", "lab", "--platform", "netgate6100", cwd=home)
        suite = robot_run.write_suite(tmp_path, "64b 1-flow ≥ 10 kpps")
        run = robot_run.run(tmp_path, suite, "-v", f"PROJECT:{home}", "-v", "TESTBED:lab", "-v", "GOAL:quick")
    (line,) = [row for row in found.stdout.splitlines() if "router neighbour 100.65.1.2" in row]
    assert line.startswith("wrong  ") and f"'{SET['vpp']}' on the router sets it" in line
    assert "if the router's next hop is another address, fix 'peer' of 'sides'" in line
    message = run.tests["The Test"][1]
    assert "no neighbour entry for 100.65.1.2" in message and SET["vpp"] in message, message


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
