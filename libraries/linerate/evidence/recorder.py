"""Writes what a session measures to the records of its run's folder, trial by trial."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ..counts.telemetry import Telemetry
from ..counts.trial import Trial
from ..sla.requirement import RATE_UNITS, Requirement, TrafficWords
from ..sla.verdict import Verdict
from ..units import Rate
from .rate_intervals import rate_intervals
from .records import EnvironmentRecord, RateFigures, RequirementRecord, TrialRecord
from .resume import CarriedVerdict
from .run import RunFolder

SIMULATED_BECAUSE = "simulated_because"
"""Key of the signs of a simulation, in words, in the environment record's extra data."""


class Recorder:
    """Writes one run. Each call's record is on the disk when the call returns."""

    def __init__(self, results: Path, run_id: str, environment: EnvironmentRecord) -> None:
        self.folder = RunFolder.create(results, run_id)
        self.environment = replace(environment, run=self.folder.run_id)
        self.folder.write_environment(self.environment)
        self.verdicts: Counter[str] = Counter()
        self._number = 0
        self._started = 0.0
        self._test = ""
        self._trials: list[int] = []

    def keep_parts(
        self,
        versions: Mapping[str, str],
        configuration: Mapping[str, object],
        calibration: Mapping[str, object] | None = None,
        card: Mapping[str, object] | None = None,
    ) -> None:
        """Add versions, the router's configuration, and the generator's *calibration* and *card* to the environment."""
        extra = {**self.environment.extra, "router_configuration": dict(configuration)}
        if calibration is not None:
            extra["calibration"] = dict(calibration)
        if card is not None:
            extra["generator_card"] = dict(card)
        self.environment = replace(self.environment, versions=dict(versions), extra=extra)
        self.folder.write_environment(self.environment)

    def mark_simulated(self, signs: Sequence[str]) -> None:
        """From now on every record says that it is simulated, and the environment why: *signs*. Nothing without any."""
        if not signs or self.environment.extra.get(SIMULATED_BECAUSE) == list(signs):
            return
        extra = {**self.environment.extra, SIMULATED_BECAUSE: list(signs)}
        self.environment = replace(self.environment, simulated=True, extra=extra)
        self.folder.write_environment(self.environment)

    def begin(self, test: str) -> None:
        """Begin the records of a sentence of *test*."""
        self._number = self.folder.next_requirement()
        self._started = time.time()
        self._test = test
        self._trials = []

    def keep_trial(self, requirement: Requirement | TrafficWords, trial: Trial, link_bps: float) -> None:
        """Append one trial of the current sentence or traffic (number 0: warm-up)."""
        self.folder.add_trial(
            TrialRecord(
                run=self.folder.run_id,
                simulated=self.environment.simulated,
                requirement=self._number,
                test=self._test,
                sentence=requirement.sentence,
                profile=requirement.profile.name,
                mean_size=requirement.profile.mean_size,
                link_bps=link_bps,
                trial=trial,
                clock_speed=self.environment.clock_speed,
            )
        )
        if trial.number:
            self._trials.append(trial.number)

    def keep_telemetry(self, name: str, telemetry: Telemetry) -> None:
        """Keep the router's own output at this moment (*name*: ``before``, ``after`` or ``trial 3``)."""
        for command, text in telemetry.raw.items():
            self.folder.add_telemetry(self._number, f"{name} {command}", text)

    @property
    def number(self) -> int:
        """The number of the current sentence within the run; 0 before the first."""
        return self._number

    def keep_file(self, name: str, text: str, number: int | None = None) -> Path:
        """Keep a picture, a table or figures as ``characterisation/003-NAME``; *number* None: the current one."""
        return self.folder.add_result(self._number if number is None else number, name, text)

    def keep_verdict(self, verdict: Verdict, reconnection: str = "") -> None:
        """Append the requirement's record. *reconnection*: what was done to the testbed before, in words."""
        requirement = verdict.requirement
        self.verdicts[verdict.ruling.value] += 1
        size, link = requirement.profile.mean_size, verdict.link_bps
        pps = verdict.figures.get("forwarded_pps")
        threshold = str(requirement.threshold)
        if requirement.threshold.unit in RATE_UNITS:
            threshold = str(Rate(requirement.threshold_pps(link), size, link))
        self.folder.add_requirement(
            RequirementRecord(
                run=self.folder.run_id,
                simulated=self.environment.simulated,
                number=self._number,
                test=self._test,
                sentence=requirement.sentence,
                verdict=verdict.ruling.value,
                message=verdict.message,
                goal=verdict.goal.goal,
                goal_terms=verdict.goal.model_dump(exclude={"goal", "about"}),
                profile=requirement.profile.name,
                mean_size=size,
                link_bps=link,
                threshold=threshold,
                measured=None if pps is None else RateFigures.of(Rate(pps, size, link)),
                trials=tuple(self._trials),
                started=self._started,
                ended=time.time(),
                extra={
                    "figures": {**rate_intervals(verdict), **verdict.figures},
                    "router_drops": dict(verdict.router_drops or {}),
                    **({"generator_ceiling": dict(verdict.ceiling)} if verdict.ceiling else {}),
                    "ledger": [ledger.to_json() for ledger in verdict.ledgers],
                    **({"recovery": reconnection} if reconnection else {}),
                    **({"traffic_file": program.to_json()} if (program := requirement.profile.program) else {}),
                    "rfc2544_throughput": verdict.is_rfc2544_throughput and not self.environment.simulated,
                },
            )
        )

    def carry(self, carried: CarriedVerdict) -> CarriedVerdict:
        """Copy a verdict of an earlier run, with its trials, into this one's records; returns the copy."""
        self.verdicts[carried.record.verdict] += 1
        copy = carried.copy_to(self.folder.run_id, self.folder.next_requirement())
        for trial in copy.trials:
            self.folder.add_trial(trial)
        self.folder.add_requirement(copy.record)
        return copy

    def close(self, cpu_steal_percent: float | None = None) -> None:
        """Note the end and write the manifest. Harmless when repeated."""
        if self.environment.ended is None:
            self.environment = replace(self.environment, ended=time.time(), cpu_steal_percent=cpu_steal_percent)
            self.folder.write_environment(self.environment)
        self.folder.close()
