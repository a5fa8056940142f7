"""The tests of RFC 2544 section 26. Every departure from the RFC is a deviation of the result.

- 26.1 throughput: a binary search, each load once; loss of one frame in one direction sends it lower. The search of
  :mod:`lineproof.procedures.search` needs less traffic and allows for a rare burst of loss.
- 26.2 latency: at the throughput of each frame size, the mean of 20 streams of 120 s.
- 26.3 frame loss rate: from line rate down.
- 26.4 to 26.6: :mod:`.overload`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import fmean, stdev
from typing import Any, NamedTuple

from ...core.quantity import TrafficWords
from ...core.trial import Load, Trial
from ...core.verdict import TRIALS_OF_SECTION_23, Deviation
from ...errors import SentenceError
from ...evidence.chart import SIGNS, Chart, linear, scaled
from ...evidence.document import Column, Note, Table
from ...generators.base import Method, Probe
from ...session.traffic import PROBE_PPS
from ...units import l1_bits, l2_bits
from ..procedure import EACH, NONE, Cells, Procedure, ProcedureRun, figure
from ..trials import ProcedureResult, is_decided, loss_bounds, worst_rate

FRAME_SIZES = (64, 128, 256, 512, 1024, 1280, 1518)
"""RFC 2544 9.1: the sizes for Ethernet, in bytes with FCS."""

TRIAL_SECONDS = 60.0
"""RFC 2544 24: the shortest final trial in s."""

STREAMS, STREAM_SECONDS = 20, 120.0
"""RFC 2544 26.2: streams of a latency, and seconds of each."""

SIZE = Column("frame size", "bytes with FCS")


def of_short_trials(seconds: float, section: str = "RFC 2544 24", asked: float = TRIAL_SECONDS) -> list[Deviation]:
    """Return the deviation of trials of *seconds*; none if they are not shorter than *asked*."""
    done = Deviation(section, f"trials of at least {asked:g} s", f"trials of {seconds:g} s")
    return [done] if seconds < asked else []


def of_few_repetitions(count: int, asked: int, section: str) -> list[Deviation]:
    """Return the deviation of *count* repetitions; none if they are not fewer than *asked*."""
    return [Deviation(section, f"at least {asked} repetitions", f"{count}")] if count < asked else []


def repeated(name: str, unit: str, values: Sequence[float], form: str, sign: str = "") -> Cells:
    """Return mean, least, most and deviation of *values* as cells, each after *sign*, and how many there are."""
    names = Column(name, f"{unit}, mean"), Column("least", unit), Column("most", unit)
    known = [f"{sign}{value:{form}}" for value in (fmean(values), min(values), max(values))] if values else [NONE] * 3
    return {
        **dict(zip(names, known, strict=True)),
        Column("std. deviation", unit): f"{stdev(values):{form}}" if len(values) > 1 else NONE,
        Column("repetitions"): str(len(values)),
    }


class Rfc2544Test(Procedure):
    """A test of RFC 2544: one result, or one for each frame size, in one table."""

    tags = ("characterise", "rfc2544")

    def rows(self, result: Any) -> Iterator[Cells]:
        """Yield the rows of one result."""
        raise NotImplementedError

    def parts(self, run: ProcedureRun, result: Any) -> Sequence[Note | Table]:
        """Return one table, and which results ended early."""
        results = result if isinstance(result, tuple) else (result,)
        endings = [Note(f"{each.size:g} bytes: {each.ended}.") for each in results if each.ended]
        return [Table.of([row for each in results for row in self.rows(each)]), *endings]


class AtThroughput(NamedTuple):
    """Traffic of one frame size (bytes with FCS), and its throughput of each port."""

    size: int
    load: Load
    traffic: TrafficWords


def at_throughputs(run: ProcedureRun, traffic: str, throughputs: Sequence[ThroughputResult]) -> Iterator[AtThroughput]:
    """Yield the traffic and throughput of each result that has one. Raises SentenceError for those of other traffic."""
    for result in throughputs:
        words = f"{getattr(result, 'size', '')}b {traffic}"
        known = run.traffic_of(result, ThroughputResult, THROUGHPUT.keyword, words)
        if result.throughput is not None:
            yield AtThroughput(result.size, result.throughput, known)


# -- 26.1 throughput ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ThroughputResult(ProcedureResult):
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


class ThroughputTest(Rfc2544Test):
    """26.1."""

    keyword, name, needs = "RFC 2544 Throughput Of", "RFC 2544 throughput", Method.THROUGHPUT

    def measure(
        self,
        run: ProcedureRun,
        traffic: str,
        *sizes: int,
        duration: timedelta = timedelta(seconds=TRIAL_SECONDS),
        resolution: float = 0.001,
    ) -> tuple[ThroughputResult, ...]:
        """RFC 2544 26.1 for frames of each of *sizes* (bytes with FCS; none given: the standard seven).

        *traffic* names the rest. *duration* of each trial: less than 60 s is a declared deviation. *resolution*: how
        close loss and no loss come, as a ratio of line rate. Example:
        | ${found} =    RFC 2544 Throughput Of    unidirectional    64    1518    duration=10 s
        """
        sizes = sizes or FRAME_SIZES
        if len(set(sizes)) != len(sizes):
            raise SentenceError(f"expected frame sizes in bytes with FCS, each once, not {list(sizes)}")
        # all words are parsed before any frame is sent
        known = [(size, run.traffic(f"{size}b {traffic}")) for size in sizes]
        return tuple(_throughput(run, *each, duration.total_seconds(), resolution) for each in known)

    def rows(self, result: ThroughputResult) -> Iterator[Cells]:
        """Yield the row of 26.1."""
        yield {
            SIZE: str(result.size),
            Column("theoretical", EACH): figure(result.line_pps),
            Column("throughput", EACH): figure(result.throughput),
            Column("throughput", "% of line"): figure(result.percent, ".2f"),
            Column("throughput", "Gbit/s L1"): figure(result.throughput, ".4f", l1_bits(result.size) / 1e9),
            Column("throughput", "Gbit/s L2"): figure(result.throughput, ".4f", l2_bits(result.size) / 1e9),
            Column("trials"): str(len(result.trials)),
            Column("each of", "s"): f"{result.duration:g}",
            Column("search", left=True): "unfinished" if result.ended else "done",
        }

    def picture(self, run: ProcedureRun, result: Sequence[ThroughputResult]) -> str:
        """Return 26.1 as a graph: frame rate over frame size, with the theoretical rate of the medium."""
        sizes = [each.size for each in result] or [64]
        up = scaled("rate into each port", "pps", 1.05 * max((each.line_pps for each in result), default=1.0))
        across = linear("frame size [bytes with FCS]", 1.05 * max(sizes))
        plot = Chart(run.title, across, up, run.session.simulated)
        for each in result[:1]:
            link = each.line_pps * l1_bits(each.size)
            places = [min(sizes) + (max(sizes) - min(sizes)) * (index / 200) ** 2 for index in range(201)]
            plot.curve([(size, link / l1_bits(size)) for size in places], "theoretical maximum", dashes="9 4")
        if carried := [(float(each.size), each.throughput.pps) for each in result if each.throughput]:
            plot.curve(carried, "throughput, no frame lost", SIGNS[0])
        return plot.svg()


THROUGHPUT = ThroughputTest()


def _throughput(
    run: ProcedureRun, size: int, traffic: TrafficWords, duration: float, resolution: float
) -> ThroughputResult:
    """Search until loss and no loss are *resolution* of line rate apart, in trials of *duration* s."""
    line, load = run.line(traffic), run.put(traffic)
    deviations = [*TRIALS_OF_SECTION_23, *of_short_trials(duration)]
    if load.pps < line * (1 - 1e-9):
        done = f"at most {100 * load.pps / line:.4g} % of it is asked of the generator"
        deviations.append(Deviation("RFC 2544 20", "a generator that sends the maximum rate of the medium", done))
    good: Load | None = None
    bad: Load | None = None
    with run.series(traffic) as trials:
        while True:
            # a load is good only if it is certain that nothing was lost, also in queues
            if loss_bounds(trials.run(load, duration, lambda trial: is_decided(loss_bounds(trial), 0.0))).high > 0:
                bad = load
            else:
                good = load
            least = good.pps if good else 0.0
            if bad is None or bad.pps - least <= resolution * line * (1 + 1e-9):
                break
            load = Load((bad.pps + least) / 2)
    return ThroughputResult(size, line, good, bad, resolution, duration, **trials.as_fields(deviations))


# -- 26.2 latency ------------------------------------------------------------------------------------------------------

RUNNING_MEAN = Deviation(
    "RFC 2544 26.2",
    "the latency of one frame, tagged after 60 s of the stream",
    "the generator's running mean of the latency frames at the end of the stream (TRex: each half second weighs as much"
    " as all before it)",
)


@dataclass(frozen=True, slots=True)
class LatencyResult(ProcedureResult):
    """Latency of one frame size at ``load``, its throughput, into each port.

    ``directions``: ``0 → 1`` is sending port → receiving port; ``samples``: of each, the means in µs of all streams.
    """

    size: int
    load: Load
    directions: tuple[str, ...]
    samples: tuple[tuple[float, ...], ...]
    duration: float


class LatencyTest(Rfc2544Test):
    """26.2."""

    keyword, name, needs = "RFC 2544 Latency Of", "RFC 2544 latency", Method.LATENCY

    def measure(
        self,
        run: ProcedureRun,
        traffic: str,
        throughputs: Sequence[ThroughputResult],
        repeats: int = STREAMS,
        duration: timedelta = timedelta(seconds=STREAM_SECONDS),
    ) -> tuple[LatencyResult, ...]:
        """RFC 2544 26.2 at each of *throughputs*, which `RFC 2544 Throughput Of` gave for the same *traffic*.

        *repeats* streams of *duration* each: fewer than 20, or less than 120 s, is a declared deviation. Example:
        | RFC 2544 Latency Of    unidirectional    ${found}    repeats=2    duration=10 s
        """
        carried = at_throughputs(run, traffic, throughputs)
        return tuple(_latency(run, each, repeats, duration.total_seconds()) for each in carried)

    def rows(self, result: LatencyResult) -> Iterator[Cells]:
        """Yield what 26.2 asks for: size, rate, latency; for each direction. The medium is the testbed's."""
        for direction, values in zip(result.directions, result.samples, strict=True):
            yield {
                SIZE: str(result.size),
                Column("rate", EACH): figure(result.load),
                Column("direction", left=True): direction,
                **repeated("latency", "µs", values, ",.2f"),
            }


