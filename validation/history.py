"""``python -m validation.history``: how fast runs go into the store, and how fast a trend over all of them answers.

Makes runs of 20 sentences of 50 trials, imports them with as many processes as ``--processes`` says, once more when
they are all there, and asks for trends. Beside trials/s it prints the ratio to reading the same runs whole
(``read_run``, one process), which depends less on the machine and on what else it does.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TypeVar

from lineproof.commands.main import main as lineproof
from lineproof.core.bounds import Bounds
from lineproof.core.trial import DirectionCount, Load, Outcome, Trial
from lineproof.evidence.chain import first_link, sealed
from lineproof.evidence.demand import Demand
from lineproof.evidence.history.address import store_address
from lineproof.evidence.history.importing import import_all
from lineproof.evidence.records import EnvironmentRecord, RequirementRecord, TrialRecord
from lineproof.evidence.run import RunFolder, read_run
from lineproof.system.children import python, run
from lineproof.system.cpu_steal import cpu_times, steal_percent, steal_text

SENTENCES, TRIALS = 20, 50
LEAST_PER_SECOND = 20_000
"""Trials that two cores of their own have to import in a second."""

MOST_SECONDS = 1.0
"""That a trend over all of them may take."""

_COUNTERS = ("opackets", "ipackets", "obytes", "ibytes", "ierrors", "oerrors")

R = TypeVar("R")


def trial_data(name: str, sentence: int, number: int, forwarded: int) -> dict[str, object]:
    """A trial as hardware leaves it: two directions, readings, raw counters of two ports at three moments."""
    counts = tuple(
        DirectionCount(tx, 1 - tx, 10_000_000, 10_000_000, forwarded, 640_000_000, 64 * forwarded, 12) for tx in (0, 1)
    )
    counters = {
        moment: {f"{port}.{key}": 123_456_789_012 for port in (0, 1) for key in _COUNTERS}
        for moment in ("before", "ended", "after")
    }
    readings = {"cpu_0": 33.25, "cpu_1": 35.5, "queue_full": 0.0, "elapsed_uncertainty": 0.001}
    outcome = Outcome(Load(1e7), 1.0, 1.0002, 1.79e9 + number, counts, (), readings, (), counters)
    words = f"64b {sentence}-flow bidirectional forwards ≥ 5 Mpps each way"
    record = TrialRecord(
        *(name, False, sentence, "Suite.Test", words, "64b", 64.0, 10e9),
        Trial(number, outcome, (), Bounds(1.0, 1.0012)),
        streams="streams/0123456789abcdef.json.gz",
        evidence="keeps",
    )
    return record.to_json()


def write_run(results: Path, number: int) -> Path:
    """A closed run, written as a run writes it but for the waits for the disk."""
    name = f"run-{number:06d}"
    folder = RunFolder.create(results, name)
    link, lines = first_link(name), []
    data = trial_data(name, 1, 1, 9_999_000)
    for sentence in range(1, SENTENCES + 1):
        for trial in range(1, TRIALS + 1):
            # what differs from trial to trial; the chain is its own for each line
            forwarded = 9_000_000 + (7919 * (number + trial) + 104_729 * sentence) % 20_000 - 50_000 * (number > 500)
            data["requirement"], data["number"] = sentence, trial
            for direction in data["directions"]:  # type: ignore[attr-defined]
                direction["forwarded"] = forwarded
            line, link = sealed(data, link)
            lines.append(line)
    (folder.path / "trials.jsonl").write_bytes(b"".join(lines))
    started = 1.7e9 + 86_400.0 * number
    chain, records = first_link(name), []
    for sentence in range(1, SENTENCES + 1):
        words = f"64b {sentence}-flow bidirectional forwards ≥ 5 Mpps each way"
        demand = Demand("forwards", "64b bidirectional", True, 5e6, "pps", 5e6, 1e7, "each way", 2, pps=5e6)
        terms = {"final_trial_duration": 1.0, "confidence": 0.95}
        record = RequirementRecord(
            *(name, False, sentence, "Suite.Test", words, "PASS", "PASS", "standard", terms, "64b", 64.0, 10e9),
            *("5 Mpps", None, tuple(range(1, TRIALS + 1)), started, started + 60, demand),
        )
        line, chain = sealed(record.to_json(), chain)
        records.append(line)
    (folder.path / "requirements.jsonl").write_bytes(b"".join(records))
    versions = {"router.vpp": "24.02" if number <= 500 else "24.06"}
    folder.close(EnvironmentRecord(name, False, "lab", "box", "vpp", 1.0, started, started + 1200, versions=versions))
    return folder.path


def timed(what: Callable[[], R]) -> tuple[R, float, str]:
    """What it gives, its seconds of real time, and the CPU time that was stolen meanwhile."""
    before, begin = cpu_times(), time.perf_counter()
    found = what()
    return found, time.perf_counter() - begin, steal_text(steal_percent(before, cpu_times()))


def cpu_seconds() -> float:
    """CPU time of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(item.ru_utime + item.ru_stime for item in used)


