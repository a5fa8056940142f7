"""The sheet's table of promises, why what was not kept was not, and its words for lay readers.

Of many promises the sheet itself has short rows, so that it stays a few pages: everything else about them is in the
appendix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...core.verdict import odds_text
from ...units import counted, si
from ..records import RequirementRecord
from ..sentence_rows import SentenceRow
from ..summary import confidence_words, interval_text, margin_text, measured_text
from .html_parts import moment, table, text
from .sheet import KEPT, Sheet

IN_FULL = 10
"""Promises that have full rows on the sheet; of more, short ones."""

MOST_ROWS = 42
"""Short rows on the sheet: those that were not kept first."""

MOST_REASONS = 5, 3
"""Of promises that were not kept, and of waivers, on the sheet: beside full rows, and beside short ones."""

APPENDIX = "D"


def promises(sheet: Sheet) -> Iterator[str]:
    """The table on the sheet."""
    yield "<h2>What was promised, and what was measured</h2>"
    yield "<p>A promise of the contract that is not listed here was not measured in this run.</p>"
    if not sheet.rows:
        yield "<p>No sentence was judged.</p>"
    elif len(sheet.rows) <= IN_FULL:
        yield _full_table(sheet)
    else:
        shown = _on_the_sheet(sheet)
        yield _short_table(sheet, shown)
        left = len(sheet.rows) - len(shown)
        if left:
            kept = all(row.record.verdict == KEPT for row in sheet.rows if row not in shown)
            words = f"{counted(left, 'further promise')}{', all kept' if kept else ''}"
            yield f"<p><b>{words}: appendix {APPENDIX}.</b></p>"
        yield f"<p>Appendix {APPENDIX} has what each promise means in plain words, its trials and its interval.</p>"


def reasons(sheet: Sheet) -> Iterator[str]:
    """Why, and the waivers, as far as they are on the sheet."""
    unkept, waived = _unkept(sheet), sheet.used_waivers
    most = _most_reasons(sheet)
    if len(unkept) <= most:
        yield from _why(sheet)
    if waived and len(waived) <= most:
        yield from _waivers(sheet)
    others = [str(sheet.number(row)) for row in unkept if sheet.waiver(row) is None]
    if others:
        yield f"<p><b>Not kept and not waived: promise {', '.join(others)}.</b></p>"
    parts = ["why"] if len(unkept) > most else []
    parts += ["the waivers with their reasons"] if len(waived) > most else []
    if parts:
        yield f"<p>Of those that were not kept, {' and '.join(parts)}: appendix {APPENDIX}.</p>"
    yield from _tries(sheet)


def _tries(sheet: Sheet) -> Iterator[str]:
    """Yield every try of what other runs had judged before on the same router, in the same folder of results."""
    tried = [(row, row.record.tries) for row in sheet.rows if len(row.record.tries) > 1]
    cells = [
        (str(sheet.number(row)), text(item.run), moment(item.ended), item.verdict, odds_text(item.odds))
        for row, tries in tried
        for item in tries
    ]
    if cells:
        yield "<h3>Every try</h3><p>Each run began at 1; evidence for the router, and against it (1 to …).</p>"
        yield table(cells, ("no.", "run", "ended", "verdict", "evidence"), (9, 0, 40, 31, 40))


def appendix(sheet: Sheet) -> Iterator[str]:
    """Yield what the sheet itself has no room for; nothing if it has all."""
    unkept, waived = _unkept(sheet), sheet.used_waivers
    most = _most_reasons(sheet)
    if len(sheet.rows) <= IN_FULL and len(unkept) <= most and len(waived) <= most:
        return
    yield f"<h2>Appendix {APPENDIX}: every promise</h2>"
    yield _full_table(sheet)
    if len(unkept) > most:
        yield from _why(sheet)
    if len(waived) > most:
        yield from _waivers(sheet)


def _most_reasons(sheet: Sheet) -> int:
    return MOST_REASONS[len(sheet.rows) > IN_FULL]


def _unkept(sheet: Sheet) -> list[SentenceRow]:
    return [row for row in sheet.rows if row.record.verdict != KEPT]


def _on_the_sheet(sheet: Sheet) -> list[SentenceRow]:
    first = sorted(sheet.rows, key=lambda row: row.record.verdict == KEPT)[:MOST_ROWS]
    return sorted(first, key=sheet.number)


def _full_table(sheet: Sheet) -> str:
    heads = ("no.", "promised", "measured", confidence_words(sheet.rows), "margin", "verdict")
    return table((), heads, (9, 0, 29, 28, 20, 31), "".join(_full_row(sheet, row) for row in sheet.rows))


def _full_row(sheet: Sheet, row: SentenceRow) -> str:
    record = row.record
    promised = f"<b>{text(record.sentence)}</b><small>{text(in_plain_words(record))}</small>"
    trials = f"{counted(len(row.sample), 'trial')}{f', {row.set_aside} set aside' if row.set_aside else ''}"
    measured = f"{text(measured_text(row))}<small>{trials}</small>"
    waiver, verdict = sheet.waiver(row), _verdict(sheet, row)
    verdict += f"<small>by {text(waiver.author)} until {waiver.expires}</small>" if waiver else ""
    return _row(sheet, row, [promised, measured, text(interval_text(row)), text(margin_text(row))], verdict)


def _short_table(sheet: Sheet, rows: Sequence[SentenceRow]) -> str:
    body = ""
    for row in rows:
        cells = [text(row.record.sentence), text(measured_text(row)), text(margin_text(row))]
        body += _row(sheet, row, cells, _verdict(sheet, row))
    return table((), ("no.", "promised", "measured", "margin", "verdict"), (9, 0, 37, 31, 40), body, "short")


def _verdict(sheet: Sheet, row: SentenceRow) -> str:
    return f"{row.record.verdict}{', waived' if sheet.waiver(row) else ''}"


def _row(sheet: Sheet, row: SentenceRow, cells: Sequence[str], verdict: str) -> str:
    shown = "".join(f"<td>{cell}</td>" for cell in (str(sheet.number(row)), *cells))
    return f'<tr>{shown}<td class="verdict {row.record.verdict}">{verdict}</td></tr>\n'


def _why(sheet: Sheet) -> Iterator[str]:
    yield "<h3>Why</h3>" if _unkept(sheet) else ""
    for row in _unkept(sheet):
        yield f"<p>Promise {sheet.number(row)}: {text(row.record.message)}</p>"


def _waivers(sheet: Sheet) -> Iterator[str]:
    words = "A waiver accepts that a promise was not kept or not decided. It does not change the verdict."
    yield f'<div class="keep"><h2>Waivers</h2><p>{words}</p></div>'
    yield table(
        [
            (
                str(sheet.number(row)),
                *map(text, (row.record.sentence, row.record.verdict, waiver.author, waiver.reason)),
                str(waiver.expires),
            )
            for row, waiver in sheet.used_waivers
        ],
        ("no.", "promise", "verdict", "author", "reason", "valid until"),
        (9, 48, 30, 34, 0, 23),
    )


def in_plain_words(record: RequirementRecord) -> str:
    """Return what the sentence of *record* promises."""
    demand = record.demand
    least = "at least" if demand.at_least else "at most"
    figure = f"{least} {demand.text()}{f' {demand.scope}' if demand.scope else ''}"
    load = "offered as much as the generator can send"
    if demand.load_pps:
        load = f"offered {si(demand.load_pps, 'pps')} at each port"
    return demand.measures.plain(record.promise, figure, load)


_WORDS = (
    (r"\b(\d+)b\b", "frames (pieces of data) of so many bytes, as 64b of 64; small ones are the hardest"),
    (r"\bimix", "a mix of small, middle and large frames, as on the Internet"),
    (r"\b1-flow\b", "all frames belong to one connection, which one core of the processor has to carry"),
    (r"\bunidirectional\b", "in one direction"),
    (r"\bbidirectional\b", "in both directions at once"),
    (r"\beach way\b", "the figure is that of the worse direction"),
    (r"\bin total\b", "the figure is the sum of the directions; two full directions are 200 %"),
    (r"\bline rate\b", "as many frames as the cable can carry; 100 % is a full cable in one direction"),
    (r"\b[MkG]?pps\b", "frames per second; kpps: thousands, Mpps: millions of them"),
    (r"\b[GMk]bps L1\b", "bits per second on the cable, with the gaps between frames"),
    (r"\b[GMk]bps L2\b", "bits per second of frames, without the gaps between them"),
    (r"\b[µm]s\b", "µs: millionths of a second, ms: thousandths"),
    (r"\bcycles/packet\b", "steps of the processor for a frame"),
    (r"\bforwards\b", "what is delivered while more is offered than the router can carry"),
    (r"\bpdv\b", "how much longer frames take than the fastest one"),
)

FIXED = {
    "PASS": "the promise was kept, and the testbed really put the load on the cable",
    "FAIL": "the promise was not kept; the router is the reason",
    "INCONCLUSIVE": "nothing is proven, neither for nor against the router; the testbed is the reason",
    "trial": "one period of traffic whose frames are counted: sent and received",
    "goal": "the rule that says how many trials a verdict takes, and how much a trial may lose",
    "interval": "within it the mean lies with the confidence that the column's head says",
    "margin": "by how much the figure is better (+) or worse (−) than promised",
}
"""The sheet's own words."""


def glossary(records: Sequence[RequirementRecord]) -> Iterator[tuple[str, str]]:
    """Word and meaning: of the sentences those that occur, then the sheet's own."""
    sentences = " \n ".join(record.sentence for record in records)
    for pattern, meaning in _WORDS:
        found = list(dict.fromkeys(match[0] for match in re.finditer(pattern, sentences)))
        if found:
            yield ", ".join(found[:6]), meaning
    yield from FIXED.items()