LATENCY = LatencyTest()


def _latency(run: ProcedureRun, at: AtThroughput, repeats: int, duration: float) -> LatencyResult:
    """Measure *repeats* streams of *duration* s. A stream without a latency is repeated a few times."""
    streams: list[Trial] = []
    run.put(at.traffic, warm_up=False, probe=Probe(min(PROBE_PPS, at.load.pps / 10)))

    def has_latency(trial: Trial) -> bool:
        known = [0 <= count.mean < math.inf for count in trial.outcome.latency if count.received >= 100]
        return sum(known) == len(trial.outcome.directions) and trials.shows_loss(trial)

    with run.series(at.traffic) as trials:
        while len(streams) < repeats:
            streams.append(trials.run(at.load, duration, has_latency))
    deviations = (
        RUNNING_MEAN,
        *TRIALS_OF_SECTION_23,
        *of_short_trials(duration, "RFC 2544 26.2", STREAM_SECONDS),
        *of_few_repetitions(len(streams), STREAMS, "RFC 2544 26.2"),
    )
    rows = streams[0].outcome.directions if streams else ()
    directions = tuple(f"{row.tx_port} → {row.rx_port}" for row in rows)
    samples = tuple(zip(*([count.mean for count in trial.outcome.latency] for trial in streams), strict=True))
    return LatencyResult(at.size, at.load, directions, samples, duration, **trials.as_fields(deviations))


