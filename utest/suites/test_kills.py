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
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from lineproof.evidence.integrity import check_integrity
from lineproof.evidence.run import read_run
from support import leftovers, robot_run
from support.command_line import environment
from support.patience import wait_until

LIMIT = 60.0
"""Seconds in which a program ends after the signal."""

SENTENCES = {"simulated": "64b 1-flow unidirectional ≥ 1 Mpps", "netns": "64b unidirectional ≥ 1 kpps"}
ENDING = ("INT", "TERM", "HUP", "QUIT")
SIGNALS = (*ENDING, "KILL", "STOP")  # STOP: then KILL
CLIENT, SSHD, NAMESPACE = "lineproof.generators.trex.client", "sshd_config", "lineproof-namespace"
PROCESSES = {
    "simulated": {"robot": "", "client": CLIENT, "bench": "-m lineproof_bench"},
    "netns": {
        **{"robot": "", "client": CLIENT, "bench": "-m lineproof_bench", "sender": "lineproof_bench.wire.sender"},
        **{"sshd": SSHD, "namespace": NAMESPACE},
    },
    "netns-trex": {
        **{"robot": "", "client": CLIENT, "holder": "lineproof-trex", "trex": "_t-rex-64"},
        **{"sshd": SSHD, "namespace": NAMESPACE},
    },
}
"""By testbed: process -> words of its command line; "": the program itself."""

MOMENTS = tuple((moment, half) for moment in ("opening", "trial", "between", "judging", "closing") for half in (0, 1))


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


def kills() -> Iterator[Kill]:
    chance = random.Random(150)
    for testbed, processes in PROCESSES.items():
        for process in processes:
            for number in SIGNALS:
                for moment, half in MOMENTS:
                    yield Kill(testbed, process, number, moment, 0.2 * half + chance.uniform(0, 0.2))


def chosen(testbed: str) -> list[Kill]:
    asked, every = os.environ.get("LINEPROOF_KILLS", "4"), [kill for kill in kills() if kill.testbed == testbed]
    return every if asked == "all" else random.Random(asked).sample(every, min(int(asked), len(every)))


class Run:
    """A program in *folder*, with everything that it writes there."""

    def __init__(self, folder: Path, argv: list[str]) -> None:
        self.folder, self.temporary = folder, folder / "tmp"
        self.temporary.mkdir()
        self.console = folder / "console.txt"
        self.seen: list[psutil.Process] = []
        with self.console.open("w") as console:
            self.process = subprocess.Popen(
                argv,
                stdout=console,
                stderr=subprocess.STDOUT,
                env={**environment(folder), "TMPDIR": str(self.temporary)},
                cwd=folder,
                start_new_session=True,
            )

    @property
    def runtime(self) -> Path:
        return self.folder / "runtime" / "lineproof"

    @property
    def text(self) -> str:
        return self.console.read_text(encoding="utf-8")

    @property
    def begun(self) -> bool:
        """Return whether its testbed has a folder, and a process that removes it."""
        return any(path.is_dir() for path in self.runtime.glob("*")) and bool(
            self.find("-m lineproof_bench") or self.find(NAMESPACE)
        )

    def lines(self, name: str) -> int:
        return sum(path.read_bytes().count(b"\n") for path in self.folder.glob(f"results/*/{name}.jsonl"))

    def find(self, words: str) -> psutil.Process | None:
        """The process of this run with *words* in its command line, and nothing else of theirs behind them."""
        with contextlib.suppress(psutil.Error):
            own = psutil.Process(self.process.pid)
            self.seen = [own, *own.children(recursive=True)]
            for process in self.seen if words else [own]:
                with contextlib.suppress(psutil.Error):
                    line = " ".join(process.cmdline())
                    if words in line and (words != "-m lineproof_bench" or line.endswith(words)):
                        return process
        return None

    def has_ended(self) -> bool:
        """Return False; a program that has ended before it was killed fails the test."""
        assert self.process.poll() is None, self.text
        return False

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

    def await_end(self) -> float:
        """Seconds until the program ended."""
        began = time.monotonic()
        try:
            self.process.wait(LIMIT)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        return time.monotonic() - began

    def check_nothing_left(self) -> None:
        """No process of the run, and nothing of it outside of its folder. A namespace lasts as its processes do."""
        began = time.monotonic()
        leftovers.await_end(self.runtime, self.seen)
        wait_until(lambda: robot_run.processes_of(self.folder) == [], limit=leftovers.LIMIT)
        print(f"nothing left after {time.monotonic() - began:.2f} s")
        assert list(self.temporary.iterdir()) == []

    def check_words(self) -> None:
        assert "Traceback" not in self.text and "terminated by signal" not in self.text, self.text[-3000:]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(robot_run.ROOT / "variables", tmp_path / "variables")
    for kind in ("testbeds/simulated.yaml", "goals/quick.yaml"):
        path = tmp_path / "variables" / kind
        text = path.read_text(encoding="utf-8").replace("clock_speed: 50", "clock_speed: 10")
        path.write_text(text.replace("duration_sum: 10\n", "duration_sum: 3\n"), encoding="utf-8")
    return tmp_path


