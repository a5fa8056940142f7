"""Keywords that measure how much a router carries, and keep the results."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

from robot.api import logger
from robot.api.deco import keyword
from robot.libraries.BuiltIn import BuiltIn

from ..core.rule import Ruling
from ..core.verdict import Verdict
from ..evidence import allure
from ..evidence import characterisation as shown
from ..evidence import rfc2544_report as report
from ..evidence.characterisation import loadtest_json
from ..evidence.records import MarginRecord
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
from .characterisation_work import CharacterisationWork, work_over_values, work_with_table
from .shared import Component


class CharacterisationKeywords(Component):
    """Searches, ramps, RFC 2544's tests, and throughput against flows and frame sizes.

    *traffic* is traffic and direction as in a sentence. Nothing here fails because a router is slow. Problems of the
    testbed fail with ``INCONCLUSIVE:``, after results so far were kept: trials in the run's records, figures and
    pictures in its folder ``characterisation``.
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
            table = shown.search_table(result, profile, work.session.link_bps, work.title, work.session.simulated)
            picture = shown.search_plot(result, work.title, work.session.simulated)
            work.keep(result, [result], table, picture, [ending_text(result.ended, result.trials)])
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
            # the program that draws it names the curve by the file
            name = f"{work.session.plan.platform.platform} {known.profile.name}"
            work.keep_file(
                f"{name}-loadtest.json", loadtest_json(result, known.profile, known.bidirectional, simulated)
            )
            table, picture = (
                shown.ramp_table(result, work.title, simulated),
                shown.ramp_plot(result, work.title, simulated),
            )
            work.keep(result, [result], table, picture, [result.ended])
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
            table = report.throughput_table(results, work.title, work.session.simulated)
            picture = report.throughput_plot(results, work.title, work.session.simulated)
            work.keep(results, results, table, picture, [item.ended for item in results])
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
            report.latency_table,
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
            table = report.loss_table([curve], work.title, work.session.simulated)
            picture = report.loss_plot([curve], work.title, work.session.simulated)
            work.keep(curve, [curve], table, picture, [curve.ended])
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
            report.back_to_back_table,
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
            report.recovery_table,
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
            report.reset_table,
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
            lambda work: work.characteriser.scale_flows(
                traffic, flows or FLOW_COUNTS, relative_width, _deadline(deadline)
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
            lambda work: work.characteriser.scale_sizes(
                traffic, sizes or FRAME_SIZES, relative_width, _deadline(deadline)
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
    allure.attach_text("Margin", words)
    return words


def _deadline(time: timedelta | None) -> Deadline:
    return Deadline(None if time is None else time.total_seconds())
