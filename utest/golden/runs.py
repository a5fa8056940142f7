"""Runs of the acceptance suites on the simulated testbed: rulings, and the counts of each trial in each direction.

Suites that are tagged ``kernel`` or ``study`` are left out, as ``robot --exclude kernel --exclude study tests`` does.
Equal in each run, also beside busy processes: number of trials, intended, offered and forwarded frames. Two exceptions:

- Where frames are lost, the moment of sending the first decides about one frame: forwarded is rounded to hundreds.
- Cycles per packet and vectors per call are read from the router while frames are sent. How long that takes decides how
  long a trial lasts, and how many there are: such a sentence has frames per second, three digits, without a number.

Not compared: backlog, latency, raw counters, times, ids.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from support import robot_run
from support.paths import ROOT

KERNEL = ("linux_router", "linux_router_pairs")
"""Suites of ``tests/`` that need a kernel's router."""

REAL_TIME = ("cycles/packet", "vectors/call")
"""Units of sentences whose trials last until the router has answered."""

Record = Mapping[str, Any]


def texts() -> dict[str, str]:
    """Return the rows of each suite's run, by file name."""
    suites = [path for path in sorted((ROOT / "tests").glob("*.robot")) if path.stem not in KERNEL]
    return {f"{suite.stem}.txt": "\n".join([*trial_rows(run_of(suite)), ""]) for suite in suites}


@cache
def _scratch() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="golden-")


def scratch() -> Path:
    """Return the folder of all that this process runs. It is removed when the process ends."""
    return Path(_scratch().name)


def forget() -> None:
    """Remove all that this process ran, so that a test that is repeated runs it anew."""
    _scratch().cleanup()
    _scratch.cache_clear()


def run_of(suite: Path, *options: str) -> Path:
    """Return the folder that the run of *suite* left, with Robot's *options*. It runs once in each process.

    Robot's own output is in ``out`` beside the folder of results. Raises RuntimeError if there is not one run.
    """
    folder = scratch() / "-".join([suite.stem, *options]).replace(":", "-")
    if not folder.exists():
        folder.mkdir()
        robot_run.start(folder, suite, *options).wait(300)
    made = [path.parent for path in (folder / "results").glob("*/environment.json")]
    if len(made) != 1:
        raise RuntimeError(f"{suite}: expected one run, not {len(made)}:\n{(folder / 'console.txt').read_text()}")
    return made[0]


def trial_rows(run: Path) -> Iterator[str]:
    """Yield a row for each sentence and search, with its ruling and its number of trials, then one for each trial."""
    rulings = {record["number"]: record["verdict"] for record in records(run, "requirements")}
    by_number: dict[int, list[Record]] = {}
    for trial in records(run, "trials"):
        by_number.setdefault(trial["requirement"], []).append(trial)
    for number, trials in sorted(by_number.items()):
        sentence = trials[0]["sentence"]
        begin = f"{trials[0]['test']} | {sentence} | {rulings.get(number, 'no ruling')}"
        if any(unit in sentence for unit in REAL_TIME):
            outcomes = [item["trial"]["outcome"] for item in trials]
            yield from [begin, *dict.fromkeys(f"  each: {_ways(item, item['duration'])}" for item in outcomes)]
        else:
            yield f"{begin} | {len(trials)} trials"
            yield from (f"  {item['trial']['number']}: {_ways(item['trial']['outcome'])}" for item in trials)


def records(run: Path, kind: str) -> list[Record]:
    """Return the records of a *kind* (``trials``, ``requirements``, ``measurements``) in the folder of a run."""
    return [json.loads(line) for line in (run / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()]


def _ways(outcome: Record, seconds: float = 0) -> str:
    """Return intended, offered and forwarded frames of each direction; per second if *seconds* is not 0."""
    directions = []
    for way in outcome["directions"]:
        counts = [way[name] for name in ("intended", "offered", "forwarded")]
        if seconds:
            figures = [f"{count / seconds:.3g}/s" for count in counts]
        else:
            lossless = way["forwarded"] == way["offered"]
            figures = [*map(str, counts[:2]), str(counts[2]) if lossless else f"about {round(counts[2], -2)}"]
        directions.append(f"{way['tx_port']}>{way['rx_port']} {' '.join(figures)}")
    return ", ".join(directions)
