"""The page of a study in its run's folder, with its pictures.

Bars of each row, curves over the study's parameter, ramps, and what each generator sends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from ..core.bounds import Bounds
from ..evidence import chart
from ..evidence.chart import AREAS, SIGNS, Chart, Part, Sign, columns, linear
from ..evidence.document import Figure, as_page
from ..evidence.run_files import STUDY_PAGE, partial
from ..files import write_whole
from ..units import line_rate_pps
from .fitness import LINES, SenderFigures, senders_of
from .forms import LINE_RATE, document, figure
from .results import StudyCell, StudyResults
from .study import AT_LEAST, Parameter

_DASHES = "5 4"
"""The line of published figures over the parameter, in the colour of what was measured."""

_SAMPLES = 100
"""Points of a reference, which is no straight line on a logarithmic axis."""


def drawn(found: StudyResults) -> dict[str, list[Figure]]:
    """Return the pictures of each row, and those of generators."""
    pictures = {row: pictures_of(found, row, cells) for row, cells in found.rows()}
    pictures[LINE_RATE] = sender_pictures(found, senders_of(found))
    return {part: [Figure(svg, title) for title, svg in each] for part, each in pictures.items()}


def page(found: StudyResults) -> str:
    """Return the results as a page with their pictures."""
    return as_page(document(found, drawn(found)))


def write_page(found: StudyResults) -> Path:
    """Write the page into the run's folder; returns it. Raises TestbedError."""
    path = found.folder / STUDY_PAGE
    write_whole(path, page(found), fresh=partial(path))
    return path


def pictures_of(found: StudyResults, row: str, cells: Sequence[StudyCell]) -> list[tuple[str, str]]:
    """Return the pictures of *row*, each with its title: bars, and a ramp or a curve over the parameter."""
    drawn = [(f"{row}: {cells[0].unit}", _bars(row, cells, found.simulated))] if _values(cells) else []
    if any(record.curve for record in found.records if record.row == row):
        drawn.insert(0, (f"{row}: received over offered", _ramp(found, row, cells)))
    if (parameter := found.study.parameter) is not None and len(_points(found, cells)) > 1:
        drawn.append((f"{row} over {parameter.name}", _over_parameter(found, parameter, row, cells)))
    return drawn


def _values(cells: Sequence[StudyCell]) -> list[float]:
    known = [value for cell in cells for value in (*cell.values, *cell.published)]
    return [value for value in known if math.isfinite(value)]


def _bars(row: str, cells: Sequence[StudyCell], simulated: bool) -> str:
    """Return for each variant a bar up to its median, a line from least to largest value, and the published ones."""
    value = linear(cells[0].unit, 1.06 * max([*_values(cells), 1e-9]))
    names = columns("", [cell.variant for cell in cells])
    plot = Chart(f"{row} [{cells[0].unit}]", names, value, simulated, is_level=True)
    for place, cell in enumerate(cells):
        if own := cell.summary:
            sign, words = Sign(5, chart.TEXT_COLOUR), "median, least and largest value"
            plot.bar(place, [Part(max(0.0, own.median), "", AREAS[1])])
            plot.range(place, Bounds(own.minimum, own.maximum), sign, words, own.median)
        if published := cell.published_summary:
            sign, words = Sign(1, chart.LIMIT_COLOUR), "published (median, from least to largest)"
            plot.range(place, Bounds(published.minimum, published.maximum), sign, words, published.median)
        end = max((known.maximum for known in (own, published) if known), default=0.0)
        plot.label(place, end, cell.sign + figure(own.median) if own else "no value")
    return plot.svg()


def _ramp(found: StudyResults, row: str, cells: Sequence[StudyCell]) -> str:
    """Return what each variant sent on, over what it was offered, in its first ramp."""
    records = {record.variant: record for record in reversed(found.records) if record.row == row and record.curve}
    unit, most = cells[0].unit, max(offered for record in records.values() for offered, _ in record.curve)
    across, up = (linear(f"{name} [{unit}]", 1.04 * most) for name in ("offered", "received"))
    plot = Chart(f"{row}: received over offered, both in {unit}", across, up, found.simulated)
    plot.curve([(0.0, 0.0), (most, most)], "all that is offered", dashes="9 4")
    for number, cell in enumerate(cell for cell in cells if cell.variant in records):
        record = records[cell.variant]
        falls = "does not fall behind up to" if record.figures.get(AT_LEAST) else "falls behind at"
        words = cell.variant if record.value is None else f"{cell.variant}: {falls} {figure(record.value)}"
        plot.curve(record.curve, words, SIGNS[number % len(SIGNS)])
    return plot.svg()


