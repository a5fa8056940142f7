"""The picture of a sentence shows what the sentence is about: its own quantity, trial by trial, beside its limit.

A throughput and a forwarding rate are rates (:mod:`.plots`). Of latency and packet delay variation it is the histogram
of the probe frames; of a loss ratio, a cost, an energy or a recovery time the figure of each trial. Trials that are set
aside are hatched and have no part in the scale.
"""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..counts.latency import FIRST_BUCKET, LATER, LOST, LatencyCount, bucket_end
from ..counts.trial import Trial
from ..methods.cost import READING_OF
from ..methods.energy import energy_of
from ..sla.requirement import ENERGY_UNITS, Quantity, Unit
from .demand import Demand
from .drawing import (
    DIRECTION_COLOURS,
    FAINT_COLOUR,
    GRID_COLOUR,
    LOST_COLOUR,
    SIMULATED_COLOUR,
    TEXT_COLOUR,
    THRESHOLD_COLOUR,
)
from .plots import (
    AXES_HEIGHT,
    LABEL_SIZE,
    LEFT,
    LEGEND_SIZE,
    MOST_NAMES,
    RIGHT,
    SET_ASIDE,
    TICK_SIZE,
    TITLE_SIZE,
    WIDTH,
    WORD_SIZE,
    ThresholdLine,
    is_set_aside,
    ticks,
    trials_plot,
)
from .rates import TrafficFigures, trial_name
from .svg import Hatch, SvgPicture, text_width
from .tables import SIMULATED

Range = tuple[float, float, float]
"""The least, the best known and the greatest value of a figure; infinite: not bounded."""

_COLOURS = (DIRECTION_COLOURS[0], "#b5651d", "#3d3d3d", "#7a68a6", "#59a3c9", "#8a95a0")
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
        Quantity.RECOVERY: "Time of the last lost frame in each trial",
    }.get(quantity, f"Trial by trial: {demand.unit}")


def sentence_plot(
    demand: Demand,
    trials: Sequence[Trial],
    traffic: TrafficFigures,
    link_bps: float,
    title: str,
    simulated: bool = False,
) -> str:
    """The picture of a sentence with this *demand* as SVG. *link_bps*: link speed of one direction in L1 bit/s."""
    quantity = Quantity(demand.quantity)
    if quantity in _RATES or not any(trial.number for trial in trials):
        line = None if demand.pps is None else ThresholdLine(demand.pps, f"≥ {demand.text()}")
        return trials_plot(trials, traffic, link_bps, title, simulated, line, demand.in_total)
    frame = _Frame(title, simulated)
    if quantity in _TIMES:
        _draw_histogram(frame, demand, [trial for trial in trials if trial.number])
    else:
        _draw_figures(frame, demand, [trial for trial in trials if trial.number])
    return frame.finished()


