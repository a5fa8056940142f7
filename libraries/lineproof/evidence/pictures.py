"""The pictures of a sentence: its own quantity, trial by trial, beside the promise; the work of the router's workers.

Trials that are set aside have no part in it. Red is what was lost of a promise; what was lost beyond it is an outline.
After the trials of a rate come the higher loads at which its margin was searched for, one bar for all trials of a load.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence

from ..core.bounds import UNKNOWN, Bounds
from ..core.latency import LOST as LOST_PROBE
from ..core.phrases import percent
from ..core.quantity import Requirement
from ..core.trial import Fault, Trial
from ..core.under_load import BUSY_SHARE, FRAMES_TAKEN
from ..core.units import RATE_UNITS
from ..documents import chart
from ..documents.chart import AREAS, SIGNS, Chart, Part, columns, linear, scaled, valued
from ..units import line_rate_pps, si
from .records import RequirementRecord


def plot_name(requirement: Requirement) -> str:
    """Return what the picture of a sentence shows."""
    quantity = requirement.quantity
    names = {"rates": "Offered and forwarded rate", "histogram": "Latency of the probe frames"}
    return names.get(quantity.chart, f"{quantity.title or quantity.name} of each trial")


def sentence_plot(
    record: RequirementRecord,
    trials: Sequence[Trial],
    title: str,
    simulated: bool = False,
    searched: Sequence[Trial] = (),
) -> str:
    """Return the picture of the sentence of *record* as SVG; *searched*: the trials for its margin."""
    judged, kind = [trial for trial in trials if trial.number], record.promise.quantity.chart
    # bars would show what was not proven
    kind = "range" if record.verdict == "INCONCLUSIVE" and judged else kind
    if kind == "rates" or not judged:
        return _rates(record, judged, title, simulated, searched)
    return (_latencies if kind == "histogram" else _ranges)(record, judged, title, simulated)


def by_load(trials: Sequence[Trial]) -> dict[str, list[Trial]]:
    """Return *trials* by the frames/s that each port was to send, in words: ``5.012 M``."""
    loads = defaultdict[str, list[Trial]](list)
    for trial in trials:
        loads[si(trial.outcome.directions[0].intended / trial.outcome.duration, "")].append(trial)
    return loads


def _ranges(record: RequirementRecord, trials: Sequence[Trial], title: str, simulated: bool) -> str:
    """Return the figures of each trial, as far as they are known, beside the promise; both ends, if it is open."""
    promise, limit, is_open = record.promise, record.requirement.threshold.number, record.verdict == "INCONCLUSIVE"
    unknown = {promise.quantity.title or promise.quantity.name: UNKNOWN} if is_open else {}
    aside = [trial.is_set_aside and not is_open for trial in trials]
    known = [promise.quantity.charted(promise, trial) or unknown for trial in trials]
    charted = [{} if spoilt else figures for figures, spoilt in zip(known, aside, strict=True)]
    signs = dict(zip(dict.fromkeys(name for figures in charted for name in figures), 9 * SIGNS, strict=False))
    ends = [end for figures in charted for one in figures.values() for end in (one.low, one.high)]
    low, high = (chosen([limit, *filter(math.isfinite, ends)]) for chosen in (min, max))
    # ends of one trial are less sure than those of all, and may lie beside them
    across = columns("trial, each by itself", [str(trial.number) for trial in trials])
    room = max(0.35 * (high - low), 0.02 * abs(high)) or 1.0
    statistic = f" {promise.statistic.name}" if promise.statistic else ""
    name = f"{promise.quantity.title or promise.quantity.name}{statistic}"
    start = low - room if low < 0 else max(0.0, low - room)
    plot = Chart(title, across, scaled(name, promise.unit.value, high + room, start), simulated)
    worse = -math.inf if record.requirement.at_least else math.inf
    plot.area((-math.inf, math.inf), (limit, worse), chart.WORSE, "breaks the promise")
    plot.limit(limit, _promised(record))
    for column, figures in enumerate(charted):
        plot.bar(column, [_SET_ASIDE] * aside[column])
        for number, (name, sign) in enumerate(signs.items()):
            if one := figures.get(name):
                place = plot.beside(column, number, len(signs))
                legend = f"{name}: between both ends" if is_open else name
                plot.range(place, one, sign, legend, one.low if is_open else None)
                if is_open:
                    plot.range(place, Bounds(one.high, one.high), sign)
                elif math.isfinite(one.high):
                    came = one.low if record.requirement.at_least else one.high
                    plot.label(place, one.high, record.requirement.text(float(f"{came:.4g}")), len(signs))
    return plot.svg()


_SET_ASIDE = Part(math.inf, "set aside: spoilt by the testbed", chart.ASIDE)


def _promised(record: RequirementRecord) -> str:
    return f"{record.requirement.relation} {record.requirement.text()}"


# -- rates -------------------------------------------------------------------------------------------------------------


def _rates(
    record: RequirementRecord, trials: Sequence[Trial], title: str, simulated: bool, searched: Sequence[Trial]
) -> str:
    """Return the rates of each trial: forwarded, then lost, then unsent frames; their end is the load.

    There is one bar for all directions if the promise counts them in total. A quantity that does not judge loss allows
    what is lost beyond its limit. Nothing was promised at the loads of *searched*.
    """
    demanded, link_bps = record.requirement, record.link_bps
    promised = demanded.threshold_pps(link_bps) if demanded.threshold.unit in RATE_UNITS else 0.0
    needed = math.inf if record.promise.quantity.judges_loss else promised
    loads = sorted(by_load(searched).items(), key=lambda load: load[1][0].outcome.load.pps)
    groups = [(str(trial.number), [trial], needed) for trial in trials] + [(load, own, 0.0) for load, own in loads]
    bars: list[tuple[int, int, int, list[Part], float, str]] = []
    for column, (_, own, least) in enumerate(groups):
        numbers = range(len(own[0].outcome.directions))
        directions = [numbers] if record.promise.in_total else [range(number, number + 1) for number in numbers]
        drawn = [_rate_bar(own, each, least) for each in directions]
        drawn = [([_SET_ASIDE], 0.0, "")] if least and own[0].is_set_aside else drawn
        bars += [(column, number, len(drawn), *bar) for number, bar in enumerate(drawn)]
    line_rate = line_rate_pps(link_bps, record.mean_size)
    most = max([promised, *filter(math.isfinite, (sum(part.size for part in bar[3]) for bar in bars))])
    after = ", then frames/s tried for the margin" if loads else ""
    below = f"trial{after} (line rate of one direction: {si(line_rate, 'pps')})"
    across = columns(below, [name for name, *_ in groups])
    plot = Chart(title, across, scaled("rate", "pps", 1.12 * most or line_rate), simulated)
    for column, number, of, parts, *_ in bars:
        plot.bar(plot.beside(column, number, of), parts, of)
    if promised:
        plot.limit(promised, _promised(record))
    for column, number, of, _, end, came in bars:
        plot.label(plot.beside(column, number, of), end, came, of)
    return plot.svg()


def _rate_bar(trials: Sequence[Trial], directions: range, needed: float) -> tuple[list[Part], float, str]:
    """Return a bar, the end of the rate that is *needed* within it, and the rate that came in words, if it is less.

    Losses below the rate that is *needed* are red, and those beyond it are allowed. Where frames came back changed, as
    many of those that nobody looked at may be: they are hatched.
    """
    parts, lost, unsent, maybe_changed = list[Part](), 0.0, 0.0, 0.0
    seconds = sum(trial.seconds.high for trial in trials) or 1e-9
    counts = [row for trial in trials for row in trial.outcome.directions[directions.start : directions.stop]]
    for number in directions:
        own = [(trial, trial.outcome.directions[number]) for trial in trials]
        forwarded = sum(min(row.forwarded, row.offered) for _, row in own) / seconds
        offered = sum(row.offered for _, row in own) / seconds
        changes = (one for trial, row in own for one in trial.problems if one.concerns(row))
        most_changed = sum(one.most_frames for one in changes if one.fault is Fault.CHANGED) / seconds
        changed = min(forwarded, most_changed)
        name = f"forwarded {own[0][1].tx_port} → {own[0][1].rx_port}"
        parts.append(Part(forwarded - changed, name, AREAS[number % len(AREAS)]))
        maybe_changed += changed
        lost += offered - forwarded
        intended = sum(row.intended for _, row in own) / sum(trial.outcome.duration for trial in trials)
        unsent += max(0.0, intended - offered)
    is_changed = maybe_changed > 0 or any(row.changed for row in counts)
    parts += [Part(maybe_changed, "may have come back changed", chart.CHANGED)] if maybe_changed else []
    forwarded = math.fsum(part.size for part in parts)
    missing = min(lost, max(0.0, needed - forwarded))
    gone = "lost or changed" if is_changed else "lost"
    beyond = ", which this sentence allows" if needed else " at a load beyond the promise"
    parts += [Part(missing, gone, chart.LOST)] if missing else []
    parts += [Part(lost - missing, f"{gone}{beyond}", chart.ALLOWED)] if lost > missing else []
    # less than the width of a line cannot be seen
    parts += [Part(unsent, "never sent by the generator", chart.UNSENT)] if unsent > 0.002 * (forwarded + lost) else []
    ratio = f"−{percent(sum(row.lost for row in counts) / max(1, sum(row.offered for row in counts)))}"
    if is_changed:
        return parts, forwarded + missing, f"≤ {si(forwarded, 'pps')}: changed"
    if lost and not needed:
        return parts, forwarded + lost, ratio
    came = f"{si(forwarded, 'pps')}{f' ({ratio})' if missing == lost else ''}"
    return parts, forwarded + missing, came if missing else ""


# -- latency -----------------------------------------------------------------------------------------------------------


def _latencies(record: RequirementRecord, trials: Sequence[Trial], title: str, simulated: bool) -> str:
    """Return the probe frames of *trials* by latency, on a logarithmic axis, each at the end of its bucket.

    What is later than the limit, which is the end of a column, is hatched. The last column: what was lost.
    """
    shown, statistic = [trial for trial in trials if not trial.is_set_aside], record.promise.statistic
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
    in_columns = {direction: Counter[int]() for direction in counts}
    for direction, frames in counts.items():
        for latency, seen in frames.items():
            in_columns[direction][bisect_left(edges, latency)] += seen
    most = max((seen for own in in_columns.values() for seen in own.values()), default=1)
    powers = [10.0**power for power in range(1 + len(str(most)))]
    plot = Chart(title, columns(below, names), valued("probe frames [log. scale]", powers, True), simulated)
    for number, (direction, own) in enumerate(in_columns.items()):
        for column, seen in own.items():
            is_kept = edges[column] <= limit
            line_title = f"probe frames {direction}" if is_kept else "later than the limit, or lost"
            part = Part(seen, line_title, AREAS[number % len(AREAS)] if is_kept else chart.LOST)
            place = plot.beside(column, number, len(counts))
            plot.bar(place, [part], len(counts))
            plot.label(place, seen, f"{seen:,}", len(counts))
    plot.limit(edges.index(limit) + 0.5, promised, is_upright=True)
    return plot.svg()


# -- workers -----------------------------------------------------------------------------------------------------------


def workers_plot(trials: Sequence[Trial], title: str, simulated: bool = False) -> str:
    """Return the work of the busiest workers in each of *trials* as SVG; "": it was read in none, or in one only."""
    lines: dict[str, list[tuple[float, float]]] = {}
    judged = [trial for trial in trials if trial.number]
    for column, trial in enumerate(judged):
        for name, rate in trial.outcome.readings.items():
            if name.startswith((BUSY_SHARE, FRAMES_TAKEN)):
                lines.setdefault(name, []).append((float(column), rate))
    if max(map(len, lines.values()), default=0) < 2:
        return ""
    busiest = sorted(lines, key=lambda name: -max(rate for _, rate in lines[name]))[: len(SIGNS)]
    most = max(rate for name in busiest for _, rate in lines[name])
    is_share = busiest[0].startswith(BUSY_SHARE)
    up = linear("busy [%]", 1.0, size=0.01) if is_share else scaled("frames taken", "pps", 1.1 * most or 1.0)
    below = f"trial (the {len(busiest)} busiest of {len(lines)})" if len(busiest) < len(lines) else "trial"
    plot = Chart(title, columns(below, [str(trial.number) for trial in judged]), up, simulated)
    for sign, name in zip(SIGNS, sorted(busiest), strict=False):
        plot.curve(lines[name], name.removeprefix(BUSY_SHARE).removeprefix(FRAMES_TAKEN), sign)
    return plot.svg()
