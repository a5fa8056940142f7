"""The picture of a sentence shows what the sentence is about: its own quantity, trial by trial, beside its limit.

A throughput and a forwarding rate are rates (:mod:`.plots`). Of latency and packet delay variation it is the histogram
of the probe frames; of a recovery the frames that were lost later and later (:mod:`.recovery_plot`); of a loss ratio, a
cost or an energy the figure of each trial. Trials that are set aside are hatched and have no part in the scale.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median

from ..core.latency import FIRST_BUCKET, LATER, LOST, LatencyCount, bucket_end
from ..core.requirement import ENERGY_UNITS, Quantity, Unit
from ..core.step_down import StepDown
from ..core.trial import Trial
from ..methods.cost import READING_OF
from ..methods.energy import energy_of
from .demand import Demand
from .drawing import (
    LOST_COLOUR,
    TEXT_COLOUR,
)
from .plot_frame import PlotFrame, series_colour
from .plots import (
    AXES_HEIGHT,
    LABEL_SIZE,
    LEFT,
    MOST_NAMES,
    RIGHT,
    TICK_SIZE,
    ThresholdLine,
    direction_area,
    is_set_aside,
    ticks,
    trials_plot,
)
from .rates import TrafficFigures, trial_name
from .recovery_plot import draw_recovery
from .svg import SHAPES, Hatch

Range = tuple[float, float, float]
"""The least, the best known and the greatest value of a figure; infinite: not bounded."""

_RATES = (Quantity.THROUGHPUT, Quantity.FORWARDING_RATE)
_AXES = {Quantity.LOSS: "loss ratio [{}]", Quantity.RECOVERY: "time [{}]"}
_TIMES = (Quantity.LATENCY, Quantity.DELAY_VARIATION)


def plot_name(demand: Demand) -> str:
    """What the picture of a sentence shows."""
    quantity = Quantity(demand.quantity)
    if quantity in _RATES:
        return "Offered and forwarded rate"
    if quantity in _TIMES:
        return "Latency of the probe frames"
    return {
        Quantity.LOSS: "Loss ratio of each trial",
        Quantity.RECOVERY: "Recovery after the overload",
    }.get(quantity, f"Trial by trial: {demand.unit}")


def sentence_plot(
    demand: Demand,
    trials: Sequence[Trial],
    traffic: TrafficFigures,
    link_bps: float,
    title: str,
    simulated: bool = False,
    step_downs: Mapping[int, StepDown] | None = None,
) -> str:
    """The picture of a sentence with this *demand* as SVG. *link_bps*: link speed of one direction in L1 bit/s.

    *step_downs*: the counts of the repetitions of a recovery, by the trial's number.
    """
    quantity = Quantity(demand.quantity)
    if quantity in _RATES or not any(trial.number for trial in trials):
        line = None if demand.pps is None else ThresholdLine(demand.pps, f"≥ {demand.text()}")
        return trials_plot(trials, traffic, link_bps, title, simulated, line, demand.in_total)
    frame = PlotFrame(title, simulated)
    judged = [trial for trial in trials if trial.number]
    known = step_downs if quantity is Quantity.RECOVERY and step_downs else {}
    counted = [trial for trial in judged if not is_set_aside(trial)]
    repeated = [trial for trial in counted if trial.number in known and _figures(demand, trial)]
    if quantity in _TIMES:
        _draw_histogram(frame, demand, judged)
    elif repeated:
        draw_recovery(frame, demand, repeated, known, len(judged) - len(counted))
    else:
        _draw_figures(frame, demand, judged)
    return frame.finished()


def _draw_figures(frame: PlotFrame, demand: Demand, trials: Sequence[Trial]) -> None:
    """The figures of each trial as marks; a line between the ends of what is known."""
    found = [{} if is_set_aside(trial) else _figures(demand, trial) for trial in trials]
    names = list(dict.fromkeys(name for figures in found for name in figures))
    ends = [end for figures in found for figure in figures.values() for end in figure if math.isfinite(end)]
    highest = 1.15 * max([*ends, demand.number]) or 1.0
    marks = ((value / highest, words) for value, words in ticks(highest))
    frame.scale(marks, _AXES.get(Quantity(demand.quantity), "{}").format(demand.unit), "trial")
    for column, (trial, figures) in enumerate(zip(trials, found, strict=True)):
        if column % math.ceil(len(trials) / MOST_NAMES) == 0:
            x = frame.x(column, len(trials))
            frame.picture.text(x, frame.bottom + 18, trial_name(trial), TICK_SIZE, TEXT_COLOUR, anchor="middle")
        if is_set_aside(trial):
            frame.set_aside(column, len(trials))
        for name, figure in figures.items():
            place = names.index(name)
            x = frame.x(column + 0.5 * ((place + 0.5) / len(names) - 0.5), len(trials))
            _draw_range(frame, x, figure, highest, place)
    for place, name in enumerate(names):
        frame.series_sign(name, place)
    level = frame.y(demand.number / highest)
    frame.limit((LEFT, level), (RIGHT, level), f"{demand.relation} {demand.text()}")
    if not ends:
        frame.note("no trial has such a figure")


def _draw_range(frame: PlotFrame, x: float, figure: Range, highest: float, place: int) -> None:
    colour, (low, value, high) = series_colour(place), figure
    start, end = frame.y(low / highest), frame.y(high / highest) if math.isfinite(high) else frame.top
    if low != high:
        frame.picture.line((x, start), (x, end), colour, 2)
        for level in (start, end) if math.isfinite(high) else (start,):
            frame.picture.line((x - 6, level), (x + 6, level), colour, 2)
    if math.isfinite(value):
        frame.picture.mark(x, frame.y(value / highest), place, colour)
    elif math.isinf(high):
        frame.picture.mark(x, frame.top + 6, 2, colour)
        frame.picture.text(x + 8, frame.top + 12, "no end seen", LABEL_SIZE, TEXT_COLOUR)


def _figures(demand: Demand, trial: Trial) -> Mapping[str, Range]:
    """What *trial* measured of the quantity, in the sentence's unit, by the name of the series."""
    quantity, known = Quantity(demand.quantity), trial.outcome.readings
    if quantity is Quantity.LOSS:
        if demand.in_total:
            return _same({"loss ratio of all directions": 100 * trial.loss_ratio(True)})
        rows = trial.outcome.directions
        return _same({f"loss ratio {row.tx_port} → {row.rx_port}": 100 * row.loss_ratio for row in rows})
    if quantity is Quantity.RECOVERY:
        if "recovery_low_s" not in known:
            return {}
        factor = 1.0 if demand.unit == Unit.SECONDS.value else 1e6
        low, high = (factor * known.get(f"recovery_{end}_s", math.inf) for end in ("low", "high"))
        return {"last lost frame after the overload: earliest to latest": (low, math.inf, high)}
    unit = Unit(demand.unit)
    if unit in ENERGY_UNITS:
        found = energy_of(trial, unit)
        return {} if found is None else {"energy, and what the meter leaves open": (found.low, found.value, found.high)}
    reading = READING_OF[unit]
    others = [name for name in READING_OF.values() if name != reading and name.startswith(reading)]
    workers = {
        name.removeprefix(f"{reading}_"): value
        for name, value in known.items()
        if name.startswith(f"{reading}_")
        and not any(name.startswith(other) for other in others)
        and math.isfinite(value)
    }
    whole = {"all workers": known[reading]} if reading in known else {}
    if len(workers) < SHAPES:
        return _same({**whole, **(workers if len(workers) > 1 else {})})
    spread = min(workers.values()), median(workers.values()), max(workers.values())
    return {**_same(whole), f"{len(workers)} workers: least, median, greatest": spread}


