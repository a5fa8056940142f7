"""Runs a suite in a process of its own, and returns what it printed and its results."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from robot.api import ExecutionResult

from lineproof.evidence.rejudge import judge_another_sla, rejudge
from lineproof.evidence.run import read_run
from lineproof.system.login import Login
from support.fork_server import ForkedProcess, ForkServer
from support.paths import ROOT as ROOT


@dataclass(frozen=True)
class RobotRun:
    """The results of a run: exit status, console text, and each test's (status, message), as :func:`unwrapped`."""

    status: int
    console: str
    tests: dict[str, tuple[str, str]]
    folder: Path

    @property
    def message(self) -> str:
        ((_, message),) = self.tests.values()
        return message


def command(folder: Path, suite: Path, *options: str) -> list[str]:
    """Return the command line of Robot as a user has it, with everything that it writes under *folder*."""
    return [sys.executable, "-m", "robot", *_arguments(folder, suite, *options)]


def _arguments(folder: Path, suite: Path, *options: str) -> list[str]:
    out = folder / "out"
    results = ["--outputdir", f"{folder / 'results'}", "--output", f"{out / 'output.xml'}", "--consolecolors", "off"]
    results += ["--log", f"{out / 'log.html'}", "--report", f"{out / 'report.html'}"]
    # calibrations of this machine must not influence a test
    (folder / "calibrations").mkdir(exist_ok=True)
    results += ["-v", f"CALIBRATIONS:{folder / 'calibrations'}"]
    if not any("MARGIN" in option for option in options):
        # the search takes as long as the sentence, and most tests are not about it
        results += ["-v", "MARGIN:off"]
    return ["--exitonerror", *results, *options, str(suite)]


def environment(folder: Path) -> dict[str, str]:
    """Return a runtime folder of the test's own, so that other runs do not meet; so for journals of routers."""
    runtime = folder / "runtime"
    runtime.mkdir(mode=0o700, exist_ok=True)
    return {**os.environ, "XDG_RUNTIME_DIR": str(runtime), "XDG_STATE_HOME": str(runtime / "state")}


def run(folder: Path, suite: Path, *options: str, limit: float = 300) -> RobotRun:
    """Run *suite* to its end, in *folder*, and judge it again from what it left (:func:`check_runs`).

    Raises subprocess.TimeoutExpired after *limit* seconds.
    """
    command = ["robot", *_arguments(folder, suite, *options)]
    done = programs().run(command, environment(folder), folder, limit)
    check_runs(folder / "results")
    tests = {}
    if (folder / "out" / "output.xml").exists():
        result = ExecutionResult(folder / "out" / "output.xml")
        for test in result.suite.all_tests:
            tests[test.name] = (test.status, unwrapped(test.message))
    return RobotRun(done.returncode, unwrapped(done.stdout + done.stderr), tests, folder)


def unwrapped(message: str) -> str:
    """Return *message* with its lines as long as they were before they were made to fit the console."""
    return re.sub(r"\n {4,}", " ", message)


def check_runs(results: Path) -> None:
    """Check that each run below *results* comes to the same verdicts again, in the same words:
    the records must suffice, whatever happened in it.

    So do its sentences as those of another suite: each to a verdict that it has in this test, or to the FAIL of less.
    """
    for folder in sorted(path.parent for path in results.glob("*/inputs.jsonl")):
        judged = rejudge(read_run(folder))
        for sentence in judged.sentences:
            told = f"{folder}: {sentence.record.message}\nagain: {sentence.verdict}\n{sentence.remarks}"
            assert sentence.state == "same" and not sentence.remarks, told
        verdicts = {
            (sentence.record.test, sentence.record.sentence, sentence.record.verdict) for sentence in judged.sentences
        }
        for other in judge_another_sla(folder, None)[1]:
            failed = {f"'{sentence}' in test '{test}'" for test, sentence, verdict in verdicts if verdict == "FAIL"}
            own = (other.asked.test, other.asked.sentence, other.ruling.value) in verdicts
            assert own or (other.ruling.value == "FAIL" and other.rests_on in failed), f"{folder}: {other}"


