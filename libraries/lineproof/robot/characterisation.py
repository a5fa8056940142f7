"""Keywords that measure how much a router carries, and keep the results."""

from __future__ import annotations

import dataclasses
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from enum import Enum
from pathlib import PurePath
from typing import Any, Literal, TypeVar

from robot.api import logger
from robot.api.deco import keyword
from robot.libraries.BuiltIn import BuiltIn

from ..core.goal import Goal
from ..core.quantity import TrafficWords
from ..core.rule import Ruling
from ..core.trial import Load, Trial
from ..core.verdict import Verdict
from ..errors import Inconclusive, TestbedError
from ..evidence import allure, pictures, result_forms
from ..evidence.document import Document
from ..evidence.loadtest import loadtest_data
from ..evidence.records import CharacterisationRecord, MarginRecord
from ..evidence.svg import svg_image
from ..methods.deviations import Deviation, deviations_of, findings_text
from ..methods.margin import margin_of_forwarding
from ..methods.ramp import RampResult
from ..methods.rfc2544 import FRAME_SIZES
from ..methods.rfc2544.back_to_back import BackToBackResult
from ..methods.rfc2544.latency import LatencyResult
from ..methods.rfc2544.recovery import RecoveryResult
from ..methods.rfc2544.reset import ResetResult
from ..methods.rfc2544.throughput import LossCurve, ThroughputResult
from ..methods.scaling import FLOW_COUNTS, ScalingResult
from ..methods.search import SearchResult
from ..methods.trials import Deadline, ending_text
from ..session.characterising import Characteriser, flow_words
from ..session.progress import Progress
from ..units import si
from .shared import Component, Shared, show_document


