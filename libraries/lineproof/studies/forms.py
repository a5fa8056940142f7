"""The results of a study as a document, and as a page with pictures. It is made of the records, and can be made again.

Pictures: bars of each row, curves over the study's parameter, ramps, and what each generator sends.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from ..core.bounds import Bounds
from ..evidence import chart
from ..evidence.chart import AREAS, SIGNS, Chart, Part, Sign, columns, linear
from ..evidence.document import Cell, Column, Document, Facts, Figure, Items, Mark, Note, Section, Table, as_page
from ..evidence.run_files import STUDY_PAGE, partial
from ..files import write_whole
from ..units import Layer, counted, line_rate_pps
from .measuring import CPU, DIRECTIONS, FRAME, OFFERED
from .results import (
    CONFIDENCE,
    FITNESS,
    LINES,
    SenderFigures,
    StudyCell,
    StudyResults,
    grouped,
    in_unit,
    senders_of,
)
from .study import AT_LEAST, TABLE_UNITS, Parameter, Study, StudyTable

NOTHING = "–"

BESIDE = "Ours; in brackets what the source published, in the table's unit."

COLUMNS = 118
"""Width of the text for a terminal: its tables have many columns."""

LINE_RATE = "Line rate"
"""The part about generators."""

_DASHES = "5 4"
"""The line of published figures over the parameter, in the colour of what was measured."""

_SAMPLES = 100
"""Points of the curve of a full line."""


def document(found: StudyResults, pictures: Mapping[str, Sequence[Figure]] | None = None) -> Document:
    """Return the results with *pictures* by their row, those of generators by LINE_RATE."""
    study, drawn, senders = found.study, pictures or {}, senders_of(found)
    facts = f"Study {study.study}, run {found.run}, testbed {found.testbed}; {study.repeats} blocks, seed {study.seed}."
    about = [study.about, f"Published figures: {study.source}." if study.source else "", facts]
    sections = [
        Section("", [Note(f"{headline(found)}.", strong=True), *map(Note, filter(None, about))]),
        Section("Variants", [Facts({name: _variant(found, name) for name in study.variants})]),
    ]
    for row, cells in found.rows():
        what = [Note(words)] if (words := study.measures[row].about) else []
        table = Table.of([_row(found, cell) for cell in cells])
        sections.append(Section(f"{row} [{cells[0].unit}]", [*what, table, *drawn.get(row, ())]))
    if senders:
        table = Table.of([_sender_row(sender, senders) for sender in senders])
        sections.append(Section(LINE_RATE, [table, *drawn.get(LINE_RATE, ())]))
    sections += [Section(title, [_source_table(found, table), Note(BESIDE)]) for title, table in study.tables.items()]
    if said := notes(found):
        sections.append(Section("What must be known of these figures", [Items(said)]))
    figures = [_figures(found, cell, senders) for _, cells in found.rows() for cell in cells]
    return Document(study.title, sections, found.simulated, {"figures": figures})


def _source_table(found: StudyResults, table: StudyTable) -> Table:
    """Return *table* in the source's own form: ours, and the published figure in brackets."""

    def cell_of(row: str, column: str) -> str:
        measure, variant, unit = table.place(row, column)
        cell = found.cells[measure, variant]
        ours, theirs = (
            None if known is None else in_unit(found, cell, known.median, unit)
            for known in (cell.summary, cell.published_summary)
        )
        shown = NOTHING if ours is None or not cell.measured else cell.sign + figure(ours)
        is_worked_out = unit and cell.unit not in TABLE_UNITS
        return shown if theirs is None or is_worked_out else f"{shown} ({figure(theirs)})"

    columns_of = {row: {Column(name): cell_of(row, name) for name in table.columns} for row in table.rows}
    return Table.of([{Column("", left=True): row, **cells} for row, cells in columns_of.items()])


def _variant(found: StudyResults, name: str) -> str:
    """Return what a variant is measured on, without a router the testbed, and what it is."""
    study, own = found.study, found.study.variants[name]
    box = (own.testbed or found.testbed,) if study.bypass else (study.platform_of(name), own.software or "first")
    return ", ".join(filter(None, (*box, own.about)))


