"""The tests of RFC 2544 section 26 that overload or reset the router.

- 26.4 back-to-back frames (RFC 9004): the longest burst at line rate without loss. The buffer time follows from it,
  less what was forwarded while the burst arrived: ``corrected = implied - implied * throughput / maximum rate``, with
  ``implied = mean burst / maximum rate``.
- 26.5 system recovery: how long a router still loses frames after an overload.
- 26.6 reset: how long a router forwards nothing after one, by the frame-loss method of RFC 6201: frames lost divided by
  the rate offered, which does not depend on how often the counts are read.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from statistics import fmean
from typing import Literal

from ...core.bounds import Bounds
from ...core.doubts import OF_FRAMES
from ...core.phrases import between, percent
from ...core.step_down import MIN_SAMPLES, OVERLOAD_LOSS_RATIO, REDUCED_LOAD_SHARE, Sample, StepDown
from ...core.trial import Load, Outcome, Trial
from ...core.verdict import TRIALS_OF_SECTION_23, Deviation
from ...errors import BREAKDOWN_ERRORS, SentenceError, TestbedError
from ...evidence.document import Column
from ...generators.base import Method
from ...session.router_watch import RouterRestarted
from ...session.session import Session
from ...units import si
from ..procedure import EACH, NONE, Cells, ProcedureRun, figure
from ..trials import CharacterisationEnded, ProcedureResult, breakdown_text, check_deadline, is_decided, loss_bounds
from . import (
    SIZE,
    TRIAL_SECONDS,
    AtThroughput,
    Rfc2544Test,
    ThroughputResult,
    at_throughputs,
    of_few_repetitions,
    of_short_trials,
    repeated,
)

BURSTS = 50
"""RFC 2544 26.4: repetitions."""

# -- 26.4 back-to-back frames ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BackToBackResult(ProcedureResult):
    """Bursts of one frame size. ``bursts``: the longest burst without loss of each repetition, in frames.

    ``unlimited``: a burst of ``longest`` frames passed, so the buffer's limit was not found.
    """

    size: int
    line_pps: float
    throughput_pps: float
    bursts: tuple[int, ...]
    longest: int
    unlimited: bool

    @property
    def mean(self) -> float | None:
        """The reported figure, in frames."""
        return fmean(self.bursts) if self.bursts else None

    @property
    def buffer_times(self) -> tuple[float | None, float | None]:
        """The implied and the corrected buffer time in s (RFC 9004); None: the limit was not found.

        Implied: the mean burst at line rate. Corrected: less what the router forwarded while the burst arrived.
        """
        if self.mean is None or self.unlimited:
            return None, None
        implied = self.mean / self.line_pps
        return implied, implied - implied * self.throughput_pps / self.line_pps


class BackToBackTest(Rfc2544Test):
    """26.4."""

    keyword, name, needs = "Back To Back Of", "RFC 2544 back-to-back", Method.BACK_TO_BACK

    def measure(
        self,
        run: ProcedureRun,
        traffic: str,
        throughputs: Sequence[ThroughputResult],
        repeats: int = BURSTS,
        longest: int | None = None,
        resolution: int = 1,
    ) -> tuple[BackToBackResult, ...]:
        """RFC 2544 26.4 (RFC 9004): the longest burst at line rate that passes, and the buffer time that follows.

        *throughputs* as `RFC 2544 Throughput Of` gave for the same *traffic*. *repeats*: searches, each to *resolution*
        frames; *longest*: frames (none: 2 s of line rate). Example:
        | Back To Back Of    unidirectional    ${found}    repeats=5
        """
        carried = at_throughputs(run, traffic, throughputs)
        return tuple(_back_to_back(run, each, longest, resolution, repeats) for each in carried)

    def rows(self, result: BackToBackResult) -> Iterator[Cells]:
        """Yield the row of 26.4 and RFC 9004; of bursts without a limit the mean is a bound."""
        implied, corrected = result.buffer_times
        yield {
            SIZE: str(result.size),
            **repeated("back-to-back", "frames", result.bursts, ",.1f", "≥ " * result.unlimited),
            Column("implied buffer time", "ms"): figure(implied, ".4g", 1e3),
            Column("corrected buffer time", "ms"): figure(corrected, ".4g", 1e3),
        }


BACK_TO_BACK = BackToBackTest()


def _back_to_back(
    run: ProcedureRun, at: AtThroughput, longest: int | None, resolution: int, repeats: int
) -> BackToBackResult:
    """Search the longest burst that passes, *repeats* times, each to *resolution* frames.

    A generator that cannot time so short a burst reports the reading ``elapsed_uncertainty`` (s); without it such a
    burst counts as stretched and proves nothing. At a throughput of line rate no buffer fills and nothing is found (RFC
    9004). A burst that loses frames is sent again before it counts, because loss may have another cause than a full
    buffer.
    """
    rate, line = run.put(at.traffic, warm_up=False).pps, run.line(at.traffic)
    carried, limit = min(at.load.pps, rate), longest if longest is not None else max(1, round(2 * rate))
    bursts: list[int] = []
    unlimited = False

    def decides(trial: Trial) -> bool:
        is_whole = all(row.offered >= row.intended for row in trial.outcome.directions)
        is_fast = trial.seconds.low <= trial.outcome.duration * (1 + trials.tolerance.under)
        return is_whole and is_fast and is_decided(loss_bounds(trial), 0.0)

    def passes(frames: int) -> bool:
        def burst() -> Outcome:
            return run.session.traffic.burst(frames, rate)

        tries = (trials.run_measured(burst, frames / rate, decides, OF_FRAMES) for _ in range(2))
        return any(not trial.lost for trial in tries)

    with run.series(at.traffic) as trials:
        while len(bursts) < repeats and not unlimited:
            # if the longest burst passes, one repetition is enough
            good, bad = (limit, limit) if (unlimited := passes(limit)) else (0, limit)
            while bad - good > resolution:
                middle = (good + bad) // 2
                good, bad = (middle, bad) if passes(middle) else (good, middle)
            bursts.append(good)
    deviations = [*TRIALS_OF_SECTION_23]
    if not unlimited:
        deviations += of_few_repetitions(len(bursts), BURSTS, "RFC 2544 26.4")
    if carried >= rate * (1 - 1e-3):
        done = "throughput is line rate within 0.1 %: the figure says nothing about a buffer"
        deviations.append(Deviation("RFC 9004", "frame sizes whose throughput is less than the maximum rate", done))
    if rate < line * (1 - 1e-9):
        done = f"bursts at {100 * rate / line:.4g} % of it, the most that the generator is asked for"
        deviations.append(Deviation("RFC 2544 26.4", "frames with the minimum gap of the medium", done))
    figures = at.size, rate, carried, tuple(bursts), limit, unlimited
    return BackToBackResult(*figures, **trials.as_fields(deviations))


# -- 26.5 system recovery ----------------------------------------------------------------------------------------------

INTERVAL = 0.1
"""Seconds between two readings of the counts."""


@dataclass(frozen=True, slots=True)
class RecoveryResult(ProcedureResult):
    """``times``: the recovery time of each repetition; without an upper bound if frames were lost to the end.

    ``overload`` and ``reduced`` are loads of each port. ``after``: s of the reduced load.
    """

    size: int
    overload: Load
    reduced: Load
    times: tuple[Bounds, ...]
    after: float


class RecoveryTest(Rfc2544Test):
    """26.5."""

    keyword, name, needs = "System Recovery Of", "RFC 2544 system recovery", Method.RECOVERY

    def measure(
        self,
        run: ProcedureRun,
        traffic: str,
        throughputs: Sequence[ThroughputResult],
        repeats: int = 3,
        overload: timedelta = timedelta(seconds=TRIAL_SECONDS),
        after: timedelta = timedelta(seconds=20),
    ) -> tuple[RecoveryResult, ...]:
        """RFC 2544 26.5: *overload* at 110 % of each of *throughputs*, then *after* at half of it, *repeats* times.

        Less than 60 s of overload is a declared deviation. *throughputs* as `RFC 2544 Throughput Of` gave for the same
        *traffic*. Example:
        | System Recovery Of    unidirectional    ${found}    overload=10 s
        """
        seconds = overload.total_seconds(), after.total_seconds()
        if seconds[1] < MIN_SAMPLES * INTERVAL:
            raise SentenceError(f"recovery needs at least {MIN_SAMPLES} readings of counts, one each {INTERVAL:g} s")
        carried = at_throughputs(run, traffic, throughputs)
        return tuple(_recovery(run, each, repeats, *seconds) for each in carried)

    def rows(self, result: RecoveryResult) -> Iterator[Cells]:
        """Yield the row of 26.5; where frames were lost to the end, a time has no upper bound."""
        ends = [time.low for time in result.times], [time.high for time in result.times]
        yield {
            SIZE: str(result.size),
            Column("overload", EACH): figure(result.overload),
            Column("reduced to", EACH): figure(result.reduced),
            Column("recovery time", "s, mean"): _seconds([Bounds(*map(fmean, ends))] if result.times else []),
            Column("each", "s", True): _seconds(result.times),
            Column("looked at", "s"): f"{result.after:g}",
        }


RECOVERY = RecoveryTest()


def _recovery(run: ProcedureRun, at: AtThroughput, repeats: int, overload_for: float, after: float) -> RecoveryResult:
    """Overload for *overload_for* s, halve the load, and see when the last frame is lost in the *after* s of it.

    If the router loses no frames in the overload, for example because it carries line rate, ``ended`` says so.
    """
    overload = Load(min(1.1 * at.load.pps, run.put(at.traffic).pps))
    reduced = Load(overload.pps * REDUCED_LOAD_SHARE)
    seen: list[StepDown] = []

    def measure_once() -> Outcome:
        seen.append(run.session.traffic.step_down(overload, overload_for, reduced, after, INTERVAL))
        return seen[-1].outcome

    def decides(trial: Trial) -> bool:
        return trial.is_clean and _worst_recovery(seen[-1]) is not None

    times: list[Bounds] = []
    with run.series(at.traffic) as trials:
        while len(times) < repeats:
            trials.run_measured(measure_once, overload_for + after, decides)
            span = _worst_recovery(seen[-1])
            if unproven := _why_unproven(seen[-1], overload):
                raise CharacterisationEnded(unproven)
            times += [span] if span else []
    shown = ((step, place) for step in seen if _worst_recovery(step) for place in range(len(step.after.offered)))
    blur = max((step.undetectable_loss(place) for step, place in shown), default=0.0)
    done = f"bounds of it, from counts of every {INTERVAL:g} s or so; loss of less than {blur:.0f} frames is not seen"
    deviations = (
        Deviation("RFC 2544 26.5", "the time of the last frame lost", done),
        *TRIALS_OF_SECTION_23,
        *of_short_trials(overload_for, "RFC 2544 26.5"),
    )
    return RecoveryResult(at.size, overload, reduced, tuple(times), after, **trials.as_fields(deviations))


def _seconds(times: Sequence[Bounds]) -> str:
    return ", ".join(between(time, "{:.3g}".format) for time in times) or NONE


def _worst_recovery(step: StepDown) -> Bounds | None:
    """Return when the last frame was lost, in the slowest direction; None if a direction's counts do not show it."""
    places = range(len(step.after.offered))
    known = [time for time in map(step.recovery, places) if time is not None]
    if len(known) < len(places):
        return None
    return Bounds(max(time.low for time in known), max(time.high for time in known))


