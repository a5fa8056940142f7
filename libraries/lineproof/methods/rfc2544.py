"""The tests of RFC 2544 section 26. Every departure from the RFC is a deviation of the result.

- 26.1 throughput: a binary search, each load once; loss of one frame in one direction sends it lower. The search of
  :mod:`lineproof.methods.search` needs less traffic and allows for a rare burst of loss.
- 26.2 latency: at the throughput of each frame size, the mean of 20 streams of 120 s.
- 26.3 frame loss rate: from line rate down.
- 26.4 back-to-back frames (RFC 9004): the longest burst at line rate without loss. The buffer time follows from it,
  less what was forwarded while the burst arrived: ``corrected = implied - implied * throughput / maximum rate``, with
  ``implied = mean burst / maximum rate``.
- 26.5 system recovery: how long a router still loses frames after an overload.
- 26.6 reset (RFC 6201): how long a router forwards nothing after one. Measured by the times at which forwarding stopped
  and began again, and by the frames lost divided by the rate offered, which does not depend on the sampling interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, stdev

from ..core.bounds import Bounds
from ..core.doubts import OF_FRAMES
from ..core.phrases import between
from ..core.phrases import percent as in_percent
from ..core.step_down import MIN_SAMPLES, OVERLOAD_LOSS_RATIO, REDUCED_LOAD_SHARE, LiveTraffic, Sample, StepDown
from ..core.trial import Load, Measure, Outcome, Trial
from ..errors import BREAKDOWN_ERRORS
from ..units import counted, si
from .deviations import TRIALS_OF_SECTION_23, DeviatingResult, Deviation
from .trials import (
    CharacterisationEnded,
    CharacterisationTerms,
    TrialSeries,
    breakdown_text,
    is_decided,
    loss_bounds,
    shows_loss,
)

FRAME_SIZES = (64, 128, 256, 512, 1024, 1280, 1518)
"""RFC 2544 9.1: the sizes for Ethernet, in bytes with FCS."""

TRIAL_SECONDS = 60.0
"""RFC 2544 24: the shortest final trial in s."""

STREAMS, STREAM_SECONDS = 20, 120.0
"""RFC 2544 26.2: streams of a latency, and seconds of each."""

BURSTS = 50
"""RFC 2544 26.4: repetitions."""


def _of_short_trials(seconds: float, section: str = "RFC 2544 24", asked: float = TRIAL_SECONDS) -> list[Deviation]:
    """Return the deviation of trials of *seconds*; none if they are not shorter than *asked*."""
    done = Deviation(section, f"trials of at least {asked:g} s", f"trials of {seconds:g} s")
    return [done] if seconds < asked else []


def _of_few_repetitions(count: int, asked: int, section: str) -> list[Deviation]:
    """Return the deviation of *count* repetitions; none if they are not fewer than *asked*."""
    return [Deviation(section, f"at least {asked} repetitions", f"{count}")] if count < asked else []


# -- 26.1 throughput ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ThroughputResult(DeviatingResult):
    """Throughput of one frame size. Loads are of each sending port.

    ``throughput``: the highest load without loss (None: every load lost frames); ``beyond``: the lowest load with loss,
    or during which queues grew (None: there is none). ``line_pps``: line rate in frames/s.
    """

    size: int
    line_pps: float
    throughput: Load | None
    beyond: Load | None
    resolution: float
    duration: float

    @property
    def percent(self) -> float | None:
        """Throughput in per cent of line rate."""
        return None if self.throughput is None else 100 * self.throughput.pps / self.line_pps

    @property
    def _found(self) -> str:
        if self.throughput is not None:
            found = f"throughput {si(self.throughput.pps, 'pps', 6)}{self.scope} ({self.percent:.4g} % line rate)"
        elif self.beyond is not None:
            found = f"frames were lost at every load down to {si(self.beyond.pps, 'pps')}{self.scope}"
        else:
            found = "not measured"
        return f"{self.size} bytes: {found}; {counted(len(self.trials), 'trial')} of {self.duration:g} s"


def throughput(
    measure: Measure,
    size: int,
    line_pps: float,
    terms: CharacterisationTerms,
    highest: Load | None = None,
    duration: float = TRIAL_SECONDS,
    resolution: float = 0.001,
) -> ThroughputResult:
    """Search between 0 and *highest* (None: *line_pps*) until loss and no loss are *resolution* of line rate apart.

    *size* in bytes with FCS; *duration* of each trial in s (below the RFC's 60 s it is a declared deviation).
    """
    if not 0 < resolution < 1:
        raise ValueError(f"the resolution is a ratio of line rate between 0 and 1, not {resolution}")
    load = highest or Load(line_pps)
    deviations = [*TRIALS_OF_SECTION_23, *_of_short_trials(duration)]
    if load.pps < line_pps * (1 - 1e-9):
        done = f"at most {100 * load.pps / line_pps:.4g} % of it is asked of the generator"
        deviations.append(Deviation("RFC 2544 20", "a generator that sends the maximum rate of the medium", done))
    good: Load | None = None
    bad: Load | None = None
    with TrialSeries(measure, terms) as trials:
        while True:
            # a load is good only if it is certain that nothing was lost, also in queues
            if loss_bounds(trials.run(load, duration, lambda trial: is_decided(loss_bounds(trial), 0.0))).high > 0:
                bad = load
            else:
                good = load
            least = good.pps if good else 0.0
            if bad is None or bad.pps - least <= resolution * line_pps * (1 + 1e-9):
                break
            load = Load((bad.pps + least) / 2)
    return ThroughputResult(size, line_pps, good, bad, resolution, duration, **trials.as_fields(deviations))


# -- 26.2 latency ------------------------------------------------------------------------------------------------------

RUNNING_MEAN = Deviation(
    "RFC 2544 26.2",
    "the latency of one frame, tagged after 60 s of the stream",
    "the generator's running mean of the latency frames at the end of the stream (TRex: each half second weighs as much"
    " as all before it)",
)


@dataclass(frozen=True, slots=True)
class DirectionLatency:
    """Latency of one direction in µs over the repetitions; ``mean`` is the reported figure."""

    mean: float
    least: float
    most: float
    deviation: float
    """Standard deviation of the repetitions in µs; NaN for one repetition."""
    repeats: int
    direction: str
    """``0 → 1``: sending port, receiving port."""

    def __str__(self) -> str:
        return f"{self.mean:.4g} µs ({self.least:.4g} to {self.most:.4g})"


@dataclass(frozen=True, slots=True)
class LatencyResult(DeviatingResult):
    """Latency of one frame size at ``load`` (its throughput, into each port), per direction."""

    size: int
    load: Load
    directions: tuple[DirectionLatency, ...]
    samples: tuple[tuple[float, ...], ...]
    """The means of every repetition in µs, one for each direction."""
    duration: float

    @property
    def _found(self) -> str:
        figures = ", ".join(map(str, self.directions)) or "not measured"
        return f"{self.size} bytes: latency {figures}; {len(self.samples)} streams of {self.duration:g} s"


def latency(
    measure: Measure,
    size: int,
    load: Load,
    terms: CharacterisationTerms,
    repeats: int = STREAMS,
    duration: float = STREAM_SECONDS,
) -> LatencyResult:
    """Measure *repeats* streams of *duration* s at *load*, the throughput found for frames of *size* bytes (with FCS).

    A stream without a latency is repeated a few times.
    """
    streams: list[Trial] = []

    def has_latency(trial: Trial) -> bool:
        counts = trial.outcome.latency
        known = [count for count in counts if count.received >= 100 and 0 <= count.mean < math.inf]
        return len(known) == len(trial.outcome.directions) and shows_loss(trial, terms.conditions.resolution)

    with TrialSeries(measure, terms) as trials:
        while len(streams) < repeats:
            streams.append(trials.run_measured(lambda: measure(load, duration), duration, has_latency))
    deviations = (
        RUNNING_MEAN,
        *TRIALS_OF_SECTION_23,
        *_of_short_trials(duration, "RFC 2544 26.2", STREAM_SECONDS),
        *_of_few_repetitions(len(streams), STREAMS, "RFC 2544 26.2"),
    )
    samples = tuple(tuple(count.mean for count in trial.outcome.latency) for trial in streams)
    used = streams[0].outcome.directions if streams else ()
    directions = tuple(
        DirectionLatency(
            fmean(values),
            min(values),
            max(values),
            stdev(values) if len(values) > 1 else math.nan,
            len(values),
            f"{row.tx_port} → {row.rx_port}",
        )
        for row, values in zip(used, zip(*samples, strict=True), strict=True)
    )
    return LatencyResult(size, load, directions, samples, duration, **trials.as_fields(deviations))


# -- 26.3 frame loss rate ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LossPoint:
    """Loss ratio (0..1) of the worse direction at a load; ``asked`` and ``offered`` in per cent of line rate."""

    asked: float
    offered: float
    loss_ratio: float
    trial: Trial


@dataclass(frozen=True, slots=True)
class LossCurve(DeviatingResult):
    """The points of one traffic, from the highest load down. ``size`` is the (mean) frame size in bytes with FCS."""

    size: float
    line_pps: float
    points: tuple[LossPoint, ...]
    step: float
    duration: float

    @property
    def _found(self) -> str:
        curve = ", ".join(f"{point.asked:.4g} %: {in_percent(point.loss_ratio)}" for point in self.points)
        scope = self.scope and f"{self.scope}, in the worse direction"
        return f"{self.size:g} bytes: loss at per cent of line rate{scope}: {curve or 'not measured'}"


def loss_curve(
    measure: Measure,
    size: float,
    line_pps: float,
    terms: CharacterisationTerms,
    step: float = 10.0,
    duration: float = TRIAL_SECONDS,
    highest: float = 100.0,
) -> LossCurve:
    """Trials of *duration* s at *highest* per cent of *line_pps*, then *step* per cent less each time.

    It ends with two successive trials without loss (RFC 2544 26.3), or when no load is left. The RFC wants steps of at
    most 10 per cent, better finer ones.
    """
    if not 0 < step <= 10:
        raise ValueError(f"a loss curve goes down in steps of at most 10 % (RFC 2544 26.3), not of {step:g}")
    deviations = [*TRIALS_OF_SECTION_23, *_of_short_trials(duration)]
    if highest < 100:
        done = f"it is at {highest:g} %, the most that is asked of the generator"
        deviations.append(Deviation("RFC 2544 26.3", "a first trial at 100 % of the medium's maximum rate", done))
    # 100, 90, 80 …: the steps count from 100, whatever the first load is
    below = (100 - number * step for number in range(1, math.ceil(100 / step - 1e-9)))
    points: list[LossPoint] = []
    with TrialSeries(measure, terms) as trials:
        for asked in (highest, *(share for share in below if share < highest - 1e-9)):
            load = Load(line_pps * asked / 100)
            # a trial at less than the load asked for gives a point too, at the load offered
            trial = trials.run(load, duration, lambda trial: shows_loss(trial, terms.conditions.resolution))
            offered = min(direction.offered for direction in trial.outcome.directions) / trial.seconds.high
            points.append(LossPoint(asked, 100 * offered / line_pps, trial.loss_ratio(in_total=False), trial))
            if len(points) > 1 and not any(point.loss_ratio for point in points[-2:]):
                break
    return LossCurve(size, line_pps, tuple(points), step, duration, **trials.as_fields(deviations))


# -- 26.4 back-to-back frames ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BackToBackResult(DeviatingResult):
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
    def spread(self) -> float | None:
        """Standard deviation of the repetitions, in frames."""
        return stdev(self.bursts) if len(self.bursts) > 1 else None

    @property
    def implied_buffer_time(self) -> float | None:
        """The mean burst in seconds at line rate (RFC 9004). None if the limit was not found."""
        return None if self.mean is None or self.unlimited else self.mean / self.line_pps

    @property
    def corrected_buffer_time(self) -> float | None:
        """:attr:`implied_buffer_time` less what the router forwarded while the burst arrived (RFC 9004), in s."""
        implied = self.implied_buffer_time
        return None if implied is None else implied - implied * self.throughput_pps / self.line_pps

    @property
    def _found(self) -> str:
        if self.mean is None:
            found = "not measured"
        elif self.unlimited:
            found = f"at least {self.longest} frames{self.scope} (no longer burst was sent)"
        else:
            implied, corrected = (1e3 * (time or 0) for time in (self.implied_buffer_time, self.corrected_buffer_time))
            found = (
                f"{self.mean:.0f} frames{self.scope} in the mean of {len(self.bursts)} ({min(self.bursts)} to"
                f" {max(self.bursts)}); buffer time {implied:.4g} ms, corrected {corrected:.4g} ms"
            )
        return f"{self.size} bytes: back-to-back {found}"


def back_to_back(
    send_burst: Callable[[int], Outcome],
    size: int,
    line_pps: float,
    throughput_pps: float,
    terms: CharacterisationTerms,
    longest: int | None = None,
    resolution: int = 1,
    repeats: int = BURSTS,
) -> BackToBackResult:
    """Search the longest burst that passes, *repeats* times, each to *resolution* frames.

    ``send_burst(frames)``: so many at the maximum rate of the medium, then a pause in which buffers drain; ``duration``
    is frames / maximum rate. A generator that cannot time so short a burst reports the reading ``elapsed_uncertainty``
    (s); without it such a burst counts as stretched and proves nothing.

    *throughput_pps*: RFC 2544 26.1's for this *size*; if it is line rate, no buffer fills and nothing is found (RFC
    9004). *longest*: the longest burst to try, in frames (None: 2 s of line rate). A burst that loses frames is sent
    again before it counts, because loss may have another cause than a full buffer.
    """
    limit = longest if longest is not None else max(1, round(2 * line_pps))
    if limit < 1 or resolution < 1:
        raise ValueError(f"bursts are searched in frames: not {limit}, {resolution}")
    bursts: list[int] = []
    unlimited = False

    def decides(trial: Trial) -> bool:
        is_whole = all(row.offered >= row.intended for row in trial.outcome.directions)
        is_fast = trial.seconds.low <= trial.outcome.duration * (1 + terms.tolerance.under)
        return is_whole and is_fast and is_decided(loss_bounds(trial), 0.0)

    def passes(frames: int) -> bool:
        tries = (
            trials.run_measured(lambda: send_burst(frames), frames / line_pps, decides, OF_FRAMES) for _ in range(2)
        )
        return any(not trial.lost for trial in tries)

    with TrialSeries(lambda load, duration: send_burst(round(load.pps * duration)), terms) as trials:
        while len(bursts) < repeats and not unlimited:
            # if the longest burst passes, one repetition is enough
            good, bad = (limit, limit) if (unlimited := passes(limit)) else (0, limit)
            while bad - good > resolution:
                middle = (good + bad) // 2
                good, bad = (middle, bad) if passes(middle) else (good, middle)
            bursts.append(good)
    deviations = [*TRIALS_OF_SECTION_23]
    if not unlimited:
        deviations += _of_few_repetitions(len(bursts), BURSTS, "RFC 2544 26.4")
    if throughput_pps >= line_pps * (1 - 1e-3):
        done = "throughput is line rate within 0.1 %: the figure says nothing about a buffer"
        deviations.append(Deviation("RFC 9004", "frame sizes whose throughput is less than the maximum rate", done))
    figures = size, line_pps, throughput_pps, tuple(bursts), limit, unlimited
    return BackToBackResult(*figures, **trials.as_fields(deviations))


# -- 26.5 system recovery ----------------------------------------------------------------------------------------------

INTERVAL = 0.1
"""Seconds between two readings of the counts."""


@dataclass(frozen=True, slots=True)
class RecoveryResult(DeviatingResult):
    """``times``: the recovery time of each repetition; without an upper bound if frames were lost to the end.

    ``overload`` and ``reduced`` are loads of each port. ``after``: s of the reduced load.
    """

    size: int
    overload: Load
    reduced: Load
    times: tuple[Bounds, ...]
    after: float

    @property
    def mean(self) -> Bounds | None:
        """The reported figure; None if a repetition did not recover, or there is none."""
        if not self.times or any(math.isinf(time.high) for time in self.times):
            return None
        return Bounds(fmean(time.low for time in self.times), fmean(time.high for time in self.times))

    @property
    def _found(self) -> str:
        mean = f"{_text(self.mean)} in the mean" if self.mean is not None else "no mean"
        return (
            f"{self.size} bytes: recovery from {si(self.overload.pps, 'pps')} to {si(self.reduced.pps, 'pps')}"
            f" each port in {mean} ({', '.join(map(_text, self.times)) or 'not measured'})"
        )


def recovery(
    step_down: Callable[[Load, float, Load, float, float], StepDown],
    size: int,
    throughput: Load,
    line_pps: float,
    terms: CharacterisationTerms,
    repeats: int = 3,
    overload_for: float = 60.0,
    after: float = 20.0,
) -> RecoveryResult:
    """Overload for *overload_for* s at 110 % of *throughput*, halve the load, and see when the last frame is lost.

    ``step_down(first load, s, second load, s, s between two readings)``. Counts are read every INTERVAL s during the
    *after* s of the lower load. *line_pps*: line rate in frames/s. If the
    router loses no frames in the overload, for example because it carries line rate, ``ended`` says so.
    """
    if after < MIN_SAMPLES * INTERVAL:
        raise ValueError(f"recovery needs at least {MIN_SAMPLES} readings of counts, one each {INTERVAL:g} s")
    overload = Load(min(1.1 * throughput.pps, line_pps))
    reduced = Load(overload.pps * REDUCED_LOAD_SHARE)
    seen: list[StepDown] = []

    def measure_once() -> Outcome:
        seen.append(step_down(overload, overload_for, reduced, after, INTERVAL))
        return seen[-1].outcome

    def decides(trial: Trial) -> bool:
        return trial.is_clean and _worst_recovery(seen[-1]) is not None

    times: list[Bounds] = []
    with TrialSeries(lambda load, duration: measure_once(), terms) as trials:
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
        *_of_short_trials(overload_for, "RFC 2544 26.5"),
    )
    return RecoveryResult(size, overload, reduced, tuple(times), after, **trials.as_fields(deviations))


def _text(time: Bounds) -> str:
    return f"{between(time, '{:.3g}'.format)} s"


def _worst_recovery(found: StepDown) -> Bounds | None:
    """Return when the last frame was lost, in the slowest direction; None if a direction's counts do not show it."""
    places = range(len(found.after.offered))
    known = [time for time in map(found.recovery, places) if time is not None]
    if len(known) < len(places):
        return None
    return Bounds(max(time.low for time in known), max(time.high for time in known))


