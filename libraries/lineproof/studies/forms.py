"""The results of a study as text, Markdown and CSV. All are made of the records, and can be made again."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from statistics import median

from ..evidence.tables import SIMULATED
from ..evidence.text_tables import WIDTH, Range, csv_table, markdown_table, markdown_text, range_bars
from ..stats import Summary
from ..units import counted
from ..visible import visible
from .fitness import LINES, Fitness, SenderFigures, senders_of, sentences
from .results import CONFIDENCE, Cell, StudyResults, closeness_words
from .study import DIFFERENCES, RATES, Study, mean_places

HEADS = ("variant", "n", "min", "median", "max", "against baseline", "published", "inside")
NOTHING = "–"
UNLIMITED = "not compared: some values are only what was offered"

COLUMNS = 118
"""Of the text for a terminal."""

_GAP = "  "
_MOST = {0: 28, 5: 28, 6: 14}
_MOST_SENDER = {0: 20, 1: 20, 3: 10, 4: 11, 5: 11, 7: 13}
"""Characters of columns whose words are folded, by their place."""

_LEAST_BAR = 8

_CSV_HEADS = (
    *("study", "run", "simulated", "row", "unit", "variant", "parameter", "n", "min", "median", "max", "mean"),
    *("stddev", "change_percent", "change_half_width_percent", "p", "proven", "published", "allowed", "inside"),
    *("published_change_percent", "published_proven", "explanation", "gaps"),
    *("l1_gbps", "l2_gbps", "received_percent", "cpu_seconds_per_mframe"),
    *(f"fit_{link / 1e9:g}g" for link in LINES.values()),
    *("at_least", "change_bound"),
)


def figure(value: float) -> str:
    """A figure with five digits at most, never in powers of ten below a billion."""
    text = f"{value:.4g}" if abs(value) < 1000 else f"{value:.5g}"
    return f"{float(text):.0f}" if "e" in text and abs(value) < 1e9 else text


def size_words(cell: Cell, found: Summary) -> tuple[str, str, str]:
    """The least, the median and the largest value of *cell*, *found* of them, with ``≥`` where they are no limits."""
    figures = found.minimum, found.median, found.maximum
    least, median, most = (f"{sign}{figure(x)}" for sign, x in zip(cell.bound_signs, figures, strict=True))
    return least, median, most


def cell_words(cell: Cell, study: Study) -> tuple[str, ...]:
    """A cell as a line of the table of its row, under HEADS."""
    found, published = cell.summary, cell.published_summary
    sizes = [NOTHING] * 3
    if found is not None:
        sizes = list(size_words(cell, found))
    said = NOTHING
    if published is not None:
        said = figure(published.median)
        if published.n > 1:
            said += f" ({figure(published.minimum)} to {figure(published.maximum)}, n {published.n})"
    inside = {None: NOTHING, True: "yes", False: "NO"}[cell.inside]
    return cell.variant, str(len(cell.values)), *sizes, _against(cell, study), said, inside


def sender_heads(senders: Sequence[SenderFigures]) -> tuple[str, ...]:
    """Of the table of a study of generators, whose rates are of the worse direction."""
    way = " each way" if any(sender.directions > 1 for sender in senders) else ""
    rates = ("kframes/s", "Gbit/s (L1)", "Gbit/s (L2)")
    return "row", "generator", "n", *(f"{rate}{way}" for rate in rates), "received", "CPU s per million frames", *LINES


def sender_words(sender: SenderFigures) -> tuple[str, ...]:
    """A line of the table of generators, under its heads."""
    return (
        sender.row,
        sender.variant,
        str(sender.n),
        figure(sender.offered / 1e3),
        figure(sender.l1_bps / 1e9),
        figure(sender.l2_bps / 1e9),
        f"{100 * sender.received:.4g} %",
        NOTHING if sender.cpu is None else figure(sender.cpu),
        *(each.verdict.value for each in sender.fits.values()),
    )


def _against(cell: Cell, study: Study) -> str:
    baseline = study.baseline_of(cell.variant)
    if baseline is None:
        words = "baseline" if cell.variant in study.baselines else NOTHING
        return f"{words}: {cell.few}" if cell.few else words
    words = str(cell.compared) if cell.compared else cell.few or (UNLIMITED if cell.unlimited else NOTHING)
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
    close = closeness_words(found.pairs)
    rows = [*found.history, *_tolerances(found), *([f"Beside the published figures: {close}."] if close else [])]
    rows += [
        f"{row}: the baseline drifted within the blocks by {drift.change}; no difference of less is proven in this row"
        for row, drift in found.drifts.items()
        if drift.proven
    ]
    excused: dict[tuple[str, str], list[str]] = {}
    for cell in found.cells.values():
        name, several = f"{cell.row}, {cell.variant}", cell.values or cell.gaps
        if cell.excused and not cell.values:
            for reason in dict.fromkeys(cell.gaps):
                excused.setdefault((cell.variant, reason), []).append(cell.row)
        elif cell.few:
            rows.append(f"{name}: {cell.few}: {'; '.join(dict.fromkeys(cell.gaps)) or 'the others were not measured'}")
        elif several and cell.gaps:
            reasons = "; ".join(dict.fromkeys(cell.gaps))
            rows.append(f"{name}: {counted(len(cell.gaps), 'measurement')} without a value: {reasons}")
        if cell.outside_words:
            rows.append(f"{name}: {cell.outside_words}")
    if found.machine:
        steals = [record.figures["cpu_steal"] for record in found.records if "cpu_steal" in record.figures]
        said = f"; CPU steal {median(steals):.1f} % in the median, {max(steals):.1f} % at most" if steals else ""
        rows.append(f"Machine of the run: {found.machine}{said}.")
    if len(places := mean_places(found.study)) > 1:
        said = ", ".join(f"{name} {place:.2g}" for name, place in places.items())
        rows.append(f"Order by seed {found.study.seed}; mean place in the blocks: {said}.")
    rows += [f"{variant}: {reason} ({', '.join(places)})" for (variant, reason), places in excused.items()]
    rows += sentences(senders_of(found))
    if any(cell.bounds for cell in found.cells.values()):
        rows.append("≥: the router did not fall behind at any load that was offered; its own limit is somewhere above.")
    if compared := [cell.compared for cell in found.cells.values() if cell.compared]:
        wider = ", and the step of a ramp or width of a search on either side" if any(x.step for x in compared) else ""
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


def text(found: StudyResults) -> str:
    """For a terminal: a table and bars for each row, in COLUMNS."""
    lines = [SIMULATED] if found.simulated else []
    lines += _folded(f"{found.study.title} ({found.study.study}), run {found.run}") + _folded(headline(found))
    for row, cells in found.rows():
        lines += ["", f"{row} [{cells[0].unit}]"]
        table = [tuple(map(visible, words)) for words in (HEADS, *(cell_words(cell, found.study) for cell in cells))]
        shown = _columns(table, _MOST, (0, 5))
        used = max(len(line) for folded in shown for line in folded)
        room = COLUMNS - used - len(_GAP)
        bars = ["", *_bars(cells, min(WIDTH, room))] if room >= _LEAST_BAR else [""] * len(table)
        for folded, bar in zip(shown, bars, strict=True):
            lines += [f"{folded[0]:{used}}{_GAP}{bar}".rstrip(), *folded[1:]]
    if senders := senders_of(found):
        table = [sender_heads(senders), *(tuple(map(visible, sender_words(sender))) for sender in senders)]
        lines += ["", *(line for folded in _columns(table, _MOST_SENDER, (0, 1)) for line in folded)]
    return "\n".join([*lines, "", *(line for note in notes(found) for line in _folded(note))]) + "\n"


def _folded(words: str) -> list[str]:
    return textwrap.wrap(visible(words), COLUMNS, subsequent_indent="  ", break_on_hyphens=False)


def _columns(table: Sequence[tuple[str, ...]], most: Mapping[int, int], left: tuple[int, ...]) -> list[list[str]]:
    """Each line of *table* as lines of its folded cells; columns of *left* begin, the others end at one place.

    *most*: characters of a column; a word that is longer makes it wider.
    """

    def folded(word: str, place: int) -> list[str]:
        return textwrap.wrap(word, most.get(place, COLUMNS), break_long_words=False) or [""]

    cells = [[folded(word, place) for place, word in enumerate(line)] for line in table]
    widths = [max(len(part) for cell in column for part in cell) for column in zip(*cells, strict=True)]

    def joined(parts: Sequence[str]) -> str:
        placed = (f"{part:{'<' if place in left else '>'}{widths[place]}}" for place, part in enumerate(parts))
        return _GAP.join(placed).rstrip()

    return [[joined(parts) for parts in zip_longest(*line, fillvalue="")] for line in cells]


def _bars(cells: list[Cell], width: int) -> list[str]:
    known = [(cell, cell.summary) for cell in cells if cell.summary is not None]
    ranges = [Range(found.minimum, found.median, None if cell.bounds else found.maximum) for cell, found in known]
    drawn = iter(range_bars(ranges, width) if known else [])
    return [next(drawn) if cell.summary is not None else "" for cell in cells]


def markdown(found: StudyResults) -> str:
    """For a merge request or a page of documents: the tables."""
    title = f"{'SIMULATED: ' if found.simulated else ''}{found.study.title}"
    lines = [f"# {markdown_text(title)}", "", f"{markdown_text(headline(found))}. Run {markdown_text(found.run)}."]
    for row, cells in found.rows():
        lines += ["", f"### {markdown_text(row)} [{markdown_text(cells[0].unit)}]", ""]
        shown = [[markdown_text(word) for word in cell_words(cell, found.study)] for cell in cells]
        lines += markdown_table(HEADS, shown)
    if senders := senders_of(found):
        shown = [[markdown_text(word) for word in sender_words(sender)] for sender in senders]
        lines += ["", "### Line rate", "", *markdown_table(sender_heads(senders), shown)]
    return "\n".join([*lines, "", *(f"- {markdown_text(note)}" for note in notes(found))]) + "\n"


def csv_text(found: StudyResults) -> str:
    """One line for each row and variant, with plain numbers."""
    return csv_table(_CSV_HEADS, _csv_rows(found), "\n")


def _csv_rows(found: StudyResults) -> Iterator[tuple[object, ...]]:
    senders = {(sender.row, sender.variant): sender for sender in senders_of(found)}
    for cell in found.cells.values():
        own, published = cell.summary, cell.published_summary
        yield (
            *(found.study.study, found.run, found.simulated, cell.row, cell.unit, cell.variant),
            found.study.variants[cell.variant].value,
            len(cell.values),
            *((own.minimum, own.median, own.maximum, own.mean, own.stddev) if own else [None] * 5),
            *_changes(cell),
            published.median if published else None,
            cell.allowed if published else None,
            cell.inside,
            cell.published_compared.comparison.relative_percent if cell.published_compared else None,
            cell.published_compared.proven if cell.published_compared else None,
            cell.explanation,
            "; ".join(dict.fromkeys(cell.gaps)),
            *_sent(senders.get((cell.row, cell.variant))),
            cell.at_least,
            cell.compared.bound.strip() if cell.compared else None,
        )


def _sent(sender: SenderFigures | None) -> tuple[object, ...]:
    if sender is None:
        return (None,) * (4 + len(LINES))
    known = {Fitness.FIT: True, Fitness.UNFIT: False, Fitness.OPEN: None}
    fits = (known[each.verdict] for each in sender.fits.values())
    return sender.l1_bps / 1e9, sender.l2_bps / 1e9, 100 * sender.received, sender.cpu, *fits


def _changes(cell: Cell) -> tuple[object, ...]:
    if cell.compared is None:
        return None, None, None, None
    found = cell.compared.comparison
    # without a spread there is no probability
    p = cell.compared.p if cell.compared.resolution is None else None
    return found.relative_percent, cell.compared.half_width_percent, p, cell.compared.proven