class CharacterisationKeywords(Component):
    """Searches, ramps, RFC 2544's tests, and throughput against flows and frame sizes.

    *traffic* is traffic and direction as in a sentence. Nothing here fails because a router is slow. Problems of the
    testbed fail with ``INCONCLUSIVE:``, after results so far were kept in the run's records.
    """

    @keyword(tags=["characterise"])
    def search_throughput_of(
        self,
        traffic: str,
        deadline: timedelta | None = None,
        relative_width: float = 0.005,
        partial_loss: float = 0.005,
    ) -> SearchResult:
        """The highest loads that the router carries without loss (NDR) and with at most *partial_loss* (PDR).

        *deadline*: time of traffic after which the search (MLRsearch, RFC 9971) ends with the bounds so far.
        *relative_width*: how close the bounds come (0..1). Trials are those of the run's goal. Example:
        | ${found} =    Search Throughput Of    64b 1-flow unidirectional    deadline=2 min
        """
        with CharacterisationWork(self.shared, "search", traffic) as work:
            ratios = {"NDR": 0.0, "PDR": partial_loss}
            result = work.characteriser.search(traffic, ratios, relative_width, _deadline(deadline))
            profile = work.characteriser.traffic(traffic).profile
            link_bps, simulated = work.session.link_bps, work.session.simulated
            document = result_forms.search_document(result, profile, link_bps, work.title, simulated)
            picture = pictures.search_plot(result, work.title, simulated)
            work.keep(result, [result], document, picture, [ending_text(result.ended, result.trials)])
        return result

    @keyword(tags=["sentences"])
    def search_margin_of(self, verdict: Verdict, wanted: bool, deadline: timedelta | None = None) -> str:
        """How much more than its sentence the router carries, in words; empty unless *wanted*, and after a PASS.

        Of a throughput by the same rule at higher loads, in at most *deadline* of traffic; of ``forwards`` from the
        verdict's own trials. Other sentences have none. Example:
        | ${margin} =    Search Margin Of    ${verdict}    on    deadline=1 min
        """
        requirement = verdict.requirement
        if not wanted or verdict.ruling is not Ruling.PASS or not requirement.quantity.margin:
            return ""
        recorder = self.shared.records
        number = recorder.number
        if requirement.quantity.margin == "its own trials":
            return _shown(recorder.keep_margin(margin_of_forwarding(verdict), number, requirement.sentence))
        with CharacterisationWork(self.shared, "margin", requirement.traffic) as work:
            found = work.characteriser.margin(requirement, _deadline(deadline))
            words = _shown(recorder.keep_margin(found, number, requirement.sentence))
        return words

    @keyword(tags=["characterise"])
    def ramp(
        self,
        traffic: str,
        steps: int = 100,
        step: timedelta = timedelta(seconds=1),
        warm_up: timedelta = timedelta(seconds=5),
        hold: timedelta = timedelta(seconds=5),
        behind: float = 0.001,
    ) -> RampResult:
        """Raise the load from nothing to the testbed's maximum in *steps* trials of *step*, then hold it.

        *warm_up* before, *hold* after the rise; *behind*: the ratio of frames that may be missing before the router
        counts as behind. The result is also kept as the JSON that trex-loadtest-viz draws. Example:
        | Ramp    64b 1-flow unidirectional    steps=10    step=500 ms
        """
        times = step.total_seconds(), warm_up.total_seconds(), hold.total_seconds()
        with CharacterisationWork(self.shared, "ramp", traffic) as work:
            result = work.characteriser.ramp(traffic, steps, *times, behind)
            known, simulated = work.characteriser.traffic(traffic), work.session.simulated
            drawn = loadtest_data(result, known.profile, known.bidirectional, simulated)
            document = result_forms.ramp_document(result, work.title, simulated)
            picture = pictures.ramp_plot(result, work.title, simulated)
            work.keep(result, [result], document, picture, [result.ended], drawn)
        return result

    @keyword("RFC 2544 Throughput Of", tags=["characterise", "rfc2544"])
    def rfc_2544_throughput_of(
        self, traffic: str, *sizes: int, duration: timedelta = timedelta(seconds=60), resolution: float = 0.001
    ) -> tuple[ThroughputResult, ...]:
        """RFC 2544 26.1 for frames of each of *sizes* (bytes with FCS; none given: the standard seven).

        *traffic* names the rest. *duration* of each trial: less than 60 s is a declared deviation. *resolution*: how
        close loss and no loss come, as a ratio of line rate. Example:
        | ${found} =    RFC 2544 Throughput Of    unidirectional    64    1518    duration=10 s
        """
        with CharacterisationWork(self.shared, "RFC 2544 throughput", traffic) as work:
            seconds = duration.total_seconds()
            results = work.characteriser.throughput(traffic, sizes or FRAME_SIZES, seconds, resolution)
            document = result_forms.throughput_document(results, work.title, work.session.simulated)
            picture = pictures.throughput_plot(results, work.title, work.session.simulated)
            work.keep(results, results, document, picture, [item.ended for item in results])
        return results

    @keyword("RFC 2544 Latency Of", tags=["characterise", "rfc2544"])
    def rfc_2544_latency_of(
        self,
        traffic: str,
        throughputs: Sequence[ThroughputResult],
        repeats: int = 20,
        duration: timedelta = timedelta(seconds=120),
    ) -> tuple[LatencyResult, ...]:
        """RFC 2544 26.2 at each of *throughputs*, which `RFC 2544 Throughput Of` gave for the same *traffic*.

        *repeats* streams of *duration* each: fewer than 20, or less than 120 s, is a declared deviation. Example:
        | RFC 2544 Latency Of    unidirectional    ${found}    repeats=2    duration=10 s
        """
        return work_with_table(
            self.shared,
            "RFC 2544 latency",
            traffic,
            lambda work: work.characteriser.latency(traffic, throughputs, repeats, duration.total_seconds()),
            result_forms.latency_document,
        )

    @keyword(tags=["characterise", "rfc2544"])
    def frame_loss_rate_of(
        self, traffic: str, step: float = 10.0, duration: timedelta = timedelta(seconds=60)
    ) -> LossCurve:
        """RFC 2544 26.3: loss at the highest load and in steps of *step* per cent down, until nothing is lost twice.

        *duration* of each trial: less than 60 s is a declared deviation. Example:
        | Frame Loss Rate Of    64b unidirectional    duration=10 s
        """
        with CharacterisationWork(self.shared, "RFC 2544 frame loss rate", traffic) as work:
            curve = work.characteriser.loss_curve(traffic, step, duration.total_seconds())
            document = result_forms.loss_document([curve], work.title, work.session.simulated)
            picture = pictures.loss_plot([curve], work.title, work.session.simulated)
            work.keep(curve, [curve], document, picture, [curve.ended])
        return curve

    @keyword(tags=["characterise", "rfc2544"])
    def back_to_back_of(
        self,
        traffic: str,
        throughputs: Sequence[ThroughputResult],
        repeats: int = 50,
        longest: int | None = None,
        resolution: int = 1,
    ) -> tuple[BackToBackResult, ...]:
        """RFC 2544 26.4 (RFC 9004): the longest burst at line rate that passes, and the buffer time that follows.

        *throughputs* as `RFC 2544 Throughput Of` gave for the same *traffic*. *repeats*: searches, each to *resolution*
        frames; *longest*: frames (none: 2 s of line rate). Example:
        | Back To Back Of    unidirectional    ${found}    repeats=5
        """
        return work_with_table(
            self.shared,
            "RFC 2544 back-to-back",
            traffic,
            lambda work: work.characteriser.back_to_back(traffic, throughputs, repeats, longest, resolution),
            result_forms.back_to_back_document,
        )

    @keyword(tags=["characterise", "rfc2544"])
    def system_recovery_of(
        self,
        traffic: str,
        throughputs: Sequence[ThroughputResult],
        repeats: int = 3,
        overload: timedelta = timedelta(seconds=60),
        after: timedelta = timedelta(seconds=20),
        interval: timedelta = timedelta(seconds=0.1),
    ) -> tuple[RecoveryResult, ...]:
        """RFC 2544 26.5: *overload* at 110 % of each of *throughputs*, then *after* at half of it, *repeats* times.

        Counts are read every *interval*. Less than 60 s of overload is a declared deviation. *throughputs* as `RFC 2544
        Throughput Of` gave for the same *traffic*. Example:
        | System Recovery Of    unidirectional    ${found}    overload=10 s
        """
        times = overload.total_seconds(), after.total_seconds(), interval.total_seconds()
        return work_with_table(
            self.shared,
            "RFC 2544 system recovery",
            traffic,
            lambda work: work.characteriser.recovery(traffic, throughputs, repeats, *times),
            result_forms.recovery_document,
        )

    @keyword(tags=["characterise", "rfc2544"])
    def reset_time_of(
        self,
        traffic: str,
        throughputs: Sequence[ThroughputResult],
        command: str = "",
        kind: Literal["software", "hardware", "power"] = "software",
        limit: timedelta = timedelta(minutes=10),
    ) -> tuple[ResetResult, ...]:
        """RFC 2544 26.6 (RFC 6201): how long nothing is forwarded once *command* reset the router, at most *limit*.

        At the throughput of the smallest frames among *throughputs*. A simulated router needs no command. Example:
        | Reset Time Of    unidirectional    ${found}    command=sudo reboot
        """
        return work_with_table(
            self.shared,
            "RFC 2544 reset",
            traffic,
            lambda work: work.characteriser.reset(
                traffic,
                throughputs,
                lambda: work.session.router.reset(command),
                kind,
                limit=limit.total_seconds(),
            ),
            result_forms.reset_document,
        )

    @keyword(tags=["characterise", "scaling"])
    def scale_over_flows(
        self, traffic: str, *flows: int, relative_width: float = 0.005, deadline: timedelta | None = None
    ) -> ScalingResult:
        """A search for each number of *flows*; *traffic* names none. *deadline*: time of traffic of all together.

        *relative_width*: how close the bounds of each come (0..1). Example:
        | Scale Over Flows    64b unidirectional    1    8    64
        """
        return work_over_values(
            self.shared,
            "flows",
            traffic,
            lambda work: work.characteriser.scale(
                "flows",
                flows or FLOW_COUNTS,
                lambda number: f"{traffic} {flow_words(number)}",
                relative_width,
                _deadline(deadline),
            ),
        )

    @keyword(tags=["characterise", "scaling"])
    def scale_over_frame_sizes(
        self, traffic: str, *sizes: int, relative_width: float = 0.005, deadline: timedelta | None = None
    ) -> ScalingResult:
        """A search for each of *sizes* (bytes with FCS); *traffic* names none. *deadline*: time of traffic of all.

        *relative_width*: how close the bounds of each come (0..1). Example:
        | Scale Over Frame Sizes    unidirectional    64    512    1518
        """
        return work_over_values(
            self.shared,
            "frame sizes",
            traffic,
            lambda work: work.characteriser.scale(
                "frame size [bytes with FCS]",
                sizes or FRAME_SIZES,
                lambda size: f"{size}b {traffic}",
                relative_width,
                _deadline(deadline),
            ),
        )

    @keyword(tags=["characterise", "scaling"])
    def scale_over(
        self,
        axis: str,
        traffic: str,
        set_up: str,
        *values: int,
        relative_width: float = 0.005,
        deadline: timedelta | None = None,
    ) -> ScalingResult:
        """A search for each of *values* of *axis*, each set by the keyword *set_up*, which is called with the value.

        *relative_width*: how close the bounds of each come (0..1). *deadline*: time of traffic of all. Example:
        | Scale Over    receive queues    64b unidirectional    Set Receive Queues    1    2    3
        """
        return work_over_values(
            self.shared,
            axis,
            traffic,
            lambda work: work.characteriser.scale(
                axis,
                values,
                lambda value: traffic,
                relative_width,
                _deadline(deadline),
                lambda value: BuiltIn().run_keyword(set_up, value),
            ),
        )