# -- 26.3 frame loss rate ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LossPoint:
    """Loss ratio (0..1) of the worse direction at a load; ``asked`` and ``offered`` in per cent of line rate."""

    asked: float
    offered: float
    loss_ratio: float
    trial: Trial


@dataclass(frozen=True, slots=True)
class LossCurve(ProcedureResult):
    """The points of one traffic, from the highest load down. ``size`` is the (mean) frame size in bytes with FCS."""

    size: float
    line_pps: float
    points: tuple[LossPoint, ...]
    step: float
    duration: float


class FrameLossTest(Rfc2544Test):
    """26.3."""

    keyword, name, needs = "Frame Loss Rate Of", "RFC 2544 frame loss rate", Method.FRAME_LOSS

    def measure(
        self,
        run: ProcedureRun,
        traffic: str,
        step: float = 10.0,
        duration: timedelta = timedelta(seconds=TRIAL_SECONDS),
    ) -> LossCurve:
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
        points: list[LossPoint] = []
        with run.series(known) as trials:
            for asked in (highest, *(share for share in below if share < highest - 1e-9)):
                load = Load(line * asked / 100)
                # a trial at less than the load asked for gives a point too, at the load offered
                trial = trials.run(load, seconds, trials.shows_loss)
                share = 100 * worst_rate(trial, "offered") / line
                points.append(LossPoint(asked, share, trial.loss_ratio(in_total=False), trial))
                if len(points) > 1 and not any(point.loss_ratio for point in points[-2:]):
                    break
        return LossCurve(size, line, tuple(points), step, seconds, **trials.as_fields(deviations))

    def rows(self, result: LossCurve) -> Iterator[Cells]:
        """Yield the points of 26.3."""
        for point in result.points:
            yield {
                SIZE: f"{result.size:g}",
                Column("asked", "% of line"): f"{point.asked:.4g}",
                Column("offered", "% of line"): f"{point.offered:.4g}",
                Column("lost", "% of frames offered"): f"{100 * point.loss_ratio:.5g}",
            }

    def picture(self, run: ProcedureRun, result: LossCurve) -> str:
        """Return 26.3 as a graph: per cent lost over per cent of the medium's rate, both from 0 to 100."""
        across = linear("offered rate [% of the medium's frame rate at this size]", 100)
        plot = Chart(run.title, across, linear("frames lost [%]", 100), run.session.simulated)
        points = [(point.offered, 100 * point.loss_ratio) for point in result.points]
        plot.curve(points, f"{result.size:g} bytes", SIGNS[0])
        return plot.svg()


FRAME_LOSS = FrameLossTest()