def _why_unproven(step: StepDown, overload: Load) -> str:
    """Return why a repetition proves nothing about recovery, in words; "" if it does."""
    loss = max(step.overload_loss_ratio(place) for place in range(len(step.after.offered)))
    if loss < OVERLOAD_LOSS_RATIO:
        return (
            f"the router was not overloaded: of {si(overload.pps, 'pps')} into each port it lost"
            f" {percent(max(0.0, loss))}, less than {percent(OVERLOAD_LOSS_RATIO)}; expected traffic that it"
            " cannot carry, for example smaller frames, 'bidirectional' or '1-flow'"
        )
    if not step.is_timed:
        return (
            f"the generator sent {si(step.sent[0], 'pps')} to {si(step.sent[1], 'pps')} after the overload instead of"
            f" {si(step.second.pps, 'pps')}; times are taken from its frame count, so they are unknown"
        )
    return ""


# -- 26.6 reset --------------------------------------------------------------------------------------------------------

BEFORE, QUIET, SLACK = 2.0, 5.0, 0.001
"""Seconds of traffic before a reset; the router is back when for so many it lost no more than this ratio."""


@dataclass(frozen=True, slots=True)
class ResetResult(ProcedureResult):
    """``seconds`` of traffic that were ``lost`` (frames); None: the router did not come back in time."""

    kind: str
    size: int
    load: Load
    seconds: float | None
    lost: int


