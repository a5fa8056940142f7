"""The pictures of sentences, searches, ramps, scaling and RFC 2544's tests: short functions from data to a chart.

That of a sentence shows what the sentence is about: its own quantity, trial by trial, beside the promise. Trials that
are set aside have no part in it. Red is what was lost of a promise; what was lost beyond it is an outline only.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from ..core.bounds import Bounds
from ..core.latency import LOST as LOST_PROBE
from ..core.quantity import Promise, Requirement
from ..core.trial import Trial
from ..core.units import RATE_UNITS
from ..methods.ramp import RampResult
from ..methods.rfc2544 import LossCurve, ThroughputResult
from ..methods.scaling import ScalingResult
from ..methods.search import SearchResult
from ..units import l1_bits, line_rate_pps, si
from . import chart
from .chart import SIGNS, Axis, Bar, BarGroup, Curve, LimitLine, Panel, Part, linear, scaled
from .rates import DirectionRow, direction_rows, is_set_aside, percent, trial_name
from .records import RequirementRecord


def plot_name(requirement: Requirement) -> str:
    """Return what the picture of a sentence shows."""
    quantity = requirement.quantity
    if quantity.chart == "rates":
        return "Offered and forwarded rate"
    if quantity.chart == "histogram":
        return "Latency of the probe frames"
    return f"{quantity.title or quantity.name} of each trial"


def sentence_plot(record: RequirementRecord, trials: Sequence[Trial], title: str, simulated: bool = False) -> str:
    """Return the picture of the sentence of *record* as SVG."""
    demanded, promise = record.requirement, record.promise
    limit = LimitLine(demanded.threshold.number, f"{demanded.relation} {demanded.text()}", demanded.at_least)
    quantity, judged = promise.quantity, [trial for trial in trials if trial.number]
    if quantity.chart == "rates" or not judged:
        is_rate = demanded.threshold.unit in RATE_UNITS
        rate = limit._replace(value=demanded.threshold_pps(record.link_bps)) if is_rate else None
        return _rates(record, rate, judged, title, simulated)
    if quantity.chart == "histogram":
        return _latencies(promise, limit, judged, title, simulated)
    columns = [(trial_name(one), None if is_set_aside(one) else quantity.charted(promise, one)) for one in judged]
    name, unit = quantity.title or quantity.name, promise.unit.value
    return chart.range_chart(title, columns, name, unit, "trial", limit=limit, simulated=simulated)


# -- rates -------------------------------------------------------------------------------------------------------------


def _rates(
    record: RequirementRecord, limit: LimitLine | None, trials: Sequence[Trial], title: str, simulated: bool
) -> str:
    """Return the rates of each trial: forwarded, then lost, then unsent frames; their end is the load.

    There is one bar for all directions if the promise counts them in total. A quantity that does not judge loss allows
    what is lost beyond its *limit* in frames/s.
    """
    promise = record.promise
    rows = [direction_rows([trial], record.mean_size, record.link_bps) for trial in trials]
    directions = list(dict.fromkeys(row.direction for own in rows for row in own))
    promised = limit.value if limit else 0.0
    needed = math.inf if promise.quantity.judges_loss else promised
    columns = []
    for trial, own in zip(trials, rows, strict=True):
        is_aside = is_set_aside(trial)
        groups = [] if is_aside else [own] if promise.in_total else [[row] for row in own]
        shown = [_rate_bar(group, directions, needed) for group in groups if group]
        columns.append(BarGroup(trial_name(trial), shown, is_aside))
    line_rate = line_rate_pps(record.link_bps, record.mean_size)
    up = scaled("rate", "pps", 1.12 * max([promised, *(bar.end for one in columns for bar in one.bars)]) or line_rate)
    below = f"trial (line rate of one direction: {si(line_rate, 'pps')})"
    return chart.bars(title, columns, up, below, limit=limit, simulated=simulated)


def _rate_bar(rows: Sequence[DirectionRow], directions: Sequence[str], needed: float) -> Bar:
    """Return the bar of *rows*: losses below the rate that is *needed* are red, and those beyond it are allowed."""
    parts, forwarded = [], 0.0
    for row in rows:
        fill = chart.AREAS[directions.index(row.direction) % len(chart.AREAS)]
        parts.append(Part(min(row.forwarded.pps, row.offered.pps), f"forwarded {row.direction}", fill))
        forwarded += parts[-1].size
    lost = sum(max(0.0, row.offered.pps - row.forwarded.pps) for row in rows)
    missing = min(lost, max(0.0, needed - forwarded))
    unsent = sum(max(0.0, row.intended.pps - row.offered.pps) for row in rows)
    parts += [Part(missing, "lost", chart.LOST)] if missing else []
    parts += [Part(lost - missing, "lost, which this sentence allows", chart.ALLOWED)] if lost > missing else []
    # less than the width of a line cannot be seen
    parts += [Part(unsent, "never sent by the generator", chart.UNSENT)] if unsent > 0.002 * (forwarded + lost) else []
    ratio = sum(row.count.lost for row in rows) / max(1, sum(row.count.offered for row in rows))
    return Bar(parts, label=f"−{percent(ratio)}" if missing and missing == lost else "")


# -- latency -----------------------------------------------------------------------------------------------------------


def _latencies(promise: Promise, limit: LimitLine, trials: Sequence[Trial], title: str, simulated: bool) -> str:
    """Return the probe frames of *trials* by latency, each at the end of its bucket."""
    shown = [trial for trial in trials if not is_set_aside(trial)]
    aside = f"{len(trials) - len(shown)} of {len(trials)} trials not shown: set aside, spoilt by the testbed"
    found: dict[str, Counter[float]] = {}
    for count in (count for trial in shown for count in trial.outcome.latency):
        if spread := count.spread():
            found.setdefault(f"{count.tx_port} → {count.rx_port}", Counter()).update(spread.worst)
    placed = [latency for frames in found.values() for latency in frames if latency < LOST_PROBE]
    if promise.statistic is not None:
        limit = limit._replace(words=f"{promise.statistic.name} {limit.words}")
    if promise.statistic is not None and promise.statistic.variation:
        fastest = min(placed, default=0.0)
        limit = LimitLine(limit.value + fastest, f"{limit.words} later than the fastest frame")
    edges = _edges(min([*placed, limit.value]), max([*placed, limit.value]), limit.value)
    edges += [math.inf] * any(frames[LOST_PROBE] for frames in found.values())
    counts = {name: Counter[float]() for name in found}
    for name, frames in found.items():
        for latency, number in frames.items():
            counts[name][edges[bisect_left(edges, latency)]] += number
    below = f"latency [µs], from each figure up to the next{f' ({aside})' if len(shown) < len(trials) else ''}"
    return chart.histogram(title, counts, edges, "probe frames", below, limit=limit, simulated=simulated)


def _edges(least: float, most: float, limit: float) -> list[float]:
    """Return the ends of columns of one digit, from that of *least* µs to that of *most*, and *limit*."""
    found = [1.0 if least < 10 else 10.0]
    while found[-1] < most:
        found.append(found[-1] + 10.0 ** (len(str(int(found[-1]))) - 1))
    return sorted({*found, limit})


# -- searches, ramps, scaling ------------------------------------------------------------------------------------------

_LINEAR, _MOST_LOSS = 0.01, 130.0
"""Per cent of frames lost up to which the axis is linear, and where it ends; between them it is logarithmic."""

_DASHES = ("", "9 4", "2 3", "9 3 2 3")
"""Of the lines at the bounds that were found, by loss ratio."""


def _loss_share(percent: float) -> float:
    """Return where a loss is at the upright axis, as a share of its height."""
    steps = 1 + math.log10(percent / _LINEAR) if percent > _LINEAR else max(0.0, percent) / _LINEAR
    return steps / (1 + math.log10(_MOST_LOSS / _LINEAR))


def search_plot(result: SearchResult, title: str, simulated: bool = False) -> str:
    """Return loss over load: a mark for each trial, and the bounds that were found."""
    curves = []
    for number, item in enumerate(result.bounds):
        if item.lower is not None:
            low, high = item.lower.pps, (item.upper or item.lower).pps
            edges = [(low, 0.0), (low, math.inf), (high, math.inf), (high, 0.0)]
            name = f"{item.name}{'' if item.finished else ' (unfinished)'}"
            colour, dashes = SIGNS[(number + 2) % len(SIGNS)].colour, _DASHES[number % len(_DASHES)]
            curves.append(Curve(name, edges, colour=colour, dashes=dashes))
    points: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for trial in result.trials:
        points[trial.is_clean].append((trial.outcome.load.pps, 100 * trial.loss_ratio(in_total=False)))
    signs = {"trial": (SIGNS[0], points[True]), "trial with a doubt": (SIGNS[1], points[False])}
    curves += [Curve(name, found, sign, is_joined=False) for name, (sign, found) in signs.items() if found]
    up = Axis("frames lost [%]", _loss_share, [(loss, f"{loss:g}") for loss in (0, 0.01, 0.1, 1, 10, 100)])
    across = scaled("load of each port", "pps", 1.03 * result.highest.pps)
    return chart.line(Panel(title, across, up, curves, simulated=simulated))


def ramp_plot(result: RampResult, title: str, simulated: bool = False) -> str:
    """Return offered and forwarded rate over the seconds of the ramp, with the saturation point."""
    steps = result.steps
    edges = [0.0, *accumulate(step.trial.outcome.duration for step in steps)]
    offered = [(edge, step.offered_pps) for at, step in enumerate(steps) for edge in edges[at : at + 2]]
    forwarded = [(edge, step.forwarded_pps) for at, step in enumerate(steps) for edge in edges[at : at + 2]]
    curves = [Curve("offered", offered, dashes="2 3"), Curve("forwarded", forwarded, colour=SIGNS[0].colour)]
    for before, after, edge in zip(steps, steps[1:], edges[1:], strict=False):
        if before.phase is not after.phase:
            curves.append(chart.upright(edge, "", chart.FAINT_COLOUR, "1 4", f"{after.phase.value} begins"))
    if result.saturation is not None:
        edge = edges[steps.index(result.saturation)]
        curves.append(chart.upright(edge, "saturation", chart.LOST_COLOUR, "9 4"))
    up = scaled("rate, each port", "pps", 1.08 * max([step.offered_pps for step in steps], default=1.0) or 1.0)
    across = linear("seconds of traffic (it pauses between the steps)", max(edges[-1], 1e-9))
    return chart.line(Panel(title, across, up, curves, simulated=simulated))


def scaling_plot(result: ScalingResult, title: str, simulated: bool = False) -> str:
    """Return lower bounds over the varied value, with a line up to the upper bounds."""
    found = [(point.value, item) for point in result.points if point.result for item in point.result.bounds]
    ends = [load.pps for _, item in found for load in (item.lower, item.upper) if load]
    values = [point.value for point in result.points]
    across = chart.valued(result.axis, values, max(values, default=0) > 20 * max(min(values, default=0), 1))
    curves = []
    for sign, name in zip(SIGNS, dict.fromkeys(item.name for _, item in found), strict=False):
        own = [(value, item.lower.pps, item.upper) for value, item in found if item.name == name and item.lower]
        spans = [(value, Bounds(low, max(low, upper.pps))) for value, low, upper in own if upper]
        curves.append(Curve(name, [(value, low) for value, low, _ in own], sign, spans=spans))
    up = scaled("load carried by each port", "pps", 1.1 * max(ends, default=1.0))
    return chart.line(Panel(title, across, up, curves, simulated=simulated))


# -- RFC 2544 ----------------------------------------------------------------------------------------------------------


def throughput_plot(results: Sequence[ThroughputResult], title: str, simulated: bool = False) -> str:
    """Return 26.1 as a graph: frame rate over frame size, with the theoretical rate of the medium."""
    sizes = [item.size for item in results] or [64]
    across = linear("frame size [bytes with FCS]", 1.05 * max(sizes))
    up = scaled("rate into each port", "pps", 1.05 * max((item.line_pps for item in results), default=1.0))
    carried = [(float(item.size), item.throughput.pps) for item in results if item.throughput]
    curves = [Curve("throughput, no frame lost", carried, SIGNS[0])] if carried else []
    for item in results[:1]:
        link = item.line_pps * l1_bits(item.size)
        places = [min(sizes) + (max(sizes) - min(sizes)) * (index / 200) ** 2 for index in range(201)]
        theory = [(size, link / l1_bits(size)) for size in places]
        curves.insert(0, Curve("theoretical maximum", theory, dashes="9 4"))
    return chart.line(Panel(title, across, up, curves, simulated=simulated))


def loss_plot(curves: Sequence[LossCurve], title: str, simulated: bool = False) -> str:
    """Return 26.3 as a graph: per cent lost over per cent of the medium's rate, both from 0 to 100."""
    shown = [
        Curve(
            f"{curve.size:g} bytes",
            [(point.offered, 100 * point.loss_ratio) for point in curve.points],
            SIGNS[number % len(SIGNS)],
        )
        for number, curve in enumerate(curves)
    ]
    across = linear("offered rate [% of the medium's frame rate at this size]", 100)
    return chart.line(Panel(title, across, linear("frames lost [%]", 100), shown, simulated=simulated))