@dataclass
class _Frame:
    """Title, axes from LEFT to RIGHT, and a legend: label -> what draws its sign at a place."""

    title: str
    simulated: bool
    legend: dict[str, Callable[[float, float], None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.picture = SvgPicture(WIDTH, 0, self.title)
        titles = textwrap.wrap(self.title, 84) or [""]
        self.top = 34 + 1.25 * TITLE_SIZE * len(titles)
        self.bottom = self.top + AXES_HEIGHT
        self.picture.texts(LEFT, 42, titles, TITLE_SIZE, TEXT_COLOUR, bold=True)
        if self.simulated:
            self.picture.text(WIDTH - 5, 17, SIMULATED, LEGEND_SIZE, SIMULATED_COLOUR, anchor="end", bold=True)
            style = {"turned": -18.0, "opacity": 0.16}
            middle = (LEFT + RIGHT) / 2, self.top + AXES_HEIGHT / 2 + 25
            self.picture.text(*middle, "SIMULATED", 82, FAINT_COLOUR, anchor="middle", bold=True, **style)

    def y(self, share: float) -> float:
        """Of a *share* of the height of the axes."""
        return self.bottom - share * AXES_HEIGHT

    def x(self, column: float, columns: int) -> float:
        """Of the middle of *column* 0, 1 …"""
        return LEFT + (column + 0.5) / columns * (RIGHT - LEFT)

    def scale(self, marks: Iterable[tuple[float, str]], name: str, below: str) -> None:
        """The upright axis with *marks* (share of its height, words), and both axes' names."""
        for share, words in marks:
            self.picture.line((LEFT, self.y(share)), (RIGHT, self.y(share)), GRID_COLOUR)
            self.picture.text(LEFT - 7, self.y(share) + 4.5, words, TICK_SIZE, TEXT_COLOUR, anchor="end")
        for start, end in (((LEFT, self.top), (LEFT, self.bottom)), ((LEFT, self.bottom), (RIGHT, self.bottom))):
            self.picture.line(start, end, FAINT_COLOUR)
        middle = self.top + AXES_HEIGHT / 2
        self.picture.text(18, middle, name, WORD_SIZE, TEXT_COLOUR, anchor="middle", turned=-90)
        self.picture.text((LEFT + RIGHT) / 2, self.bottom + 38, below, WORD_SIZE, TEXT_COLOUR, anchor="middle")

    def limit(self, start: tuple[float, float], end: tuple[float, float], label: str) -> None:
        """The line of the limit."""
        style = (THRESHOLD_COLOUR, 2.4, "9 4")
        self.picture.line(start, end, *style)
        self.legend[label] = lambda x, y: self.picture.line((x, y - 4.5), (x + 24, y - 4.5), *style)

    def hatched_sign(self, label: str, colour: str, hatch: Hatch) -> None:
        """A hatched area in the legend."""
        self.legend[label] = lambda x, y: self.picture.hatched(x + 4, y - 10, 16, 11, colour, hatch)

    def set_aside(self, column: int, columns: int) -> None:
        """The column of a trial that says nothing of the router."""
        left, width = self.x(column - 0.4, columns), 0.8 / columns * (RIGHT - LEFT)
        self.picture.hatched(left, self.top, width, AXES_HEIGHT, FAINT_COLOUR, Hatch.BACK)
        self.hatched_sign(SET_ASIDE, FAINT_COLOUR, Hatch.BACK)

    def finished(self) -> str:
        """The picture with its legend, as SVG."""
        x, y = LEFT, self.bottom + 62
        for label, sign in self.legend.items():
            width = 31 + text_width(label, LEGEND_SIZE)
            if x > LEFT and x + width > WIDTH - 10:
                x, y = LEFT, y + 20
            sign(x, y)
            self.picture.text(x + 31, y, label, LEGEND_SIZE, TEXT_COLOUR)
            x += width + 22
        self.picture.height = y + 14
        return self.picture.svg()


def _draw_figures(frame: _Frame, demand: Demand, trials: Sequence[Trial]) -> None:
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
        colour = _COLOURS[place % len(_COLOURS)]

        def sign(x: float, y: float, place: int = place, colour: str = colour) -> None:
            frame.picture.mark(x + 12, y - 4.5, place, colour)

        frame.legend[name] = sign
    level = frame.y(demand.number / highest)
    frame.limit((LEFT, level), (RIGHT, level), f"{demand.relation} {demand.text()}")
    if not ends:
        middle = (LEFT + RIGHT) / 2, frame.top + AXES_HEIGHT / 2
        frame.picture.text(*middle, "no trial has such a figure", WORD_SIZE, TEXT_COLOUR, anchor="middle")


def _draw_range(frame: _Frame, x: float, figure: Range, highest: float, place: int) -> None:
    colour, (low, value, high) = _COLOURS[place % len(_COLOURS)], figure
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
        if name.startswith(f"{reading}_") and not any(name.startswith(other) for other in others)
    }
    whole = {"all workers": known[reading]} if reading in known else {}
    return _same({**whole, **(workers if len(workers) > 1 else {})})


def _same(values: Mapping[str, float]) -> Mapping[str, Range]:
    return {name: (value, value, value) for name, value in values.items() if math.isfinite(value)}


def _draw_histogram(frame: _Frame, demand: Demand, trials: Sequence[Trial]) -> None:
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
                frame.picture.rectangle(*box, DIRECTION_COLOURS[place % len(DIRECTION_COLOURS)])
            if columns * len(found) <= 20:
                middle = left + box[2] / 2, box[1] - 4
                frame.picture.text(*middle, f"{frames[key]:,}", LABEL_SIZE, TEXT_COLOUR, anchor="middle")
        if columns <= 16 or key >= LATER or not column or f"{key:g}".strip("0") == "1":
            name = "lost" if key == LOST else "1 s" if key == LATER else f"{key:g}"
            frame.picture.text(
                frame.x(column, columns), frame.bottom + 18, name, TICK_SIZE, TEXT_COLOUR, anchor="middle"
            )
    for place, name in enumerate(found):
        colour = DIRECTION_COLOURS[place % len(DIRECTION_COLOURS)]

        def sign(x: float, y: float, colour: str = colour) -> None:
            frame.picture.rectangle(x + 4, y - 10, 16, 11, colour)

        frame.legend[f"probe frames {name}"] = sign
    at = next((column for column, key in enumerate(buckets) if key <= limit < bucket_end(key)), columns - 1)
    inside = (limit - buckets[at]) / (bucket_end(buckets[at]) - buckets[at])
    x = frame.x(at - 0.5 + (inside if math.isfinite(inside) else 0.0), columns)
    frame.limit((x, frame.top), (x, frame.bottom), label)
    if aside := len(trials) - len(counted):
        frame.hatched_sign(f"{aside} of {len(trials)} trials not shown, {SET_ASIDE}", FAINT_COLOUR, Hatch.BACK)
    if not found:
        middle = (LEFT + RIGHT) / 2, frame.top + AXES_HEIGHT / 2
        frame.picture.text(*middle, "no probe frames are known", WORD_SIZE, TEXT_COLOUR, anchor="middle")


def _buckets(last: float) -> list[float]:
    """The lower ends of TRex's buckets up to that of *last* µs."""
    found = [0.0]
    while bucket_end(found[-1]) <= min(last, LATER / 2):
        found.append(bucket_end(found[-1]) if found[-1] else float(FIRST_BUCKET))
    return found


def _direction(count: LatencyCount) -> str:
    return f"{count.tx_port} → {count.rx_port}"