def reached(run: Run, moment: str) -> bool:
    """Return whether a run of two sentences is there."""
    match moment:
        case "opening":
            return run.begun
        case "trial":
            return run.lines("trials") >= 3
        case "judging":
            return run.lines("requirements") >= 1 and run.lines("readings") >= 4
        case "between":
            return run.lines("requirements") >= 1
        case _:
            return run.lines("requirements") >= 2


MARKS: dict[str, Any] = {
    "simulated": pytest.mark.slow,
    "netns": pytest.mark.netns,
    "netns-trex": (
        pytest.mark.netns,
        pytest.mark.skipif(not os.environ.get("TREX_HOME"), reason="TREX_HOME has to name TRex's scripts folder"),
    ),
}


@pytest.mark.parametrize(
    "kill",
    [pytest.param(kill, marks=marks, id=str(kill)) for testbed, marks in MARKS.items() for kill in chosen(testbed)],
)
def test_a_kill_leaves_nothing(kill: Kill, folder: Path) -> None:
    platform = "netgate6100" if kill.testbed == "simulated" else "linux_router"
    sentence = SENTENCES[kill.testbed.partition("-")[0]]
    suite = robot_run.write_suite(
        folder, sentence, sentence, setup=f"Open Testbed For    {platform}    testbed={kill.testbed}"
    )
    run = Run(folder, robot_run.command(folder, suite, "-v", f"PROJECT:{folder}", "-v", "GOAL:quick"))
    words, robot = PROCESSES[kill.testbed][kill.process], kill.process == "robot"
    try:
        # a look at the processes can miss one: what was seen once is there
        # with a real TRex on a busy machine a sentence takes most of a minute
        wait_until(lambda: reached(run, kill.moment) or run.has_ended(), lambda: run.text, limit=300)
        if kill.moment == "opening":
            wait_until(lambda: run.find(words) or run.process.poll() is not None)
        time.sleep(kill.after)
        trials = run.lines("trials")
        run.strike(run.find(words), kill.number)
    finally:
        took = run.await_end()
    assert took < LIMIT
    run.check_nothing_left()
    run.check_words()
    if robot and kill.number in ENDING:
        assert not re.search("SSH link to the router broke|had to be killed", run.text), run.text[-3000:]
    killed = robot and kill.number in ("KILL", "STOP")
    assert run.lines("trials") >= trials
    for path in (file.parent for file in folder.glob("results/*/requirements.jsonl")):
        for file in path.glob("[trq]*s.jsonl"):
            rows = file.read_text(encoding="utf-8").splitlines()
            # only the last line of a killed run may be unfinished
            for row in rows[:-1] if killed else rows:
                json.loads(row)
        assert {item.verdict for item in read_run(path).requirements} <= {"PASS", "INCONCLUSIVE"}, run.text[-3000:]
        assert check_integrity(path).altered == ()