def start(folder: Path, suite: Path, *options: str) -> ForkedProcess:
    """Start a run of *suite*, with ``console.txt`` in *folder*; wait for it before the next."""
    command = ["robot", *_arguments(folder, suite, *options)]
    with (folder / "console.txt").open("wb") as console:
        return programs().start(command, environment(folder), folder, console)


@cache
def programs() -> ForkServer:
    """Return the process from which Robot and ``lineproof`` are forked. It ends with this one."""
    server = ForkServer("support.forked_programs")
    atexit.register(server.close)
    return server


def write_suite(folder: Path, *steps: str, setup: str = "Open Testbed For    netgate6100    software=vpp") -> Path:
    """Write a suite of one test; its first step is on line 8."""
    return write_tests(folder, "".join(["The Test\n", *(f"    {step}\n" for step in steps)]), setup)


def write_tests(
    folder: Path, tests: str, setup: str = "Open Testbed For    netgate6100    software=vpp", name: str = "suite"
) -> Path:
    """Write a suite of *tests*, as they stand below their heading; the first is on line 7."""
    path = folder / f"{name}.robot"
    settings = (
        f"Resource    {ROOT}/resources/acceptance.resource\nSuite Setup    {setup}\nSuite Teardown    Close Testbed"
    )
    path.write_text(f"*** Settings ***\n{settings}\n\n*** Test Cases ***\n{tests}", encoding="utf-8")
    return path


def project(folder: Path, *names: str, more: str = "") -> Path:
    """Copy ``variables/`` for a test to change; *names*: further simulated testbeds; *more*: a line of each."""
    shutil.copytree(ROOT / "variables", folder / "project" / "variables")
    testbeds = folder / "project" / "variables" / "testbeds"
    for name in names:
        text = (testbeds / "simulated.yaml").read_text(encoding="utf-8")
        text = text.replace("testbed: simulated\n", f"testbed: {name}\n")
        (testbeds / f"{name}.yaml").write_text(f"{text}{more}\n", encoding="utf-8")
    return folder / "project"


def hardware(home: Path, name: str, ports: tuple[int, int], router: Login | None, more: str = "") -> None:
    """Add the testbed *name* of hardware to the project *home*: the TCP ports of its TRex server, its router's login.

    *more*: further lines.
    """
    text = f"testbed: {name}\nkind: hardware\n"
    text += f"generator: {{address: 127.0.0.1, sync_port: {ports[0]}, async_port: {ports[1]}, client: pypi}}\n"
    if router is not None:
        login = f"port: {router.port}, user: {router.user}, key: {router.key}"
        text += f"router: {{address: 127.0.0.1, {login}, known_hosts: {router.known_hosts}}}\n"
    (home / "variables" / "testbeds" / f"{name}.yaml").write_text(f"{text}{more}\n", encoding="utf-8")


def short_goal(folder: Path, more: str = "") -> tuple[str, str]:
    """Return Robot's option for a project whose goal ``quick`` needs fewer seconds of trials; *more*: lines."""
    home = project(folder)
    shorten(home, more)
    return "-v", f"PROJECT:{home}"


def shorten(home: Path, more: str = "") -> None:
    """Let the goal ``quick`` of the project *home* need fewer seconds of trials, and have the lines *more*."""
    path = home / "variables" / "goals" / "quick.yaml"
    text = path.read_text(encoding="utf-8")
    if "duration_sum: 10\n" not in text:
        raise ValueError(f"{path} no longer says 'duration_sum: 10'")
    path.write_text(text.replace("duration_sum: 10\n", f"duration_sum: 2\n{more}"), encoding="utf-8")


def processes_of(folder: Path) -> list[str]:
    """Return the processes left by a run: with this test's folder in their environment or arguments."""
    processes = []
    marker = str(folder).encode()
    for entry in Path("/proc").iterdir():
        if not re.fullmatch(r"\d+", entry.name) or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            if marker in (entry / "environ").read_bytes() or marker in command:
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z":
                    processes.append(command.replace(b"\0", b" ").decode())
        except OSError:
            continue
    return processes
