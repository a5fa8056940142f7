"""docs/first-hardware-run.md from an empty folder to its last command, with simulated cards."""

from __future__ import annotations

import re
import shlex
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from lineproof.system.login import Login
from support import robot_run
from support.paths import ROOT
from support.served_bench import ServedBench, served
from support.shown_commands import blocks

PAGE = (ROOT / "docs" / "first-hardware-run.md").read_text(encoding="utf-8")
CHECKLIST = PAGE[PAGE.index("## Checklist") : PAGE.index("## Doctor")]
CARD = "i40e"
"""``suites/test_simulated.py`` has them all."""

LESS = {
    "lineproof calibrate": ["--goal", "quick", "--traffic", "1514b", "--unidirectional", "--duration", "0.2"],
    "lineproof doctor": ["--listen", "0.5"],
}
"""Options of a command so that it takes seconds."""


COMMANDS = [line for block in blocks("sh", CHECKLIST) for line in block.splitlines()]


class Walker:
    """A user with the page, an empty folder, and the machines of *bench*."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, folder / "home"
        self.home.mkdir()

    def type(self, command: str) -> tuple[int, str]:
        """Run a command of the page; its exit status and what it printed."""
        words = shlex.split(command)
        if "--listen" not in words:
            words += LESS.get(" ".join(words[:2]), [])
        if words[0] == "robot":
            words.insert(1, "--exitonerror")
        done = robot_run.programs().run(words, robot_run.environment(self.folder), self.home, limit=120)
        return done.returncode, done.stdout + done.stderr

    def change(self, file: str, *changes: tuple[str, str]) -> None:
        """Change a file that ``lineproof init`` wrote; each expression is in it once."""
        path = self.home / file
        text = path.read_text(encoding="utf-8")
        for expression, by in changes:
            text, count = re.subn(expression, by, text, flags=re.MULTILINE | re.DOTALL)
            assert count == 1, (file, expression)
        path.write_text(text, encoding="utf-8")

    def describe(self, bench: ServedBench) -> None:
        """Step 3 of the page: both addresses, the login, and the router's interfaces."""
        login: Login = bench.router
        self.change(
            "variables/testbeds/lab.yaml",
            (r"192\.0\.2\.10$", "127.0.0.1"),
            (r"192\.0\.2\.20$", f"127.0.0.1\n  port: {login.port}"),
            (r"user: admin", f"user: {login.user}"),
            (r"^  key: \S+$", f"  key: {login.key}"),
            (r"^  known_hosts: \S+$", "  known_hosts: known_hosts"),
        )
        self.point_at(bench)
        self.change(
            "variables/platforms/mybox.yaml",
            (r"^  linux:\n.*?shell: linux$", "  vpp:\n    shell: vpp"),
            (r"version: Debian 12", 'version: "22.02"'),
            (r"enp1s0f0, enp1s0f1", "TenGigabitEthernet3/0/0, TenGigabitEthernet3/0/1"),
            (r"^# Only for the simulated testbed.*", ""),
        )

    def point_at(self, bench: ServedBench) -> None:
        """Other cables: the same lab behind other TCP ports of this machine."""
        self.change(
            "variables/testbeds/lab.yaml",
            (r"(?<=  sync_port: )\d+", str(bench.sync)),
            (r"(?<=async_port: )\d+", str(bench.events)),
        )


@pytest.mark.slow
def test_the_commands_of_the_checklist_lead_to_a_verdict(tmp_path: Path) -> None:
    machines = robot_run.project(tmp_path, "machines", more=f"nic: {CARD}")
    walker = Walker(tmp_path)
    with ExitStack() as benches:
        bench = benches.enter_context(served(tmp_path, "--testbed", "machines", "--bare", project=machines))
        for command in COMMANDS:
            if command.startswith("lineproof calibrate"):
                with served(tmp_path, "--testbed", "machines", "--cable", project=machines) as cable:
                    walker.point_at(cable)
                    status, printed = walker.type(command)
                walker.point_at(bench)
            else:
                status, printed = walker.type(command)
            if line := re.search(r"add this line to the file: (.*)$", printed, re.MULTILINE):
                # step 3: nothing but this is wrong, and then nothing is
                assert status == 1 and printed.count("\nwrong") == 1, printed
                assert "ok       port 1: link up" in printed
                (walker.home / "variables" / "testbeds" / "known_hosts").write_text(line[1] + "\n", encoding="utf-8")
                status, printed = walker.type(command)
            assert status == 0, (command, printed)
            if command.startswith("lineproof init"):
                assert f"plays '{CARD}'" in bench.said
                walker.describe(bench)
                shorten(walker.home)
            if command.startswith("robot"):
                assert "| PASS |" in printed and (walker.home / "results" / "log.html").exists()
            if command == "lineproof doctor lab --platform mybox":
                assert "\nok       calibration: " in printed
    assert len(list((walker.home / "results").glob("*/manifest.json"))) == sum(
        line.startswith("robot") for line in COMMANDS
    )


def shorten(home: Path) -> None:
    """Goals with fewer seconds of traffic, and the user's own sentences: one."""
    (home / "variables" / "goals").mkdir()
    for name in ("quick", "standard"):
        text = (ROOT / "variables" / "goals" / f"{name}.yaml").read_text(encoding="utf-8")
        data = yaml.safe_load(text) | {"final_trial_duration": 0.5, "duration_sum": 1, "warm_up": 0}
        (home / "variables" / "goals" / f"{name}.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
    suite = home / "tests" / "mybox.robot"
    text = suite.read_text(encoding="utf-8")
    suite.write_text(text[: text.index("One Flow Forwards")], encoding="utf-8")


def test_the_page_has_commands_and_the_configuration_of_trex_is_one() -> None:
    assert len(COMMANDS) >= 8 and COMMANDS[0] == "lineproof init mybox"
    page = (ROOT / "docs" / "generators.md").read_text(encoding="utf-8")
    (config,) = [block for block in blocks("yaml", page) if "port_info" in block]
    (server,) = yaml.safe_load(config)
    lab = yaml.safe_load((ROOT / "variables/testbeds/lab-example.yaml").read_text(encoding="utf-8"))
    for port, side in zip(server["port_info"], lab["sides"], strict=True):
        assert (port["ip"], port["default_gw"]) == (side["peer"], side["address"].partition("/")[0])