def _row(found: StudyResults, cell: StudyCell) -> dict[Column, Cell]:
    """Return what people read of *cell*."""
    own, published = cell.summary, cell.published_summary
    figures = [cell.sign + figure(x) for x in (own.minimum, own.median, own.maximum)] if own else [NOTHING] * 3
    told = NOTHING if published is None else figure(published.median)
    if published is not None and published.n > 1:
        told += f" ({figure(published.minimum)} to {figure(published.maximum)}, n {published.n})"
    inside: dict[bool | None, tuple[str, Mark]] = {None: (NOTHING, ""), True: ("yes", "good"), False: ("NO", "bad")}
    words, mark = inside[cell.inside]
    return {
        Column("variant", left=True): Cell(cell.variant),
        Column("n"): Cell(str(len(cell.values))),
        Column("min"): Cell(figures[0]),
        Column("median"): Cell(figures[1]),
        Column("max"): Cell(figures[2]),
        Column("against baseline", left=True): Cell(_against(cell, found.study)),
        Column("published"): Cell(told),
        Column("inside"): Cell(words, mark=mark),
    }


def _figures(found: StudyResults, cell: StudyCell, senders: Sequence[SenderFigures]) -> dict[str, object]:
    """Return plain numbers of *cell*, for programs."""
    own, published, compared = cell.summary, cell.published_summary, cell.compared
    sender = next((each for each in senders if (each.row, each.variant) == (cell.row, cell.variant)), None)
    change = cell.published_compared
    return {
        "study": found.study.study,
        "run": found.run,
        "simulated": found.simulated,
        "row": cell.row,
        "unit": cell.unit,
        "variant": cell.variant,
        "parameter": found.study.variants[cell.variant].value,
        "n": len(cell.values),
        "min": own and own.minimum,
        "median": own and own.median,
        "max": own and own.maximum,
        "mean": own and own.mean,
        "stddev": own and own.stddev,
        "change_percent": compared and compared.comparison.relative_percent,
        "change_half_width_percent": compared and compared.half_width_percent,
        "p": compared and compared.p,
        "proven": compared and compared.proven,
        "published": published and published.median,
        "allowed": published and cell.allowed,
        "inside": cell.inside,
        "published_change_percent": change and change.comparison.relative_percent,
        "published_proven": change and change.proven,
        "explanation": cell.explanation,
        "gaps": "; ".join(dict.fromkeys(cell.gaps)),
        "l1_gbps": sender and sender.gbps(Layer.L1),
        "l2_gbps": sender and sender.gbps(Layer.L2),
        "received_percent": sender and 100 * sender.received,
        CPU: sender and sender.medians.get(CPU),
        **{f"fit_{link / 1e9:g}g": sender and sender.fits[name] for name, link in LINES.items()},
        "at_least": cell.at_least,
    }


def _sender_row(sender: SenderFigures, senders: Sequence[SenderFigures]) -> dict[Column, Cell]:
    """Return a line of the table of generators; all rates are of the worse direction."""
    way = _way(senders)
    return {
        Column("row", left=True): Cell(sender.row),
        Column("generator", left=True): Cell(sender.variant),
        Column("n"): Cell(str(sender.n)),
        Column(f"kframes/s{way}"): Cell(figure(sender.medians[OFFERED] / 1e3)),
        Column(f"Gbit/s (L1){way}"): Cell(figure(sender.gbps(Layer.L1))),
        Column(f"Gbit/s (L2){way}"): Cell(figure(sender.gbps(Layer.L2))),
        Column("received"): Cell(f"{100 * sender.received:.4g} %"),
        Column("CPU s per million frames"): Cell(figure(sender.medians[CPU]) if CPU in sender.medians else NOTHING),
        **{Column(line): Cell(FITNESS[is_fit]) for line, is_fit in sender.fits.items()},
    }


def figure(value: float) -> str:
    """A figure with five digits at most, never in powers of ten below a billion."""
    text = f"{value:.4g}" if abs(value) < 1000 else f"{value:.5g}"
    return f"{float(text):.0f}" if "e" in text and abs(value) < 1e9 else text


def _against(cell: StudyCell, study: Study) -> str:
    baseline = study.baseline_of(cell.variant)
    if baseline is None:
        words = "baseline" if cell.variant in study.baselines else NOTHING
        return f"{words}: {cell.few}" if cell.few else words
    words = str(cell.compared) if cell.compared else cell.few or NOTHING
    if cell.compared and cell.compared.proven and study.measures[cell.row].kind == "cpu_time":
        # a part of the mean is the sender's, so that per cent of it would say little
        words = f"{cell.compared.absolute} {cell.unit.partition('/')[0]}"
    if baseline != study.baseline:
        words += f" (against {baseline})"
    if cell.published_compared:
        words += f" (published: {cell.published_compared})"
    return words


