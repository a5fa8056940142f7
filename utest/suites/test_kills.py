"""Each process of a run, ended by each signal at each moment: the run ends, nothing is left, no verdict is another.

The default is a sample. ``LINEPROOF_KILLS=all pytest utest/suites/test_kills.py`` does all (216 runs),
``LINEPROOF_KILLS=40`` so many of them.
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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import psutil
import pytest

from lineproof.evidence.integrity import check_integrity
from lineproof.evidence.run import read_run
from lineproof.generators.trex import port_claims
from lineproof.testbed import leases
from support import leftovers, robot_run
from support.command_line import PROGRAM, environment

LIMIT = 60.0
"""Seconds in which a program ends after the signal."""

SENTENCE = "64b 1-flow unidirectional ≥ 1 Mpps"
ENDING = ("INT", "TERM", "HUP", "QUIT")
SIGNALS = (*ENDING, "KILL", "STOP")  # STOP: then KILL
PROCESSES = {
    "robot": "",
    "keeper": "lineproof.testbed.keeper",
    "client": "lineproof.generators.trex.client",
    "server": "lineproof_bench.server",
    "shells": "lineproof_bench.shells",
}
MOMENTS = ("opening", "trial", "between", "judging", "closing")
COMMANDS = {
    "calibrate": ("calibrate", "simulated", "--platform", "netgate6100", "--goal", "quick", "--duration", "30"),
    "doctor": ("doctor", "simulated", "--platform", "netgate6100", "--traffic"),
    "serve": ("serve", "--platform", "netgate6100", "--rpc-port", "0", "--pub-port", "0"),
    "study": ("study", "faults"),
}
SLOW_PROFILE = "import time\ntime.sleep(5)\n"


@dataclass(frozen=True)
class Kill:
    """*process* gets *number* at *moment*, *after* s later."""

    process: str
    number: str
    moment: str
    after: float

    def __str__(self) -> str:
        return f"{self.process}-{self.number}-{self.moment}"


def kills() -> Iterator[Kill]:
    chance = random.Random(150)
    for process in PROCESSES:
        for number in SIGNALS:
            for moment in MOMENTS:
                yield Kill(process, number, moment, chance.uniform(0, 0.4))
    for process in (*COMMANDS, "profile", "sender"):
        for number in SIGNALS:
            for _ in range(1 if process == "sender" else 2):
                yield Kill(process, number, "work", chance.uniform(0, 2.5))


def chosen() -> list[Kill]:
    asked, every = os.environ.get("LINEPROOF_KILLS", "6"), list(kills())
    return every if asked == "all" else random.Random(asked).sample(every, int(asked))


def soon(true: Callable[[], object], limit: float = 40.0) -> bool:
    until = time.monotonic() + limit
    while not true():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


class Run:
    """A program in *folder*, with everything that it writes there."""

    def __init__(self, folder: Path, argv: list[str]) -> None:
        self.folder, self.temporary = folder, folder / "tmp"
        self.temporary.mkdir()
        self.console = folder / "console.txt"
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

    def lines(self, name: str) -> int:
        return sum(path.read_bytes().count(b"\n") for path in self.folder.glob(f"results/*/{name}.jsonl"))

    def find(self, words: str) -> psutil.Process | None:
        """The process of this run with *words* in its command line; "": the program itself."""
        if not words:
            return psutil.Process(self.process.pid) if self.process.poll() is None else None
        # the last one: the first may only have forked the others
        found = None
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if words in " ".join(process.cmdline()) and str(self.folder) in str(process.environ()):
                    found = process
        return found

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
        """After what the next start does first."""
        soon(lambda: not robot_run.processes_of(self.folder), 15.0)
        if self.runtime.is_dir():
            tags = {path.stem for path in self.runtime.glob("*.lease")}
            leases.clear_leftovers(self.runtime)
            assert leftovers.namespaces_of(tags) == set()
            with mock.patch.dict(os.environ, robot_run.environment(self.folder)):
                port_claims.read_claims("192.0.2.10:4501")
            assert {path.name for path in self.runtime.iterdir()} <= {"lock", "logs"}
        assert robot_run.processes_of(self.folder) == []

    def check_words(self) -> None:
        text = self.console.read_text(encoding="utf-8")
        assert "Traceback" not in text and "terminated by signal" not in text, text[-3000:]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(robot_run.ROOT / "variables", tmp_path / "variables")
    for kind in ("testbeds/simulated.yaml", "goals/quick.yaml"):
        path = tmp_path / "variables" / kind
        text = path.read_text(encoding="utf-8").replace("clock_speed: 50", "clock_speed: 10")
        path.write_text(text.replace("duration_sum: 10\n", "duration_sum: 3\n"), encoding="utf-8")
    return tmp_path


def reached(run: Run, moment: str) -> bool:
    """Whether a run of two sentences is there."""
    match moment:
        case "opening":
            return any(run.runtime.glob("*.lease"))
        case "trial":
            return run.lines("trials") >= 3
        case "judging":
            return run.lines("requirements") >= 1 and run.lines("readings") >= 4
        case "between":
            return run.lines("requirements") >= 1
        case _:
            return run.lines("requirements") >= 2


def run_robot(folder: Path, kill: Kill) -> None:
    netns = kill.process == "sender"
    platform = "linux_router" if netns else "netgate6100"
    opening = f"Open Testbed For    {platform}    testbed={'netns' if netns else 'simulated'}"
    sentence = "64b unidirectional ≥ 1 kpps" if netns else SENTENCE
    suite = robot_run.write_suite(folder, sentence, sentence, setup=opening)
    run = Run(folder, robot_run.command(folder, suite, "-v", f"PROJECT:{folder}", "-v", "GOAL:quick"))
    words = "lineproof_bench.wire.sender" if netns else PROCESSES[kill.process]
    try:
        moment = "trial" if netns else kill.moment
        soon(lambda: reached(run, moment) or run.process.poll() is not None)
        assert reached(run, moment), run.console.read_text(encoding="utf-8")
        if kill.moment == "opening":
            soon(lambda: run.find(words) or run.process.poll() is not None)
        time.sleep(kill.after)
        trials = run.lines("trials")
        run.strike(run.find(words), kill.number)
    finally:
        took = run.await_end()
    assert took < LIMIT
    run.check_nothing_left()
    run.check_words()
    text = run.console.read_text(encoding="utf-8")
    if kill.process == "robot" and kill.number in ENDING:
        assert not re.search("SSH link to the router broke|had to be killed", text), text[-3000:]
    assert run.lines("trials") >= trials
    for path in (file.parent for file in folder.glob("results/*/requirements.jsonl")):
        for name in ("trials", "requirements", "readings"):
            rows = (
                (path / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
                if (path / f"{name}.jsonl").exists()
                else []
            )
            # only the last line of a killed run may be unfinished
            for row in rows[:-1] if kill.process == "robot" and kill.number in ("KILL", "STOP") else rows:
                json.loads(row)
        assert {item.verdict for item in read_run(path).requirements} <= {"PASS", "INCONCLUSIVE"}, text[-3000:]
        if not (kill.process == "robot" and kill.number in ("KILL", "STOP")):
            assert check_integrity(path).altered == ()
    assert list(run.temporary.iterdir()) == []


def run_command(folder: Path, kill: Kill) -> None:
    if kill.process == "profile":
        (folder / "slow.py").write_text(SLOW_PROFILE)
        (folder / "variables" / "profiles" / "own.yaml").write_text(
            "entries:\n  - {kind: trex, name: slow, file: ../../slow.py, about: a test}\n"
        )
        words = ["check", str(robot_run.write_suite(folder, "slow unidirectional ≥ 1 kpps"))]
    else:
        words = [*COMMANDS[kill.process]]
    run = Run(folder, [*PROGRAM, *words])
    try:
        if kill.process == "profile":
            assert soon(lambda: run.find("profile_program")), run.console.read_text(encoding="utf-8")
        else:
            assert soon(lambda: any(run.runtime.glob("*.lease"))), run.console.read_text(encoding="utf-8")
        time.sleep(kill.after)
        run.strike(run.find("profile_program" if kill.process == "profile" else ""), kill.number)
    finally:
        took = run.await_end()
    assert took < LIMIT
    run.check_nothing_left()
    run.check_words()
    if kill.number in ENDING and kill.process != "profile":
        assert run.process.returncode in ((0,) if kill.process == "serve" else (0, 1, 130))
        if run.process.returncode == 130:
            assert "interrupted by" in run.console.read_text(encoding="utf-8")
    assert list(run.temporary.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("kill", [kill for kill in chosen() if kill.process != "sender"], ids=str)
def test_a_kill_leaves_nothing(kill: Kill, folder: Path) -> None:
    (run_robot if kill.process in PROCESSES else run_command)(folder, kill)


@pytest.mark.netns
@pytest.mark.parametrize("kill", [kill for kill in chosen() if kill.process == "sender"], ids=str)
def test_a_killed_sender_leaves_nothing(kill: Kill, folder: Path) -> None:
    run_robot(folder, kill)