def _shown(record: MarginRecord) -> str:
    """The margin in words, which are in log and report, too."""
    words = str(record)
    logger.info(f"margin: {words}; {record.seconds:g} s of traffic")
    return words


def _deadline(time: timedelta | None) -> Deadline:
    return Deadline(None if time is None else time.total_seconds())


R = TypeVar("R", LatencyResult, BackToBackResult, RecoveryResult, ResetResult)


class CharacterisationWork:
    """One characterisation: its records from begin to end, and what log, report and console show of it."""

    def __init__(self, shared: Shared, method: str, traffic: str) -> None:
        session = shared.session
        self.session, self.recorder, self.method, self.words = session, shared.records, method, traffic
        self.characteriser = Characteriser(session, self._begin, self._on_trial)
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
        self,
        result: object,
        parts: Sequence[object],
        document: Document,
        picture: str | None,
        endings: Sequence[str],
        loadtest: Mapping[str, object] | None = None,
    ) -> None:
        """Keep the figures, and show them with the table and the picture.

        *parts*: the results in words; *loadtest*: the same for trex-loadtest-viz.
        """
        problem = self.characteriser.router_problem()
        early = list(dict.fromkeys(item for item in [*endings, problem] if item))
        inconclusive = [item for item in early if item.startswith("inconclusive: ") or item == problem]
        self._failure = "; ".join(item.removeprefix("inconclusive: ") for item in inconclusive)
        found, deviations = findings_text(parts), deviations_of(parts)
        findings = "\n".join([found, *(f"Deviation: {item}." for item in deviations)])
        self.recorder.folder.add(self._record(result, findings, loadtest))
        if picture is not None:
            allure.attach(self.title, picture, "SVG")
            logger.info(svg_image(self.title, picture), html=True)
        show_document(f"{self.title} (table)", document)
        for item in early:
            logger.warn(f"{self.title}: {item}")
        message = f"SIMULATED: {found}" if self.session.simulated else found
        if deviations:
            sources = ", ".join(dict.fromkeys(item.source for item in deviations))
            message += f"\nDeviations from {sources} are declared in the table."
        BuiltIn().set_test_message(f"{self.title}: {message}", append=True, separator="\n")

    def _record(self, result: Any, findings: str, loadtest: Mapping[str, object] | None) -> CharacterisationRecord:
        return CharacterisationRecord(
            run=self.recorder.folder.run_id,
            simulated=self.session.simulated,
            number=self._first,
            last=self.recorder.number,
            test=self._test,
            method=self.method,
            sentence=self.words,
            findings=findings,
            link_bps=self.session.link_bps,
            started=self._started,
            ended=time.time(),
            result=json_data(result),
            loadtest=loadtest,
        )

    def _begin(self, traffic: TrafficWords) -> None:
        self.recorder.begin(self._test)
        self._first = self._first or self.recorder.number
        logger.info(f"{self.method}: {traffic.sentence}")
        self._progress.work(f"{self.method}: {traffic.sentence}")

    def _on_trial(self, traffic: TrafficWords, trial: Trial) -> None:
        self.recorder.keep_trial(traffic, trial, self.session)
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
    document: Callable[[tuple[R, ...], str, bool], Document],
) -> tuple[R, ...]:
    """Run a method whose result is a table without a picture: *found* runs it."""
    with CharacterisationWork(shared, method, traffic) as work:
        results = found(work)
        ended = [item.ended for item in results]
        work.keep(results, results, document(results, work.title, work.session.simulated), None, ended)
    return results


def work_over_values(
    shared: Shared, axis: str, traffic: str, found: Callable[[CharacterisationWork], ScalingResult]
) -> ScalingResult:
    """Run a search for each value of *axis*: *found* runs them."""
    with CharacterisationWork(shared, f"scaling over {axis}", traffic) as work:
        result = found(work)
        document = result_forms.scaling_document(result, work.title, work.session.simulated)
        picture = pictures.scaling_plot(result, work.title, work.session.simulated)
        trials = [trial for point in result.points if point.result for trial in point.result.trials]
        ended = [ending_text(point.result.ended if point.result else point.reason, trials) for point in result.points]
        work.keep(result, [result], document, picture, ended)
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
