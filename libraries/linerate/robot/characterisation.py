"""Keywords that measure how much a router carries, and keep the results."""

from __future__ import annotations

from collections.abc import Sequence

from robot.api.deco import keyword, library
from robot.libraries.BuiltIn import BuiltIn

from ..evidence import characterisation as shown
from ..evidence import rfc2544_report as report
from ..evidence.loadtest_json import loadtest_json
from ..evidence.recorder import Recorder
from ..methods.ramp import RampResult
from ..methods.rfc2544 import FRAME_SIZES
from ..methods.rfc2544.back_to_back import BackToBackResult
from ..methods.rfc2544.latency import LatencyResult
from ..methods.rfc2544.loss_rate import LossCurve
from ..methods.rfc2544.recovery import RecoveryResult
from ..methods.rfc2544.reset import ResetResult
from ..methods.rfc2544.throughput import ThroughputResult
from ..methods.scaling import FLOW_COUNTS, ScalingResult
from ..methods.search import SearchResult
from ..methods.trials import Deadline, ending_text
from ..session.session import Session
from .characterisation_work import CharacterisationWork, work_over_values, work_with_table


@library(scope="GLOBAL", version="0.1")
class Characterisation:
    """Searches, ramps, RFC 2544's tests, and throughput against flows and frame sizes.

    Nothing here fails because a router is slow. Problems of the testbed fail with ``INCONCLUSIVE:``, after results so
    far were kept: trials in the run's records, figures and pictures in its folder ``characterisation``.
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
        with CharacterisationWork(session, recorder, "search", traffic) as work:
            ratios = {"NDR": 0.0, "PDR": partial_loss}
            result = work.characteriser.search(traffic, ratios, relative_width, Deadline(deadline))
            profile = work.characteriser.traffic(traffic).profile
            table = shown.search_table(result, profile, session.link_bps, work.title, session.simulated)
            picture = shown.search_plot(result, work.title, session.simulated)
            work.keep(result, [result], table, picture, [ending_text(result.ended, result.trials)])
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
        """Raise the load from nothing to the testbed's maximum in *steps* trials of *step* s, then hold it.

        *warm_up*, *hold* in s; *behind*: the ratio of frames that may be missing before the router counts as behind.
        The result is also kept as the JSON that trex-loadtest-viz draws.
        """
        with CharacterisationWork(session, recorder, "ramp", traffic) as work:
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
        with CharacterisationWork(session, recorder, "RFC 2544 throughput", traffic) as work:
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
        with CharacterisationWork(session, recorder, "RFC 2544 frame loss rate", traffic) as work:
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

        def find(work: CharacterisationWork) -> tuple[LatencyResult, ...]:
            return work.characteriser.latency(traffic, throughputs, repeats, duration)

        return work_with_table(
            session,
            recorder,
            "RFC 2544 latency",
            traffic,
            find,
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

        def find(work: CharacterisationWork) -> tuple[BackToBackResult, ...]:
            return work.characteriser.back_to_back(traffic, throughputs, repeats, longest, resolution)

        return work_with_table(session, recorder, "RFC 2544 back-to-back", traffic, find, report.back_to_back_table)

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

        def find(work: CharacterisationWork) -> tuple[RecoveryResult, ...]:
            return work.characteriser.recovery(traffic, throughputs, repeats, overload, after, interval)

        return work_with_table(session, recorder, "RFC 2544 system recovery", traffic, find, report.recovery_table)

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

        def find(work: CharacterisationWork) -> tuple[ResetResult, ...]:
            return work.characteriser.reset(
                traffic, throughputs, lambda: session.router.reset(command), kind, limit=limit
            )

        return work_with_table(session, recorder, "RFC 2544 reset", traffic, find, report.reset_table)

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

        def find(work: CharacterisationWork) -> ScalingResult:
            return work.characteriser.scale_flows(traffic, flows or FLOW_COUNTS, relative_width, Deadline(deadline))

        return work_over_values(session, recorder, "flows", traffic, find)

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

        def find(work: CharacterisationWork) -> ScalingResult:
            return work.characteriser.scale_sizes(traffic, sizes or FRAME_SIZES, relative_width, Deadline(deadline))

        return work_over_values(session, recorder, "frame sizes", traffic, find)

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

        def find(work: CharacterisationWork) -> ScalingResult:
            return work.characteriser.scale(
                axis,
                values,
                lambda value: traffic,
                relative_width,
                Deadline(deadline),
                lambda value: BuiltIn().run_keyword(set_up, value),
            )

        return work_over_values(session, recorder, axis, traffic, find)
