"""The results of a study as a document, and as a page with pictures. It is made of the records, and can be made again.

Pictures: bars of each row, its measurements as ministat draws them, curves over the study's parameter, ramps, and what
each generator sends.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ..core.bounds import Bounds
from ..documents import chart
from ..documents.chart import AREAS, SIGNS, Chart, Part, Sign, columns, linear
from ..documents.document import Cell, Column, Document, Facts, Figure, Items, Mark, Note, Section, Table, as_page
from ..evidence.run_files import STUDY_PAGE, partial
from ..files import write_whole
from ..units import Layer, counted, figure, line_rate_pps
from .results import CONFIDENCE, PCIE, SESSIONS, UNCHECKED, StudyCell, StudyResults, grouped
from .senders import CPU, DIRECTIONS, FITNESS, FRAME, LINES, OFFERED, SenderFigures
from .study import AT_LEAST, TABLE_UNITS, Parameter, Study, StudyTable, rate_units

NOTHING = "–"

COLUMNS = 118
"""Width of the text for a terminal: its tables have many columns."""

Senders = Mapping[tuple[str, str], SenderFigures]
"""Frames that generators sent, by row and variant; nothing of a study with a router."""


def document(results: StudyResults, with_pictures: bool = False) -> Document:
    """Return the results, on request with the pictures of each row, and those of generators."""
    study, run, cells = results.study, results.environment, results.cells.values()
    facts = f"Study {study.study}, run {run.run}, testbed {run.testbed}; {study.repeats} blocks, seed {study.seed}."
    about = [study.about, f"Published figures: {study.source}." if study.source else "", facts]
    sections = [
        Section("", [Note(f"{headline(results)}.", strong=True), *map(Note, filter(None, about))]),
        Section("Variants", [Facts({name: _variant(results, name) for name in study.variants})]),
    ]
    if buses := _buses(results):
        sections.append(Section("PCIe links of the cards", [Table.of(buses)]))
    for row, of_row in results.rows():
        about_row = [Note(text)] if (text := study.measures[row].about) else []
        drawn = pictures_of(results, row, of_row) if with_pictures else ()
        table = Table.of([_row(study, cell) for cell in of_row])
        sections.append(Section(f"{row} [{of_row[0].unit}]", [*about_row, table, *drawn]))
    sent = [cell for cell in cells if study.bypass and cell.known]
    senders: Senders = {(one.row, one.variant): SenderFigures.of([x.figures for x in one.known]) for one in sent}
    if senders:
        way = " each way" if any(sender.medians[DIRECTIONS] > 1 for sender in senders.values()) else ""
        lines = [_sender_row(cell, senders[cell.row, cell.variant], way) for cell in sent]
        drawn = sender_pictures(results, senders, way) if with_pictures else ()
        sections.append(Section("Line rate", [Table.of(lines), *drawn]))
    beside = Note("Ours; in brackets what the source published, in the table's unit.")
    sections += [Section(title, [_source_table(results, table), beside]) for title, table in study.tables.items()]
    if said := notes(results):
        sections.append(Section("What must be known of these figures", [Items(said)]))
    figures = [_figures(results, cell, senders.get((cell.row, cell.variant))) for cell in cells]
    return Document(study.title, sections, results.simulated, {"figures": figures})


def page(results: StudyResults) -> str:
    """Return the results as a page with pictures."""
    return as_page(document(results, with_pictures=True))


def write_page(results: StudyResults) -> Path:
    """Write the page into the run's folder; returns it. Raises TestbedError."""
    path = results.folder / STUDY_PAGE
    write_whole(path, page(results), fresh=partial(path))
    return path


# -- tables ------------------------------------------------------------------------------------------------------------


def _variant(results: StudyResults, name: str) -> str:
    """Return what a variant is measured on, without a router the testbed, and what it is."""
    study, own = results.study, results.study.variants[name]
    testbed = own.testbed or results.environment.testbed
    box = (testbed,) if study.bypass else (study.platform_of(name), own.software or "first")
    return ", ".join(filter(None, (*box, own.about)))


