"""Trials and records for the tests of the evidence."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from lineproof.core.bounds import Bounds
from lineproof.core.latency import LatencyCount
from lineproof.core.sentence import parse
from lineproof.core.trial import DirectionCount, Load, Outcome, Problem, Tolerance, Trial, read_trial
from lineproof.evidence.records import (
    EnvironmentRecord,
    Manifest,
    MarginRecord,
    ReadingRecord,
    RequirementRecord,
    TrialRecord,
)
from lineproof.evidence.run import RunFolder, single_line
from lineproof.evidence.run_files import ENVIRONMENT_FILE, MANIFEST_FILE, first_link, sealed, sums_of
from lineproof.session.judging import Reading
from support import made_testbeds
from support.catalogue import CATALOGUE
from support.made_testbeds import goal_named

LINK = 10e9
SENTENCE = "64b unidirectional ≥ 5 Mpps"
RUN = "20261121T040000Z-abc123"
ENVIRONMENT = EnvironmentRecord(RUN, True, "simulated", "netgate6100", "vpp", 10.0, 1_795_000_000.0)


class Elements(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.addresses: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.add(tag)
        self.addresses |= {value for name, value in attrs if name in ("src", "href")}


def trial(
    number: int = 1,
    pps: float = 1_000_000.0,
    losses: Sequence[int] = (0,),
    duration: float = 1.0,
    problems: Iterable[Problem] = (),
) -> Trial:
    """Return a trial with one direction for each of *losses* (frames lost)."""
    asked = int(pps * duration)
    ways = (
        DirectionCount(way, 1 - way, asked, asked, asked - lost, asked * 64, (asked - lost) * 64)
        for way, lost in enumerate(losses)
    )
    began = 1_795_000_000.25 + 2 * number
    outcome = Outcome(Load(pps), duration, duration, began, tuple(ways), tuple(problems))
    return read_trial(number, outcome, Tolerance())


SECOND = Bounds(1.0, 1.0)
"""Exactly a second."""


def one_trial(
    number: int, problems: tuple[Problem, ...] = (), lost: int = 0, late: int = 0, **readings: float
) -> Trial:
    """Return a trial of a second and a million frames of one direction; *late* of 1000 probe frames take 400 µs."""
    counts = (DirectionCount(0, 1, 10**6, 10**6, 10**6 - lost),)
    probe = (LatencyCount(0, 1, 1000, 1000, 20.0, 90.0, histogram={10: 1000 - late, 400: late}),)
    return Trial(number, Outcome(Load(1e6), 1.0, 1.0, 0.0, counts, readings=readings, latency=probe), problems, SECOND)


def trial_record(**fields: Any) -> TrialRecord:
    return TrialRecord(RUN, True, 1, "Netgate6100.Small Frames", SENTENCE, trial(**fields))


@cache
def promised(sentence: str, goal: str = "quick") -> Mapping[str, Any]:
    """Return what the record of *sentence* says of it, on ports of LINK whose maximum load is line rate."""
    requirement = parse(sentence, CATALOGUE)
    return {
        "sentence": sentence,
        "quantity": requirement.quantity.name,
        "goal": goal_named(goal),
        "profile": requirement.profile.name,
        "mean_size": requirement.profile.mean_size,
        "link_bps": LINK,
        "load_pps": made_testbeds.promised(sentence, goal).load_pps,
    }


def requirement_record(**changes: Any) -> RequirementRecord:
    """Return a PASS's record; *changes*: its fields. Its sentence gives the promise, but for another *quantity*."""
    sentence = SENTENCE if "quantity" in changes else changes.get("sentence", SENTENCE)
    fields: dict[str, Any] = {
        **promised(sentence),
        "run": RUN,
        "simulated": True,
        "number": 1,
        "test": "Netgate6100.Small Frames",
        "verdict": "PASS",
        "message": "PASS: no loss",
        "trials": (1, 2),
        "started": 1_795_000_000.0,
        "ended": 1_795_000_005.5,
    }
    return RequirementRecord(**(fields | changes))


def written(results: Path, closed: bool = True) -> Path:
    """Return a run with each kind of file."""
    folder = RunFolder.create(results, RUN)
    environment = replace(ENVIRONMENT, run=folder.run_id)
    folder.write_environment(environment)
    folder.add_input("variables/goals/quick.yaml", b"goal: quick\n")
    streams = folder.add_streams({"0": [{"pps": 1}]})
    for number in (1, 2, 3):
        for trial in (1, 2):
            folder.add(replace(trial_record(number=trial), requirement=number, streams=streams, evidence="keeps"))
        folder.add(ReadingRecord(RUN, True, number, Reading("after", None, "the router did not answer")))
        folder.write_environment(replace(environment, cpu_steal_percent=float(number)))
        folder.add(requirement_record(number=number, verdict="PASS" if number != 2 else "FAIL"))
        if number == 2:
            folder.add_telemetry(number, "before", {"show runtime": f"Thread {number} vpp_wk_0\n"})
        folder.add(MarginRecord(RUN, True, number, "T", SENTENCE, 1.08, 1.09, "", 12.0))
    if closed:
        folder.close(replace(environment, ended=1_795_000_060.0))
    return folder.path


# -- a run that somebody altered who knows how runs are sealed: chains and manifest agree with it again


SEALS = ("previous", "sha256")


def rows(file: Path) -> list[dict[str, Any]]:
    """Return the records of *file*, without their links."""
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [{key: value for key, value in row.items() if key not in SEALS} for row in records]


def write_rows(file: Path, records: list[dict[str, Any]], run: str) -> None:
    """Write *records* as the lines of *file*, chained."""
    link, lines = first_link(run), []
    for row in records:
        line, link = sealed(row, link)
        lines.append(line)
    file.write_bytes(b"".join(lines))


def reseal(folder: Path, run: str | None = None) -> None:
    """Make everything in *folder* agree with its present files. *run*: its id, where the environment is gone."""
    path = folder / ENVIRONMENT_FILE
    run = run or str(rows(path)[0]["run"])
    if path.exists():
        write_rows(path, rows(path), run)
    (folder / MANIFEST_FILE).write_bytes(single_line(Manifest(run, sums_of(folder))))


def change_records(file: Path, edit: Callable[[list[dict[str, Any]]], object]) -> None:
    """Let *edit* change the records of a file of a closed run, and seal the run again."""
    run = str(rows(file.parent / ENVIRONMENT_FILE)[0]["run"])
    records = rows(file)
    edit(records)
    write_rows(file, records, run)
    reseal(file.parent)


def words(svg: str) -> str:
    """Return the texts of a picture."""
    texts = (node for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("text"))
    return " | ".join("".join(node.itertext()) for node in texts)
