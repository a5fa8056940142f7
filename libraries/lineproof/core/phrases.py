"""Texts and figures that quantities share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..units import Rate, apart, si
from .bounds import Bounds, Limit
from .quantity import Promise
from .rule import Ruling
from .trial import DirectionCount, Outcome, Trial


def percent(ratio: float, limit: float = 0.0) -> str:
    """Return a ratio as per cent with three digits; a small loss is never shown as 0, nor one beyond *limit* as it."""
    short = f"{apart(100 * ratio, 100 * limit, 3):.9g}"
    return f"{f'{float(short):.14f}'.rstrip('0') if 'e-' in short else short} %"


def difference(ratio: float, rounded: Callable[[float], int] = round) -> str:
    """Return a difference as per cent with its sign, as ``+2.11 %``; a small one is never shown as 0."""
    value = 100 * ratio
    power = math.floor(math.log10(abs(value))) if abs(value) > 1e-7 else 0
    decimals = max(0, -power, 2 - max(0, power))
    shown = f"{rounded(round(value * 10**decimals, 6)) / 10**decimals:+,.{decimals}f}"
    return f"{shown.rstrip('0').rstrip('.') if decimals else shown} %"


def part(ratio: float) -> str:
    """Return a part of a whole as per cent with three digits, or with so many that it is not shown as all of it."""
    return f"{apart(100 * ratio, 100, 3):.9g} %"


def between(bounds: Bounds, text: Callable[[float], str] = "{:.4g}".format) -> str:
    """Return *bounds* in words, each end as *text* writes it: ``400``, ``400 to 410``, ``at most 410``."""
    low, high = text(bounds.low), text(bounds.high)
    if low == high:
        return low
    if math.isinf(bounds.high):
        return f"at least {low}"
    return f"{low} to {high}" if bounds.low else f"at most {high}"


def proven(bounds: Bounds, ruling: Ruling, limit: Limit, text: Callable[[float], str]) -> str:
    """Return the end of *bounds* that *ruling* rests on in words, ``at most 0.1 %``; both ends if it is open."""
    if bounds.is_exact:
        return text(bounds.low)
    if ruling is Ruling.INCONCLUSIVE:
        return between(bounds, text)
    if limit.at_least is (ruling is Ruling.PASS):
        return f"at least {text(bounds.low)}"
    return f"at most {text(bounds.high)}"


def median_words(trials: Sequence[Trial]) -> str:
    """Return the words that follow a figure that is the median of several *trials*."""
    return f" (median of {len(trials)} trials)" if len(trials) > 1 else ""


def rate_words(pps: float, promise: Promise) -> str:
    """Return a rate in every unit, each saying whether its bits are L1 or L2."""
    rate = Rate(pps, promise.mean_size, promise.link_bps)
    frames = si(apart(pps, promise.limit.value), "pps", 9)
    bits = f"{si(rate.l1_bps, 'bit/s')} L1 = {si(rate.l2_bps, 'bit/s')} L2"
    return f"{frames} = {bits} = {rate.percent:.4g} % line rate"


def changed_words(trials: Sequence[Trial]) -> str:
    """Return how many frames came back changed, as those show that were looked at; "": none."""
    changed = sum(row.changed for trial in trials for row in trial.outcome.directions)
    return f"{changed:,} frames or more came back changed" if changed else ""


def as_received(trials: Sequence[Trial]) -> list[Trial]:
    """Return *trials* in which frames that came back changed count as forwarded: what is lost then is missing."""

    def as_counted(outcome: Outcome) -> Outcome:
        rows = (replace(row, forwarded=row.received, changed=0) for row in outcome.directions)
        return replace(outcome, directions=tuple(rows))

    return [replace(trial, outcome=as_counted(trial.outcome)) for trial in trials]


def of_directions(values: Sequence[float], in_total: bool) -> float:
    """Return the sum of *values* by direction, or the smallest."""
    return sum(values) if in_total else min(values, default=0.0)


def mean_rate(trials: Sequence[Trial], promise: Promise, frames: str) -> float:
    """Return the mean rate in frames/s of the field *frames* of the worst direction, or of all *in_total*."""
    seconds = sum(trial.seconds.high for trial in trials) or 1e-9
    columns = zip(*(trial.outcome.directions for trial in trials), strict=True)
    return of_directions(
        [sum(getattr(row, frames) for row in column) / seconds for column in columns], promise.in_total
    )


def rate_figures(promise: Promise, trials: Sequence[Trial]) -> dict[str, float]:
    """Return the mean offered and forwarded rates in every unit, for the record; empty without a trial."""
    figures: dict[str, float] = {}
    for name in ("offered", "forwarded") if trials else ():
        rate = Rate(mean_rate(trials, promise, name), promise.mean_size, promise.link_bps)
        figures |= {
            f"{name}_pps": rate.pps,
            f"{name}_l1_bps": rate.l1_bps,
            f"{name}_l2_bps": rate.l2_bps,
            f"{name}_percent_of_line": rate.percent,
        }
    return figures | pair_figures(promise, trials)


def _pairs(promise: Promise, trial: Trial) -> list[tuple[DirectionCount, ...]]:
    directions = trial.outcome.directions
    per_pair = len(directions) // promise.pairs
    return [directions[start : start + per_pair] for start in range(0, len(directions), per_pair)] if per_pair else []


def pair_figures(promise: Promise, trials: Sequence[Trial]) -> dict[str, float]:
    """Return mean rates and lost frames of each port pair, both directions together, and their sums.

    Empty for one pair.
    """
    if promise.pairs < 2 or not trials:
        return {}
    figures: dict[str, float] = {}
    seconds = sum(trial.seconds.high for trial in trials) or 1e-9
    for number in range(promise.pairs):
        rows, name = [row for trial in trials for row in _pairs(promise, trial)[number]], f"pair_{number + 1}"
        figures |= {
            f"{name}_offered_pps": sum(row.offered for row in rows) / seconds,
            f"{name}_forwarded_pps": sum(row.forwarded for row in rows) / seconds,
            f"{name}_lost_frames": float(sum(row.lost for row in rows)),
        }
    for name in ("offered_pps", "forwarded_pps", "lost_frames"):
        figures[f"all_pairs_{name}"] = sum(figures[f"pair_{number + 1}_{name}"] for number in range(promise.pairs))
    return figures


def _pair_lines(promise: Promise, trials: Sequence[Trial]) -> list[str]:
    """Return a line for the mean forwarding rate of each port pair and of all together; none for one pair."""
    figures = pair_figures(promise, trials)
    if not figures:
        return []
    lines = []
    for number, directions in enumerate(_pairs(promise, trials[0]), 1):
        ports = f"ports {directions[0].tx_port} and {directions[0].rx_port}"
        lost = f"{figures[f'pair_{number}_lost_frames']:,.0f}"
        lines.append(f"{ports}: forwarded {si(figures[f'pair_{number}_forwarded_pps'], 'pps')}, lost {lost} frames")
    return [*lines, f"all pairs together: forwarded {si(figures['all_pairs_forwarded_pps'], 'pps')}"]


def direction_lines(promise: Promise, trials: Sequence[Trial]) -> list[str]:
    """Return what each direction lost, if one lost more than twice another, and what each of several pairs did."""
    lost = "lost or changed" if changed_words(trials) else "lost"
    columns = list(zip(*(trial.outcome.directions for trial in trials), strict=True))
    ratios = [sum(row.lost for row in column) / max(1, sum(row.offered for row in column)) for column in columns]
    is_uneven = len(columns) > 1 and min(ratios) <= max(ratios) / 2 and max(ratios)
    lines = [
        f"port {column[0].tx_port} to {column[0].rx_port}: {f'{lost} {percent(ratio)}' if ratio else 'none missing'}"
        for column, ratio in zip(columns, ratios, strict=True)
        if is_uneven
    ]
    return [*lines, *_pair_lines(promise, trials)]