def _why_unproven(found: StepDown, overload: Load) -> str:
    """Return why a repetition proves nothing about recovery, in words; "" if it does."""
    loss = max(found.overload_loss_ratio(place) for place in range(len(found.after.offered)))
    if loss < OVERLOAD_LOSS_RATIO:
        return (
            f"the router was not overloaded: of {si(overload.pps, 'pps')} into each port it lost"
            f" {in_percent(max(0.0, loss))}, less than {in_percent(OVERLOAD_LOSS_RATIO)}; expected traffic that it"
            " cannot carry, for example smaller frames, 'bidirectional' or '1-flow'"
        )
    if not found.is_timed:
        return (
            f"the generator sent {si(found.sent[0], 'pps')} to {si(found.sent[1], 'pps')} after the overload instead of"
            f" {si(found.second.pps, 'pps')}; times are taken from its frame count, so they are unknown"
        )
    return ""


# -- 26.6 reset --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ResetResult(DeviatingResult):
    """``by_loss``: seconds of traffic lost; ``by_time``: seconds between the last frame and the next.

    Both are None if the router did not come back (``recovered`` False), ``by_time`` also if no interval was silent.
    ``interval``: the longest time between two readings of the counts, in s.
    """

    kind: str
    size: int
    load: Load
    recovered: bool
    by_loss: float | None
    by_time: float | None
    lost: int
    interval: float

    @property
    def _found(self) -> str:
        if not self.recovered:
            found = "not measured" if self.ended else "it did not forward again within the time given"
        else:
            time = "too short to see a silent interval" if self.by_time is None else f"{self.by_time:.3g} s"
            found = f"{self.by_loss:.4g} s by {self.lost} frames lost; {time} by time (known to {self.interval:.2g} s)"
        return f"{self.kind} reset, {self.size} bytes: {found}"