class ResetTest(Rfc2544Test):
    """26.6."""

    keyword, name, needs = "Reset Time Of", "RFC 2544 reset", Method.RESET

    def measure(
        self,
        run: ProcedureRun,
        traffic: str,
        throughputs: Sequence[ThroughputResult],
        command: str = "",
        kind: Literal["software", "hardware", "power"] = "software",
        limit: timedelta = timedelta(minutes=10),
    ) -> ResetResult:
        """RFC 2544 26.6 (RFC 6201): how long nothing is forwarded once *command* reset the router, at most *limit*.

        At the throughput of the smallest frames among *throughputs*. A simulated router needs no command. Example:
        | Reset Time Of    unidirectional    ${found}    command=sudo reboot
        """
        measured = list(at_throughputs(run, traffic, throughputs))
        if not measured:
            raise SentenceError("a reset is measured at a throughput, and none was found")
        session = run.session
        session.router.check_resettable()
        smallest = min(measured, key=lambda each: each.size)
        if smallest.traffic.pairs > 1:
            raise SentenceError(
                f"'{traffic}': the frames of all ports together show when a router is back, and one pair's frames may"
                " hide that another's are missing; expected without 'on N pairs'"
            )
        run.put(smallest.traffic)
        seconds, samples, lossy_until = min(limit.total_seconds(), run.deadline - run.sent), list[Sample](), math.inf
        with _reconfiguring_after_restart(session), run.series(smallest.traffic) as trials:
            check_deadline(trials.deadline, 0.0, BEFORE)
            try:
                with ExitStack() as stack:
                    live = session.traffic.live()
                    stack.callback(live.stop)
                    live.start(smallest.load)
                    live.wait(BEFORE)
                    samples.append(live.sample())
                    session.router.reset(command)
                    while samples[-1].time - samples[0].time < seconds and samples[-1].time - lossy_until < QUIET:
                        live.wait(INTERVAL)
                        samples.append(live.sample())
                        if _lost(*samples[-2:]) > SLACK * _offered(*samples[-2:]):
                            lossy_until = samples[-1].time
            except BREAKDOWN_ERRORS as error:
                raise CharacterisationEnded(breakdown_text(error)) from error
        is_back = not trials.ended and samples[-1].time - lossy_until >= QUIET
        lost = max(0, _lost(samples[0], samples[-1])) if samples else 0
        time = lost * (samples[-1].time - samples[0].time) / _offered(samples[0], samples[-1]) if is_back else None
        if time is None and not trials.ended and not lost:
            trials.ended = f"nothing was lost within {seconds:g} s: the reset had no effect, or was not seen"
        others = [RECONFIGURED] if session.plan.testbed.prepare == "configure" else []
        deviations = (LOSS_METHOD, *TRIALS_OF_SECTION_23, *others)
        return ResetResult(kind, smallest.size, smallest.load, time, lost, **trials.as_fields(deviations))

    def rows(self, result: ResetResult) -> Iterator[Cells]:
        """Yield what 26.6 asks to be stated."""
        yield {
            Column("reset", left=True): result.kind,
            SIZE: str(result.size),
            Column("load", EACH): figure(result.load),
            Column("reset time by loss", "s"): figure(result.seconds, ".4g"),
            Column("frames lost"): f"{result.lost:,}",
        }