def headline(found: StudyResults) -> str:
    """How many published figures are met, and what is missing, in a sentence."""
    parts = []
    if found.published:
        parts.append(f"{len(found.published) - len(found.outside)} of {len(found.published)} published figures inside")
    if not found.complete:
        parts.append(f"INCOMPLETE: {len(found.records)} of {counted(found.planned, 'measurement')}")
    if found.failures:
        parts.append(f"{counted(len(found.failures), 'figure')} missing")
    if excused := len(found.gaps) - len(found.failures):
        parts.append(f"{counted(excused, 'figure')} of what is not here, or cannot be sent")
    return "; ".join(parts) or f"{counted(len(found.records), 'measurement')}, no published figures"


def notes(found: StudyResults) -> list[str]:
    """Return what must be known of the figures: why published ones are not met; drift, gaps."""
    rows = [*found.history, *_tolerances(found), *_unchecked(found)]
    rows += [
        f"{row}: the baseline drifted within the blocks by {drift.change}; a smaller difference is not proven here"
        for row, drift in found.drifts.items()
        if drift.proven
    ]
    for cell in found.cells.values():
        why = f": {cell.explanation}" if cell.explanation else ", not explained"
        findings = (cell.few, f"outside{why}" if cell.inside is False else "")
        rows += [f"{cell.row}, {cell.variant}: {words}" for words in findings if words]
    gaps = grouped(
        ((cell.variant, reason), f"{number} of {cell.row}")
        for cell in found.cells.values()
        for reason, number in Counter(cell.gaps).items()
    )
    rows += [f"{variant}: no value: {reason} ({', '.join(places)})" for (variant, reason), places in gaps.items()]
    if found.machine:
        steals = [record.figures["cpu_steal"] for record in found.records if "cpu_steal" in record.figures]
        said = f"; CPU steal {median(steals):.1f} % in the median, {max(steals):.1f} % at most" if steals else ""
        rows.append(f"Machine of the run: {found.machine}{said}.")
    if not found.complete:
        rows.append("Nothing is compared before all is measured: who looks, and then goes on, finds what is none.")
    blocks = [record.block for record in sorted(found.records, key=lambda record: (record.started, record.block))]
    if blocks != sorted(blocks):
        rows.append("Not measured block by block: what changed with time is a part of the differences.")
    if any(cell.bounds for cell in found.cells.values()):
        rows.append("≥: the router did not fall behind at any load that was offered; its own limit is somewhere above.")
    if compared := [cell.compared for cell in found.cells.values() if cell.compared]:
        wider = ", the step of a ramp or the width of a search" if any(x.allowance for x in compared) else ""
        rows.append(
            f"Differences: Welch's t at {100 * CONFIDENCE:g} % for all variants of a row together (Holm), with the"
            f" means of the baseline's visits{wider}; published ones: Student's t with one variance, as ministat."
        )
    return rows


def _tolerances(found: StudyResults) -> list[str]:
    """Which figures are inside: a sentence for each tolerance, with its rows if there are several."""
    measures = {cell.row: found.study.measures[cell.row] for cell in found.published}
    rows = grouped(
        (found.study.tolerance_of(row).words(measure.is_rate, measure.is_difference), row)
        for row, measure in measures.items()
    )
    places = {words: f", of {', '.join(names)}" if len(rows) > 1 else "" for words, names in rows.items()}
    return [f"Inside{place}: within {words}." for words, place in places.items()]


def _unchecked(found: StudyResults) -> list[str]:
    """Return what of the router was not checked: a sentence for each fact or command and its reason."""
    places = grouped((place, variant) for variant, own in found.unchecked.items() for place in own.items())
    listed = {
        place: "all" if len(own) == len(found.study.variants) else ", ".join(own) for place, own in places.items()
    }
    return [f"Not checked: '{name}' of {variants}: {why}." for (name, why), variants in listed.items()]


# -- the page and its pictures -----------------------------------------------------------------------------------------


def page(found: StudyResults) -> str:
    """Return the results as a page with the pictures of each row, and those of generators."""
    pictures = {row: pictures_of(found, row, cells) for row, cells in found.rows()}
    pictures[LINE_RATE] = sender_pictures(found, senders_of(found))
    figures = {part: [Figure(svg, title) for title, svg in drawn] for part, drawn in pictures.items()}
    return as_page(document(found, figures))


def write_page(found: StudyResults) -> Path:
    """Write the page into the run's folder; returns it. Raises TestbedError."""
    path = found.folder / STUDY_PAGE
    write_whole(path, page(found), fresh=partial(path))
    return path


