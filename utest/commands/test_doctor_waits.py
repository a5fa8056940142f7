"""What ``lineproof doctor`` waits for: at most 10 s beside its listening, counted in waits and not by a clock."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from lineproof.commands.main import main
from lineproof.routers.ssh_shell import SshShell
from support.robot_run import environment
from support.served_bench import served

MOST_SLEEP = 2.0
"""Seconds of pauses in this process, such as between two looks at a link."""
MOST_EXCHANGES = 12
"""Command lines on the router, one after the other. On a management network each takes tenths of a second."""


@pytest.mark.slow
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
    assert 5 <= len(asked) <= MOST_EXCHANGES, asked
