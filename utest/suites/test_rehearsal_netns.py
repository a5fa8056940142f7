"""The rehearsal of ``docs/first-hardware-run.md`` on a real kernel: a run that is killed, doctor, restore."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import robot_run
from support.command_line import lineproof
from support.paths import ROOT
from support.patience import wait_until
from support.served_bench import served

pytestmark = pytest.mark.netns

PASSAGE = (ROOT / "docs" / "first-hardware-run.md").read_text(encoding="utf-8").partition("A real kernel can be")[2]
SUITE = """\
*** Settings ***
Resource    lineproof/acceptance.resource
Suite Setup    Open Testbed For    linux_router
Suite Teardown    Close Testbed

*** Test Cases ***
Slow Frames Pass
    64b unidirectional ≥ 10 kpps
    512b unidirectional ≥ 10 kpps
"""


def test_what_a_killed_run_left_on_a_real_kernel_is_shown_and_undone(tmp_path: Path) -> None:
    assert lineproof(tmp_path, "init", "mybox").returncode == 0
    command = re.search(r"`lineproof serve ([^`]*--bare)`", PASSAGE)
    assert command is not None
    with served(tmp_path, *command[1].split(), project=tmp_path) as bench:
        rehearse(tmp_path, bench.said)


def rehearse(tmp_path: Path, said: str) -> None:
    """Walk the page with the router of which the bench *said* where it is."""
    login = re.search(r"-i (\S+) -o UserKnownHostsFile=(\S+) .*-p (\d+) root@", said)
    ports = re.search(r"sync port (\d+), async port (\d+)", said)
    found = re.search(r"```yaml\n(.*?)```", PASSAGE, re.DOTALL)
    assert login is not None and ports is not None and found is not None, said
    text = found[1].replace("\n   ", "\n").replace("   testbed", "testbed").replace("/…/client_ed25519", login[1])
    for before, after in (("/…/known_hosts", login[2]), ("40000", login[3]), ("4501", ports[1]), ("4500", ports[2])):
        assert before in text
        text = text.replace(before, after)
    (tmp_path / "variables" / "testbeds" / "rehearsal.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "tests" / "rehearsal.robot").write_text(SUITE, encoding="utf-8")
    words = ["-v", "TESTBED:rehearsal", "-v", "GOAL:quick", "tests/rehearsal.robot"]
    with (tmp_path / "console.txt").open("wb") as console:
        run = subprocess.Popen(
            [sys.executable, "-m", "robot", *words],
            cwd=tmp_path,
            env=robot_run.environment(tmp_path),
            stdout=console,
            stderr=console,
        )
        try:
            wait_until(
                lambda: any(path.stat().st_size for path in tmp_path.rglob("trials.jsonl")) or run.poll() is not None
            )
            assert run.poll() is None, (tmp_path / "console.txt").read_text()
        finally:
            run.kill()
            run.wait(30)
    where = ("rehearsal", "--platform", "linux_router")
    shown = lineproof(tmp_path, "doctor", *where, "--listen", "1")
    assert re.search(r"router changes: left by an earlier run: .*'ip route del 48\.0\.0\.0/8", shown.stdout), shown
    done = lineproof(tmp_path, "restore", *where)
    assert done.returncode == 0 and done.stdout.startswith("undid "), done
    assert "nothing: no run has left a change" in lineproof(tmp_path, "restore", *where, "--dry-run").stdout