def _buses(results: StudyResults) -> list[dict[Column, Cell | str]]:
    """Return the PCIe links of each router's cards, as read and as modelled."""
    sessions = results.environment.extra.get(SESSIONS, {})
    known = {name: own[PCIE] for name, own in sessions.items() if PCIE in own}
    columns = Column("router", left=True), Column("read", "Gbit/s"), Column("modelled", "Gbit/s")
    links = ((name, link["read"] or NOTHING, link["modelled"]) for name, link in known.items())
    return [dict(zip(columns, row, strict=True)) for row in links]


def _row(study: Study, cell: StudyCell) -> dict[Column, Cell | str]:
    """Return what people read of *cell*."""
    own, published = cell.summary, cell.published_summary
    figures = [cell.sign + figure(x) for x in (own.minimum, own.median, own.maximum)] if own else [NOTHING] * 3
    marks: Mapping[bool | None, tuple[str, Mark]] = {None: (NOTHING, ""), True: ("yes", "good"), False: ("NO", "bad")}
    told = NOTHING if published is None else figure(published.median)
    if published is not None and published.n > 1:
        told += f" ({figure(published.minimum)} to {figure(published.maximum)}, n {published.n})"
    return {
        Column("variant", left=True): cell.variant,
        Column("n"): str(len(cell.values)),
        **{Column(name): text for name, text in zip(("min", "median", "max"), figures, strict=True)},
        Column("against baseline", left=True): _against(cell, study),
        Column("published"): told,
        Column("inside"): Cell(*marks[cell.inside]),
    }


def _against(cell: StudyCell, study: Study) -> str:
    baseline = study.baseline_of(cell.variant)
    if baseline is None:
        return "baseline" if cell.variant in study.baselines else NOTHING
    text = str(cell.compared) if cell.compared else NOTHING
    if cell.compared and cell.compared.proven and study.measures[cell.row].kind == "cpu_time":
        # a part of the mean is the sender's, so that per cent of it would say little
        text = f"{cell.compared.absolute} {cell.unit.partition('/')[0]}"
    if baseline != study.baseline:
        text += f" (against {baseline})"
    return text + (f" (published: {cell.published_compared})" if cell.published_compared else "")


def _source_table(results: StudyResults, table: StudyTable) -> Table:
    """Return *table* in the source's own form: ours, and the published figure in brackets."""

    def cell_of(row: str, column: str) -> str:
        measure, variant, unit = table.place(row, column)
        cell = results.cells[measure, variant]
        ours, theirs = (
            None if known is None else results.in_unit(cell, known.median, unit)
            for known in (cell.summary, cell.published_summary)
        )
        shown = NOTHING if ours is None else cell.sign + figure(ours)
        is_worked_out = unit and cell.unit not in TABLE_UNITS
        return shown if theirs is None or is_worked_out else f"{shown} ({figure(theirs)})"

    names = {Column(name): name for name in table.columns}
    first = Column("", left=True)
    return Table.of(
        [{first: row, **{column: cell_of(row, name) for column, name in names.items()}} for row in table.rows]
    )


def _sender_row(cell: StudyCell, sender: SenderFigures, way: str) -> dict[Column, Cell | str]:
    """Return a line of the table of generators; all rates are of the worse direction."""
    return {
        Column("row", left=True): cell.row,
        Column("generator", left=True): cell.variant,
        Column("n"): str(len(cell.values)),
        Column(f"kframes/s{way}"): figure(sender.medians[OFFERED] / 1e3),
        **{Column(f"Gbit/s ({layer.name}){way}"): figure(sender.gbps(layer)) for layer in (Layer.L1, Layer.L2)},
        Column("received"): f"{100 * sender.received:.4g} %",
        Column("CPU s per million frames"): figure(sender.medians[CPU]) if CPU in sender.medians else NOTHING,
        **{Column(line): FITNESS[is_fit] for line, is_fit in sender.fits.items()},
    }