RESET = ResetTest()

LOSS_METHOD = Deviation(
    "RFC 2544 26.6",
    "the times of the last frame before and the first frame after the reset",
    "the frames lost divided by the rate (the frame-loss method of RFC 6201)",
)

RECONFIGURED = Deviation(
    "RFC 2544 26.6",
    "a router that comes back with its configuration",
    "the testbed configured it anew as soon as it could log in, and the time that took is in the figure",
)


@contextmanager
def _reconfiguring_after_restart(session: Session) -> Iterator[None]:
    """Meanwhile wait for a restart of the router, and configure it again."""
    over, router = threading.Event(), session.router
    configure = router.prepare_configuration()

    def attend() -> None:
        # twice in a second of the testbed's clock
        while not over.wait(0.5 / session.testbed.facts.clock_speed):
            # until it is there, and takes its configuration
            with suppress(TestbedError):
                try:
                    router.watch.read()
                except RouterRestarted:
                    configure()
                    router.watch.configured()
                    return

    thread = threading.Thread(target=attend, name="reset", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(60.0)


def _offered(before: Sample, after: Sample) -> int:
    return after.offered - before.offered


def _lost(before: Sample, after: Sample) -> int:
    """Return the frames sent less frames received; negative while a buffer drains."""
    return _offered(before, after) - (after.forwarded - before.forwarded)
