"""``python -m validation.lab``: suites of several users on benches that labgrid lends, and how long they take.

A real coordinator on loopback, simulated benches (each starts servers of its own), and a pabot for each user, with as
many processes as there are benches, so that none stands idle while a suite waits. One suite alone is measured first:
the ideal is that time, as often as a bench has to work. Every verdict must be right, and no bench may be used by two
suites at once. A suite mostly sends, so that benches beside each other need more than one machine only for their start.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from lineproof.evidence.run import RecordedRun, read_run
from lineproof.system.cpu_steal import cpu_times, steal_percent, steal_text
from support.lab_rig import Lab, bench_project, lab
from support.paths import ROOT

MOST_OF_IDEAL = 1.3
"""The most that all suites may take, as a ratio to the ideal."""

SUITE = """\
*** Settings ***
Resource          {root}/resources/acceptance.resource
Suite Setup       Open Testbed For    netgate6100    software=vpp
Suite Teardown    Close Testbed

*** Test Cases ***
Kept
    64b 1-flow ≥ 1 Mpps for {seconds} s

Not Kept
    64b 1-flow ≥ 14 Mpps
"""
POOL = """\
testbed: benches
kind: pool
lab: {{coordinator: "{address}", tags: {{kind: bench}}, wait: 2 h}}
"""
RIGHT = Counter(PASS=1, FAIL=1)


def main() -> int:
    """Print the figures; 0 if all verdicts are right, no bench was shared, and the time is within the bound."""
    parser = argparse.ArgumentParser(prog="python -m validation.lab", description=__doc__)
    parser.add_argument("--benches", type=int, default=8)
    parser.add_argument("--suites", type=int, default=24)
    parser.add_argument("--users", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=90, help="of traffic of each suite's longer sentence")
    parser.add_argument("--processes", type=int, help="suites of a user at a time (all benches)")
    arguments = parser.parse_args()
    names = [f"bench{number}" for number in range(1, arguments.benches + 1)]
    with tempfile.TemporaryDirectory(prefix="lineproof-lab-") as temporary:
        folder = Path(temporary)
        home = bench_project(folder, names, clock_speed=1)
        with lab(folder / "lab", names) as rig:
            (home / "variables" / "testbeds" / "benches.yaml").write_text(POOL.format(address=rig.address), "utf-8")
            return _race(rig, folder, home, arguments)


def _race(rig: Lab, folder: Path, home: Path, arguments: argparse.Namespace) -> int:
    alone = _alone(folder, home, arguments.seconds)
    print(f"one suite alone: {alone:.1f} s", flush=True)
    each = math.ceil(arguments.suites / arguments.users)
    processes = arguments.processes or arguments.benches
    began, before = time.monotonic(), cpu_times()
    running = [
        _start_pabot(folder, home, f"user{number}", each, processes, arguments.seconds)
        for number in range(1, arguments.users + 1)
    ]
    for process in running:
        process.wait()
    wall = time.monotonic() - began
    runs = [read_run(path.parent) for path in folder.glob("user*/out/*/environment.json")]
    wrong = [run.path.name for run in runs if Counter(record.verdict for record in run.requirements) != RIGHT]
    shared = _print_holders(runs)
    ideal = alone * math.ceil(arguments.users * each / arguments.benches)
    ratio = wall / ideal
    print(
        f"{len(runs)} of {arguments.users * each} suites on {arguments.benches} benches, {arguments.users} users with"
        f" {processes} at a time: {len(runs) - len(wrong)} with the right verdicts, {len(shared)} benches shared;"
        f" left with labgrid: {rig.holders() or 'nothing'}"
    )
    print(
        f"wall time {wall:.1f} s, ideal {ideal:.1f} s: ratio {ratio:.2f} (at most {MOST_OF_IDEAL:g});"
        f" load {os.getloadavg()[1]:.1f} on {os.cpu_count()} CPUs, {steal_text(steal_percent(before, cpu_times()))}"
    )
    complete = len(runs) == arguments.users * each
    return 0 if complete and not wrong and not shared and ratio <= MOST_OF_IDEAL else 1


def _alone(folder: Path, home: Path, seconds: int) -> float:
    """Seconds of one suite that nobody disturbs, as ``robot`` alone."""
    suite, out = _suites(folder / "alone", 1, seconds), folder / "alone" / "out"
    began = time.monotonic()
    command = [sys.executable, "-m", "robot", "-d", str(out), *_options(home), str(suite)]
    subprocess.run(command, env=_environment(folder / "alone", "alone"), stdout=subprocess.DEVNULL, check=False)
    return time.monotonic() - began


def _start_pabot(
    folder: Path, home: Path, user: str, count: int, processes: int, seconds: int
) -> subprocess.Popen[bytes]:
    own = folder / user
    suites = _suites(own, count, seconds)
    # where this Python's folder is not on PATH there is no 'robot'
    robot = ["--command", sys.executable, "-m", "robot", "--end-command"]
    command = [sys.executable, "-m", "pabot.pabot", *robot, "--processes", str(processes), "--pabotlibport", "0"]
    return subprocess.Popen(
        [*command, "-d", str(own / "out"), *_options(home), str(suites)],
        env=_environment(own, user),
        cwd=own,
        stdout=subprocess.DEVNULL,
    )


def _options(home: Path) -> list[str]:
    return ["-v", f"PROJECT:{home}", "-v", "GOAL:quick", "-v", "TESTBED:benches"]


def _suites(own: Path, count: int, seconds: int) -> Path:
    tests = own / "tests"
    tests.mkdir(parents=True)
    for number in range(count):
        text = SUITE.format(root=ROOT, seconds=seconds)
        (tests / f"suite{number:02d}.robot").write_text(text, encoding="utf-8")
    return tests


def _environment(own: Path, user: str) -> Mapping[str, str]:
    """Of a user with folders of its own: locks and notes of different users do not meet."""
    runtime = own / "runtime"
    runtime.mkdir(mode=0o700, exist_ok=True)
    own_folders = {"XDG_RUNTIME_DIR": str(runtime), "XDG_STATE_HOME": str(runtime / "state")}
    return {**os.environ, **own_folders, "LG_USERNAME": user, "LG_HOSTNAME": "here"}


def _print_holders(runs: Sequence[RecordedRun]) -> list[str]:
    """Print who had which bench when, in s since the first; returns the benches that two had at once."""
    held: dict[str, list[tuple[float, float, str]]] = {}
    for run in runs:
        found = run.environment
        if found is None or found.ended is None:
            raise RuntimeError(f"{run.path} did not end")
        owner = str(found.extra["labgrid"]["owner"])
        held.setdefault(found.testbed, []).append((found.started, found.ended, owner.partition("/")[2]))
    first = min((spans[0] for times in held.values() for spans in times), default=0.0)
    shared = []
    for bench, times in sorted(held.items()):
        times.sort()
        print(f"{bench}: " + ", ".join(f"{user} {a - first:.0f} to {b - first:.0f} s" for a, b, user in times))
        if any(later[0] < earlier[1] for earlier, later in itertools.pairwise(times)):
            shared.append(bench)
    return shared


if __name__ == "__main__":
    raise SystemExit(main())