def reset(
    live: LiveTraffic,
    cause: Callable[[], None],
    kind: str,
    size: int,
    load: Load,
    limit: float = 600.0,
) -> ResetResult:
    """Send at *load*, *cause* the reset, and wait until frames come again.

    *load*: the throughput of the smallest frames, of *size* bytes. *kind*: ``hardware``, ``software`` or ``power`` (the
    RFC wants each). *cause* returns when the reset has begun. The router is back when it lost no more than a thousandth
    of the frames for 5 s; at most *limit* s are waited.
    """
    quiet, slack = 5.0, 0.001
    ended, samples, lossy_until = "", list[Sample](), math.inf
    try:
        live.start(load)
        live.wait(2.0)
        samples.append(live.sample())
        cause()
        while samples[-1].time - samples[0].time < limit and samples[-1].time - lossy_until < quiet:
            live.wait(INTERVAL)
            samples.append(live.sample())
            if _lost(*samples[-2:]) > slack * _offered(*samples[-2:]):
                lossy_until = samples[-1].time
    except BREAKDOWN_ERRORS as error:
        ended = breakdown_text(error)
    finally:
        live.stop()
    is_back = not ended and samples[-1].time - lossy_until >= quiet
    lost = max(0, _lost(samples[0], samples[-1])) if samples else 0
    by_loss, by_time = None, None
    if is_back:
        by_loss = lost * (samples[-1].time - samples[0].time) / _offered(samples[0], samples[-1])
        by_time = _silence(samples)
    elif not ended and not lost:
        ended = f"nothing was lost within {limit:g} s: the reset had no effect, or was not seen"
    known = max([INTERVAL, *(after.time - before.time for before, after in pairwise(samples))])
    times = Deviation(
        "RFC 2544 26.6",
        "the times of the last frame before and the first frame after the reset",
        f"the ends of intervals of {known:.2g} s, beside the loss divided by the rate (RFC 6201)",
    )
    figures = kind, size, load, is_back, by_loss, by_time, lost, known
    return ResetResult(*figures, ended=ended, deviations=(times, *TRIALS_OF_SECTION_23))


def _silence(samples: Sequence[Sample]) -> float | None:
    """Return the s from the beginning of the first silent interval to the next frame after the last; None: none is.

    An interval is silent if less than a hundredth of the frames sent in it came back.
    """
    silent = [
        place
        for place, (before, after) in enumerate(pairwise(samples))
        if after.forwarded - before.forwarded < 0.01 * _offered(before, after)
    ]
    if not silent:
        return None
    later = pairwise(samples[silent[-1] + 1 :])
    resumed = next((after.time for before, after in later if after.forwarded > before.forwarded), None)
    return None if resumed is None else resumed - samples[silent[0]].time


def _offered(before: Sample, after: Sample) -> int:
    return after.offered - before.offered


def _lost(before: Sample, after: Sample) -> int:
    """Return the frames sent less frames received; negative while a buffer drains."""
    return _offered(before, after) - (after.forwarded - before.forwarded)
