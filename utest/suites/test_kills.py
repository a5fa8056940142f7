"""Each process of a run, ended by each signal at ten moments: the run ends, nothing is left, no verdict is another.

The default is a sample. ``LINEPROOF_KILLS=all pytest -s utest/suites/test_kills.py`` does all, ``LINEPROOF_KILLS=40``
so many of them; with ``-s`` it prints the seconds until nothing was left.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from lineproof.evidence.run import read_run
from lineproof.evidence.run_files import check_integrity
from support import leftovers, robot_run
from support.patience import wait_until

LIMIT = 60.0
"""Seconds in which a program ends after the signal."""

ENDING = ("INT", "TERM", "HUP", "QUIT")
SIGNALS = (*ENDING, "KILL", "STOP")  # STOP: then KILL
BENCH, NAMESPACE = "-m lineproof_bench", "lineproof-namespace"
ANYWHERE = {"robot": "", "client": "lineproof.generators.trex.client"}
NETNS = {**ANYWHERE, "sshd": "sshd_config", "namespace": NAMESPACE}
PROCESSES = {
    "simulated": {**ANYWHERE, "bench": BENCH},
    "netns": {**NETNS, "bench": BENCH, "sender": "lineproof_bench.wire.sender"},
    "netns-trex": {**NETNS, "holder": "lineproof-trex", "trex": "_t-rex-64"},
}
"""By testbed: process -> words of its command line; "": the program itself."""

MARKS: dict[str, Any] = {
    "simulated": pytest.mark.slow,
    "netns": pytest.mark.netns,
    "netns-trex": (
        pytest.mark.netns,
        pytest.mark.skipif(not os.environ.get("TREX_HOME"), reason="TREX_HOME has to name TRex's scripts folder"),
    ),
}
MOMENTS: dict[str, dict[str, int]] = {
    "opening": {},
    "trial": {"trials": 3},
    "judging": {"requirements": 1, "readings": 4},
    "between": {"requirements": 1},
    "closing": {"requirements": 2},
}
"""Moment -> the lines of records that a run of two sentences has written by then."""


@dataclass(frozen=True)
class Kill:
    """*process* of *testbed* gets *number* at *moment*, *after* s later."""

    testbed: str
    process: str
    number: str
    moment: str
    after: float

    def __str__(self) -> str:
        return f"{self.testbed}-{self.process}-{self.number}-{self.moment}-{self.after:.2f}"


def kills() -> Iterator[Any]:
    chance, asked = random.Random(150), os.environ.get("LINEPROOF_KILLS", "4")
    for testbed, processes in PROCESSES.items():
        every = [
            Kill(testbed, process, number, moment, 0.2 * half + chance.uniform(0, 0.2))
            for process in processes
            for number in SIGNALS
            for moment in MOMENTS
            for half in (0, 1)
        ]
        chosen = every if asked == "all" else random.Random(asked).sample(every, min(int(asked), len(every)))
        yield from (pytest.param(kill, marks=MARKS[testbed], id=str(kill)) for kill in chosen)


class Run:
    """A program in *folder*, with everything that it writes there."""

    def __init__(self, folder: Path, argv: list[str]) -> None:
        self.folder, self.temporary, self.console = folder, folder / "tmp", folder / "console.txt"
        self.temporary.mkdir()
        self.seen: list[psutil.Process] = []
        env = {**robot_run.environment(folder), "TMPDIR": str(self.temporary)}
        self.runtime = folder / "runtime" / "lineproof"
        with self.console.open("w") as console:
            self.process = subprocess.Popen(
                argv, stdout=console, stderr=subprocess.STDOUT, env=env, cwd=folder, start_new_session=True
            )

    @property
    def text(self) -> str:
        return self.console.read_text(encoding="utf-8")

    def lines(self, name: str) -> int:
        return sum(path.read_bytes().count(b"\n") for path in self.folder.glob(f"results/*/{name}.jsonl"))

    def reached(self, moment: str) -> bool:
        """Return whether it is there. A program that has ended before it was killed fails the test."""
        assert self.process.poll() is None, self.text
        if moment == "opening":
            # its testbed has a folder, and a process that removes it
            begun = self.find(BENCH) or self.find(NAMESPACE)
            return begun is not None and any(path.is_dir() for path in self.runtime.glob("*"))
        return all(self.lines(name) >= count for name, count in MOMENTS[moment].items())

    def find(self, words: str) -> psutil.Process | None:
        """The process of this run with *words* in its command line, and nothing else of theirs behind them."""
        with contextlib.suppress(psutil.Error):
            own = psutil.Process(self.process.pid)
            self.seen = [own, *own.children(recursive=True)]
            for process in self.seen if words else [own]:
                with contextlib.suppress(psutil.Error):
                    line = " ".join(process.cmdline())
                    if words in line and (words != BENCH or line.endswith(words)):
                        return process
        return None

    def strike(self, target: psutil.Process | None, number: str) -> None:
        """Send the signal; Ctrl-C and a hang-up go to the whole group, as a terminal sends them."""
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if target is None:
                return
            if target.pid == self.process.pid and number in ("INT", "HUP", "QUIT"):
                os.killpg(target.pid, signal.Signals[f"SIG{number}"])
                return
            target.send_signal(signal.Signals[f"SIG{number}"])
            if number == "STOP":
                time.sleep(0.7)
                target.kill()

    def check_end(self) -> None:
        """It ends in time and leaves no process, and nothing outside of its folder."""
        try:
            self.process.wait(LIMIT)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        began = time.monotonic()
        # a namespace lasts as its processes do
        leftovers.await_end(self.runtime, self.seen)
        wait_until(lambda: robot_run.processes_of(self.folder) == [], limit=leftovers.LIMIT)
        print(f"nothing left after {time.monotonic() - began:.2f} s")
        assert list(self.temporary.iterdir()) == []
        assert "Traceback" not in self.text and "terminated by signal" not in self.text, self.text[-3000:]


@pytest.mark.parametrize("kill", list(kills()))
def test_a_kill_leaves_nothing(kill: Kill, tmp_path: Path) -> None:
    home = robot_run.project(tmp_path)
    robot_run.shorten(home)
    simulated = home / "variables" / "testbeds" / "simulated.yaml"
    simulated.write_text(simulated.read_text("utf-8").replace("clock_speed: 50", "clock_speed: 10"), "utf-8")
    platform, sentence = ("linux_router", "64b unidirectional ≥ 1 kpps")
    if kill.testbed == "simulated":
        platform, sentence = "netgate6100", "64b 1-flow unidirectional ≥ 1 Mpps"
    setup = f"Open Testbed For    {platform}    testbed={kill.testbed}"
    suite = robot_run.write_suite(tmp_path, sentence, sentence, setup=setup)
    run = Run(tmp_path, robot_run.command(tmp_path, suite, "-v", f"PROJECT:{home}", "-v", "GOAL:quick"))
    words, robot = PROCESSES[kill.testbed][kill.process], kill.process == "robot"
    try:
        # with a real TRex on a busy machine a sentence takes most of a minute
        wait_until(lambda: run.reached(kill.moment), lambda: run.text, limit=300)
        if kill.moment == "opening":
            wait_until(lambda: run.find(words) or run.process.poll() is not None)
        time.sleep(kill.after)
        trials = run.lines("trials")
        run.strike(run.find(words), kill.number)
    finally:
        run.check_end()
    if robot and kill.number in ENDING:
        assert not re.search("SSH link to the router broke|had to be killed", run.text), run.text[-3000:]
    killed = robot and kill.number in ("KILL", "STOP")
    assert run.lines("trials") >= trials
    for path in (file.parent for file in tmp_path.glob("results/*/requirements.jsonl")):
        for file in path.glob("[trq]*s.jsonl"):
            rows = file.read_text(encoding="utf-8").splitlines()
            # only the last line of a killed run may be unfinished
            for row in rows[:-1] if killed else rows:
                json.loads(row)
        assert {item.verdict for item in read_run(path).requirements} <= {"PASS", "INCONCLUSIVE"}, run.text[-3000:]
        assert check_integrity(path).altered == ()
