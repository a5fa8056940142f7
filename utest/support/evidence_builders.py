"""Trials and records for the tests of the evidence."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lineproof.counts.trial import DirectionCount, Load, Outcome, Problem, Tolerance, Trial, assess_trial
from lineproof.evidence.demand import Demand
from lineproof.evidence.readings import ReadingRecord
from lineproof.evidence.records import EnvironmentRecord, RequirementRecord, TrialRecord
from lineproof.evidence.run import RunFolder
from lineproof.session.router_watch import Reading

LINK = 10e9
RUN = "20261121T040000Z-abc123"
ENVIRONMENT = EnvironmentRecord(RUN, True, "simulated", "netgate6100", "vpp", 10.0, 1_795_000_000.0)


@dataclass(frozen=True, slots=True)
class NamedTraffic:
    """Traffic of which a report needs two figures only."""

    name: str
    mean_size: float


def trial(
    number: int = 1,
    pps: float = 1_000_000.0,
    losses: Sequence[int] = (0,),
    unsent: int = 0,
    duration: float = 1.0,
    elapsed: float | None = None,
    problems: Iterable[Problem] = (),
    readings: Mapping[str, float] | None = None,
) -> Trial:
    """A trial with one direction for each of *losses* (frames lost)."""
    asked = int(pps * duration)
    sent = asked - unsent
    directions = [(0, 1), (1, 0)]
    return assess_trial(
        number,
        Outcome(
            Load(pps),
            duration,
            duration if elapsed is None else elapsed,
            1_795_000_000.25 + 2 * number,
            tuple(
                DirectionCount(tx, rx, asked, sent, sent - lost, sent * 64, (sent - lost) * 64)
                for (tx, rx), lost in zip(directions, losses, strict=False)
            ),
            tuple(problems),
            readings or {},
        ),
        Tolerance(),
    )


def trial_record(**fields: Any) -> TrialRecord:
    return TrialRecord(
        RUN, True, 1, "Netgate6100.Small Frames", "64b unidirectional ≥ 5 Mpps", "64b", 64.0, LINK, trial(**fields)
    )


def requirement_record(**changes: Any) -> RequirementRecord:
    fields: dict[str, Any] = {
        "run": RUN,
        "simulated": True,
        "number": 1,
        "test": "Netgate6100.Small Frames",
        "sentence": "64b unidirectional ≥ 5 Mpps",
        "verdict": "PASS",
        "message": "PASS: no loss",
        "goal": "quick",
        "goal_terms": {"loss_ratio": 0.0, "duration_sum": 5},
        "profile": "64b",
        "mean_size": 64.0,
        "link_bps": LINK,
        "threshold": "5 Mpps (3.36 Gbit/s L1, 2.56 Gbit/s L2, 33.60 % of line rate)",
        "measured": None,
        "trials": (1, 2),
        "started": 1_795_000_000.0,
        "ended": 1_795_000_005.5,
        "demand": Demand("throughput", "64b unidirectional", True, 5e6, "pps", pps=5e6),
    }
    return RequirementRecord(**(fields | changes))


def written(results: Path, closed: bool = True) -> Path:
    """A run with each kind of file."""
    folder = RunFolder.create(results, RUN)
    environment = replace(ENVIRONMENT, run=folder.run_id)
    folder.write_environment(environment)
    folder.add_input("variables/goals/quick.yaml", b"goal: quick\n")
    streams = folder.add_streams({"0": [{"pps": 1}]})
    for number in (1, 2, 3):
        for trial in (1, 2):
            folder.add_trial(replace(trial_record(number=trial), requirement=number, streams=streams, evidence="good"))
        folder.add_reading(ReadingRecord(RUN, True, number, 2, Reading(None, "the router did not answer", False)))
        folder.add_telemetry(number, "show runtime", f"Thread {number} vpp_wk_0\n")
        folder.write_environment(replace(environment, cpu_steal_percent=float(number)))
        folder.add_requirement(requirement_record(number=number, verdict="PASS" if number != 2 else "FAIL"))
    if closed:
        folder.close(replace(environment, ended=1_795_000_060.0))
    return folder.path
