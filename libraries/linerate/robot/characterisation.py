"""Keywords that find out how much a router carries, and keep what they found."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from robot.api import logger
from robot.api.deco import keyword, library
from robot.libraries.BuiltIn import BuiltIn

from ..counts.trial import Trial
from ..errors import Inconclusive, TestbedError
from ..evidence import allure
from ..evidence import characterisation as shown
from ..evidence import rfc2544_report as report
from ..evidence.grid import Grid
from ..evidence.loadtest_json import loadtest_json
from ..evidence.plots import svg_image
from ..evidence.recorder import Recorder
from ..evidence.records import CHARACTERISATION
from ..evidence.result_json import plain
from ..methods.deviations import deviations_of, found_in
from ..methods.ramp import RampResult
from ..methods.rfc2544 import FRAME_SIZES
from ..methods.rfc2544.back_to_back import BackToBackResult
from ..methods.rfc2544.latency import LatencyResult
from ..methods.rfc2544.loss_rate import LossCurve
from ..methods.rfc2544.recovery import RecoveryResult
from ..methods.rfc2544.reset import ResetResult
from ..methods.rfc2544.throughput import ThroughputResult
from ..methods.scaling import FLOWS, ScalingResult
from ..methods.search import SearchResult
from ..methods.trials import Deadline, ending
from ..session.characterising_live import LiveCharacteriser
from ..session.progress import Progress
from ..session.session import Session
from ..sla.requirement import TrafficWords
from ..units import si

R = TypeVar("R", LatencyResult, BackToBackResult, RecoveryResult, ResetResult)


@library(scope="GLOBAL", version="0.1")
class Characterisation:
    """Searches, ramps, RFC 2544's tests, and throughput against flows and frame sizes.

    Nothing here fails because a router is slow. A testbed that could not tell fails with ``INCONCLUSIVE:``, after what
    was found has been kept: trials in the run's records, figures and pictures in its folder ``characterisation``.
    """

    @keyword
    def search_capacity(
        self,
        session: Session,
        recorder: Recorder,
        traffic: str,
        deadline: float | None = None,
        relative_width: float = 0.005,
        partial_loss: float = 0.005,
    ) -> SearchResult:
        """The highest loads that the router carries without loss (NDR) and with at most *partial_loss* (PDR).

        *deadline*: s of traffic after which the search ends with what it has. *relative_width*: how close the bounds
        come (0..1). Trials are those of the goal.
        """
        with _Work(session, recorder, "search", traffic) as work:
            ratios = {"NDR": 0.0, "PDR": partial_loss}
            result = work.characteriser.search(traffic, ratios, relative_width, Deadline(deadline))
            profile = work.characteriser.traffic(traffic).profile
            table = shown.search_table(result, profile, session.link_bps, work.title, session.simulated)
            picture = shown.search_plot(result, work.title, session.simulated)
            work.keep(result, [result], table, picture, [ending(result.ended, result.trials)])
        return result

    @keyword
    def run_ramp(
        self,
        session: Session,
        recorder: Recorder,
        traffic: str,
        steps: int = 100,
        step: float = 1.0,
        warm_up: float = 5.0,
        hold: float = 5.0,
        behind: float = 0.001,
    ) -> RampResult:
        """Raise the load from nothing to the most that the testbed allows in *steps* trials of *step* s, then hold it.

        *warm_up*, *hold* in s; *behind*: the ratio of frames that may be missing before the router counts as behind.
        The result is also kept as the JSON that trex-loadtest-viz draws.
        """
        with _Work(session, recorder, "ramp", traffic) as work:
            result = work.characteriser.ramp(traffic, steps, step, warm_up, hold, behind)
            known = work.characteriser.traffic(traffic)
            drawn = loadtest_json(result, known.profile, known.bidirectional, session.simulated)
            work.keep_file("loadtest.json", drawn)
            table = shown.ramp_table(result, work.title, session.simulated)
            work.keep(result, [result], table, shown.ramp_plot(result, work.title, session.simulated), [result.ended])
        return result

    @keyword
    def find_rfc_2544_throughput(
        self,
        session: Session,
        recorder: Recorder,
        traffic: str,
        *sizes: int,
        duration: float = 60.0,
        resolution: float = 0.001,
    ) -> tuple[ThroughputResult, ...]:
        """RFC 2544 26.1 for frames of each of *sizes* (bytes with FCS; none given: the standard ones).

        *traffic* names the rest, as ``unidirectional``. *duration* of each trial in s: less than 60 is a declared
        deviation. *resolution*: how close loss and no loss come, as a ratio of line rate.
        """
        with _Work(session, recorder, "RFC 2544 throughput", traffic) as work:
            results = work.characteriser.throughput(traffic, sizes or FRAME_SIZES, duration, resolution)
            table = report.throughput_table(results, work.title, session.simulated)
            picture = report.throughput_plot(results, work.title, session.simulated)
            work.keep(results, results, table, picture, [item.ended for item in results])
        return results

    @keyword
    def find_frame_loss_rate(
        self, session: Session, recorder: Recorder, traffic: str, step: float = 10.0, duration: float = 60.0
    ) -> LossCurve:
        """RFC 2544 26.3: loss at the highest load and in steps of *step* per cent down, until nothing is lost twice."""
        with _Work(session, recorder, "RFC 2544 frame loss rate", traffic) as work:
            curve = work.characteriser.loss_curve(traffic, step, duration)
            table = report.loss_table([curve], work.title, session.simulated)
            picture = report.loss_plot([curve], work.title, session.simulated)
            work.keep(curve, [curve], table, picture, [curve.ended])
        return curve

    @keyword
    def find_rfc_2544_latency(
        self,
        session: Session,
        recorder: Recorder,
        traffic: str,
        throughputs: Sequence[ThroughputResult],
        repeats: int = 20,
        duration: float = 120.0,
    ) -> tuple[LatencyResult, ...]:
        """RFC 2544 26.2 at each of *throughputs*, which were found with the same *traffic*.

        *repeats* streams of *duration* s each: fewer than 20, or less than 120 s, is a declared deviation.
        """
        return _tabled(
            session,
            recorder,
            "RFC 2544 latency",
            traffic,
            lambda work: work.characteriser.latency(traffic, throughputs, repeats, duration),
            lambda results, title, simulated: report.latency_table(results, title, simulated=simulated),
        )

    @keyword
    def find_back_to_back(
        self,
        session: Session,
        recorder: Recorder,
        traffic: str,
        throughputs: Sequence[ThroughputResult],
        repeats: int = 50,
        longest: int | None = None,
        resolution: int = 1,
    ) -> tuple[BackToBackResult, ...]:
        """RFC 2544 26.4 (RFC 9004): the longest burst at line rate that passes, *repeats* times, to *resolution*.

        *throughputs* were found with the same *traffic*. *longest*: frames (none: 2 s of line rate).
        """
        return _tabled(
            session,
            recorder,
            "RFC 2544 back-to-back",
            traffic,
            lambda work: work.characteriser.back_to_back(traffic, throughputs, repeats, longest, resolution),
            report.back_to_back_table,
        )

    @keyword
    def find_system_recovery(
        self,
        session: Session,
        recorder: Recorder,
        traffic: str,
        throughputs: Sequence[ThroughputResult],
        repeats: int = 3,
        overload: float = 60.0,
        after: float = 20.0,
        interval: float = 0.1,
    ) -> tuple[RecoveryResult, ...]:
        """RFC 2544 26.5: *overload* s at 110 % of each of *throughputs*, then *after* s at half of it, *repeats* times.

        Counts are read every *interval* s. Less than 60 s of overload is a declared deviation.
        """
        return _tabled(
            session,
            recorder,
            "RFC 2544 system recovery",
            traffic,
            lambda work: work.characteriser.recovery(traffic, throughputs, repeats, overload, after, interval),
            report.recovery_table,
        )

    @keyword
    def find_reset_time(
        self,
        session: Session,
        recorder: Recorder,
        traffic: str,
        throughputs: Sequence[ThroughputResult],
        command: str = "",
        kind: str = "software",
        limit: float = 600.0,
    ) -> tuple[ResetResult, ...]:
        """RFC 2544 26.6 (RFC 6201): how long nothing is forwarded once *command* reset the router, at most *limit* s.

        *kind* names the reset: ``software``, ``hardware`` or ``power``. A simulated router needs no command.
        """
        return _tabled(
            session,
            recorder,
            "RFC 2544 reset",
            traffic,
            lambda work: work.characteriser.reset(
                traffic, throughputs, lambda: session.router.reset(command), kind, limit=limit
            ),
            report.reset_table,
        )

    @keyword
    def search_over_flows(
        self,
        session: Session,
        recorder: Recorder,
        traffic: str,
        *flows: int,
        relative_width: float = 0.005,
        deadline: float | None = None,
    ) -> ScalingResult:
        """A search for each number of *flows*; *traffic* names none. *deadline* in s of traffic, of all together."""
        return _scaled(
            session,
            recorder,
            "flows",
            traffic,
            lambda work: work.characteriser.scale_flows(traffic, flows or FLOWS, relative_width, Deadline(deadline)),
        )

    @keyword
    def search_over_frame_sizes(
        self,
        session: Session,
        recorder: Recorder,
        traffic: str,
        *sizes: int,
        relative_width: float = 0.005,
        deadline: float | None = None,
    ) -> ScalingResult:
        """A search for each of *sizes* (bytes with FCS); *traffic* names none. *deadline* in s of traffic, of all."""
        return _scaled(
            session,
            recorder,
            "frame sizes",
            traffic,
            lambda work: work.characteriser.scale_sizes(
                traffic, sizes or FRAME_SIZES, relative_width, Deadline(deadline)
            ),
        )

    @keyword
    def search_over(
        self,
        session: Session,
        recorder: Recorder,
        axis: str,
        traffic: str,
        set_up: str,
        *values: int,
        relative_width: float = 0.005,
        deadline: float | None = None,
    ) -> ScalingResult:
        """A search for each of *values* of *axis* (as ``receive queues``), each set by the keyword *set_up*."""
        return _scaled(
            session,
            recorder,
            axis,
            traffic,
            lambda work: work.characteriser.scale(
                axis,
                values,
                lambda value: traffic,
                relative_width,
                Deadline(deadline),
                lambda value: _set(set_up, value),
            ),
        )


def _set(name: str, value: int) -> None:
    BuiltIn().run_keyword(name, value)


def _tabled(
    session: Session,
    recorder: Recorder,
    method: str,
    traffic: str,
    found: Callable[[_Work], tuple[R, ...]],
    table: Callable[[tuple[R, ...], str, bool], Grid],
) -> tuple[R, ...]:
    with _Work(session, recorder, method, traffic) as work:
        results = found(work)
        ended = [item.ended for item in results]
        work.keep(results, results, table(results, work.title, session.simulated), None, ended)
    return results


def _scaled(
    session: Session, recorder: Recorder, axis: str, traffic: str, found: Callable[[_Work], ScalingResult]
) -> ScalingResult:
    with _Work(session, recorder, f"scaling over {axis}", traffic) as work:
        result = found(work)
        table = shown.scaling_table(result, work.title, session.simulated)
        picture = shown.scaling_plot(result, work.title, session.simulated)
        tried = [trial for point in result.points if point.result for trial in point.result.trials]
        ended = [ending(point.result.ended if point.result else point.reason, tried) for point in result.points]
        work.keep(result, [result], table, picture, ended)
    return result


class _Work:
    """One characterisation: its records from begin to end, and what a person sees of it."""

    def __init__(self, session: Session, recorder: Recorder, method: str, traffic: str) -> None:
        self.session, self.recorder, self.method, self.words = session, recorder, method, traffic
        self.characteriser = LiveCharacteriser(session, self._begin, self._on_trial)
        self.title = f"{method[0].upper()}{method[1:]}: {traffic}"
        self._test = str(BuiltIn().get_variable_value("${TEST NAME}"))
        self._first = 0
        self._started = time.time()
        self._failure = ""
        self._progress = Progress(sys.__stderr__, session.testbed.facts.clock_speed)

    def __enter__(self) -> _Work:
        # a reading to compare with at the end; what was amiss before is no matter of this
        self.characteriser.router_since()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        self._progress.end()
        if kind is None and self._failure:
            raise Inconclusive(f"INCONCLUSIVE: {self.title}: {self._failure}")
        if isinstance(error, TestbedError):
            raise Inconclusive(f"INCONCLUSIVE: {self.title}: {error}") from error

    def keep(
        self, result: object, parts: Sequence[object], table: Grid, picture: str | None, endings: Sequence[str]
    ) -> None:
        """Write the figures, the table and the picture, and show them. *parts*: the results in words."""
        since = self.characteriser.router_since()
        early = list(dict.fromkeys(item for item in [*endings, since] if item))
        spoilt = [item for item in early if item.startswith("inconclusive: ") or item == since]
        self._failure = "; ".join(item.removeprefix("inconclusive: ") for item in spoilt)
        found, deviations = found_in(parts), deviations_of(parts)
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
        told = f"SIMULATED: {found}" if self.session.simulated else found
        if deviations:
            departs = ", ".join(dict.fromkeys(item.source for item in deviations))
            told += f"\nDepartures from {departs} are declared in the table."
        BuiltIn().set_test_message(f"{self.title}: {told}", append=True, separator="\n")
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
            "result": plain(result),
        }
        return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1) + "\n"

    def _begin(self, traffic: TrafficWords) -> None:
        self.recorder.begin(self._test)
        self._first = self._first or self.recorder.number
        logger.info(f"{self.method}: {traffic.sentence}")
        self._progress.work(f"{self.method}: {traffic.sentence}")

    def _on_trial(self, traffic: TrafficWords, trial: Trial) -> None:
        self.recorder.keep_trial(traffic, trial, self.session.link_bps)
        outcome = trial.outcome
        load = si(outcome.load.pps, "pps")
        self._progress.step(f"trial {trial.number}, lost {trial.lost} of {trial.offered} at {load}")
        words = (
            f"trial {trial.number}: {outcome.duration:g} s at {outcome.load.pps:,.0f} frames/s each port, lost"
            f" {trial.lost} of {trial.offered}"
        )
        logger.info("; ".join([words, *(f"not valid: {problem}" for problem in trial.problems)]))
