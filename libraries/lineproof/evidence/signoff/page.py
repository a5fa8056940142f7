"""The sheet as one HTML page without scripts and external resources, all text escaped, and as PDF.

Of many promises the sheet itself has short rows, so that it stays a few pages: everything else about them is in the
appendix.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...core.verdict import odds_text
from ...errors import TestbedError
from ...files import read_file
from ...system.installed import remedy
from ...units import counted, si
from ..pictures import sheet_plot
from ..records import RequirementRecord
from ..run_files import MANIFEST_FILE, SIGNATURE
from ..sentence_rows import SentenceRow
from ..summary import NOT_READ, confidence_words, interval_text, margin_text, measured_text
from ..tables import known_rows
from .html_parts import BLANK, FONTS, STYLE, facts_table, moment, or_blank, picture, table, text, text_or_none
from .sheet import KEPT, Party, Sheet
from .testbed_drawing import testbed_drawing

ANSWERS = {
    "supplier": "the router and its settings: for every promise that was not kept (FAIL)",
    "tester": "testbed, measurement and records: for every promise that could not be decided (INCONCLUSIVE)",
    "buyer": "acceptance; for a waiver answers who it names as its author",
    "witness": "having seen the measurement",
}
"""Party -> what it answers for."""


def html_sheet(sheet: Sheet) -> str:
    """The whole page."""
    title = f"Acceptance sheet {sheet.environment.run}"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{text(title)}</title>"
        f'<meta name="dcterms.created" content="{sheet.made:%Y-%m-%dT%H:%M:%SZ}">'
        f"<style>{STYLE}</style></head>\n<body>{''.join(_parts(sheet))}</body></html>\n"
    )


def _parts(sheet: Sheet) -> Iterator[str]:
    if sheet.watermark:
        yield f'<div class="watermark">{"<br>".join(sheet.watermark)}</div>'
    marked = "".join(f"{word} · " for word in sheet.watermark)
    yield f'<div class="foot">{marked}run {text(sheet.environment.run)} · manifest {sheet.manifest or "none"}</div>'
    yield from _head(sheet)
    yield from _parties(sheet)
    yield from promises(sheet)
    yield from reasons(sheet)
    yield from _device(sheet)
    yield from _method(sheet)
    yield from _evidence(sheet)
    yield from _signatures(sheet)
    yield '<div class="appendix"></div>'
    yield from _plots(sheet)
    yield from _words(sheet)
    yield from _versions(sheet)
    yield from appendix(sheet)


def _head(sheet: Sheet) -> Iterator[str]:
    told, environment = sheet.about, sheet.environment
    device = " ".join(filter(None, (told.device.manufacturer, told.device.model)))
    yield f"<h1>Acceptance sheet: {text(device or sheet.summary.facts.get('router', environment.platform))}</h1>"
    yield (
        "<p>What the router was promised to do, what was measured, and who answers for what. Times are UTC, dates"
        " year-month-day. Words are explained in appendix B.</p>"
    )
    if sheet.watermark:
        known = "SIMULATED: nothing on it is a measurement of a router. " if sheet.run.simulated else ""
        reasons = "".join(f"<li>{text(reason)}</li>" for reason in sheet.reasons)
        cannot = f"This run cannot be signed off:<ul>{reasons}</ul>" if reasons else ""
        yield f'<div class="reasons">DRAFT, not to be signed. {known}{cannot}</div>'
    yield f'<div class="result">Result: {text(result_words(sheet))}.</div>'
    measured = f"{moment(environment.started)} to {moment(environment.ended) if environment.ended else 'not ended'}"
    yield table(
        [
            ("Contract", or_blank(told.contract)),
            ("Measured", text(measured)),
            ("Place", or_blank(told.testbed.place)),
            ("Sheet made", f"{sheet.made:%Y-%m-%d %H:%M}"),
            *([("Remarks", text(told.remarks))] if told.remarks else []),
        ]
    )


def result_words(sheet: Sheet) -> str:
    """The result in a line: ``8 of 9 promises kept; 1 not kept (FAIL), waived``."""
    rows = sheet.rows
    if not rows:
        return "no promise was judged"
    kept = sum(row.record.verdict == "PASS" for row in rows)
    marked = "".join(f"{word}: " for word in sheet.watermark)
    of = f"{kept} of " if kept < len(rows) else "" if sheet.summary.incomplete else "all "
    parts = [f"{marked}{of}{counted(len(rows), 'promise')} kept"]
    for verdict, words in (("FAIL", "not kept"), ("INCONCLUSIVE", "not decided")):
        mine = [row for row in rows if row.record.verdict == verdict]
        count = sum(sheet.waiver(row) is not None for row in mine)
        waived = "waived" if count == len(mine) else f"{count} of them waived" if count else "not waived"
        if mine:
            parts.append(f"{len(mine)} {words} ({verdict}), {waived}")
    return "; ".join([*parts, *sheet.summary.incomplete])


def _parties(sheet: Sheet) -> Iterator[str]:
    parties = {name: party for name, party in sheet.about.parties if party is not None}
    yield "<h2>Who answers for what</h2>"
    rows = []
    for name, party in parties.items():
        who = "<br>".join(filter(None, map(text_or_none, (party.name, party.address, party.contact)))) or BLANK
        rows.append((f"<b>{name.capitalize()}</b>", who, text(ANSWERS[name])))
    waived: dict[str, list[str]] = {}
    for row, waiver in sheet.used_waivers:
        waived.setdefault(waiver.author, []).append(str(sheet.number(row)))
    for author, numbers in waived.items():
        rows.append(("<b>Who waives</b>", text(author), f"the waiver of promise {', '.join(numbers)}"))
    yield table(rows, ("party", "who", "answers for"), (34, 62))


def _device(sheet: Sheet) -> Iterator[str]:
    told, facts = sheet.about.device, sheet.summary.facts
    read = facts.get("firmware", NOT_READ)
    yield "<h2>Router and testbed</h2>"
    yield table(
        [
            ("Manufacturer, model", f"{or_blank(told.manufacturer)} {or_blank(told.model)}", "nameplate"),
            ("Serial number, hardware", f"{or_blank(told.serial)} {or_blank(told.hardware)}", "nameplate"),
            (
                "Firmware",
                text(read) if read != "not read" else BLANK,
                "read from the router" if read != "not read" else "",
            ),
            *([("Firmware as told", text(told.firmware), "told by the parties")] if told.firmware else []),
            ("Platform", text(facts.get("router", "")), "platform file of the run"),
            ("Software", text(facts.get("software", "")), "read from the router"),
        ],
        ("", "what", "known from"),
        (40, 0, 44),
    )
    yield f'<div class="keep">{picture("testbed", testbed_drawing(sheet))}</div>'


def _method(sheet: Sheet) -> Iterator[str]:
    yield "<h2>How it was measured</h2>"
    yield (
        "<p>The generator sends frames through the router at the load that a promise names, and counts what comes back"
        " at the other port, frame by frame, for the time of a trial. Trials are repeated until the goal's rule"
        " decides. What the testbed did wrong widens a trial's figure, and each trial counts at both ends: for a PASS"
        " at the worse one, for a FAIL at the better one. Means are without trials of which any number of frames may be"
        " the testbed's: they are set aside."
        " Terms are those of RFC 1242, RFC 2285, RFC 2544 and RFC 9971; the whole method is Lineproof's page"
        " 'methodology', of the version in appendix C.</p>"
    )
    yield f"<p><b>Goal</b> {text(sheet.summary.facts.get('goal', ''))}</p>"
    declared = list(dict.fromkeys(words for row in sheet.rows for words in row.record.deviations))
    listed = [*declared, *sheet.about.deviations]
    items = "".join(f"<li>{text(words)}</li>" for words in listed)
    yield f"<p><b>Deviations</b>{' from the method' if listed else ': none was declared'}</p>"
    yield f"<ul>{items}</ul>" if listed else ""


def _evidence(sheet: Sheet) -> Iterator[str]:
    key = sheet.key
    yield "<h2>Evidence</h2>"
    signed = f'key {key.id}, public key <span class="mono">{key.text}</span>' if key else "none"
    manifest = sheet.manifest or "none: the run was never closed"
    yield table(
        [
            ("Run", text(sheet.environment.run)),
            (f"SHA-256 of {MANIFEST_FILE}", f'<span class="mono">{manifest}</span>'),
            ("Judged again", text(sheet.again)),
            ("Electronic signature", signed),
        ]
    )
    check = f"lineproof verify RUN --public-key {key.text}" if key else "lineproof verify RUN"
    yield (
        f"<p>{MANIFEST_FILE} lists the SHA-256 sum of every file of the run. To check the run's folder RUN:"
        f' <span class="mono">{text(check)}</span>'
    )
    if key:
        command = f"minisign -V -m RUN/{MANIFEST_FILE} -P {key.text}"
        yield (
            f', or without Lineproof: <span class="mono">{text(command)}</span>. The signature is in {SIGNATURE}.'
            " Compare the public key with one that its owner gave you: a sheet alone does not prove whose it is"
        )
    yield ".</p>"


def _signatures(sheet: Sheet) -> Iterator[str]:
    parties: dict[str, Party] = {name: party for name, party in sheet.about.parties if party is not None}
    cells = [
        f"<td><b>{name.capitalize()}</b>: {text_or_none(party.name) or ''}<br>name {or_blank(party.signatory)}"
        f"<br>place, date {BLANK}<br>signature<br><br>{BLANK}</td>"
        for name, party in parties.items()
    ]
    rows = "".join(f"<tr>{''.join(cells[at : at + 4])}</tr>" for at in range(0, len(cells), 4))
    words = (
        "Not to be signed: a draft."
        if sheet.draft
        else "Signed for what each party answers for, as above; the appendix is part of it."
    )
    places = f'<table class="signatures"><tbody>{rows}</tbody></table>'
    yield f'<div class="keep"><h2>Signatures</h2><p>{words}</p>{places}</div>'


def _plots(sheet: Sheet) -> Iterator[str]:
    yield "<h2>Appendix A: every trial</h2>"
    shown = [row for row in sheet.rows if row.sample or row.losses or row.aside]
    cells = [f"<td>{picture(row.record.sentence, sheet_plot(row, sheet.number(row)))}</td>" for row in shown]
    rows = "".join(f"<tr>{''.join(cells[at : at + 2])}</tr>" for at in range(0, len(cells), 2))
    yield f'<table class="plots"><tbody>{rows}</tbody></table>'
    if len(shown) < len(sheet.rows):
        others = [sheet.number(row) for row in sheet.rows if row not in shown]
        yield f"<p>No trial says something of promise {', '.join(map(str, others))}.</p>"


def _words(sheet: Sheet) -> Iterator[str]:
    yield "<h2>Appendix B: words</h2>"
    yield table([(f"<b>{text(word)}</b>", text(words)) for word, words in glossary([row.record for row in sheet.rows])])


def _versions(sheet: Sheet) -> Iterator[str]:
    environment = sheet.environment
    yield "<h2>Appendix C: router, programs, sums</h2>"
    if (facts := environment.router_facts) is not None:
        yield f"<h3>The router, as it reports itself</h3>{facts_table(known_rows(facts))}"
    yield f"<h3>Versions, as each reports it</h3>{facts_table(sorted(environment.versions.items()))}"
    code = ", ".join(f"{name} {value}" for name, value in environment.code.items())
    yield facts_table(
        [("Lineproof", code or "unknown"), *[(name, str(environment.host[name])) for name in environment.host]]
    )
    fingerprints = environment.extra.get("fingerprints")
    if isinstance(fingerprints, dict) and fingerprints:
        yield f"<h3>SHA-256 of the files that define the run</h3>{facts_table(sorted(fingerprints.items()))}"


_NEEDS = "the PDF needs the package weasyprint: {remedy}; or leave the PDF out: --html-only"
_PANGO = "the PDF needs the library Pango, on Debian and Ubuntu: apt install libpango-1.0-0 libpangoft2-1.0-0"


def require_weasyprint() -> Any:
    """The package. Raises TestbedError with the way out where it, or its library, is missing."""
    try:
        return importlib.import_module("weasyprint")
    except ImportError:
        raise TestbedError(_NEEDS.format(remedy=remedy("signoff"))) from None
    except OSError:  # it loads the library when it is imported
        raise TestbedError(f"{_PANGO}; or leave the PDF out: --html-only") from None


def pdf_sheet(page: str, sheet: Sheet) -> bytes:
    """*page*, that of *sheet*, as PDF/A-3b. Nothing is fetched: not from a network, and no file but the fonts."""
    weasyprint = require_weasyprint()
    from weasyprint.text.fonts import FontConfiguration

    fonts = FontConfiguration()
    faces = [
        f'@font-face {{ font-family: "{family}"; font-weight: {weight}; font-style: {style};'
        f" src: url({path.as_uri()}); }}"
        for (family, weight, style), file in FONTS.items()
        if (path := _font_folder() / file).is_file()
    ]
    own = weasyprint.CSS(string="\n".join(faces), font_config=fonts, url_fetcher=_fetcher(weasyprint, "file"))
    manifest = sheet.run.path / MANIFEST_FILE
    attached = [
        weasyprint.Attachment(string=read_file(path), name=path.name, relationship=relationship)
        for path, relationship in (
            *([(manifest, "Source")] if sheet.manifest else []),
            *((path, "Supplement") for path in sheet.attached),
        )
    ]
    document = weasyprint.HTML(string=page, url_fetcher=_fetcher(weasyprint, "data"))
    made: bytes = document.write_pdf(
        stylesheets=[own],
        font_config=fonts,
        attachments=attached,
        pdf_variant="pdf/a-3b",
        pdf_tags=True,
        finisher=_plain_metadata,
    )
    return made


def _plain_metadata(_: Any, pdf: Any) -> None:
    """Leave the metadata uncompressed: for validators that ask it of every PDF/A, and programs that know no PDF."""
    for item in pdf.objects:
        if getattr(item, "extra", {}).get("Type") == "/Metadata":
            item.compress = False


def _font_folder() -> Path:
    # never imported: it would read settings of the current folder
    found = importlib.util.find_spec("matplotlib")
    return Path(found.origin if found and found.origin else "").parent / "mpl-data" / "fonts" / "ttf"


def _fetcher(weasyprint: Any, protocol: str) -> Any:
    """Fetches what has this *protocol*; another one ends the work."""
    return weasyprint.urls.URLFetcher(allowed_protocols=(protocol,), allow_redirects=False, fail_on_errors=True)


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
    demanded = record.requirement
    least, scope = "at least" if demanded.at_least else "at most", demanded.scope.value
    figure = f"{least} {demanded.text()}{f' {scope}' if scope else ''}"
    load = "offered as much as the generator can send"
    if named := demanded.named_load(record.link_bps):
        load = f"offered {si(named.pps, 'pps')} at each port"
    return demanded.quantity.plain(record.promise, figure, load)


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