def _points(found: StudyResults, cells: Sequence[StudyCell]) -> list[tuple[float, StudyCell]]:
    """Return the cells that have a place on the parameter's axis, and a value, in its order."""
    places = [(found.study.variants[cell.variant].value, cell) for cell in cells if cell.values]
    return sorted(((value, cell) for value, cell in places if value is not None), key=lambda item: item[0])


def _over_parameter(found: StudyResults, parameter: Parameter, row: str, cells: Sequence[StudyCell]) -> str:
    """Return the medians over *parameter*, from least to largest, with the published ones and a linear reference.

    There is a line for each baseline, which is on it, so that several routers in one study are not joined to one. A
    variant that is compared with nothing is on the line "" with others of its kind.
    """
    points, study = _points(found, cells), found.study
    end = 1.1 * max([*_values([cell for _, cell in points]), 1e-9])
    lines: dict[str, list[tuple[float, StudyCell]]] = {}
    for value, cell in points:
        own = cell.variant if cell.variant in study.baselines else ""
        lines.setdefault(study.baseline_of(cell.variant) or own, []).append((value, cell))
    is_logarithmic = parameter.axis == "log"
    unit = f" [{parameter.unit}]" if parameter.unit else ""
    name = f"{parameter.name}{unit}{', logarithmic' if is_logarithmic else ''}"
    across = chart.valued(name, [value for value, _ in points], is_logarithmic)
    plot = Chart(f"{row} over {parameter.name}", across, linear(cells[0].unit, end), found.simulated)
    for number, (name, points_of_line) in enumerate(lines.items()):
        sign = SIGNS[number % len(SIGNS)]
        level = _linear(points_of_line) if parameter.reference == "linear" else []
        if level := [point for point in level if point[1] <= end]:
            plot.curve(level, "linear with the parameter")
        known = [(value, cell.published_summary) for value, cell in points_of_line]
        published = [(value, figures.median) for value, figures in known if figures is not None]
        if published:
            plot.curve(published, "published", colour=sign.colour, dashes=_DASHES)
        measured = [(value, cell.summary, cell.at_least) for value, cell in points_of_line if cell.summary]
        words = name if len(lines) > 1 and name else "measured"
        plot.curve([(value, own.median) for value, own, _ in measured], words, sign)
        for value, figures, is_least in measured:
            plot.range(value, Bounds(figures.minimum, figures.maximum), sign, middle=figures.median)
            plot.words((value, figures.maximum), "≥" * is_least)
    return plot.svg()


def _linear(points: Sequence[tuple[float, StudyCell]]) -> list[tuple[float, float]]:
    """Return a figure that grows in proportion to the parameter, from the smallest value above 0; many points."""
    known = [(value, cell.summary.median) for value, cell in points if value > 0 and cell.summary is not None]
    if len(known) < 2:
        return []
    (first, level), (last, _) = known[0], known[-1]
    places = [first * (last / first) ** (number / _SAMPLES) for number in range(_SAMPLES + 1)]
    return [(value, level * value / first) for value in places]


def sender_pictures(found: StudyResults, senders: Sequence[SenderFigures]) -> list[tuple[str, str]]:
    """Return what each generator sends over the size of its frames, beside full lines, with its title."""
    if len({sender.frame for sender in senders}) < 2:
        return []
    largest, end = max(sender.frame for sender in senders), 1.1 * max(sender.offered / 1e3 for sender in senders)
    way = " each way" if any(sender.directions > 1 for sender in senders) else ""
    title, across = "Frames/s over frame size", linear("frame size [bytes with FCS]", 1.05 * largest)
    plot = Chart(title, across, linear(f"kframes/s{way}", max(end, 1e-9)), found.simulated)
    for name, link in LINES.items():
        sizes = [64 + (largest - 64) * number / _SAMPLES for number in range(_SAMPLES + 1)]
        rates = [(size, line_rate_pps(link, size) / 1e3) for size in sizes]
        if seen := [point for point in rates if point[1] <= end]:
            plot.curve(seen, "")
            plot.words(seen[-1], name)
    for number, variant in enumerate(dict.fromkeys(sender.variant for sender in senders)):
        own = sorted((sender.frame, sender.offered / 1e3) for sender in senders if sender.variant == variant)
        plot.curve(own, variant, SIGNS[number % len(SIGNS)])
    return [(title, plot.svg())]
