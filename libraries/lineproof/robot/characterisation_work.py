"""One characterisation from a keyword: its records from begin to end, and what is shown of it."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import PurePath
from typing import Any, TypeVar

from robot.api import logger
from robot.libraries.BuiltIn import BuiltIn

from ..core.goal import Goal
from ..core.quantity import TrafficWords
from ..core.trial import Load, Trial
from ..errors import Inconclusive, TestbedError
from ..evidence import allure
from ..evidence import characterisation as shown
from ..evidence.plot_frame import svg_image
from ..evidence.records import CHARACTERISATION
from ..evidence.tables import ResultTable
from ..methods.deviations import Deviation, deviations_of, findings_text
from ..methods.rfc2544.back_to_back import BackToBackResult
from ..methods.rfc2544.latency import LatencyResult
from ..methods.rfc2544.recovery import RecoveryResult
from ..methods.rfc2544.reset import ResetResult
from ..methods.scaling import ScalingResult
from ..methods.trials import ending_text
from ..session.characterising_live import LiveCharacteriser
from ..session.progress import Progress
from ..units import si
from .shared import Shared

R = TypeVar("R", LatencyResult, BackToBackResult, RecoveryResult, ResetResult)


class CharacterisationWork:
    """One characterisation: its records from begin to end, and what log, report and console show of it."""

    def __init__(self, shared: Shared, method: str, traffic: str) -> None:
        session = shared.session
        self.session, self.recorder, self.method, self.words = session, shared.records, method, traffic
        self.characteriser = LiveCharacteriser(session, self._begin, self._on_trial)
        self.title = f"{method[0].upper()}{method[1:]}: {traffic}"
        self._test = str(BuiltIn().get_variable_value("${TEST NAME}"))
        self._first = 0
        self._started = time.time()
        self._failure = ""
        self._progress = Progress(sys.__stderr__, session.testbed.facts.clock_speed)

    def __enter__(self) -> CharacterisationWork:
        # a reading to compare with at the end; problems before it do not count
        self.characteriser.router_problem()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        self._progress.end()
        if kind is None and self._failure:
            raise Inconclusive(f"INCONCLUSIVE: {self.title}: {self._failure}")
        if isinstance(error, TestbedError):
            raise Inconclusive(f"INCONCLUSIVE: {self.title}: {error}") from error

    def keep(
        self, result: object, parts: Sequence[object], table: ResultTable, picture: str | None, endings: Sequence[str]
    ) -> None:
        """Write the figures, the table and the picture, and show them. *parts*: the results in words."""
        problem = self.characteriser.router_problem()
        early = list(dict.fromkeys(item for item in [*endings, problem] if item))
        inconclusive = [item for item in early if item.startswith("inconclusive: ") or item == problem]
        self._failure = "; ".join(item.removeprefix("inconclusive: ") for item in inconclusive)
        found, deviations = findings_text(parts), deviations_of(parts)
        findings = "\n".join([found, *(f"Deviation: {item}." for item in deviations)])
        self.keep_file(f"{self.method}.json", self._record(result, findings))
        self.keep_file(f"{self.method}.html", table.page())
        if picture is not None:
            self.keep_file(f"{self.method}.svg", picture)
            allure.attach_svg(self.title, picture)
            logger.info(svg_image(self.title, picture), html=True)
        allure.attach_html(f"{self.title} (table)", table.page())
        logger.info(table.fragment(), html=True)
        for item in early:
            logger.warn(f"{self.title}: {item}")
        message = f"SIMULATED: {found}" if self.session.simulated else found
        if deviations:
            sources = ", ".join(dict.fromkeys(item.source for item in deviations))
            message += f"\nDeviations from {sources} are declared in the table."
        BuiltIn().set_test_message(f"{self.title}: {message}", append=True, separator="\n")
        allure.attach_text("Findings", findings)

    def keep_file(self, name: str, text: str) -> None:
        """Keep *text* in the run's folder, under the number of the first traffic of this work."""
        self.recorder.keep_file(name, text, self._first or None)

    def _record(self, result: Any, findings: str) -> str:
        data = {
            "schema": CHARACTERISATION,
            "run": self.recorder.folder.run_id,
            "simulated": self.session.simulated,
            "number": self._first,
            "last": self.recorder.number,
            "test": self._test,
            "method": self.method,
            "sentence": self.words,
            "findings": findings,
            "link_bps": self.session.link_bps,
            "started": self._started,
            "ended": time.time(),
            "result": json_data(result),
        }
        return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1) + "\n"

    def _begin(self, traffic: TrafficWords) -> None:
        self.recorder.begin(self._test)
        self._first = self._first or self.recorder.number
        logger.info(f"{self.method}: {traffic.sentence}")
        self._progress.work(f"{self.method}: {traffic.sentence}")

    def _on_trial(self, traffic: TrafficWords, trial: Trial) -> None:
        self.recorder.keep_trial(traffic, trial, self.session.link_bps, self.session.generator.streams)
        outcome = trial.outcome
        load = si(outcome.load.pps, "pps")
        self._progress.step(f"trial {trial.number}, lost {trial.lost} of {trial.offered} at {load}")
        words = (
            f"trial {trial.number}: {outcome.duration:g} s at {outcome.load.pps:,.0f} frames/s each port, lost"
            f" {trial.lost} of {trial.offered}"
        )
        logger.info("; ".join([words, *(f"{problem}" for problem in trial.problems)]))


def work_with_table(
    shared: Shared,
    method: str,
    traffic: str,
    found: Callable[[CharacterisationWork], tuple[R, ...]],
    table: Callable[[tuple[R, ...], str, bool], ResultTable],
) -> tuple[R, ...]:
    """Run a method whose result is a table without a picture: *found* runs it, *table* makes the table."""
    with CharacterisationWork(shared, method, traffic) as work:
        results = found(work)
        ended = [item.ended for item in results]
        work.keep(results, results, table(results, work.title, work.session.simulated), None, ended)
    return results


def work_over_values(
    shared: Shared, axis: str, traffic: str, found: Callable[[CharacterisationWork], ScalingResult]
) -> ScalingResult:
    """Run a search for each value of *axis*: *found* runs them."""
    with CharacterisationWork(shared, f"scaling over {axis}", traffic) as work:
        result = found(work)
        table = shown.scaling_table(result, work.title, work.session.simulated)
        picture = shown.scaling_plot(result, work.title, work.session.simulated)
        trials = [trial for point in result.points if point.result for trial in point.result.trials]
        ended = [ending_text(point.result.ended if point.result else point.reason, trials) for point in result.points]
        work.keep(result, [result], table, picture, ended)
    return result


def json_data(value: Any) -> Any:
    """*value*, of a characterisation's result, as JSON data.

    Loads are frames/s into each port, trials their numbers in ``trials.jsonl``, figures that are not finite ``null``.
    Raises TypeError for anything but dataclasses, mappings, sequences and plain values.
    """
    if isinstance(value, Load):
        return value.pps
    if isinstance(value, Trial):
        return value.number
    if isinstance(value, Goal):
        return value.model_dump()
    if isinstance(value, Deviation):
        return str(value)
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): json_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_data(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: json_data(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"{type(value).__name__} is no part of a result")
