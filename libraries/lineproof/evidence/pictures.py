"""The pictures of sentences, searches, ramps, scaling and RFC 2544's tests: short functions from data to a chart.

That of a sentence shows what the sentence is about: its own quantity, trial by trial, beside the promise. Trials that
are set aside have no part in it. Red is what was lost of a promise; what was lost beyond it is an outline only.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, pairwise

from ..core.bounds import Bounds
from ..core.latency import LOST as LOST_PROBE
from ..core.quantity import Requirement
from ..core.trial import Trial
from ..core.units import RATE_UNITS
from ..methods.ramp import RampResult
from ..methods.rfc2544 import LossCurve, ThroughputResult
from ..methods.scaling import ScalingResult
from ..methods.search import SearchResult
from ..units import l1_bits, line_rate_pps, si
from . import chart
from .chart import AREAS, SIGNS, Chart, Part, columns, linear, scaled, valued
from .rates import DirectionRow, direction_rows, is_set_aside, percent, trial_name
from .records import RequirementRecord


def plot_name(requirement: Requirement) -> str:
    """Return what the picture of a sentence shows."""
    quantity = requirement.quantity
    names = {"rates": "Offered and forwarded rate", "histogram": "Latency of the probe frames"}
    return names.get(quantity.chart, f"{quantity.title or quantity.name} of each trial")


def sentence_plot(record: RequirementRecord, trials: Sequence[Trial], title: str, simulated: bool = False) -> str:
    """Return the picture of the sentence of *record* as SVG."""
    judged, kind = [trial for trial in trials if trial.number], record.promise.quantity.chart
    plot = _rates if kind == "rates" or not judged else _latencies if kind == "histogram" else _ranges
    return plot(record, judged, title, simulated)


def _ranges(record: RequirementRecord, trials: Sequence[Trial], title: str, simulated: bool) -> str:
    """Return the figures of each trial, as far as they are known, beside the promise."""
    promise, limit = record.promise, record.requirement.threshold.number
    charted = [{} if is_set_aside(trial) else promise.quantity.charted(promise, trial) for trial in trials]
    signs = dict(zip(dict.fromkeys(name for figures in charted for name in figures), 9 * SIGNS, strict=False))
    ends = [end for figures in charted for one in figures.values() for end in (one.low, one.high)]
    low, high = (chosen([limit, *filter(math.isfinite, ends)]) for chosen in (min, max))
    room = max(0.35 * (high - low), 0.02 * abs(high)) or 1.0
    name, start = promise.quantity.title or promise.quantity.name, low - room if low < 0 else max(0.0, low - room)
    plot = Chart(title, _of_trials(trials), scaled(name, promise.unit.value, high + room, start), simulated)
    worse = -math.inf if record.requirement.at_least else math.inf
    plot.area((-math.inf, math.inf), (limit, worse), chart.WORSE, "breaks the promise")
    plot.limit(limit, _promised(record))
    for column, (trial, figures) in enumerate(zip(trials, charted, strict=True)):
        plot.bar(column, [_SET_ASIDE] * is_set_aside(trial))
        for number, (name, sign) in enumerate(signs.items()):
            if one := figures.get(name):
                place = plot.beside(column, number, len(signs))
                plot.range(place, one, sign, name)
                if math.isfinite(one.high):
                    came = one.low if record.requirement.at_least else one.high
                    plot.label(place, one.high, record.requirement.text(float(f"{came:.4g}")), len(signs))
    return plot.svg()


_SET_ASIDE = Part(math.inf, "set aside: spoilt by the testbed", chart.ASIDE)


def _of_trials(trials: Sequence[Trial], more: str = "") -> chart.Axis:
    return columns(f"trial{more}", list(map(trial_name, trials)))


def _promised(record: RequirementRecord) -> str:
    return f"{record.requirement.relation} {record.requirement.text()}"


# -- rates -------------------------------------------------------------------------------------------------------------


def _rates(record: RequirementRecord, trials: Sequence[Trial], title: str, simulated: bool) -> str:
    """Return the rates of each trial: forwarded, then lost, then unsent frames; their end is the load.

    There is one bar for all directions if the promise counts them in total. A quantity that does not judge loss allows
    what is lost beyond its limit.
    """
    demanded, link_bps = record.requirement, record.link_bps
    promised = demanded.threshold_pps(link_bps) if demanded.threshold.unit in RATE_UNITS else 0.0
    needed = math.inf if record.promise.quantity.judges_loss else promised
    bars: list[tuple[int, int, int, list[Part], float, str]] = []
    for column, trial in enumerate(trials):
        own = list(enumerate(direction_rows([trial], record.mean_size, link_bps)))
        groups = [own] if record.promise.in_total else [[row] for row in own]
        drawn = [([_SET_ASIDE], 0.0, "")] if is_set_aside(trial) else [_rate_bar(group, needed) for group in groups]
        bars += [(column, number, len(drawn), *bar) for number, bar in enumerate(drawn)]
    line_rate = line_rate_pps(link_bps, record.mean_size)
    most = max([promised, *filter(math.isfinite, (_end(bar[3]) for bar in bars))])
    across = _of_trials(trials, f" (line rate of one direction: {si(line_rate, 'pps')})")
    plot = Chart(title, across, scaled("rate", "pps", 1.12 * most or line_rate), simulated)
    for column, number, of, parts, *_ in bars:
        plot.bar(plot.beside(column, number, of), parts, of)
    if promised:
        plot.limit(promised, _promised(record))
    for column, number, of, _, end, came in bars:
        plot.label(plot.beside(column, number, of), end, came, of)
    return plot.svg()


def _end(parts: Sequence[Part]) -> float:
    return math.fsum(part.size for part in parts)


def _rate_bar(rows: Sequence[tuple[int, DirectionRow]], needed: float) -> tuple[list[Part], float, str]:
    """Return a bar, the end of the rate that is *needed* within it, and the rate that came in words, if it is less.

    Losses below the rate that is *needed* are red, and those beyond it are allowed.
    """
    parts, lost, unsent = [], 0.0, 0.0
    for number, row in rows:
        forwarded = min(row.forwarded.pps, row.offered.pps)
        parts.append(Part(forwarded, f"forwarded {row.direction}", AREAS[number % len(AREAS)]))
        lost += row.offered.pps - forwarded
        unsent += max(0.0, row.intended.pps - row.offered.pps)
    forwarded = _end(parts)
    missing = min(lost, max(0.0, needed - forwarded))
    parts += [Part(missing, "lost", chart.LOST)] if missing else []
    parts += [Part(lost - missing, "lost, which this sentence allows", chart.ALLOWED)] if lost > missing else []
    # less than the width of a line cannot be seen
    parts += [Part(unsent, "never sent by the generator", chart.UNSENT)] if unsent > 0.002 * (forwarded + lost) else []
    ratio = sum(row.count.lost for _, row in rows) / max(1, sum(row.count.offered for _, row in rows))
    came = f"{si(forwarded, 'pps')}{f' (−{percent(ratio)})' if missing == lost else ''}"
    return parts, forwarded + missing, came if missing else ""


# -- latency -----------------------------------------------------------------------------------------------------------


def _latencies(record: RequirementRecord, trials: Sequence[Trial], title: str, simulated: bool) -> str:
    """Return the probe frames of *trials* by latency, on a logarithmic axis, each at the end of its bucket.

    What is later than the limit, which is the end of a column, is hatched. The last column: what was lost.
    """
    shown, statistic = [trial for trial in trials if not is_set_aside(trial)], record.promise.statistic
    counts: dict[str, Counter[float]] = {}
    for count in (count for trial in shown for count in trial.outcome.latency):
        if spread := count.spread():
            counts.setdefault(f"{count.tx_port} → {count.rx_port}", Counter()).update(spread.worst)
    placed = [latency for frames in counts.values() for latency in frames if latency < LOST_PROBE]
    limit, promised = record.requirement.threshold.number, _promised(record)
    if statistic is not None:
        promised = f"{statistic.name} {promised}{' later than the fastest frame' if statistic.variation else ''}"
        limit += min(placed, default=0.0) if statistic.variation else 0.0
    ladder = [step * 10.0**power for power in range(9) for step in (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)]
    first, last = (bisect_left(ladder, chosen([*placed, limit])) for chosen in (min, max))
    edges = sorted({*ladder[max(0, first - 1) : last + 1], limit})
    names = [f"{start:g}" for start in (0.0, *edges[:-1])]
    if any(frames[LOST_PROBE] for frames in counts.values()):
        edges, names = [*edges, math.inf], [*names, "late, lost"]
    aside = f" ({len(trials) - len(shown)} of {len(trials)} trials not shown: set aside, spoilt by the testbed)"
    below = f"latency [µs], from each figure up to the next{aside if len(shown) < len(trials) else ''}"
    most = max((number for frames in counts.values() for number in frames.values()), default=1)
    powers = [10.0**power for power in range(1 + len(str(most)))]
    plot = Chart(title, columns(below, names), valued("probe frames", powers, True), simulated)
    for number, (direction, frames) in enumerate(counts.items()):
        in_columns = Counter[int]()
        for latency, seen in frames.items():
            in_columns[bisect_left(edges, latency)] += seen
        for column, seen in in_columns.items():
            is_kept = edges[column] <= limit
            words = f"probe frames {direction}" if is_kept else "later than the limit, or lost"
            part = Part(seen, words, AREAS[number % len(AREAS)] if is_kept else chart.LOST)
            place = plot.beside(column, number, len(counts))
            plot.bar(place, [part], len(counts))
            plot.label(place, seen, f"{seen:,}", len(counts))
    plot.limit(edges.index(limit) + 0.5, promised, is_upright=True)
    return plot.svg()


# -- searches, ramps, scaling ------------------------------------------------------------------------------------------


def search_plot(result: SearchResult, title: str, simulated: bool = False) -> str:
    """Return loss over load: a mark for each trial, and the bounds that were found."""
    across = scaled("load of each port", "pps", 1.03 * result.highest.pps)
    plot = Chart(title, across, valued("frames lost [%]", (0, 0.01, 0.1, 1, 10, 100), True), simulated)
    for sign, dashes, bounds in zip(SIGNS[2:], ("", "9 4", "2 3", "9 3 2 3"), result.bounds, strict=False):
        if bounds.lower is not None:
            low, high = bounds.lower.pps, (bounds.upper or bounds.lower).pps
            edges = [(low, -math.inf), (low, math.inf), (high, math.inf), (high, -math.inf)]
            plot.curve(edges, f"{bounds.name}{'' if bounds.finished else ' (unfinished)'}", None, sign.colour, dashes)
    for trial in result.trials:
        sign, name = (SIGNS[0], "trial") if trial.is_clean else (SIGNS[1], "trial with a doubt")
        loss = 100 * trial.loss_ratio(in_total=False)
        plot.range(trial.outcome.load.pps, Bounds(loss, loss), sign, name)
    return plot.svg()


def ramp_plot(result: RampResult, title: str, simulated: bool = False) -> str:
    """Return offered and forwarded rate over the seconds of the ramp, with the saturation point."""
    steps = result.steps
    edges = [0.0, *accumulate(step.trial.outcome.duration for step in steps)]
    across = linear("seconds of traffic (it pauses between the steps)", max(edges[-1], 1e-9))
    up = scaled("rate, each port", "pps", 1.08 * max([step.offered_pps for step in steps], default=1.0) or 1.0)
    plot = Chart(title, across, up, simulated)
    offered = [(edge, step.offered_pps) for ends, step in zip(pairwise(edges), steps, strict=True) for edge in ends]
    forwarded = [(edge, step.forwarded_pps) for ends, step in zip(pairwise(edges), steps, strict=True) for edge in ends]
    plot.curve(offered, "offered", dashes="2 3")
    plot.curve(forwarded, "forwarded", colour=SIGNS[0].colour)
    for (before, after), edge in zip(pairwise(steps), edges[1:], strict=False):
        if before.phase is not after.phase:
            plot.curve([(edge, -math.inf), (edge, math.inf)], "", dashes="1 4")
            plot.words((edge, math.inf), f"{after.phase.value} begins")
    if result.saturation is not None:
        edge = edges[steps.index(result.saturation)]
        plot.curve([(edge, -math.inf), (edge, math.inf)], "saturation", None, chart.LOST_COLOUR, "9 4")
    return plot.svg()


def scaling_plot(result: ScalingResult, title: str, simulated: bool = False) -> str:
    """Return lower bounds over the varied value, with a line up to the upper bounds."""
    bounds = [(point.value, one) for point in result.points if point.result for one in point.result.bounds if one.lower]
    ends = [load.pps for _, one in bounds for load in (one.lower, one.upper) if load]
    values = [point.value for point in result.points]
    across = valued(result.axis, values, max(values, default=0) > 20 * max(min(values, default=0), 1))
    plot = Chart(title, across, scaled("load carried by each port", "pps", 1.1 * max(ends, default=1.0)), simulated)
    for sign, name in zip(SIGNS, dict.fromkeys(one.name for _, one in bounds), strict=False):
        own = [
            (value, one.lower.pps, (one.upper or one.lower).pps)
            for value, one in bounds
            if one.name == name and one.lower
        ]
        plot.curve([(value, low) for value, low, _ in own], name, sign)
        for value, low, high in own:
            plot.range(value, Bounds(low, max(low, high)), sign, middle=low)
    return plot.svg()


# -- RFC 2544 ----------------------------------------------------------------------------------------------------------


def throughput_plot(results: Sequence[ThroughputResult], title: str, simulated: bool = False) -> str:
    """Return 26.1 as a graph: frame rate over frame size, with the theoretical rate of the medium."""
    sizes = [item.size for item in results] or [64]
    up = scaled("rate into each port", "pps", 1.05 * max((item.line_pps for item in results), default=1.0))
    plot = Chart(title, linear("frame size [bytes with FCS]", 1.05 * max(sizes)), up, simulated)
    for item in results[:1]:
        link = item.line_pps * l1_bits(item.size)
        places = [min(sizes) + (max(sizes) - min(sizes)) * (index / 200) ** 2 for index in range(201)]
        plot.curve([(size, link / l1_bits(size)) for size in places], "theoretical maximum", dashes="9 4")
    if carried := [(float(item.size), item.throughput.pps) for item in results if item.throughput]:
        plot.curve(carried, "throughput, no frame lost", SIGNS[0])
    return plot.svg()


def loss_plot(curves: Sequence[LossCurve], title: str, simulated: bool = False) -> str:
    """Return 26.3 as a graph: per cent lost over per cent of the medium's rate, both from 0 to 100."""
    across = linear("offered rate [% of the medium's frame rate at this size]", 100)
    plot = Chart(title, across, linear("frames lost [%]", 100), simulated)
    for sign, one in zip(len(curves) * SIGNS, curves, strict=False):
        plot.curve([(point.offered, 100 * point.loss_ratio) for point in one.points], f"{one.size:g} bytes", sign)
    return plot.svg()
