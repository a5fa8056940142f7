"""The tests of RFC 2544 section 26. Every departure from the RFC is a deviation of the result.

- 26.1 throughput: :mod:`lineproof.procedures.search` with the RFC's own terms for a goal: a load is carried if a trial
  of 60 s loses no frame in any direction. Shorter ones narrow the search, as section 24 allows.
- 26.2 latency: at the throughput of each frame size, the mean of 20 streams of 120 s.
- 26.3 frame loss rate: from line rate down.
- 26.4 to 26.6: :mod:`.overload`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from statistics import fmean, stdev

from ...core.quantity import TrafficWords
from ...core.trial import Load, Trial
from ...core.verdict import TRIALS_OF_SECTION_23, Deviation
from ...documents.chart import SIGNS, Chart, linear, scaled
from ...documents.document import Column
from ...errors import SentenceError
from ...generators.base import Method, Probe
from ...session.traffic import PROBE_PPS
from ...units import l1_bits
from ..procedure import EACH, NONE, Procedure, ProcedureRun, figure
from ..search import SearchResult, bounds_of, carried, search_each
from ..trials import Cells, ProcedureResult, worst_rate

TRIAL_SECONDS = 60.0
"""RFC 2544 24: the shortest final trial in s."""

STREAMS, STREAM_SECONDS = 20, 120.0
"""RFC 2544 26.2: streams of a latency, and seconds of each."""

TAGS = "characterise", "rfc2544"

SIZE = Column("frame size", "bytes with FCS")


def of_short_trials(seconds: float, section: str = "RFC 2544 24", asked: float = TRIAL_SECONDS) -> list[Deviation]:
    """Return the deviation of trials of *seconds*; none if they are not shorter than *asked*."""
    done = Deviation(section, f"trials of at least {asked:g} s", f"trials of {seconds:g} s")
    return [done] * (seconds < asked)


def of_few_repetitions(count: int, asked: int, section: str) -> list[Deviation]:
    """Return the deviation of *count* repetitions; none if they are not fewer than *asked*."""
    return [Deviation(section, f"at least {asked} repetitions", f"{count}")] * (count < asked)


def repeated(name: str, unit: str, values: Sequence[float], form: str, sign: str = "") -> Cells:
    """Return mean, least, most and deviation of *values* as cells, each after *sign*, and how many there are."""
    names = Column(name, f"{unit}, mean"), Column("least", unit), Column("most", unit)
    known = [f"{sign}{value:{form}}" for value in (fmean(values), min(values), max(values))] if values else [NONE] * 3
    return {
        **dict(zip(names, known, strict=True)),
        Column("std. deviation", unit): f"{stdev(values):{form}}" if len(values) > 1 else NONE,
        Column("repetitions"): str(len(values)),
    }


def at_throughputs(
    run: ProcedureRun, traffic: str, throughputs: Sequence[SearchResult]
) -> Iterator[tuple[TrafficWords, Load]]:
    """Yield the traffic and throughput of each result that has one. Raises SentenceError for those of other traffic."""
    for result in throughputs:
        sentence = f"{getattr(result, 'value', '')} {traffic}"
        known, bounds = carried(run, result, THROUGHPUT.keyword, sentence, RATIO)
        if bounds.lower is not None:
            yield known, bounds.lower


# -- 26.1 throughput ---------------------------------------------------------------------------------------------------


RATIO = "throughput"
"""The name of the bounds; the lower one is the throughput."""


def throughput(
    run: ProcedureRun,
    traffic: str,
    *sizes: int,
    duration: timedelta = timedelta(seconds=TRIAL_SECONDS),
    resolution: float = 0.001,
) -> tuple[SearchResult, ...]:
    """RFC 2544 26.1 for frames of each of *sizes* (bytes with FCS; none given: the standard seven).

    *traffic* names the rest. *duration* of the trials that decide: less than 60 s is a declared deviation.
    *resolution*: how close loss and no loss come, as a ratio of the load. Example:
    | ${throughput} =    RFC 2544 Throughput Of    unidirectional    64    1518    duration=10 s
    """
    seconds = duration.total_seconds()
    sizes = sizes or (64, 128, 256, 512, 1024, 1280, 1518)  # RFC 2544 9.1
    terms = {"final_trial_duration": seconds, "duration_sum": seconds, "exceed_ratio": 0.0}
    results = search_each(
        run,
        "frame size",
        [f"{size}b" for size in sizes],
        lambda size: f"{size} {traffic}",
        resolution,
        loss_ratios={RATIO: 0.0},
        goal=run.session.plan.goal.model_copy(update={"goal": "RFC 2544", **terms}),
    )
    declared = *TRIALS_OF_SECTION_23, *of_short_trials(seconds)
    return tuple(replace(each, deviations=(*declared, *_of_low_rate(run, each))) for each in results)


def _throughputs(run: ProcedureRun, results: Sequence[SearchResult]) -> str:
    """Return 26.1 as a graph: frame rate over frame size, with the theoretical rate of the medium."""
    traffic = [run.traffic(result.sentence) for result in results]
    sizes, link = [each.profile.mean_size for each in traffic], run.link_bps(traffic[0])
    up = scaled("rate into each port", "pps", 1.05 * link / l1_bits(min(sizes)))
    across = linear("frame size [bytes with FCS]", 1.05 * max(sizes))
    plot = Chart(run.title, across, up, run.session.simulated)
    places = [min(sizes) + (max(sizes) - min(sizes)) * (index / 200) ** 2 for index in range(201)]
    plot.curve([(size, link / l1_bits(size)) for size in places], "theoretical maximum", dashes="9 4")
    lower = [(size, each.lower) for size, result in zip(sizes, results, strict=True) for each in result.bounds]
    if rates := [(size, load.pps) for size, load in lower if load is not None]:
        plot.curve(rates, "throughput, no frame lost", SIGNS[0])
    return plot.svg()


THROUGHPUT = Procedure(
    "RFC 2544 Throughput Of",
    "RFC 2544 throughput",
    throughput,
    TAGS,
    Method.THROUGHPUT,
    parts=bounds_of,
    picture=_throughputs,
)


def _of_low_rate(run: ProcedureRun, result: SearchResult) -> Iterator[Deviation]:
    """Yield the deviation of a generator that is asked for less than line rate."""
    line = run.line(run.traffic(result.sentence))
    most = max((trial.outcome.load.pps for trial in result.trials), default=line)
    if most < line * (1 - 1e-9):
        done = f"at most {100 * most / line:.4g} % of it is asked of the generator"
        yield Deviation("RFC 2544 20", "a generator that sends the maximum rate of the medium", done)


# -- 26.2 latency ------------------------------------------------------------------------------------------------------


def latency(
    run: ProcedureRun,
    traffic: str,
    throughputs: Sequence[SearchResult],
    repeats: int = STREAMS,
    duration: timedelta = timedelta(seconds=STREAM_SECONDS),
) -> tuple[ProcedureResult, ...]:
    """RFC 2544 26.2 at each of *throughputs*, which `RFC 2544 Throughput Of` gave for the same *traffic*.

    *repeats* streams of *duration* each: fewer than 20, or less than 120 s, is a declared deviation. Example:
    | RFC 2544 Latency Of    unidirectional    ${throughput}    repeats=2    duration=10 s
    """
    measured, seconds = list(at_throughputs(run, traffic, throughputs)), duration.total_seconds()
    run.announce(len(measured) * repeats, len(measured) * repeats * seconds)
    return tuple(_latency(run, *each, repeats, seconds) for each in measured)


LATENCY = Procedure("RFC 2544 Latency Of", "RFC 2544 latency", latency, TAGS, Method.LATENCY)


def _latency(run: ProcedureRun, traffic: TrafficWords, load: Load, repeats: int, duration: float) -> ProcedureResult:
    """Measure *repeats* streams of *duration* s. A stream without a latency is repeated a few times."""
    run.put(traffic, warm_up=False, probe=Probe(min(PROBE_PPS, load.pps / 10)))
    means: dict[str, list[float]] = {}

    def has_latency(trial: Trial) -> bool:
        known = [0 <= count.mean < math.inf for count in trial.outcome.latency if count.received >= 100]
        return sum(known) == len(trial.outcome.directions) and trials.shows_loss(trial)

    with run.series(traffic) as trials:
        for _ in range(repeats):
            for count in trials.run(load, duration, has_latency).outcome.latency:
                means.setdefault(f"{count.tx_port} → {count.rx_port}", []).append(count.mean)
    deviations = (
        Deviation(
            "RFC 2544 26.2",
            "the latency of one frame, tagged after 60 s of the stream",
            "the generator's running mean of the latency frames at the end of the stream (TRex: each half second weighs"
            " as much as all before it)",
        ),
        *TRIALS_OF_SECTION_23,
        *of_short_trials(duration, "RFC 2544 26.2", STREAM_SECONDS),
        *of_few_repetitions(max(map(len, means.values()), default=0), STREAMS, "RFC 2544 26.2"),
    )
    size = traffic.profile.mean_size
    # for each direction what 26.2 asks for: size, rate, latency; the medium is the testbed's
    rows = [
        {
            SIZE: f"{size:g}",
            Column("rate", EACH): figure(load),
            Column("direction", left=True): direction,
            **repeated("latency", "µs", values, ",.2f"),
        }
        for direction, values in means.items()
    ]
    return ProcedureResult(
        value=f"{size:g}b",
        figures={"size": size, "load": load, "means_us": means},
        rows=rows,
        **trials.as_fields(deviations),
    )


# -- 26.3 frame loss rate ----------------------------------------------------------------------------------------------


def frame_loss(
    run: ProcedureRun,
    traffic: str,
    step: float = 10.0,
    duration: timedelta = timedelta(seconds=TRIAL_SECONDS),
) -> ProcedureResult:
    """RFC 2544 26.3: loss at the highest load and in steps of *step* per cent down, until nothing is lost twice.

    *duration* of each trial: less than 60 s is a declared deviation. Example:
    | Frame Loss Rate Of    64b unidirectional    duration=10 s
    """
    if step > 10:
        raise SentenceError(f"a loss curve goes down in steps of at most 10 % (RFC 2544 26.3), not of {step:g}")
    known, seconds = run.traffic(traffic), duration.total_seconds()
    line, size = run.line(known), known.profile.mean_size
    highest = min(100.0, 100 * run.put(known).pps / line)
    deviations = [*TRIALS_OF_SECTION_23, *of_short_trials(seconds)]
    if highest < 100:
        done = f"it is at {highest:g} %, the most that is asked of the generator"
        deviations.append(Deviation("RFC 2544 26.3", "a first trial at 100 % of the medium's maximum rate", done))
    # 100, 90, 80 …: the steps count from 100, whatever the first load is
    below = (100 - number * step for number in range(1, math.ceil(100 / step - 1e-9)))
    loads = highest, *(share for share in below if share < highest - 1e-9)
    run.announce(len(loads), len(loads) * seconds)
    points: list[dict[str, float]] = []
    with run.series(known) as trials:
        for asked in loads:
            # a trial at less than the load asked for gives a point too, at the load offered
            trial = trials.run(Load(line * asked / 100), seconds, trials.shows_loss)
            offered, lost = 100 * worst_rate(trial, "offered") / line, trial.loss_ratio(in_total=False)
            points.append({"asked_percent": asked, "offered_percent": offered, "loss_ratio": lost})
            if len(points) > 1 and not any(point["loss_ratio"] for point in points[-2:]):
                break
    rows = [
        {
            SIZE: f"{size:g}",
            Column("asked", "% of line"): f"{point['asked_percent']:.4g}",
            Column("offered", "% of line"): f"{point['offered_percent']:.4g}",
            Column("lost", "% of frames offered"): f"{100 * point['loss_ratio']:.5g}",
        }
        for point in points
    ]
    return ProcedureResult(figures={"size": size, "points": points}, rows=rows, **trials.as_fields(deviations))


def _losses(run: ProcedureRun, results: Sequence[ProcedureResult]) -> str:
    """Return 26.3 as a graph: per cent lost over per cent of the medium's rate, both from 0 to 100."""
    across = linear("offered rate [% of the medium's frame rate at this size]", 100)
    plot = Chart(run.title, across, linear("frames lost [%]", 100), run.session.simulated)
    for figures in (result.figures for result in results):
        points = [(point["offered_percent"], 100 * point["loss_ratio"]) for point in figures["points"]]
        plot.curve(points, f"{figures['size']:g} bytes", SIGNS[0])
    return plot.svg()


FRAME_LOSS = Procedure(
    "Frame Loss Rate Of", "RFC 2544 frame loss rate", frame_loss, TAGS, Method.FRAME_LOSS, picture=_losses
)
