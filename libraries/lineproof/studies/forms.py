"""The results of a study as a document. It is made of the records, and can be made again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median

from ..evidence.document import (
    Cell,
    Column,
    Document,
    Facts,
    Figure,
    Items,
    Mark,
    Note,
    Section,
    Table,
)
from ..units import Layer, counted
from .fitness import LINES, Fitness, SenderFigures, senders_of
from .results import CONFIDENCE, StudyCell, StudyResults, closeness_words
from .study import DIFFERENCES, RATES, Study

NOTHING = "–"

COLUMNS = 118
"""Width of the text for a terminal: its tables have many columns."""

LINE_RATE = "Line rate"
"""The part about generators."""


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
    if said := notes(found):
        sections.append(Section("What must be known of these figures", [Items(said)]))
    figures = [_figures(found, cell, senders) for _, cells in found.rows() for cell in cells]
    return Document(study.title, sections, found.simulated, {"figures": figures})


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
    fits = {Fitness.FIT: True, Fitness.UNFIT: False, Fitness.OPEN: None}
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
        "cpu_seconds_per_mframe": sender and sender.cpu,
        **{f"fit_{link / 1e9:g}g": sender and fits[sender.fits[name]] for name, link in LINES.items()},
        "at_least": cell.at_least,
    }


def _sender_row(sender: SenderFigures, senders: Sequence[SenderFigures]) -> dict[Column, Cell]:
    """Return a line of the table of generators; all rates are of the worse direction."""
    way = " each way" if any(each.directions > 1 for each in senders) else ""
    return {
        Column("row", left=True): Cell(sender.row),
        Column("generator", left=True): Cell(sender.variant),
        Column("n"): Cell(str(sender.n)),
        Column(f"kframes/s{way}"): Cell(figure(sender.offered / 1e3)),
        Column(f"Gbit/s (L1){way}"): Cell(figure(sender.gbps(Layer.L1))),
        Column(f"Gbit/s (L2){way}"): Cell(figure(sender.gbps(Layer.L2))),
        Column("received"): Cell(f"{100 * sender.received:.4g} %"),
        Column("CPU s per million frames"): Cell(NOTHING if sender.cpu is None else figure(sender.cpu)),
        **{Column(line): Cell(each.value) for line, each in sender.fits.items()},
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
    """Return what must be known of the figures: how far published ones are, and why they are not met; drift, gaps."""
    close = closeness_words(found.errors)
    rows = [*found.history, *_tolerances(found), *([f"Beside the published figures: {close}."] if close else [])]
    rows += [
        f"{row}: the baseline drifted within the blocks by {drift.change}; a smaller difference is not proven here"
        for row, drift in found.drifts.items()
        if drift.proven
    ]
    gaps: dict[tuple[str, str], list[str]] = {}
    for cell in found.cells.values():
        for reason, number in Counter(cell.gaps).items():
            gaps.setdefault((cell.variant, reason), []).append(f"{number} of {cell.row}")
        rows += [f"{cell.row}, {cell.variant}: {words}" for words in (cell.few, cell.outside_words) if words]
    rows += [f"{variant}: no value: {reason} ({', '.join(places)})" for (variant, reason), places in gaps.items()]
    if found.machine:
        steals = [record.figures["cpu_steal"] for record in found.records if "cpu_steal" in record.figures]
        said = f"; CPU steal {median(steals):.1f} % in the median, {max(steals):.1f} % at most" if steals else ""
        rows.append(f"Machine of the run: {found.machine}{said}.")
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
    rows: dict[str, list[str]] = {}
    for row in dict.fromkeys(cell.row for cell in found.published):
        kind = found.study.measures[row].kind
        words = found.study.tolerance_of(row).words(kind in RATES, kind in DIFFERENCES)
        rows.setdefault(words, []).append(row)
    places = {words: f", of {', '.join(names)}" if len(rows) > 1 else "" for words, names in rows.items()}
    return [f"Inside{place}: within {words}." for words, place in places.items()]