def _same(values: Mapping[str, float]) -> Mapping[str, Range]:
    return {name: (value, value, value) for name, value in values.items() if math.isfinite(value)}


def _draw_histogram(frame: PlotFrame, demand: Demand, trials: Sequence[Trial]) -> None:
    """The probe frames of all trials that count, by latency, on a logarithmic scale."""
    counted = [trial for trial in trials if not is_set_aside(trial)]
    found: dict[str, Counter[float]] = {}
    for trial in counted:
        for count in trial.outcome.latency:
            if spread := count.spread(trial.seconds):
                found.setdefault(_direction(count), Counter()).update(spread.worst)
    limit, label = demand.number, f"limit {demand}"
    placed = [key for frames in found.values() for key in frames if key < LATER]
    if demand.quantity == Quantity.DELAY_VARIATION.value:
        limit, label = limit + min(placed, default=0.0), f"limit: {demand.text()} later than the fastest frame"
    buckets = _buckets(max([*placed, limit])) + sorted(
        {key for frames in found.values() for key in (LATER, LOST) if frames[key]}
    )
    columns, most = len(buckets), max((max(frames.values()) for frames in found.values()), default=1)
    decades = math.ceil(math.log10(most)) + 0.6

    def share(frames: float) -> float:
        return (math.log10(frames) + 0.3) / decades

    marks = ((share(10**power), f"{10**power:,}") for power in range(math.ceil(decades - 0.3)))
    frame.scale(marks, "probe frames", "latency [µs], from each figure up to the next")
    for column, key in enumerate(buckets):
        width = 0.84 / max(1, len(found))
        late = key >= LATER or key >= limit
        for place, frames in enumerate(found.values()):
            if not frames[key]:
                continue
            left = frame.x(column - 0.42 + place * width, columns)
            height = share(frames[key]) * AXES_HEIGHT
            box = (left, frame.bottom - height, width * 0.94 / columns * (RIGHT - LEFT), height)
            if late:
                frame.picture.hatched(*box, LOST_COLOUR, Hatch.CROSSED)
                frame.hatched_sign("later than the limit, or lost", LOST_COLOUR, Hatch.CROSSED)
            else:
                direction_area(frame.picture, box, place)
            if columns * len(found) <= 20:
                middle = left + box[2] / 2, box[1] - 4
                frame.picture.text(*middle, f"{frames[key]:,}", LABEL_SIZE, TEXT_COLOUR, anchor="middle")
        if columns <= 16 or key >= LATER or not column or f"{key:g}".strip("0") == "1":
            name = "lost" if key == LOST else "1 s" if key == LATER else f"{key:g}"
            frame.picture.text(
                frame.x(column, columns), frame.bottom + 18, name, TICK_SIZE, TEXT_COLOUR, anchor="middle"
            )
    for place, name in enumerate(found):

        def sign(x: float, y: float, place: int = place) -> None:
            direction_area(frame.picture, (x + 4, y - 10, 16, 11), place)

        frame.legend[f"probe frames {name}"] = sign
    at = next((column for column, key in enumerate(buckets) if key <= limit < bucket_end(key)), columns - 1)
    inside = (limit - buckets[at]) / (bucket_end(buckets[at]) - buckets[at])
    x = frame.x(at - 0.5 + (inside if math.isfinite(inside) else 0.0), columns)
    frame.limit((x, frame.top), (x, frame.bottom), label)
    frame.not_shown(len(trials) - len(counted), len(trials))
    if not found:
        frame.note("no probe frames are known")


def _buckets(last: float) -> list[float]:
    """The lower ends of TRex's buckets up to that of *last* µs."""
    found = [0.0]
    while bucket_end(found[-1]) <= min(last, LATER / 2):
        found.append(bucket_end(found[-1]) if found[-1] else float(FIRST_BUCKET))
    return found


def _direction(count: LatencyCount) -> str:
    return f"{count.tx_port} → {count.rx_port}"