def measure(results: Path, url: str, processes: int, count: int) -> int:
    """Print the figures; 1 if one is outside its bound: by CPU time, where no database server takes part of it."""
    paths = [write_run(results, number) for number in range(1, -(-count // (SENTENCES * TRIALS)) + 1)]
    trials, size = len(paths) * SENTENCES * TRIALS, sum((path / "trials.jsonl").stat().st_size for path in paths)
    load = os.getloadavg()[0]
    print(f"{trials} trials in {len(paths)} runs, {size / trials:.0f} bytes each; load of the machine {load:.1f}")
    sample = paths[: max(1, len(paths) // 100)]
    _, whole, stolen = timed(lambda: [read_run(path) for path in sample])
    slow = len(sample) * SENTENCES * TRIALS / whole
    print(f"read whole, one process: {slow:.0f} trials/s (steal {stolen})")
    address = store_address(url, results)
    begin = cpu_seconds()
    found, seconds, stolen = timed(lambda: import_all(address, paths, processes=processes))
    work = cpu_seconds() - begin
    rate = sum(item.trials for item in found) / seconds
    print(f"imported by {processes} processes: {rate:.0f} trials/s, {rate / slow:.1f} x that (steal {stolen})")
    free = processes * trials / work
    server = "" if address.file else ", the database server's not counted"
    print(f"  {1e6 * work / trials:.1f} µs of CPU each{server}: {free:.0f} trials/s on {processes} cores of their own")
    _, again, stolen = timed(lambda: import_all(address, sample))
    print(f"the same runs again: {len(sample) * SENTENCES * TRIALS / again:.0f} trials/s (steal {stolen})")
    command = ["history", "trend", "--store", url, "--sentence", "64b 7-flow"]
    with redirect_stdout(StringIO()):
        lineproof(command)  # its imports
        _, answer, stolen = timed(lambda: lineproof(command))
    print(f"a trend of {len(paths)} points: {answer:.3f} s (steal {stolen})")
    _, answer_whole, stolen = timed(lambda: run(python("lineproof", *command), 120.0, cwd=results))
    print(f"the same as a command of its own, with the start of Python: {answer_whole:.3f} s (steal {stolen})")
    return int((free if address.file else rate) < LEAST_PER_SECOND or answer > MOST_SECONDS)


def main(argv: list[str]) -> int:
    """Make the runs, measure, and remove them."""
    parser = argparse.ArgumentParser(prog="python -m validation.history", description=__doc__)
    parser.add_argument("--trials", type=int, default=1_000_000, help="how many (1 000 000: 2 GB of disk)")
    parser.add_argument("--processes", type=int, default=2, help="that import (2)")
    parser.add_argument("--store", help="a database's URL (default: a SQLite file)")
    arguments = parser.parse_args(argv)
    folder = Path(tempfile.mkdtemp(prefix="lineproof-history-"))
    try:
        store = arguments.store or str(folder / "history.db")
        return measure(folder / "results", store, arguments.processes, arguments.trials)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
