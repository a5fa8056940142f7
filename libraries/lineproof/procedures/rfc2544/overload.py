"""The tests of RFC 2544 section 26 that overload or reset the router.

- 26.4 back-to-back frames (RFC 9004): the longest burst at line rate without loss. The buffer time follows from it,
  less what was forwarded while the burst arrived: ``corrected = implied - implied * throughput / maximum rate``, with
  ``implied = mean burst / maximum rate``.
- 26.5 system recovery: how long a router still loses frames after an overload, in trials of the quantity ``recovers``.
- 26.6 reset: how long a router forwards nothing after one, by the frame-loss method of RFC 6201: frames lost divided by
  the rate offered, which does not depend on how often the counts are read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from statistics import fmean
from typing import Literal

from ...core.bounds import Bounds, Limit
from ...core.doubts import OF_FRAMES
from ...core.phrases import between
from ...core.quantity import Promise, TrafficWords
from ...core.trial import Fault, Load, Outcome, Trial
from ...core.units import Unit
from ...core.verdict import TRIALS_OF_SECTION_23, Deviation
from ...documents.document import Column
from ...errors import SentenceError
from ...generators.base import Method
from ...quantities.recovers import RECOVERY as RECOVERS
from ...quantities.recovers import TOO_SELDOM, OverloadPhases, why_unproven
from ...session.judging import nobody
from ..procedure import EACH, NONE, Procedure, ProcedureRun, figure
from ..search import SearchResult
from ..trials import CharacterisationEnded, ProcedureResult, is_decided, loss_bounds
from . import SIZE, TAGS, TRIAL_SECONDS, at_throughputs, of_few_repetitions, of_short_trials, repeated

BURSTS, LONGEST_BURST = 50, 2.0
"""RFC 2544 26.4: repetitions, and seconds of the longest burst."""

# -- 26.4 back-to-back frames ------------------------------------------------------------------------------------------


def back_to_back(
    run: ProcedureRun,
    traffic: str,
    throughputs: Sequence[SearchResult],
    repeats: int = BURSTS,
) -> tuple[ProcedureResult, ...]:
    """RFC 2544 26.4 (RFC 9004): the longest burst at line rate that passes, and the buffer time that follows.

    *throughputs* as `RFC 2544 Throughput Of` gave for the same *traffic*. *repeats*: searches to a frame, up to 2 s of
    line rate. Example:
    | Back To Back Of    unidirectional    ${throughput}    repeats=5
    """
    measured = list(at_throughputs(run, traffic, throughputs))
    # each search halves the longest burst until one frame is left, and sends what loses frames twice
    halvings = sum(math.log2(LONGEST_BURST * run.line(traffic)) for traffic, _ in measured)
    run.announce(round(2 * repeats * halvings), 4 * LONGEST_BURST * repeats * len(measured))
    return tuple(_back_to_back(run, *each, repeats) for each in measured)


BACK_TO_BACK = Procedure("Back To Back Of", "RFC 2544 back-to-back", back_to_back, TAGS, Method.BACK_TO_BACK)


def _back_to_back(run: ProcedureRun, traffic: TrafficWords, throughput: Load, repeats: int) -> ProcedureResult:
    """Search the longest burst that passes, *repeats* times.

    A generator that cannot time so short a burst reports the reading ``elapsed_uncertainty`` (s); without it such a
    burst counts as stretched and proves nothing. At a throughput of line rate no buffer fills and nothing is found (RFC
    9004). A burst that loses frames is sent again before it counts, because loss may have another cause than a full
    buffer.
    """
    rate, line = run.put(traffic, warm_up=False).pps, run.line(traffic)
    carried, limit = min(throughput.pps, rate), round(LONGEST_BURST * rate)
    bursts: list[int] = []

    def decides(trial: Trial) -> bool:
        is_whole = all(row.offered >= row.intended for row in trial.outcome.directions)
        is_fast = trial.seconds.low <= trial.outcome.duration * (1 + trials.tolerance.under)
        return is_whole and is_fast and is_decided(loss_bounds(trial), 0.0)

    def passes(frames: int) -> bool:
        def burst(load: Load, seconds: float) -> Outcome:
            return run.session.traffic.burst(frames, load.pps)

        tries = (trials.run(Load(rate), frames / rate, decides, burst, OF_FRAMES) for _ in range(2))
        return any(not trial.lost for trial in tries)

    with run.series(traffic) as trials:
        # if the longest burst passes, one repetition is enough
        bursts += [limit] * passes(limit)
        while limit not in bursts and len(bursts) < repeats:
            good, bad = 0, limit
            while bad - good > 1:
                middle = (good + bad) // 2
                good, bad = (middle, bad) if passes(middle) else (good, middle)
            bursts.append(good)
    implied = corrected = None
    is_unlimited = limit in bursts
    deviations = [*TRIALS_OF_SECTION_23]
    if not is_unlimited:
        deviations += of_few_repetitions(len(bursts), BURSTS, "RFC 2544 26.4")
    if bursts and not is_unlimited:
        implied = fmean(bursts) / rate
        corrected = implied - implied * carried / rate
    if carried >= rate * (1 - 1e-3):
        done = "throughput is line rate within 0.1 %: the figure says nothing about a buffer"
        deviations.append(Deviation("RFC 9004", "frame sizes whose throughput is less than the maximum rate", done))
    if rate < line * (1 - 1e-9):
        done = f"bursts at {100 * rate / line:.4g} % of it, the most that the generator is asked for"
        deviations.append(Deviation("RFC 2544 26.4", "frames with the minimum gap of the medium", done))
    size, times = traffic.profile.mean_size, {"implied_s": implied, "corrected_s": corrected}
    row = {
        SIZE: f"{size:g}",
        **repeated("back-to-back", "frames", bursts, ",.1f", "≥ " * is_unlimited),
        Column("implied buffer time", "ms"): figure(implied, ".4g", 1e3),
        Column("corrected buffer time", "ms"): figure(corrected, ".4g", 1e3),
    }
    figures = {"size": size, "bursts": bursts, "unlimited": is_unlimited, **times}
    return ProcedureResult(value=f"{size:g}b", figures=figures, rows=[row], **trials.as_fields(deviations))


# -- 26.5 system recovery ----------------------------------------------------------------------------------------------


def recovery(
    run: ProcedureRun,
    traffic: str,
    throughputs: Sequence[SearchResult],
    repeats: int = 3,
    overload: timedelta = timedelta(seconds=TRIAL_SECONDS),
    limit: timedelta = timedelta(seconds=20),
) -> tuple[ProcedureResult, ...]:
    """RFC 2544 26.5: *overload* at 110 % of each of *throughputs*, then half of it, *repeats* times.

    Half of it lasts half as long again as *limit*, the longest recovery that is looked for. Less than 60 s of
    overload (10 s at least) is a declared deviation. *throughputs* as `RFC 2544 Throughput Of` gave for the same
    *traffic*. Example:
    | System Recovery Of    unidirectional    ${throughput}    overload=10 s
    """
    seconds = overload.total_seconds(), limit.total_seconds()
    measured = list(at_throughputs(run, traffic, throughputs))
    run.announce(len(measured) * repeats, len(measured) * repeats * (seconds[0] + 1.5 * seconds[1]))
    return tuple(_recovery(run, *each, repeats, *seconds) for each in measured)


RECOVERY = Procedure("System Recovery Of", "RFC 2544 system recovery", recovery, TAGS, Method.RECOVERY)


def _recovery(
    run: ProcedureRun, traffic: TrafficWords, throughput: Load, repeats: int, overload_for: float, limit: float
) -> ProcedureResult:
    """Overload for *overload_for* s, halve the load, and see when the last frame is lost.

    If the router loses no frames in the overload, for example because it carries line rate, the ending says so.
    """
    overload = Load(min(1.1 * throughput.pps, run.put(traffic).pps))
    promise = Promise(
        RECOVERS,
        Limit(limit),
        run.session.plan.goal.model_copy(update={"final_trial_duration": overload_for}),
        overload.pps,
        Unit.SECONDS,
        own=run.session.own_part(traffic, overload.pps, overload_for),
        mean_size=traffic.profile.mean_size,
        link_bps=run.link_bps(traffic),
        pairs=traffic.pairs,
    )
    phases, measure = OverloadPhases.of(promise.goal, limit), run.session.measure_of(promise, nobody)
    times: list[Bounds] = []

    def is_timed(trial: Trial) -> bool:
        is_hidden = trial.is_set_aside or any(map(trial.hidden, trial.outcome.directions))
        return not is_hidden and why_unproven(promise, trial) != TOO_SELDOM

    with run.series(traffic) as trials:
        while len(times) < repeats:
            trial = trials.run(overload, phases.duration, is_timed, measure, RECOVERS.doubts)
            if unproven := why_unproven(promise, trial):
                raise CharacterisationEnded(unproven)
            times.append(promise.worst([trial]))
    done = f"bounds of it, from counts of every {phases.sample_interval:g} s or so"
    deviations = (
        Deviation("RFC 2544 26.5", "the time of the last frame lost", done),
        *TRIALS_OF_SECTION_23,
        *of_short_trials(phases.overload, "RFC 2544 26.5"),
    )
    size, reduced = promise.mean_size, RECOVERS.gentle_load(overload)
    ends = [time.low for time in times], [time.high for time in times]
    row = {
        SIZE: f"{size:g}",
        Column("overload", EACH): figure(overload),
        Column("reduced to", EACH): figure(reduced),
        Column("recovery time", "s, mean"): _seconds([Bounds(*map(fmean, ends))] if times else []),
        Column("each", "s", True): _seconds(times),
        Column("looked at", "s"): f"{phases.after:g}",
    }
    figures = {"size": size, "overload": overload, "reduced": reduced, "times_s": times, "after_s": phases.after}
    return ProcedureResult(value=f"{size:g}b", figures=figures, rows=[row], **trials.as_fields(deviations))


def _seconds(times: Sequence[Bounds]) -> str:
    return ", ".join(between(time, "{:.3g}".format) for time in times) or NONE


# -- 26.6 reset --------------------------------------------------------------------------------------------------------


def reset(
    run: ProcedureRun,
    traffic: str,
    throughputs: Sequence[SearchResult],
    command: str = "",
    kind: Literal["software", "hardware", "power"] = "software",
    limit: timedelta = timedelta(minutes=5),
) -> ProcedureResult:
    """RFC 2544 26.6 (RFC 6201): how long nothing is forwarded once *command* reset the router.

    In a trial of *limit*, the longest time that is looked for, at the throughput of the smallest frames among
    *throughputs*. A simulated router needs no command. Example:
    | Reset Time Of    unidirectional    ${throughput}    command=sudo reboot    limit=3 min
    """
    if not (measured := list(at_throughputs(run, traffic, throughputs))):
        raise SentenceError("a reset is measured at a throughput, and none was found")
    session = run.session
    session.router.check_resettable()
    smallest, load = min(measured, key=lambda each: each[0].profile.mean_size)

    # seconds before the reset, and of a trial in the end, in which a router that is back loses at most this ratio
    before, quiet, slack = 2.0, 5.0, 0.001
    configure = session.router.prepare_configuration()

    def resets(wait: Callable[[float], None]) -> None:
        wait(before)
        session.router.restart(command, configure, limit.total_seconds(), wait)

    run.put(smallest)
    seconds, lost, time = before + limit.total_seconds(), 0, None
    run.announce(2, seconds + quiet)
    with run.series(smallest) as trials:
        measure = partial(session.traffic.measure, during=resets)
        # a router that restarts takes its links down
        is_counted = partial(trials.shows_loss, but=[Fault.LINK_DOWN])
        whole = trials.run(load, seconds, is_counted, measure, OF_FRAMES, repeats=0)
        # a trial in which something is done keeps no frames
        session.examine(True)
        later = trials.run(load, quiet, trials.shows_loss)
        lost = max(row.lost for row in whole.outcome.directions)
        times = [row.lost * seconds / max(1, row.offered) for row in whole.outcome.directions]
        if not lost:
            raise CharacterisationEnded(f"nothing was lost in {seconds:g} s: the reset had no effect, or was not seen")
        if later.loss_ratio(in_total=False) <= slack and max(times) < limit.total_seconds() * (1 - slack):
            time = max(times)
    reconfigured = Deviation(
        "RFC 2544 26.6",
        "a router that comes back with its configuration",
        "the testbed configured it anew as soon as it could log in, and the time that took is in the figure",
    )
    size, others = smallest.profile.mean_size, [reconfigured] * (session.plan.testbed.prepare == "configure")
    row = {
        Column("reset", left=True): kind,
        SIZE: f"{size:g}",
        Column("load", EACH): figure(load),
        Column("reset time by loss", "s"): figure(time, ".4g"),
        Column("frames lost"): f"{lost:,}",
    }
    figures = {"kind": kind, "size": size, "load": load, "reset_s": time, "lost": lost}
    by_loss = Deviation(
        "RFC 2544 26.6",
        "the times of the last frame before and the first frame after the reset",
        "the frames lost divided by the rate (the frame-loss method of RFC 6201)",
    )
    deviations = by_loss, *TRIALS_OF_SECTION_23, *others
    return ProcedureResult(figures=figures, rows=[row], **trials.as_fields(deviations))


RESET = Procedure("Reset Time Of", "RFC 2544 reset", reset, TAGS, Method.RESET)