def pictures_of(found: StudyResults, row: str, cells: Sequence[StudyCell]) -> list[tuple[str, str]]:
    """Return the pictures of *row*, each with its title: bars, and a ramp or a curve over the parameter."""
    drawn = [(f"{row}: {cells[0].unit}", _bars(found, row, cells))] if _values(cells) else []
    if any(record.curve for record in found.records if record.row == row):
        drawn.insert(0, (f"{row}: received over offered", _ramp(found, row, cells)))
    if (parameter := found.study.parameter) is not None and len(_points(found, cells)) > 1:
        drawn.append((f"{row} over {parameter.name}", _over_parameter(found, parameter, row, cells)))
    return drawn


def _values(cells: Sequence[StudyCell]) -> list[float]:
    known = [value for cell in cells for value in (*cell.values, *cell.published)]
    return [value for value in known if math.isfinite(value)]


def _bars(found: StudyResults, row: str, cells: Sequence[StudyCell]) -> str:
    """Return for each variant a bar up to its median, a line from least to largest value, and the published ones."""
    end = 1.06 * max([*_values(cells), 1e-9])
    value = linear(cells[0].unit, end)
    names = columns("", [cell.variant for cell in cells])
    plot = Chart(f"{row} [{cells[0].unit}]", names, value, found.simulated, is_level=True)
    for number, (words, level) in enumerate(found.study.measures[row].marks.items(), 1):
        if level <= end:
            plot.curve([(-math.inf, level), (math.inf, level)], words, dashes=f"{4 * number - 2} 4")
    for place, cell in enumerate(cells):
        if own := cell.summary:
            sign, words = Sign(5, chart.TEXT_COLOUR), "median, least and largest value"
            plot.bar(place, [Part(max(0.0, own.median), "", AREAS[1])])
            plot.range(place, Bounds(own.minimum, own.maximum), sign, words, own.median)
        if published := cell.published_summary:
            sign, words = Sign(1, chart.LIMIT_COLOUR), "published (median, from least to largest)"
            plot.range(place, Bounds(published.minimum, published.maximum), sign, words, published.median)
        top = max((known.maximum for known in (own, published) if known), default=0.0)
        plot.label(place, top, cell.sign + figure(own.median) if own else "no value")
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
    """Return the medians over *parameter*, from least to largest, with the published ones.

    There is a line for each baseline, which is on it, so that several routers in one study are not joined to one. A
    variant that is compared with nothing is on the line "" with others of its kind.
    """
    points, study = _points(found, cells), found.study
    end = 1.1 * max([*_values([cell for _, cell in points]), 1e-9])
    own = {name: name for name in study.baselines}
    lines = grouped(
        (study.baseline_of(cell.variant) or own.get(cell.variant, ""), (value, cell)) for value, cell in points
    )
    is_logarithmic = parameter.axis == "log"
    unit = f" [{parameter.unit}]" if parameter.unit else ""
    name = f"{parameter.name}{unit}{', logarithmic' if is_logarithmic else ''}"
    across = chart.valued(name, [value for value, _ in points], is_logarithmic)
    plot = Chart(f"{row} over {parameter.name}", across, linear(cells[0].unit, end), found.simulated)
    for number, (name, points_of_line) in enumerate(lines.items()):
        sign = SIGNS[number % len(SIGNS)]
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


def _way(senders: Sequence[SenderFigures]) -> str:
    return " each way" if any(sender.medians[DIRECTIONS] > 1 for sender in senders) else ""


def sender_pictures(found: StudyResults, senders: Sequence[SenderFigures]) -> list[tuple[str, str]]:
    """Return what each generator sends over the size of its frames, beside full lines, with its title."""
    points = grouped((sender.variant, (sender.medians[FRAME], sender.medians[OFFERED] / 1e3)) for sender in senders)
    known = [point for own in points.values() for point in own]
    if len({size for size, _ in known}) < 2:
        return []
    largest, end = (max(place) for place in zip(*known, strict=True))
    title, across = "Frames/s over frame size", linear("frame size [bytes with FCS]", 1.05 * largest)
    up = linear(f"kframes/s{_way(senders)}", max(1.1 * end, 1e-9))
    plot = Chart(title, across, up, found.simulated)
    for name, link in LINES.items():
        sizes = [64 + (largest - 64) * number / _SAMPLES for number in range(_SAMPLES + 1)]
        rates = [(size, line_rate_pps(link, size) / 1e3) for size in sizes]
        if seen := [point for point in rates if point[1] <= 1.1 * end]:
            plot.curve(seen, "")
            plot.words(seen[-1], name)
    for number, (variant, own) in enumerate(points.items()):
        plot.curve(sorted(own), variant, SIGNS[number % len(SIGNS)])
    return [(title, plot.svg())]