def _figures(results: StudyResults, cell: StudyCell, sender: SenderFigures | None) -> dict[str, object]:
    """Return plain numbers of *cell*, for programs."""
    own, published, compared, change = cell.summary, cell.published_summary, cell.compared, cell.published_compared
    return {
        "study": results.study.study,
        "run": results.environment.run,
        "simulated": results.simulated,
        "row": cell.row,
        "unit": cell.unit,
        "variant": cell.variant,
        "parameter": results.study.variants[cell.variant].value,
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


# -- words -------------------------------------------------------------------------------------------------------------


def headline(results: StudyResults) -> str:
    """Return how many published figures are met, and what is missing, in a sentence."""
    published, failures = len(results.published), len(results.failures)
    excused = len(results.gaps) - failures
    parts = {
        f"{published - len(results.outside)} of {published} published figures inside": published,
        f"INCOMPLETE: {len(results.records)} of {counted(results.planned, 'measurement')}": not results.complete,
        f"{counted(failures, 'figure')} missing": failures,
        f"{counted(excused, 'figure')} of what is not here, or cannot be sent": excused,
    }
    text = "; ".join(part for part, applies in parts.items() if applies)
    return text or f"{counted(len(results.records), 'measurement')}, no published figures"


def notes(results: StudyResults) -> list[str]:
    """Return what must be known of the figures: why published ones are not met; drift, gaps, the machine."""
    study, cells, records = results.study, results.cells.values(), results.records
    measures = {cell.row: study.measures[cell.row] for cell in results.published}
    tolerances = grouped(
        (study.tolerance_of(row).words(measure.is_rate, measure.is_difference), row)
        for row, measure in measures.items()
    )
    places = {tolerance: f", of {', '.join(names)}" * (len(tolerances) > 1) for tolerance, names in tolerances.items()}
    lines = [f"Inside{place}: within {tolerance}." for tolerance, place in places.items()]
    unchecked = results.environment.extra.get(UNCHECKED, {})
    unknown = grouped((place, variant) for variant, own in unchecked.items() for place in own.items())
    for (name, why), variants in unknown.items():
        which = "all" if len(variants) == len(study.variants) else ", ".join(variants)
        lines.append(f"Not checked: '{name}' of {which}: {why}.")
    lines += [
        f"{row}: the baseline drifted within the blocks by {drift.change}; a smaller difference is not proven here"
        for row, drift in results.drifts.items()
        if drift.proven
    ]
    for cell in cells:
        why = f": {cell.explanation}" if cell.explanation else ", not explained"
        lines += [f"{cell.row}, {cell.variant}: outside{why}"] * (cell.inside is False)
    counts = ((cell, Counter(cell.gaps).items()) for cell in cells)
    gaps = grouped(((cell.variant, why), f"{times} of {cell.row}") for cell, own in counts for why, times in own)
    lines += [f"{variant}: no value: {why} ({', '.join(missing)})" for (variant, why), missing in gaps.items()]
    if host := results.environment.host:
        machine = f"{host.get('cpu')}, {counted(host.get('cpus') or 0, 'CPU')}, kernel {host.get('kernel')}"
        lines.append(f"Machine of the run: {machine}, {host.get('system')}.")
    if not results.complete:
        lines.append("Nothing is compared before all is measured: who looks, and then goes on, finds what is none.")
    blocks = [record.block for record in sorted(records, key=lambda record: (record.started, record.block))]
    if blocks != sorted(blocks):
        lines.append("Not measured block by block: what changed with time is a part of the differences.")
    if any(cell.bounds for cell in cells):
        lines.append(
            "≥: the router did not fall behind at any load that was offered; its own limit is somewhere above."
        )
    if compared := [cell.compared for cell in cells if cell.compared]:
        wider = ", the step of a ramp" if any(known.allowance for known in compared) else ""
        lines.append(
            f"Differences: Welch's t at {100 * CONFIDENCE:g} % for all variants of a row together (Holm), with the"
            f" means of the baseline's visits{wider}; published ones: Student's t with one variance, as ministat."
        )
    return lines


# -- pictures ----------------------------------------------------------------------------------------------------------


def pictures_of(results: StudyResults, row: str, cells: Sequence[StudyCell]) -> list[Figure]:
    """Return the pictures of *row*: bars, and a ramp or a curve over the parameter."""
    drawn = [Figure(_bars(results, row, cells), f"{row}: {cells[0].unit}")] if _values(cells) else []
    if any(cell.summary and cell.summary.stddev for cell in cells):
        drawn.append(Figure(_samples(results, row, cells), f"{row}: each measurement"))
    if any(record.curve for cell in cells for record in cell.known):
        drawn.insert(0, Figure(_ramp(results, row, cells), f"{row}: received over offered"))
    if (parameter := results.study.parameter) is not None and len(points := _points(results, cells)) > 1:
        drawn.append(Figure(_over_parameter(results, parameter, row, points), f"{row} over {parameter.name}"))
    return drawn


def _values(cells: Iterable[StudyCell]) -> list[float]:
    return [value for cell in cells for value in (*cell.values, *cell.published) if math.isfinite(value)]


def _bars(results: StudyResults, row: str, cells: Sequence[StudyCell]) -> str:
    """Return a bar up to each variant's median, a line from least to largest value, and the published ones."""
    end = 1.06 * max([*_values(cells), 1e-9])
    imix = results.study.measures[row].imix
    value = linear(f"{cells[0].unit}{f'; above: Gbit/s of frames of {imix:g} bytes' if imix else ''}", end)
    names = columns("", [cell.variant for cell in cells])
    plot = Chart(f"{row} [{cells[0].unit}]", names, value, results.simulated, is_level=True)
    if imix:
        across = linear("", end, size=1e9 / (8 * imix) / rate_units(1.0, 1.0)[cells[0].unit])
        for level, gbps in across.marks:
            plot.curve([(-math.inf, level), (-0.4, level)], "", colour=chart.TEXT_COLOUR)
            plot.caption((-math.inf, level), gbps)
    for number, (name, level) in enumerate(results.study.measures[row].marks.items(), 1):
        if level <= end:
            plot.curve([(-math.inf, level), (math.inf, level)], name, dashes=f"{4 * number - 2} 4")
    for place, cell in enumerate(cells):
        if own := cell.summary:
            sign, name = Sign(5, chart.TEXT_COLOUR), "median, least and largest value"
            plot.bar(place, [Part(max(0.0, own.median), "", AREAS[1])])
            plot.range(place, Bounds(own.minimum, own.maximum), sign, name, own.median)
        if published := cell.published_summary:
            sign, name = Sign(1, chart.LIMIT_COLOUR), "published (median, from least to largest)"
            plot.range(place, Bounds(published.minimum, published.maximum), sign, name, published.median)
        top = max((known.maximum for known in (own, published) if known), default=0.0)
        plot.label(place, top, cell.sign + figure(own.median) if own else "no value")
    return plot.svg()


def _samples(results: StudyResults, row: str, cells: Sequence[StudyCell]) -> str:
    """Return each value of every variant, and its mean with the standard deviation, as ministat draws them."""
    values = [value for cell in cells for value in cell.values]
    room = 0.06 * (max(values) - min(values))
    value = linear(cells[0].unit, max(values) + room, min(values) - room)
    names = columns("", [cell.variant for cell in cells])
    plot = Chart(f"{row}: each measurement [{cells[0].unit}]", names, value, results.simulated, is_level=True)
    for place, cell in enumerate(cells):
        for one in cell.values:
            plot.range(place - 0.15, Bounds(one, one), SIGNS[1], "a measurement")
        if (own := cell.summary) and own.stddev is not None:
            spread = Bounds(own.mean - own.stddev, own.mean + own.stddev)
            plot.range(place + 0.15, spread, SIGNS[0], "mean ± standard deviation")
            plot.label(place - 0.15, own.maximum, cell.sign)
    return plot.svg()


def _ramp(results: StudyResults, row: str, cells: Sequence[StudyCell]) -> str:
    """Return what each variant sent on, over what it was offered, in its first ramp."""
    ramps = [ramp for cell in cells if (ramp := next((record for record in cell.known if record.curve), None))]
    unit, most = cells[0].unit, max(offered for ramp in ramps for offered, _ in ramp.curve)
    across, up = (linear(f"{name} [{unit}]", 1.04 * most) for name in ("offered", "received"))
    plot = Chart(f"{row}: received over offered, both in {unit}", across, up, results.simulated)
    plot.curve([(0.0, 0.0), (most, most)], "all that is offered", dashes="9 4")
    for number, ramp in enumerate(ramps):
        falls = "does not fall behind up to" if ramp.figures.get(AT_LEAST) else "falls behind at"
        name = ramp.variant if ramp.value is None else f"{ramp.variant}: {falls} {figure(ramp.value)}"
        plot.curve(ramp.curve, name, SIGNS[number % len(SIGNS)])
    return plot.svg()


def _points(results: StudyResults, cells: Sequence[StudyCell]) -> list[tuple[float, StudyCell]]:
    """Return the cells that have a place on the parameter's axis, and a value, in its order."""
    places = [(results.study.variants[cell.variant].value, cell) for cell in cells if cell.values]
    return sorted(((value, cell) for value, cell in places if value is not None), key=lambda point: point[0])


def _over_parameter(
    results: StudyResults, parameter: Parameter, row: str, points: Sequence[tuple[float, StudyCell]]
) -> str:
    """Return the medians over *parameter*, from least to largest, with the published ones.

    There is a line for each baseline, which is on it, so that several routers in one study are not joined to one. A
    variant that is compared with nothing is on the line "" with others of its kind.
    """
    study, cells = results.study, [cell for _, cell in points]
    lines = grouped(
        (study.baseline_of(cell.variant) or (cell.variant if cell.variant in study.baselines else ""), (value, cell))
        for value, cell in points
    )
    is_logarithmic = parameter.axis == "log"
    unit = f" [{parameter.unit}]" if parameter.unit else ""
    name = f"{parameter.name}{unit}{', logarithmic' if is_logarithmic else ''}"
    across = chart.valued(name, [value for value, _ in points], is_logarithmic)
    up = linear(cells[0].unit, 1.1 * max([*_values(cells), 1e-9]))
    plot = Chart(f"{row} over {parameter.name}", across, up, results.simulated)
    for number, (name, of_line) in enumerate(lines.items()):
        sign = SIGNS[number % len(SIGNS)]
        published = [(value, cell.published_summary.median) for value, cell in of_line if cell.published_summary]
        if published:
            plot.curve(published, "published", colour=sign.colour, dashes="5 4")
        measured = [(value, cell.summary, cell.at_least) for value, cell in of_line if cell.summary]
        title = name if len(lines) > 1 and name else "measured"
        plot.curve([(value, own.median) for value, own, _ in measured], title, sign)
        for value, own, is_least in measured:
            plot.range(value, Bounds(own.minimum, own.maximum), sign, middle=own.median)
            plot.caption((value, own.maximum), "≥" * is_least)
    return plot.svg()


def sender_pictures(results: StudyResults, senders: Senders, way: str) -> list[Figure]:
    """Return what each generator sends over the size of its frames, beside full lines."""
    points = grouped(
        (variant, (sender.medians[FRAME], sender.medians[OFFERED] / 1e3)) for (_, variant), sender in senders.items()
    )
    known = [point for own in points.values() for point in own]
    if len({size for size, _ in known}) < 2:
        return []
    largest, end = (max(place) for place in zip(*known, strict=True))
    title, across = "Frames/s over frame size", linear("frame size [bytes with FCS]", 1.05 * largest)
    plot = Chart(title, across, linear(f"kframes/s{way}", max(1.1 * end, 1e-9)), results.simulated)
    for name, link in LINES.items():
        sizes = [64 + (largest - 64) * number / 100 for number in range(101)]
        rates = [(size, line_rate_pps(link, size) / 1e3) for size in sizes]
        if seen := [point for point in rates if point[1] <= 1.1 * end]:
            plot.curve(seen, "")
            plot.caption(seen[-1], name)
    for number, (variant, own) in enumerate(points.items()):
        plot.curve(sorted(own), variant, SIGNS[number % len(SIGNS)])
    return [Figure(plot.svg(), title)]
